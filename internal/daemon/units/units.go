// Package units connects pods with the systemd units podstead@NAME.service. The main process of a unit is a shell that waits for the exit
// code of its pod. The daemon sends the status of the pod to systemd on behalf of that process, and ends it when the pod ends.
//
// It starts and stops no pods. See docs/design/units.md.
package units

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// Dir is the directory with the pod files of units, in the configuration directory.
const Dir = "units.d"

// Extensions are those of pod files.
var Extensions = []string{".toml", ".yaml", ".yml", ".json"}

// Find returns the pod file of a unit: a file of units.d, or a file of the pods directory with the table systemd.
func Find(configDir, podsDir, pod string) (string, error) {
	var found []string
	for _, dir := range []string{filepath.Join(configDir, Dir), podsDir} {
		for _, extension := range Extensions {
			path := filepath.Join(dir, pod+extension)
			if _, err := os.Stat(path); err == nil {
				found = append(found, path)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("find pod file: %w", err)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("find pod file: %s does not exist", filepath.Join(configDir, Dir, pod+".toml"))
	case 1:
	default:
		return "", fmt.Errorf("pod %q is defined by %s: remove all but one", pod, strings.Join(found, " and "))
	}
	if filepath.Dir(found[0]) == filepath.Clean(podsDir) {
		defined, _, err := spec.ParseFile(found[0])
		if err != nil {
			return "", err
		}
		if defined != nil && defined.Systemd == nil {
			return "", fmt.Errorf("the daemon starts pod %q: %s has no table [systemd]", pod, found[0])
		}
	}
	return found[0], nil
}

// notifySocket is where systemd receives states.
const notifySocket = "/run/systemd/notify"

// notify sends a state to systemd on behalf of a process, as sd_pid_notify(3) does. It requires CAP_SYS_ADMIN.
func notify(socket string, pid int, state string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	credentials := unix.UnixCredentials(&unix.Ucred{Pid: int32(pid), Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())})
	return unix.Sendmsg(fd, []byte(state), credentials, &unix.SockaddrUnix{Name: socket}, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}

// Pipe makes the standard input of this process a pipe that the daemon writes the exit code of the pod to. The process keeps the other end,
// so that the pipe stays open.
func Pipe() error {
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil { // [Wait] inherits both
		return fmt.Errorf("create pipe: %w", err)
	}
	if err := unix.Dup3(ends[0], 0, 0); err != nil {
		return fmt.Errorf("replace standard input: %w", err)
	}
	return unix.Close(ends[0])
}

// Wait replaces the program of this process with a shell that waits for the exit code. It needs less memory than this program. It returns
// only if that fails.
func Wait(pod string) error {
	return unix.Exec("/bin/sh", []string{"sh", "-c", `read -r code; exit "${code:-1}"`, "pod-" + pod}, []string{"PATH=/usr/bin:/bin"})
}

// release ends a process that waits, with an exit code. A process that does not wait is left alone.
func release(pid, code int) error {
	pipe, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/0", pid), os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer pipe.Close()
	if info, err := pipe.Stat(); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return errors.Join(err, fmt.Errorf("process %d does not wait for a pod", pid))
	}
	_, err = fmt.Fprintln(pipe, code)
	return err
}

package rootless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// process identifies a process until the next boot. Start is that of [proc.Stat]. The zero value is none.
type process struct {
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
}

// processOf returns the process with an ID. The zero value: there is none, or it is a zombie.
func processOf(pid int) process {
	s, err := proc.StatOf(pid)
	if err != nil || !s.Running() {
		return process{}
	}
	return process{pid, s.Start}
}

// runs reports whether the process exists.
func (p process) runs() bool { return p.PID > 0 && processOf(p.PID) == p }

// path returns the path of a file of the process in /proc.
func (p process) path(name string) string { return filepath.Join("/proc", strconv.Itoa(p.PID), name) }

// namespace returns the identity of a namespace of the process, such as user:[4026531837]; "" if it must not be known.
func (p process) namespace(kind string) string {
	name, _ := os.Readlink(p.path("ns/" + kind))
	return name
}

// kill sends SIGKILL. It is no error if the process does not exist.
func (p process) kill() error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err == nil {
		defer unix.Close(fd)
		if !p.runs() {
			return nil
		}
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	return nil
}

const (
	// killTimeout bounds the exit of processes that were killed.
	killTimeout = 30 * time.Second
	// pollInterval is the interval in which processes and locks are checked.
	pollInterval = 20 * time.Millisecond
)

// killAll kills what list returns until it returns nothing, and waits until all of them have exited: a process that exits loses its
// arguments first, by which list may know it.
func killAll(ctx context.Context, list func() ([]process, error)) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	killed := map[process]bool{}
	for {
		left, err := list()
		if err != nil {
			return err
		}
		for p := range killed {
			if p.runs() && !slices.Contains(left, p) {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return nil
		}
		for _, p := range left {
			err = errors.Join(err, p.kill())
			killed[p] = true
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d killed processes do not exit, such as process %d", len(left), left[0].PID)
		}
	}
}

// userNamespace is a user namespace. While it is open, the kernel does not give its number to another one.
type userNamespace struct{ file *os.File }

// userNamespaceOf opens the user namespace of a process.
func userNamespaceOf(p process) (userNamespace, error) {
	f, err := os.Open(p.path("ns/user"))
	return userNamespace{f}, err
}

func (u userNamespace) close() { _ = u.file.Close() }

// has reports whether a process is in the namespace, or in one that was created in it. One that must not be inspected is not.
func (u userNamespace) has(p process) bool {
	want, err := u.file.Stat()
	if err != nil {
		return false
	}
	f, err := os.Open(p.path("ns/user"))
	for err == nil {
		is, statErr := f.Stat()
		if statErr == nil && os.SameFile(want, is) {
			return f.Close() == nil
		}
		parent, errno := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_PARENT)
		_ = f.Close()
		if errno != nil { // the parent is not below the namespace of this process
			return false
		}
		f = os.NewFile(uintptr(parent), "parent")
	}
	return false
}

// processes returns the processes that the namespace has.
func (u userNamespace) processes() ([]process, error) {
	all, err := proc.List()
	var found []process
	for _, pid := range all {
		if p := processOf(pid); p.PID != 0 && u.has(p) {
			found = append(found, p)
		}
	}
	return found, err
}

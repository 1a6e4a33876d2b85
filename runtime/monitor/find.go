package monitor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// idleKeeper is how long a keeper may have no monitor without an attempt to start one: it hangs.
const idleKeeper = time.Minute

// Freed is what [Free] has done.
type Freed struct {
	Monitors int // that were killed
	Keepers  int // that were continued (SIGCONT) or killed
}

// Free replaces the monitor of a state directory that does not respond: it is killed if it was started longer than age ago, also in place
// of another one in the same process, and its keeper starts another one. A keeper that is stopped is continued. One that has not tried to
// start a monitor for a minute is killed, and the caller starts another one. No container is affected.
//
// The processes are found by their arguments, because one that hangs cannot be asked, and the credentials of the socket are those of the
// process that created it. A pidfd makes sure that a process is the one whose arguments were read.
func Free(dir string, age time.Duration) (f Freed) {
	found := findRoles(dir)
	defer func() {
		for _, p := range found {
			closeAll(p.pidfd)
		}
	}()
	var started time.Time // zero: not known
	if lock, err := os.Stat(filepath.Join(dir, lockFile)); err == nil {
		started = lock.ModTime()
	}
	monitors := 0
	for _, p := range found {
		if p.role != roleMonitor {
			continue
		}
		monitors++
		if p.since(started, time.Now()) >= age && p.signal(unix.SIGKILL) {
			f.Monitors++
		}
	}
	for _, p := range found {
		switch {
		case p.role != roleKeeper:
		case monitors == 0 && p.hangs(started, time.Now()):
			if p.signal(unix.SIGKILL) {
				f.Keepers++
			}
		case p.stopped && p.signal(unix.SIGCONT):
			f.Keepers++
		}
	}
	return f
}

// roleProcess is a keeper or a monitor.
type roleProcess struct {
	role    string
	pidfd   int
	age     time.Duration
	stopped bool // SIGSTOP
}

// hangs reports whether a keeper without a monitor hangs. It has started, or tried to start, the last one at a time.
func (p roleProcess) hangs(started, now time.Time) bool {
	return !started.IsZero() && min(now.Sub(started), p.age) >= idleKeeper
}

// since returns how long a monitor has run. One that was executed in place is younger than its process. If it was started in the future,
// the clock was set back.
func (p roleProcess) since(started, now time.Time) time.Duration {
	if now.Before(started) {
		return p.age
	}
	return min(now.Sub(started), p.age)
}

// signal sends a signal. It reports whether the process existed.
func (p roleProcess) signal(s unix.Signal) bool {
	return unix.PidfdSendSignal(p.pidfd, s, nil, 0) == nil
}

// findRoles returns keepers and monitors of a state directory that have not been killed. The caller closes their pidfds.
func findRoles(dir string) (found []roleProcess) {
	for _, pid := range Processes(dir) {
		if p, err := openRole(pid, dir); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// Processes returns the processes of the keepers and monitors of a state directory. Their arguments show what they are, so they may be
// other processes that a container has started.
func Processes(dir string) []int {
	all, _ := proc.List()
	return slices.DeleteFunc(all, func(pid int) bool { return roleOf(pid, dir) == "" })
}

// openRole opens a process that is a keeper or a monitor. The error is [unix.ESRCH] if it is none, or was killed.
func openRole(pid int, dir string) (p roleProcess, err error) {
	if p.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		return p, err
	}
	p.role = roleOf(pid, dir)
	s, err := proc.StatOf(pid)
	now, nowErr := bootTicks()
	if err = errors.Join(err, nowErr); err == nil && (p.role == "" || s.State == 'Z' || !p.signal(0)) {
		err = unix.ESRCH // the signal fails if the arguments are those of a later process with this ID
	}
	if err != nil {
		return p, errors.Join(err, unix.Close(p.pidfd))
	}
	p.age, p.stopped = time.Duration(now-min(s.Start, now))*(time.Second/ticksPerSecond), s.State == 'T'
	return p, nil
}

// roleOf returns the role of a process that has this state directory, by its arguments; "": it is none.
func roleOf(pid int, dir string) string {
	args := proc.Args(pid)
	if len(args) < 2 || filepath.Base(args[0]) != Name {
		return ""
	}
	role := args[1]
	i := slices.Index(args, "-state") + 1
	if role != roleKeeper && role != roleMonitor || i == 0 || i >= len(args) || args[i] != dir {
		return ""
	}
	return role
}

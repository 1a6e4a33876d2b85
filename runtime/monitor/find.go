package monitor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
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
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || roleOf(pid, dir) == "" {
			continue
		}
		if p, err := openRole(pid, dir); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// Processes returns the processes of the keepers and monitors of a state directory. Their arguments show what they are, so they may be
// other processes that a container has started.
func Processes(dir string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && roleOf(pid, dir) != "" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// openRole opens a process that is a keeper or a monitor. The error is [unix.ESRCH] if it is none, or was killed.
func openRole(pid int, dir string) (p roleProcess, err error) {
	if p.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		return p, err
	}
	p.role = roleOf(pid, dir)
	s, err := statOf(pid)
	now, nowErr := bootTicks()
	if err = errors.Join(err, nowErr); err == nil && (p.role == "" || s.state == 'Z' || !p.signal(0)) {
		err = unix.ESRCH // the signal fails if the arguments are those of a later process with this ID
	}
	if err != nil {
		return p, errors.Join(err, unix.Close(p.pidfd))
	}
	p.age, p.stopped = time.Duration(now-min(s.start, now))*(time.Second/ticksPerSecond), s.state == 'T'
	return p, nil
}

// roleOf returns the role of a process that has this state directory, by its arguments; "": it is none.
func roleOf(pid int, dir string) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return "" // it has exited
	}
	args := bytes.Split(text, []byte{0})
	if len(args) < 2 || filepath.Base(string(args[0])) != Name {
		return ""
	}
	role := string(args[1])
	i := slices.IndexFunc(args, func(a []byte) bool { return string(a) == "-state" }) + 1
	if role != roleKeeper && role != roleMonitor || i == 0 || i >= len(args) || string(args[i]) != dir {
		return ""
	}
	return role
}

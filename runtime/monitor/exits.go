package monitor

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// unknownCode is the exit code of a process whose exit is not known, as in containerd.
const unknownCode = 255

// watched is a process whose exit the loop waits for.
type watched struct {
	pid   int
	start uint64
	fd    int // pidfd; 0: none
	token token
}

// watch waits for the exit of a process. exited records it, and reports false if that is not possible now: the process stays a zombie then,
// and exited is called again.
func (w *watched) watch(m *Monitor, pid int, start uint64, pidfd int, exited func(code int, known bool) bool) (err error) {
	w.pid, w.start, w.fd = pid, start, pidfd
	w.token, err = m.loop.watch(pidfd, func(uint32) {
		code, known := m.statusOf(w)
		if !exited(code, known) {
			t := w.token
			m.loop.change(t, 0)
			m.loop.after(againTime, func() { m.loop.change(t, unix.EPOLLIN) })
			return
		}
		m.reap(w)
		w.unwatch(m.loop)
		m.touch()
	})
	return err
}

// unwatch closes the pidfd.
func (w *watched) unwatch(l *loop) {
	if w.fd > 0 {
		l.unwatch(w.token)
		closeAll(w.fd)
		w.fd = 0
	}
}

// signal sends a signal to the process. The error is [unix.ESRCH] if it has exited.
func (w *watched) signal(s unix.Signal) error {
	if w.fd <= 0 {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(w.fd, s, nil, 0)
}

// statusOf returns the exit code of a process that has exited. It is not known if the process was no child of a monitor or keeper that was
// running, and the kernel does not keep it.
func (m *Monitor) statusOf(w *watched) (code int, known bool) {
	info, err := wait(unix.P_PIDFD, w.fd, unix.WNOWAIT)
	if err == nil && info.pid != 0 {
		return info.exitCode(), true
	}
	// A child of the keeper, which keeps the zombie, or of another process, which may reap it between the first and the second look.
	for _, look := range []func() int{
		func() int { return infoStatus(w.fd) },
		func() int { return zombieStatus(w.pid, w.start) },
		func() int { return infoStatus(w.fd) },
	} {
		if status := look(); status != noStatus {
			return codeOf(status), true
		}
	}
	return unknownCode, false
}

// reap reaps a process whose exit is recorded.
func (m *Monitor) reap(w *watched) {
	if info, err := wait(unix.P_PIDFD, w.fd, 0); err == nil && info.pid != 0 {
		return
	}
	m.tellReap(w.pid, w.start)
}

func (m *Monitor) tellReap(pid int, start uint64) {
	m.tell(verbReap+" "+strconv.Itoa(pid)+" "+strconv.FormatUint(start, 10), -1)
}

const (
	// sweepInterval is the least time between two sweeps: each looks at all children.
	sweepInterval = 50 * time.Millisecond
	// sweepTurn is how many children a sweep looks at before others have their turn.
	sweepTurn = 64
)

// child is a child of the monitor, or of its keeper.
type child struct {
	pid int
	own bool
}

// sweep reaps, soon, children that have exited and that are not waited for: processes that lost their parent. A child that may be a process
// that the OCI runtime has just started stays until that is known.
func (m *Monitor) sweep() {
	m.sweepAgain = true
	if !m.sweeping {
		m.sweeping = true
		m.loop.after(sweepInterval, m.sweepAll)
	}
}

func (m *Monitor) sweepAll() {
	m.sweepAgain = false
	var children []child
	for _, pid := range childrenOf(os.Getpid()) {
		children = append(children, child{pid, true})
	}
	for _, pid := range childrenOf(keeperPID()) {
		if pid != os.Getpid() {
			children = append(children, child{pid, false})
		}
	}
	m.sweepPart(children, false)
}

// sweepPart looks at the first children of a list, and at the others in later turns. There is something to do later if later is set.
func (m *Monitor) sweepPart(children []child, later bool) {
	m.sweeping = false // also after a panic
	n := min(len(children), sweepTurn)
	birth, flying := m.flights.oldest()
	known := m.knownPIDs()
	for _, c := range children[:n] {
		if known[c.pid] {
			continue
		}
		s, err := proc.StatOf(c.pid)
		if err != nil || s.State != 'Z' {
			later = later || !c.own && err == nil // the keeper does not say when a child exits
			continue
		}
		switch {
		case flying && s.Start >= birth:
			later = true
		case c.own:
			_, _ = wait(unix.P_PID, c.pid, 0)
		default:
			m.tellReap(c.pid, s.Start)
		}
	}
	if rest := children[n:]; len(rest) > 0 {
		m.sweeping = true
		m.loop.post(func() { m.sweepPart(rest, later) })
		return
	}
	if m.sweepAgain {
		m.sweep()
	} else if later && !m.sweepLater {
		m.sweepLater = true
		m.loop.after(againTime, func() {
			m.sweepLater = false
			m.sweep()
		})
	}
}

// knownPIDs returns the processes whose exit is waited for.
func (m *Monitor) knownPIDs() map[int]bool {
	known := map[int]bool{}
	for _, c := range m.containers {
		if c.process.fd > 0 {
			known[c.process.pid] = true
		}
		for _, x := range c.commands {
			if x.process.fd > 0 {
				known[x.process.pid] = true
			}
		}
	}
	for j := range m.jobs {
		known[j.process.pid] = true
	}
	return known
}

// isGone reports whether an error says that a process does not exist.
func isGone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist)
}

package ondemand

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// maxDeaths is the number of daemons in a row that may exit soon after they were ready, before no further one is started.
	maxDeaths = 3
	// soon is how long a daemon must run to count as one that works.
	soon = 5 * time.Second
	// exitTimeout bounds the wait for the exit of a daemon that does not answer.
	exitTimeout = time.Second
	// maxLogTail is how much of a daemon's log is searched for the reason of its exit, in bytes.
	maxLogTail = 64 << 10
)

// process is a daemon that was started and became ready.
type process struct {
	ready  time.Time
	logged int64         // size of the log when it was started
	exited chan struct{} // closed after the fields below are set
	lived  time.Duration
	state  *os.ProcessState
}

// watchProcess reaps the daemon if it exits before this process.
func watchProcess(cmd *exec.Cmd, logged int64) *process {
	p := &process{ready: time.Now(), logged: logged, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		p.lived, p.state = time.Since(p.ready), cmd.ProcessState
		close(p.exited)
	}()
	return p
}

// countDeath counts the exit of the newest daemon. It returns an error if no further daemon must be started. A daemon that was stopped on
// purpose exits with 0 and does not count.
func (s *Starter) countDeath(ctx context.Context) error {
	p := s.last
	if p == nil || s.gaveUp != nil {
		return s.gaveUp
	}
	timeout := time.NewTimer(exitTimeout)
	defer timeout.Stop()
	select {
	case <-p.exited:
	case <-timeout.C:
		return nil // it still runs
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.last = nil
	if p.state.Success() || p.lived > soon {
		s.deaths = 0
		return nil
	}
	if s.deaths++; s.deaths < maxDeaths {
		return nil
	}
	why := p.state.String()
	if line := s.reason(p.logged); line != "" {
		why += ": " + line
	}
	s.deaths = 0
	s.gaveUp = &Error{Message: fmt.Sprintf("start daemon: exited unexpectedly %d times in a row: %s", maxDeaths, why), Hints: s.seeLog()}
	return s.gaveUp
}

// reason returns the line of the log, after an offset, that names a crash; "": there is none.
func (s *Starter) reason(offset int64) string {
	f, err := os.Open(s.Log)
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() < offset { // rotated
		offset = 0
	}
	text, _ := io.ReadAll(io.NewSectionReader(f, offset, maxLogTail)) // a part is enough
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// seeLog returns the hint to read the log of the daemon.
func (s *Starter) seeLog() []string { return []string{"see the log of the daemon, " + s.Log} }

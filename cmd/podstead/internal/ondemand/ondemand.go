package ondemand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

const (
	// startTimeout bounds the start of the daemon. It takes a fraction of a second, but longer on a loaded host with a slow disk and
	// many pods to recover. It is the default of systemd for services.
	startTimeout = 90 * time.Second
	// noticeDelay is the time after which the user is notified that the start takes long.
	noticeDelay = time.Second
	// pollInterval is the interval between attempts to connect to a daemon that another command started.
	pollInterval = 50 * time.Millisecond
	// firstRetry and maxRetry are the shortest and the longest time before another attempt to start a daemon while one holds the lock.
	firstRetry, maxRetry = 250 * time.Millisecond, 4 * time.Second
)

// Error reports that the daemon is not running and could not be started. It matches [api.ErrUnavailable].
type Error struct {
	Message string
	Hints   []string
	// inUse reports that another daemon holds the lock. It may still be starting.
	inUse bool
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Is reports whether the target is [api.ErrUnavailable].
func (e *Error) Is(target error) bool { return target == api.ErrUnavailable }

// StatusInUse is the code that a daemon passes to [Reporter.Failed] if another daemon holds the lock of its state directory.
const StatusInUse = 75

// Starter connects to the daemon and starts it if it is not running.
type Starter struct {
	Client *client.Client
	// Args are the arguments of the program that start the daemon.
	Args []string
	// Log is the path of the daemon's log.
	Log string
	// ReadOnly reports that the client uses the read-only socket. A user who may only read starts no daemon.
	ReadOnly bool
	// Notify shows a message to the user; nil: no messages. It is called from another goroutine.
	Notify func(message string)
	// NoStart is why this user cannot start a daemon; nil: it can be tried.
	NoStart *Error

	mu        sync.Mutex
	responded bool     // a daemon has responded
	last      *process // the newest daemon that this starter has started; nil: none, or its exit is counted
	deaths    int      // consecutive daemons that exited soon after they were ready
	gaveUp    error    // why no further daemon is started; nil: the next one may be started
}

// Connect returns when the daemon is ready, and starts it if it is not running. If a daemon has responded before, and that one or a later
// one was stopped on request, it starts none and returns an [*api.StoppedError] until there is another daemon. After three daemons in a row
// that exited unexpectedly as soon as they were ready, it starts no further one and returns why. It is safe for concurrent use.
func (s *Starter) Connect(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stopped(); err != nil { // before a connection, which would make systemd start a daemon
		return err
	}
	if err := s.version(ctx); !errors.Is(err, api.ErrUnavailable) {
		s.gaveUp = nil
		return err
	} else if errors.Is(err, os.ErrPermission) {
		return &Error{
			Message: fmt.Sprintf("connect to %s: permission denied", s.Client.Socket()),
			Hints: []string{
				"run the command as root or as a member of group podstead",
				"to read only, a member of group podstead-ro can use the command while the daemon runs",
			},
		}
	} else if s.NoStart != nil {
		return s.NoStart
	} else if s.ReadOnly {
		return &Error{
			Message: fmt.Sprintf("connect to %s: the daemon is not running", s.Client.Socket()),
			Hints:   []string{"start it as root: users with read-only access cannot"},
		}
	}
	if err := s.stopped(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the daemon did not respond within %v", startTimeout))
	defer cancel()
	if err := s.countDeath(ctx); err != nil {
		return err
	}
	var notice sync.WaitGroup
	notice.Go(func() { s.notifyLater(ctx) })
	defer func() { cancel(); notice.Wait() }() // Notify is not called after the return
	err := s.start(ctx)
	if e, failed := errors.AsType[*Error](err); failed && e.inUse {
		err = s.await(ctx, e)
	}
	if err != nil {
		return err
	}
	if err := s.version(ctx); err != nil && !errors.Is(err, api.ErrUnavailable) {
		return err
	}
	return nil // if the new daemon does not respond any more, the next call fails
}

// version checks that the daemon responds.
func (s *Starter) version(ctx context.Context) error {
	_, err := s.Client.Version(ctx)
	s.responded = s.responded || err == nil
	return err
}

// stopped returns an [*api.StoppedError] if a daemon has responded and the one that ran last was stopped on request. A daemon that ran
// between two calls of Connect counts, although it has never responded to this client.
func (s *Starter) stopped() error {
	if !s.responded {
		return nil
	}
	return s.Client.Stopped()
}

// notifyLater notifies the user if the start takes longer than [noticeDelay].
func (s *Starter) notifyLater(ctx context.Context) {
	t := time.NewTimer(noticeDelay)
	defer t.Stop()
	select {
	case <-t.C:
		if s.Notify != nil {
			s.Notify("waiting for the daemon to start...")
		}
	case <-ctx.Done():
	}
}

// await waits for the daemon that caused the error by holding the lock. That daemon may be about to exit, so await tries to start another
// one, less and less often.
func (s *Starter) await(ctx context.Context, inUse *Error) error {
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	delay := firstRetry
	retry := time.NewTimer(delay)
	defer retry.Stop()
	for {
		if err := s.version(ctx); !errors.Is(err, api.ErrUnavailable) && ctx.Err() == nil {
			return err
		}
		select {
		case <-t.C:
		case <-retry.C:
			err := s.start(ctx)
			if e, failed := errors.AsType[*Error](err); ctx.Err() == nil && (!failed || !e.inUse) {
				return err
			}
			delay = min(2*delay, maxRetry)
			retry.Reset(delay)
		case <-ctx.Done():
			inUse.Hints = append(inUse.Hints,
				fmt.Sprintf("check whether the daemon runs with another --socket: it does not respond on %s", s.Client.Socket()))
			return inUse
		}
	}
}

// start starts a daemon and waits until it is ready or has exited.
func (s *Starter) start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start daemon: %w", err)
	}
	log, err := s.openLog()
	if err != nil {
		return fmt.Errorf("start daemon: %w", err)
	}
	defer log.Close()
	logged := int64(0)
	if st, err := log.Stat(); err == nil {
		logged = st.Size()
	}
	reports, child, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start daemon: %w", err)
	}
	defer reports.Close()
	cmd := exec.Command(program, s.Args...) // without a context: the daemon outlives this process
	cmd.Args[0] = "podstead"
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{child} // reportFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = child.Close()
	if err != nil {
		return fmt.Errorf("start daemon: %w", err)
	}
	seeLog := s.seeLog()
	r, err := readReport(ctx, reports)
	if err != nil {
		return &Error{Message: "start daemon: " + err.Error(), Hints: seeLog}
	}
	if r == nil || r.Error != "" {
		_ = cmd.Wait() // the daemon has exited or is about to
	}
	switch {
	case r == nil:
		return &Error{Message: "start daemon: exited unexpectedly: " + cmd.ProcessState.String(), Hints: seeLog}
	case r.Error != "":
		return &Error{Message: "start daemon: " + r.Error, Hints: r.Hints, inUse: r.Status == StatusInUse}
	}
	s.last = watchProcess(cmd, logged)
	return nil
}

// openLog opens the log, and rotates it if it is too large. It returns /dev/null if the log cannot be written: the daemon then fails
// for the same reason, and reports that.
func (s *Starter) openLog() (*os.File, error) {
	if st, err := os.Stat(s.Log); err == nil && st.Size() > maxLogSize {
		_ = os.Rename(s.Log, oldLog(s.Log))
	}
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o711); err != nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	f, err := create(s.Log, 0)
	if err != nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	return f, nil
}

// readReport reads the report of the daemon. It returns nil if the daemon exited without a report.
func readReport(ctx context.Context, reports *os.File) (*report, error) {
	type result struct {
		report *report
		err    error
	}
	got := make(chan result, 1)
	go func() {
		r := &report{}
		err := json.NewDecoder(reports).Decode(r)
		if errors.Is(err, io.EOF) {
			r, err = nil, nil
		}
		got <- result{r, err}
	}()
	select {
	case r := <-got:
		return r.report, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

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

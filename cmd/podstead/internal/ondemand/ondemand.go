// Package ondemand starts the daemon where none runs: a command asks for one that answers, and gets it, or the reason why
// there is none. The daemon is detached from the command and outlives it. Of several that are started at the same time one
// wins the lock on the state; the others end, and their commands use the winner.
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
)

const (
	// startLimit is what a daemon has to answer. It takes a fraction of a second, but far more on a loaded machine with a
	// slow disk and many pods to take up.
	startLimit = 30 * time.Second
	// patience is how long nothing is said about waiting.
	patience = time.Second
	// lookAgain is the pause between two looks for a daemon that somebody else has started.
	lookAgain = 50 * time.Millisecond
	// logSize is what may be in the log of the daemon before a new one is begun; one older is kept.
	logSize = 1 << 20
)

// Error says that there is no daemon and none could be started. It is an [api.ErrUnavailable].
type Error struct {
	Message string
	Hints   []string
	// inUse says that another daemon has the state, which may be about to answer.
	inUse bool
}

// Error is what the daemon said.
func (e *Error) Error() string { return e.Message }

// Is makes it an [api.ErrUnavailable].
func (e *Error) Is(target error) bool { return target == api.ErrUnavailable }

// StatusInUse is the exit status, told by [Reporter.Failed], of a daemon whose state another one has.
const StatusInUse = 75

// Starter knows how to reach a daemon and how to start it.
type Starter struct {
	Client *api.Client
	// Args are the arguments of the daemon.
	Args []string
	// Log is the path of the daemon's log.
	Log string
	// Say tells a person what takes long; nil: nobody.
	Say func(message string)

	mu sync.Mutex
}

// Connect returns when the daemon answers, and starts it if need be. It is safe for concurrent use.
func (s *Starter) Connect(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.Client.Version(ctx); !errors.Is(err, api.ErrUnavailable) {
		return err
	} else if errors.Is(err, os.ErrPermission) {
		return &Error{
			Message: fmt.Sprintf("connect to %s: permission denied", s.Client.Socket()),
			Hints:   []string{"be root, or a member of the group podstead"},
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("the daemon did not answer within %v", startLimit))
	defer cancel()
	go s.sayLater(ctx)
	err := s.start(ctx)
	if e, failed := errors.AsType[*Error](err); failed && e.inUse {
		return s.await(ctx, e)
	}
	return err
}

// sayLater says that it takes long, if it does.
func (s *Starter) sayLater(ctx context.Context) {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-t.C:
		if s.Say != nil {
			s.Say("waiting for the daemon to start...")
		}
	case <-ctx.Done():
	}
}

// await waits for a daemon that somebody else has started.
func (s *Starter) await(ctx context.Context, why *Error) error {
	t := time.NewTicker(lookAgain)
	defer t.Stop()
	for {
		if _, err := s.Client.Version(ctx); !errors.Is(err, api.ErrUnavailable) && ctx.Err() == nil {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			why.Hints = append(why.Hints, fmt.Sprintf("it does not answer at %s: was it started with another --socket?", s.Client.Socket()))
			return why
		}
	}
}

// start starts a daemon and waits until it is ready, or has ended.
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
	reports, child, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start daemon: %w", err)
	}
	defer reports.Close()
	cmd := exec.Command(program, s.Args...) //nolint:noctx // it outlives this process
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
	answer, err := read(ctx, reports)
	if err != nil {
		return &Error{Message: "start daemon: " + err.Error(), Hints: []string{"its log is " + s.Log}}
	}
	if answer == nil || answer.Error != "" {
		_ = cmd.Wait() // it ends, or has ended
	}
	switch {
	case answer == nil:
		return &Error{Message: "start daemon: it ended without a word: " + cmd.ProcessState.String(), Hints: []string{"its log is " + s.Log}}
	case answer.Error != "":
		return &Error{Message: "start daemon: " + answer.Error, Hints: answer.Hints, inUse: answer.Status == StatusInUse}
	}
	go func() { _ = cmd.Wait() }() // should it end before this process does
	return nil
}

// read reads what the daemon reports; nil: it ended without a report.
func read(ctx context.Context, reports *os.File) (*report, error) {
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

// openLog opens the log, and begins a new one if it has grown. Somebody who may not write it is told by the daemon itself
// what it lacks.
func (s *Starter) openLog() (*os.File, error) {
	if st, err := os.Stat(s.Log); err == nil && st.Size() > logSize {
		_ = os.Rename(s.Log, strings.TrimSuffix(s.Log, ".log")+".old.log")
	}
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o711); err != nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	f, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	return f, nil
}

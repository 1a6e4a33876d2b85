package exec

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/proctree"
)

const (
	// stoppedTimeout is how long a process of the OCI runtime may be stopped if the command has no timeout.
	stoppedTimeout = 10 * time.Second
	// startDelay is how much longer than the timeout of a command its start may take if the shim has not started the OCI runtime. It is
	// longer than it takes to detect that a shim does not respond.
	startDelay = 30 * time.Second
	// startInterval is how often a late start is checked.
	startInterval = 250 * time.Millisecond
)

// errStopped is the cause of a start that a container has prevented.
var errStopped = errors.New("a process in the container stops the OCI runtime (SIGSTOP) when it enters the container")

// starting watches the start of a command. The OCI runtime enters the PID namespace of the container, where a process with the same user
// can send it signals: SIGSTOP makes it hang. A start that hangs is ended by killing the OCI runtime, which then fails.
type starting struct {
	runtime proctree.Family // the OCI runtime and what it has started
	begun   time.Time
	done    chan struct{} // closed when the start has succeeded or failed
	over    sync.WaitGroup
	why     error // why the OCI runtime was killed; nil: it was not
}

// limit is the timeout of a command, which its start is part of. The zero value is none.
type limit struct {
	timeout time.Duration
	expire  func() // called when it has expired during the start
}

// limit returns the limit of a command whose timeout calls expire; a hook has none.
func (q request) limit(expire func()) limit {
	if q.timeout == 0 {
		return limit{}
	}
	return limit{q.left, expire}
}

// watchStart watches the start of a command in a container until [starting.end].
func (r *Runner) watchStart(ctx context.Context, containerID string, m mark, l limit) *starting {
	s := &starting{runtime: r.starter(containerID, m), begun: time.Now(), done: make(chan struct{})}
	s.over.Go(func() {
		if s.why = s.watch(ctx, r.closing, l); s.why != nil {
			s.kill()
		}
	})
	return s
}

// end returns the error of a start that failed with err. It kills an OCI runtime that was given up: it could start the command later.
func (s *starting) end(err error) error {
	close(s.done)
	s.over.Wait()
	if s.why == nil && errdefs.IsDeadlineExceeded(err) {
		s.runtime.Kill()
	}
	if err == nil || s.why == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", s.why, err)
}

// watch returns why the OCI runtime must be killed; nil: the command is started.
func (s *starting) watch(ctx context.Context, closing <-chan struct{}, l limit) error {
	late := time.NewTimer(stoppedTimeout)
	if l.expire != nil {
		late.Reset(l.timeout)
	}
	defer late.Stop()
	for {
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-closing:
			return fmt.Errorf("the runtime is closed: %w", errdefs.ErrUnavailable)
		case <-late.C:
		}
		runs, stopped := s.runtime.State()
		switch {
		case l.expire != nil && (runs || time.Since(s.begun) >= l.timeout+startDelay):
			l.expire()
			return fmt.Errorf("the OCI runtime has not started the command: %w", context.DeadlineExceeded)
		case l.expire == nil && stopped:
			return errStopped
		}
		late.Reset(startInterval)
	}
}

// kill kills the OCI runtime until the start has ended.
func (s *starting) kill() {
	tick := time.NewTicker(startInterval)
	defer tick.Stop()
	for {
		s.runtime.Kill()
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
	}
}

// starter returns the OCI runtime that starts a command in a container.
func (r *Runner) starter(containerID string, m mark) proctree.Family {
	return r.starters(func(pidFile string) bool {
		container, command := startedBy(pidFile)
		return container == containerID && command == m.String()
	})
}

// killStarts kills the OCI runtimes that start commands for an earlier daemon, such as those that a container has stopped.
func (r *Runner) killStarts() {
	r.starters(func(pidFile string) bool {
		_, command := startedBy(pidFile)
		m, ok := parseMark(command)
		return ok && m.instance != r.marks.instance
	}).Kill()
}

// startedBy returns the container and the command that an OCI runtime starts, by the path of its PID file: that of a shim, which is in the
// bundle, or of the monitor.
func startedBy(pidFile string) (container, command string) {
	if container, command, ok := monitor.CommandOf(pidFile); ok {
		return container, command
	}
	command, _ = strings.CutSuffix(filepath.Base(pidFile), ".pid")
	return filepath.Base(filepath.Dir(pidFile)), command
}

// starters returns the OCI runtimes that start commands in containers of this engine, by their PID files. Processes in the cgroups of pods
// are none, whatever their arguments are.
func (r *Runner) starters(has func(pidFile string) bool) proctree.Family {
	return proctree.Family{Leads: func(pid int, args []string) bool {
		i := slices.Index(args, "--pid-file") + 1
		return i > 0 && i < len(args) && strings.HasPrefix(args[i], r.config.Bundles+"/") && has(args[i]) && !r.config.Cgroups.InPod(pid)
	}}
}

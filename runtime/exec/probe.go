package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Monitor runs commands of which only the result is of interest, such as those of probes.
type Monitor interface {
	// Runs reports whether the monitor runs a container. Other containers have a shim.
	Runs(ctx context.Context, containerID string) (bool, error)
	// RunCommand is [monitor.Client.Run].
	RunCommand(ctx context.Context, r monitor.Run) (monitor.RunResult, error)
}

// runByMonitor runs a command with a timeout in a container of the monitor: one request, without streams.
func (r *Runner) runByMonitor(ctx context.Context, q request, report func(result), expire func()) {
	timeout := time.NewTimer(q.left)
	defer timeout.Stop()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan result, 1)
	go func() {
		command, err := r.prepareRun(running, q)
		var got monitor.RunResult
		if err == nil {
			got, err = r.config.Monitor.RunCommand(running, command)
		}
		answered <- result{int(got.Code), got.Output, err}
	}()
	var a result
	closing := r.closing
	for waiting := true; waiting; {
		select {
		case a = <-answered:
			waiting = false
		case <-timeout.C:
			expire() // the monitor kills the command, and answers then
		case <-closing:
			report(result{err: engine.Failure(ctx, lifecycle.FailureUnavailable, "", fmt.Errorf("%v: the runtime is closed", q))})
			cancel() // the monitor kills the command
			closing = nil
		}
	}
	switch {
	case a.err == nil:
		report(a)
	case ctx.Err() != nil:
		report(result{err: fmt.Errorf("%v: %w", q, context.Cause(ctx))})
	case errors.Is(a.err, context.DeadlineExceeded):
		expire()
	default:
		report(result{err: q.startError(ctx, a.err, r.config.Exited(ctx, q.uid, q.ref))})
	}
}

// prepareRun returns the request for a command.
func (r *Runner) prepareRun(ctx context.Context, q request) (monitor.Run, error) {
	c, err := r.config.Client.LoadContainer(ctx, record.ContainerID(q.uid, q.ref))
	if err != nil {
		return monitor.Run{}, err
	}
	s, err := c.Spec(ctx)
	if err != nil {
		return monitor.Run{}, err
	}
	env, err := r.config.Environment(ctx, c.ID(), s)
	if err != nil {
		return monitor.Run{}, err
	}
	m := r.marks.next(probe)
	process, err := json.Marshal(processOf(s.Process, env, m, func(p *specs.Process) { p.Args, p.Terminal = q.command, false }))
	if err != nil {
		return monitor.Run{}, err
	}
	return monitor.Run{
		Container: c.ID(), Process: process, Mark: m.String(), Timeout: max(q.left, 1), MaxOutput: min(q.max, monitor.MaxRunOutput),
	}, nil
}

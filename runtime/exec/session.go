package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// sizeTimeout is for a change of the terminal's size.
	sizeTimeout = 5 * time.Second
	// drainInterval is how often a session looks for more output of a command that has exited.
	drainInterval = 100 * time.Millisecond
	// leftTimeout is how long a session waits for more output if processes that the command has left may hold it open.
	leftTimeout = 500 * time.Millisecond
	// unknownTimeout is the same if no such processes are known. The shim may be slow, or a process has hidden.
	unknownTimeout = 10 * time.Second
)

// Session runs a command with the streams of a client. It has the user, the environment and the restrictions of its container. It returns
// when the first process of the command has exited and its output was written.
//
// When ctx ends, or the daemon stops or is killed, the command and all processes that it has started are killed. Processes that a command
// has left when it exits keep running. The error is a [*session.StartError] if the command cannot be executed, of the kind
// [lifecycle.FailureNotFound] if the container is not running, or that of ctx.
func (r *Runner) Session(ctx context.Context, uid string, ref lifecycle.Ref, c session.Command) (code int, err error) {
	done := make(chan result, 1)
	q := request{uid: uid, ref: ref}
	if !r.begin(func() { r.runSession(engine.Context(ctx), q, c, done) }) {
		return 0, engine.Failure(ctx, lifecycle.FailureUnavailable, "", errors.New("exec: the runtime is closed"))
	}
	a := await(ctx, done)
	return a.code, a.err
}

// editSession changes what the process of a session does not have from its container.
func editSession(p *specs.Process, c *session.Command) {
	p.Args, p.Terminal, p.ConsoleSize = c.Args, c.TTY, nil
	if !c.TTY {
		return
	}
	if c.Size != (session.Size{}) {
		p.ConsoleSize = &specs.Box{Width: uint(c.Size.Width), Height: uint(c.Size.Height)}
	}
	if !slices.ContainsFunc(p.Env, func(v string) bool { return strings.HasPrefix(v, "TERM=") }) {
		p.Env = append(p.Env, "TERM=xterm")
	}
}

// sessionError returns the error of a command that could not be started.
func (q request) sessionError(ctx context.Context, err error, exited bool) error {
	if _, message, found := strings.Cut(err.Error(), "OCI runtime exec failed: "); found && !exited {
		if code := startCode(message); code != 0 {
			return &session.StartError{Code: code, Message: message}
		}
	}
	return q.startError(ctx, err, exited)
}

// startCode returns the exit code of a shell for the message of an OCI runtime; 0: another error.
func startCode(message string) int {
	message = strings.ToLower(message)
	has := func(part string) bool { return strings.Contains(message, part) }
	switch {
	case has("permission denied"), has("exec format error"), has("is a directory"):
		return 126
	case has("not found in $path"), has("no such file or directory"):
		return 127
	}
	return 0
}

// runSession runs a command until it and all processes that must be killed with it have exited. It sends the result earlier, as soon as it
// is known.
func (r *Runner) runSession(ctx context.Context, q request, c session.Command, done chan<- result) {
	streams := newStreams(&c)
	edit := func(p *specs.Process) { editSession(p, &c) }
	x, err := r.launch(ctx, q.uid, q.ref, r.marks.next(attached), limit{}, edit, streams.creator(ctx, r.config.Dir))
	if err != nil {
		done <- result{err: q.sessionError(ctx, err, r.config.Exited(ctx, q.uid, q.ref))}
		return
	}
	streams.start()
	var left bool
	defer func() { x.delete(ctx, left) }()
	defer streams.detach()
	input := streams.feed()
	for {
		select {
		case size := <-c.Resize:
			x.resize(ctx, size)
		case <-input:
			input = nil
			x.closeInput(ctx)
		case status := <-x.exited:
			if err := status.Error(); err != nil {
				done <- result{err: engine.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("%v: wait: %w", q, err))}
				x.kill(ctx)
				return
			}
			x.drainSession(ctx, streams, r.closing)
			streams.detach()
			done <- result{code: int(status.ExitCode())}
			left = r.waitForOthers(ctx, x, nil)
			return
		case <-ctx.Done():
			streams.detach()
			x.kill(ctx)
			done <- result{err: fmt.Errorf("%v: %w", q, context.Cause(ctx))}
			return
		case <-r.closing:
			streams.detach()
			x.kill(ctx)
			done <- result{err: engine.Failure(ctx, lifecycle.FailureUnavailable, "", fmt.Errorf("%v: the runtime is closed", q))}
			return
		}
	}
}

// resize changes the size of the terminal. The command may have exited.
func (x *execution) resize(ctx context.Context, size session.Size) {
	ctx, cancel := context.WithTimeout(ctx, sizeTimeout)
	defer cancel()
	if err := x.process.Resize(ctx, uint32(size.Width), uint32(size.Height)); err != nil {
		x.log.DebugContext(ctx, "cannot resize the terminal of a command", slog.Any("error", err))
	}
}

// closeInput closes the shim's side of the input, after which the command reads EOF. The command may have exited.
func (x *execution) closeInput(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, engine.SignalTimeout)
	defer cancel()
	if err := x.process.CloseIO(ctx, client.WithStdinCloser); err != nil {
		x.log.DebugContext(ctx, "cannot close the input of a command", slog.Any("error", err))
	}
}

// drainSession waits until the rest of the output of an exited command is written. It waits for a process that the command has left only as
// long as that writes, and as long as the client takes to receive it.
func (x *execution) drainSession(ctx context.Context, s *streams, closing <-chan struct{}) {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	var idle time.Duration
	last := s.progress()
	for {
		select {
		case <-x.outputClosed:
			return
		case <-ctx.Done():
			return
		case <-closing:
			return
		case <-tick.C:
		}
		if now := s.progress(); now != last || s.busy() {
			last, idle = now, 0
			continue
		}
		idle += drainInterval
		if idle >= unknownTimeout || idle >= leftTimeout && !x.tree.IsEmpty(ctx) {
			return
		}
	}
}

package fakeruntime

import (
	"context"
	"fmt"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Exec runs a command in a run. [Options.Exec] defines its behavior, or else [Read]. If the container exits first, the exit code
// is 137.
func (r *Runtime) Exec(
	ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int,
) (code int, output []byte, err error) {
	what := "exec in container " + ref.Container
	var program Program
	call := Call{Method: "Exec", UID: uid, Container: ref.Container, Attempt: ref.Attempt}
	err = r.do(ctx, call, func() error {
		run := r.run(uid, ref)
		if run == nil {
			return lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: what + ": not found"}
		}
		if r.advance(run); run.ended {
			return lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: what + ": container has exited"}
		}
		if r.options.Exec != nil {
			if p, ok := r.options.Exec(ref, command); ok {
				program = p
				return nil
			}
		}
		program = Read(command)
		return nil
	})
	if err == nil && program.StartError != "" {
		err = lifecycle.Failure{Kind: lifecycle.FailureRetry, Message: what + ": " + program.StartError}
	}
	if err != nil {
		return 0, nil, err
	}
	ended, err := r.elapse(ctx, uid, ref, program.Runs, timeout)
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("%s: %w", what, err)
	case ended:
		return 137, nil, nil
	}
	for _, stderr := range []bool{false, true} {
		for _, line := range program.Output {
			if line.Stderr == stderr {
				output = append(output, line.Text+"\n"...)
			}
		}
	}
	return program.Exit.Code, output[:min(len(output), max)], nil
}

// elapse lets a command run for this time and reports whether its container exited meanwhile.
func (r *Runtime) elapse(ctx context.Context, uid string, ref lifecycle.Ref, runs, timeout time.Duration) (ended bool, err error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var until time.Time // zero for never
	if runs != Forever {
		until = time.Now().Add(runs)
	}
	for {
		r.mu.Lock()
		run, changed := r.run(uid, ref), r.changed
		var next time.Time
		if run != nil {
			next = r.advance(run)
		}
		ended = run == nil || run.ended
		r.mu.Unlock()
		if ended || !until.IsZero() && !time.Now().Before(until) {
			return ended, nil
		}
		if next.IsZero() || !until.IsZero() && until.Before(next) {
			next = until
		}
		if err := wait(ctx, changed, next); err != nil {
			return false, err
		}
	}
}

package fakeruntime

import (
	"context"

	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Session runs the command of a client in a run, as [Options.Session] defines.
func (r *Runtime) Session(ctx context.Context, uid string, ref lifecycle.Ref, c session.Command) (code int, err error) {
	call := Call{Method: "Session", UID: uid, Container: ref.Container, Attempt: ref.Attempt}
	err = r.do(ctx, call, func() error {
		run := r.run(uid, ref)
		if run == nil {
			return lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "exec in container " + ref.Container + ": not found"}
		}
		if r.advance(run); run.ended {
			return lifecycle.Failure{
				Kind: lifecycle.FailureNotFound, Message: "exec in container " + ref.Container + ": container has exited",
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case r.options.Session == nil:
		return 0, &session.StartError{Code: 127, Message: `exec: "` + c.Args[0] + `": executable file not found in $PATH`}
	}
	return r.options.Session(ctx, ref, c)
}

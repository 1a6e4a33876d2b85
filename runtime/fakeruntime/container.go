package fakeruntime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// run is a container and its process.
type run struct {
	lifecycle.StartContainer
	uid, pod, image string
	program         Program

	started time.Time
	written int       // number of output lines written to the log
	ends    time.Time // currently expected exit time, zero for never
	exit    lifecycle.Exit
	ended   bool
}

// StartContainer creates and starts a run, or returns an existing one. It kills an older run of the same container.
func (r *Runtime) StartContainer(
	ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer,
) (lifecycle.ContainerStarted, error) {
	var started lifecycle.ContainerStarted
	call := Call{Method: "StartContainer", UID: uid, Container: a.Container, Attempt: a.Attempt, Sandbox: a.Sandbox}
	err := r.do(ctx, call, func() error {
		p, c := r.pods[uid], pod.Container(a.Container)
		if c == nil {
			return refused("the pod has no container %s", a.Container)
		}
		if p != nil && p.runs[a.Ref] != nil {
			started = p.runs[a.Ref].event()
			return nil
		}
		if p == nil || !p.sandboxes[a.Sandbox] {
			return refused("sandbox %d is not there", a.Sandbox)
		}
		if !slices.Contains(r.images, c.Image) {
			return refused("image %q is not there", c.Image)
		}
		if a.ImageID != "" && !r.hasImage(a.ImageID) {
			return refused("image %q: %s was removed", c.Image, a.ImageID)
		}
		a.ImageID = cmp.Or(a.ImageID, r.imageID(c.Image))
		p.pod = pod
		for _, older := range p.runs {
			if older.Container == a.Container {
				r.advance(older)
				older.kill(time.Now())
			}
		}
		r.notify()
		if d := r.missing(c); d != nil {
			return lifecycle.Failure{
				Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonDeviceMissing, Message: "device " + d.Name() + " does not exist",
			}
		}
		program := r.program(pod, c, a)
		if program.Refused != nil {
			return *program.Refused
		}
		n := &run{StartContainer: a, uid: uid, pod: pod.Name, image: c.Image, program: program, started: time.Now()}
		if program.StartError != "" {
			return lifecycle.Failure{Reason: lifecycle.ReasonStartError, Message: program.StartError}
		}
		if program.Runs != Forever {
			n.ends, n.exit = n.started.Add(program.Runs), withReason(program.Exit)
		}
		p.runs[a.Ref] = n
		r.advance(n)
		started = n.event()
		return nil
	})
	return started, err
}

func refused(format string, args ...any) lifecycle.Failure {
	return lifecycle.Failure{
		Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateContainerError,
		Message: "create container: " + fmt.Sprintf(format, args...),
	}
}

func (r *Runtime) program(pod *spec.Pod, c *spec.Container, a lifecycle.StartContainer) Program {
	if r.options.Program != nil {
		if p, ok := r.options.Program(pod, a); ok {
			return p
		}
	}
	return Read(slices.Concat(c.Command, c.Args))
}

// WaitContainer returns when the process has exited.
func (r *Runtime) WaitContainer(
	ctx context.Context, uid string, ref lifecycle.Ref,
) (exit lifecycle.Exit, at time.Time, err error) {
	call := Call{Method: "WaitContainer", UID: uid, Container: ref.Container, Attempt: ref.Attempt}
	if err := r.do(ctx, call, func() error { return nil }); err != nil {
		return exit, at, err
	}
	for {
		r.mu.Lock()
		run, changed := r.run(uid, ref), r.changed
		var next time.Time
		if run == nil {
			exit = lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonStatusUnknown, Message: "the container was not found"}
			at = time.Now()
		} else if next = r.advance(run); run.ended {
			exit, at = run.exit, run.ends
		}
		r.mu.Unlock()
		if run == nil || !at.IsZero() {
			return exit, at, nil
		}
		if err := wait(ctx, changed, next); err != nil {
			return exit, at, err
		}
	}
}

// wait returns after a change or at the time until. A zero time never comes.
func wait(ctx context.Context, changed <-chan struct{}, until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// StopContainer sends the stop signal, which the process handles as defined by [Program.Term].
func (r *Runtime) StopContainer(ctx context.Context, uid string, _ *spec.Pod, ref lifecycle.Ref) error {
	return r.signal(ctx, "StopContainer", uid, ref, func(run *run) { run.terminate(time.Now()) })
}

// KillContainer kills the process. Its exit code is 137.
func (r *Runtime) KillContainer(ctx context.Context, uid string, ref lifecycle.Ref) error {
	return r.signal(ctx, "KillContainer", uid, ref, func(run *run) { run.kill(time.Now()) })
}

func (r *Runtime) signal(ctx context.Context, method, uid string, ref lifecycle.Ref, send func(*run)) error {
	call := Call{Method: method, UID: uid, Container: ref.Container, Attempt: ref.Attempt}
	return r.do(ctx, call, func() error {
		run := r.run(uid, ref)
		if run == nil {
			return lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "signal container: not found"}
		}
		r.advance(run)
		send(run)
		r.notify()
		return nil
	})
}

// Crash terminates the newest run of a container, as if its process had exited by itself. It reports whether a run was running.
func (r *Runtime) Crash(uid, container string, exit lifecycle.Exit) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[uid]
	if p == nil {
		return false
	}
	for _, run := range p.runs {
		if r.advance(run); run.Container == container && !run.ended {
			run.end(time.Now(), withReason(exit))
			r.notify()
			return true
		}
	}
	return false
}

// RemoveContainer removes the record and the log of a run that has exited.
func (r *Runtime) RemoveContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error {
	call := Call{Method: "RemoveContainer", UID: uid, Container: ref.Container, Attempt: ref.Attempt}
	return r.do(ctx, call, func() error {
		p := r.pods[uid]
		if p == nil {
			return nil
		}
		for older, run := range p.runs {
			if older.Container != ref.Container || older.Attempt > ref.Attempt {
				continue
			}
			if r.advance(run); !run.ended {
				return fmt.Errorf("remove container %s: still running", ref.Container)
			}
			if err := r.removeLog(uid, pod, run); err != nil {
				return err
			}
			delete(p.runs, older)
		}
		return nil
	})
}

// Running returns the running runs of a pod, sorted.
func (r *Runtime) Running(uid string) []lifecycle.Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	var refs []lifecycle.Ref
	if p := r.pods[uid]; p != nil {
		for ref, run := range p.runs {
			if r.advance(run); !run.ended {
				refs = append(refs, ref)
			}
		}
	}
	slices.SortFunc(refs, cmpRef)
	return refs
}

func (r *Runtime) run(uid string, ref lifecycle.Ref) *run {
	if p := r.pods[uid]; p != nil {
		return p.runs[ref]
	}
	return nil
}

func cmpRef(a, b lifecycle.Ref) int {
	return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.Attempt, b.Attempt))
}

func (n *run) id(uid string) string { return fmt.Sprintf("%s-%s-%d", uid, n.Container, n.Attempt) }

func (n *run) event() lifecycle.ContainerStarted {
	return lifecycle.ContainerStarted{Ref: n.Ref, ID: n.id(n.uid), Image: n.image, ImageID: n.ImageID}
}

// terminate delivers SIGTERM.
func (n *run) terminate(now time.Time) {
	if n.ended || n.program.Term.Ignored {
		return
	}
	if by := now.Add(n.program.Term.Takes); n.ends.IsZero() || by.Before(n.ends) {
		n.ends, n.exit = by, withReason(lifecycle.Exit{Code: n.program.Term.Code})
	}
}

// kill delivers SIGKILL.
func (n *run) kill(now time.Time) { n.end(now, withReason(lifecycle.Exit{Code: 137})) }

func (n *run) end(now time.Time, exit lifecycle.Exit) {
	if !n.ended {
		n.ends, n.exit, n.ended = now, exit, true
	}
}

// withReason sets the reason that corresponds to the exit code.
func withReason(e lifecycle.Exit) lifecycle.Exit {
	if e.Reason == "" {
		e.Reason = lifecycle.ReasonError
		if e.Code == 0 {
			e.Reason = lifecycle.ReasonCompleted
		}
	}
	return e
}

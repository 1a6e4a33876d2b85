// Package fakeruntime is a container engine in memory, for the tests of whatever drives one. It has the shape of
// supervisor.Runtime and passes the contract suite of package runtimetest that the real one passes.
//
// A [Runtime] is the world: what a supervisor that was killed leaves behind is still there for the next one that is
// given the same value. It starts no goroutine, reads time only from package time and, without [Options.LogDir], does no
// input or output, so that it works in a bubble of testing/synctest, where a container that runs for a day takes no time.
//
// What a process does is read from its command (see [Read]) or said by [Options.Program]; [Options.Before] and
// [Options.After] make calls fail, hang, take time, or lose their answer.
package fakeruntime

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Options says how a Runtime differs from one where everything works at once. None of the functions may call the
// Runtime; [Options.Before] and [Options.After] may block.
type Options struct {
	// Program says what the process of a run does. It may be nil, or return false: [Read] says it then.
	Program func(pod *spec.Pod, a lifecycle.StartContainer) (Program, bool)
	// Exec says what a command does that is run in a container. It may be nil, or return false: [Read] says it then.
	Exec func(ref lifecycle.Ref, command []string) (Program, bool)
	// Before is called at the beginning of every call, without a lock held; its error becomes the call's, and
	// nothing happened then. A call takes as long as it does, and one that waits for ctx hangs.
	Before func(ctx context.Context, c Call) error
	// After is called when a call has done its work; its error becomes the call's: it happened, and the answer was lost.
	After func(ctx context.Context, c Call) error
	// Refuse says which pods [Runtime.Admit] refuses; nil: none.
	Refuse func(pod *spec.Pod) error
	// Images are there before anything was pulled.
	Images []string
	// LogDir is where the logs of containers are written, as <LogDir>/<pod>_<uid>/<container>/<restarts>.log in CRI
	// format; empty for no logs.
	LogDir string
}

// Call is one call of a method of the Runtime. What the method is not told is zero.
type Call struct {
	Method    string
	UID       string
	Container string
	Attempt   int
	Sandbox   int
}

// Runtime is an engine in memory. Its methods are safe for concurrent use.
type Runtime struct {
	options Options

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when anything that somebody may wait for has changed
	images  []string
	volumes []string             // persistent, sorted
	pods    map[string]*podState // by UID
	calls   []Call
}

// podState is what the engine holds of one pod.
type podState struct {
	pod       *spec.Pod
	sandboxes map[int]bool // by number; true: ready
	runs      map[lifecycle.Ref]*run
	overuse   string // what has been used too much
}

// New returns an engine that holds nothing.
func New(o Options) *Runtime {
	return &Runtime{
		options: o,
		changed: make(chan struct{}),
		images:  slices.Clone(o.Images),
		pods:    map[string]*podState{},
	}
}

// Calls returns every call so far, in the order in which they began.
func (r *Runtime) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// do is the frame of every call: it records it, and runs act with the lock held between the two hooks.
func (r *Runtime) do(ctx context.Context, c Call, act func() error) error {
	r.mu.Lock()
	r.calls = append(r.calls, c)
	r.mu.Unlock()
	if r.options.Before != nil {
		if err := r.options.Before(ctx, c); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	err := act()
	r.mu.Unlock()
	if err == nil && r.options.After != nil {
		err = r.options.After(ctx, c)
	}
	return err
}

// notify wakes whoever waits for a change; the caller holds the lock.
func (r *Runtime) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// FindImage reports whether the image of a container is here, so that its policy wants no pull.
func (r *Runtime) FindImage(ctx context.Context, pod *spec.Pod, container string) (here bool, err error) {
	err = r.do(ctx, Call{Method: "FindImage", Container: container}, func() error {
		c := pod.Container(container)
		here = c != nil && c.ImagePullPolicy != spec.PullAlways && slices.Contains(r.images, c.Image)
		return nil
	})
	return here, err
}

// PullImage makes the image of a container available: it is fetched where the policy wants that, and a pod with
// archives has all of its images from them.
func (r *Runtime) PullImage(
	ctx context.Context, pod *spec.Pod, container string, progress func(done, total int64),
) (pulled bool, err error) {
	c := pod.Container(container)
	if c == nil {
		return false, errors.New("pull image: the pod has no container " + container)
	}
	r.mu.Lock()
	present := slices.Contains(r.images, c.Image)
	r.mu.Unlock()
	here := len(pod.ImageArchives) > 0 || present && c.ImagePullPolicy != spec.PullAlways
	if !here && c.ImagePullPolicy != spec.PullNever {
		progress(0, 0)
	}
	err = r.do(ctx, Call{Method: "PullImage", Container: container}, func() error {
		switch {
		case here:
		case c.ImagePullPolicy == spec.PullNever:
			return lifecycle.Failure{
				Reason:  lifecycle.ReasonErrImageNeverPull,
				Message: "Container image \"" + c.Image + "\" is not present with pull policy of Never",
			}
		default:
			pulled = true
		}
		if !slices.Contains(r.images, c.Image) {
			r.images = append(r.images, c.Image)
		}
		return nil
	})
	return pulled, err
}

// Package fakeruntime is an in-memory container engine for tests. It implements supervisor.Runtime and passes the contract suite
// of package runtimetest, as the real runtime does.
//
// A [Runtime] holds all state: a supervisor that is given the Runtime of a killed one finds what that left. It starts no
// goroutine, reads time only from package time and, without [Options.LogDir], does no I/O. So it works in a testing/synctest
// bubble, where a container that runs for a day takes no time.
//
// The behavior of a process is read from its command (see [Read]) or set by [Options.Program]. [Options.Before] and
// [Options.After] make calls fail, hang, take time, or lose their response.
package fakeruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Options configure a Runtime. By default everything succeeds at once. None of the functions may call the Runtime.
// [Options.Before] and [Options.After] may block.
type Options struct {
	// Program returns the behavior of the process of a run. If it is nil or returns false, [Read] determines it.
	Program func(pod *spec.Pod, a lifecycle.StartContainer) (Program, bool)
	// Exec returns the behavior of a command run in a container. If it is nil or returns false, [Read] determines it.
	Exec func(ref lifecycle.Ref, command []string) (Program, bool)
	// Session runs the command of a client. If it is nil, no command is found.
	Session func(ctx context.Context, ref lifecycle.Ref, c session.Command) (code int, err error)
	// Before is called at the start of every call, without a lock held. If it returns an error, the call fails with it and has no
	// effect. The call takes as long as Before, and hangs if Before waits for ctx.
	Before func(ctx context.Context, c Call) error
	// After is called when a call has had its effect. If it returns an error, the call fails with it: the response was lost.
	After func(ctx context.Context, c Call) error
	// Fetch is called by PullImage before an image is pulled, or imported from the archives of the pod. It may block.
	Fetch func(ctx context.Context, pod *spec.Pod, container string, progress func(lifecycle.Progress)) error
	// Refuse returns the error of [Runtime.Admit] for a pod. Nil admits all pods.
	Refuse func(pod *spec.Pod) error
	// Unreadable returns the error of [Runtime.Readable] for a pod. Nil means that everything is readable.
	Unreadable func(pod *spec.Pod) error
	// Allocatable are the resources that pods can request. A resource that is absent is not limited.
	Allocatable spec.ResourceList
	// Images are present from the start.
	Images []string
	// Shadowed are names of images that differ in archives of pods from the images of these names that are present.
	Shadowed []string
	// Attach opens the sessions of [Runtime.Attach]. Nil means that no container serves clients.
	Attach func(ctx context.Context, uid string, ref lifecycle.Ref, r attach.Request) (*attach.Session, error)
	// LogDir is the directory for logs of containers, <LogDir>/<pod>_<uid>/<container>/<restarts>.log in CRI format. Empty means
	// no logs.
	LogDir string
}

// Call is one call of a method of the Runtime. Fields that the method has no argument for are zero.
type Call struct {
	Method    string
	UID       string
	Container string
	Attempt   int
	Sandbox   int
}

// Runtime is an in-memory engine. Its methods are safe for concurrent use.
type Runtime struct {
	options Options

	mu      sync.Mutex
	changed chan struct{} // closed and replaced on every change that a caller can wait for
	images  []string
	volumes map[string]string    // persistent, with their projects
	pods    map[string]*podState // by UID
	calls   []Call
	tagged  map[string]int      // by name of an image: how often it was retagged
	kept    map[string][]string // by pod: the IDs of images
	stale   map[string]string   // by UID: why volumes are not updated
	away    map[string]bool     // by path: devices that do not exist
}

// podState is the engine's state of one pod.
type podState struct {
	pod       *spec.Pod
	resized   *spec.Pod    // see [Runtime.Resized]
	sandboxes map[int]bool // by number; true: ready
	runs      map[lifecycle.Ref]*run
	eviction  string // message of the eviction, if any
	hung      bool   // the shim does not respond
}

// New returns an empty engine.
func New(o Options) *Runtime {
	return &Runtime{
		options: o,
		changed: make(chan struct{}),
		images:  slices.Clone(o.Images),
		pods:    map[string]*podState{},
		tagged:  map[string]int{},
		kept:    map[string][]string{},
		stale:   map[string]string{},
		away:    map[string]bool{},
		volumes: map[string]string{},
	}
}

// Calls returns all calls in the order in which they started.
func (r *Runtime) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// ForgetCalls forgets the calls so far, in tests with so many of them that they use much memory.
func (r *Runtime) ForgetCalls() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// do wraps every call: it records the call and runs act between the two hooks with the lock held.
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

// notify wakes all waiters. The caller holds the lock.
func (r *Runtime) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// FindImage returns the image of a container if it is present, so that its policy requires no pull.
func (r *Runtime) FindImage(ctx context.Context, pod *spec.Pod, a lifecycle.FindImage) (found lifecycle.ImagePulled, err error) {
	err = r.do(ctx, Call{Method: "FindImage", Container: a.Container}, func() error {
		c := pod.Container(a.Container)
		if c == nil || c.ImagePullPolicy == spec.PullAlways || !slices.Contains(r.images, c.Image) {
			return lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "image not found"}
		}
		found = lifecycle.ImagePulled{Container: a.Container, For: a.For, Image: r.identity(pod, c, a.Image)}
		return nil
	})
	return found, err
}

// missingSecrets returns the pull secrets that are not in the pod file: the host has no others.
func missingSecrets(pod *spec.Pod) string {
	var missing []string
	for _, ref := range pod.ImagePullSecrets {
		if !slices.ContainsFunc(pod.Secrets, func(s spec.Secret) bool { return s.Name == ref.Name }) {
			missing = append(missing, ref.Name)
		}
	}
	return strings.Join(missing, ", ")
}

// PullImage makes the image of a container available. It is pulled if the policy requires it. A pod with archives gets all its
// images from them.
func (r *Runtime) PullImage(
	ctx context.Context, pod *spec.Pod, a lifecycle.PullImage, progress func(lifecycle.Progress),
) (result lifecycle.ImagePulled, err error) {
	c := pod.Container(a.Container)
	if c == nil {
		return result, errors.New("pull image: the pod has no container " + a.Container)
	}
	r.mu.Lock()
	present := slices.Contains(r.images, c.Image)
	r.mu.Unlock()
	here := len(pod.ImageArchives) > 0 || present && c.ImagePullPolicy != spec.PullAlways
	if !here && c.ImagePullPolicy != spec.PullNever {
		progress(lifecycle.Progress{MissingSecrets: missingSecrets(pod)})
	}
	if r.options.Fetch != nil && (!here || len(pod.ImageArchives) > 0) {
		if err := r.options.Fetch(ctx, pod, a.Container, progress); err != nil {
			return result, err
		}
	}
	err = r.do(ctx, Call{Method: "PullImage", Container: a.Container}, func() error {
		if !here && c.ImagePullPolicy == spec.PullNever {
			return lifecycle.Failure{
				Reason:  lifecycle.ReasonErrImageNeverPull,
				Message: "Container image \"" + c.Image + "\" is not present with pull policy of Never",
			}
		}
		if !slices.Contains(r.images, c.Image) {
			r.images = append(r.images, c.Image)
		}
		previous := a.Image
		if !here {
			previous = lifecycle.Image{}
		}
		result = lifecycle.ImagePulled{Container: a.Container, For: a.For, Image: r.identity(pod, c, previous), Pulled: !here}
		if a.Image.ID == "" && len(pod.ImageArchives) > 0 && slices.Contains(r.options.Shadowed, c.Image) {
			result.Shadows = []lifecycle.Shadow{{Image: c.Image, Archive: pod.ImageArchives[0]}}
		}
		return nil
	})
	return result, err
}

// NewestImage returns the image that the name of a container refers to, if the pod has archives.
func (r *Runtime) NewestImage(ctx context.Context, pod *spec.Pod, container string) (img lifecycle.Image, ok bool, err error) {
	err = r.do(ctx, Call{Method: "NewestImage", Container: container}, func() error {
		c := pod.Container(container)
		if ok = len(pod.ImageArchives) > 0 && c.ImagePullPolicy != spec.PullAlways; ok {
			img = lifecycle.Image{ID: r.imageID(c.Image), Archive: true}
		}
		return nil
	})
	return img, ok, err
}

// Retag makes the name of an image refer to another image.
func (r *Runtime) Retag(image string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tagged[image]++
}

// identity returns the previous image if it is present, or the one that the name refers to. The caller holds the lock.
func (r *Runtime) identity(pod *spec.Pod, c *spec.Container, previous lifecycle.Image) lifecycle.Image {
	if r.hasImage(previous.ID) {
		return previous
	}
	return lifecycle.Image{ID: r.imageID(c.Image), Archive: len(pod.ImageArchives) > 0}
}

// imageID returns the ID of the image that a name refers to. The caller holds the lock.
func (r *Runtime) imageID(image string) string {
	id := "sha256:" + image
	if n := r.tagged[image]; n > 0 {
		id += fmt.Sprintf("-%d", n)
	}
	return id
}

package lifecycletest

import (
	"fmt"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// engine is the actual state of the engine.
type engine struct {
	sandboxes map[int]bool // the sandboxes that exist
	processes map[lifecycle.Ref]*process
	requested map[lifecycle.Ref]Run // the scripted run of every run that was requested
}

// process is the process of a container that was created.
type process struct {
	Run
	ref     lifecycle.Ref
	sandbox int
	started time.Duration
	exited  bool
	watched int // the supervisor that waits for its exit
}

// prepare reads the script for an action. It returns the duration of the action, and a function that carries it out after that.
func (w *World) prepare(a lifecycle.Action) (time.Duration, func() lifecycle.Event) {
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		s := next(&w.Script.Sandboxes, Start{})
		return s.Takes, func() lifecycle.Event { return w.startSandbox(a, s) }
	case lifecycle.PullImage:
		s := w.pull(a.Container)
		return s.Takes, func() lifecycle.Event {
			if s.Failure != nil {
				return w.failed(a, *s.Failure)
			}
			return lifecycle.ImagePulled{
				Container: a.Container, For: a.For, Image: imageOf(a.Container, a.Image), Pulled: true, At: w.Now(),
			}
		}
	case lifecycle.FindImage:
		return 0, func() lifecycle.Event {
			if !w.images[a.Container] {
				return w.failed(a, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "not found"})
			}
			return lifecycle.ImagePulled{Container: a.Container, For: a.For, Image: imageOf(a.Container, a.Image), At: w.Now()}
		}
	case lifecycle.StartContainer:
		r, again := w.engine.requested[a.Ref]
		if !again {
			r = w.run(a.Container)
			w.engine.requested[a.Ref] = r
		}
		if w.engine.processes[a.Ref] != nil {
			r.Takes = 0 // it exists already
		}
		return r.Takes, func() lifecycle.Event { return w.startContainer(a, r) }
	case lifecycle.RunPostStart:
		return w.runHook(a, hook{a.Ref, lifecycle.PostStart}, 0)
	case lifecycle.RunPreStop:
		return w.runHook(a, hook{a.Ref, lifecycle.PreStop}, a.Limit)
	}
	return 0, func() lifecycle.Event { return w.carryOut(a) }
}

// imageOf returns the image of the previous run of a container, or that of its first run.
func imageOf(container string, previous lifecycle.Image) lifecycle.Image {
	if previous.ID == "" {
		return lifecycle.Image{ID: "sha256:" + container}
	}
	return previous
}

// carryOut carries out an action that stops or removes something.
func (w *World) carryOut(a lifecycle.Action) lifecycle.Event {
	switch a := a.(type) {
	case lifecycle.StopContainer:
		return w.signal(a, a.Ref, false)
	case lifecycle.KillContainer:
		return w.signal(a, a.Ref, true)
	case lifecycle.RemoveContainer:
		if p := w.engine.processes[a.Ref]; p != nil && !p.exited {
			w.violation("%v is removed while running", a.Ref)
		}
		for ref, p := range w.engine.processes {
			if ref.Container == a.Container && ref.Attempt <= a.Attempt && p.exited {
				delete(w.engine.processes, ref)
			}
		}
		return lifecycle.ContainerRemoved{Ref: a.Ref, At: w.Now()}
	case lifecycle.RemoveSandbox:
		for _, p := range w.alive() {
			if p.sandbox == a.Sandbox {
				w.violation("%v is running in sandbox %d, which is removed", p.ref, a.Sandbox)
			}
		}
		delete(w.engine.sandboxes, a.Sandbox)
		return lifecycle.SandboxRemoved{Sandbox: a.Sandbox, At: w.Now()}
	case lifecycle.RemovePod:
		if n := len(w.alive()) + len(w.engine.sandboxes); n > 0 {
			w.violation("the pod is removed but %d processes and sandboxes remain", n)
		}
		clear(w.engine.processes)
		return lifecycle.PodRemoved{At: w.Now()}
	case lifecycle.RebootHost:
		return w.rebootHost(a)
	case lifecycle.CollectPod:
		if n := len(w.alive()) + len(w.engine.sandboxes); n > 0 {
			w.violation("the pod is collected but %d processes and sandboxes remain", n)
		}
		clear(w.engine.processes)
		return lifecycle.PodCollected{At: w.Now()}
	}
	w.violation("action %T is not implemented", a)
	return nil
}

func (w *World) failed(a lifecycle.Action, f lifecycle.Failure) lifecycle.Event {
	return lifecycle.ActionFailed{Action: a, Failure: f, At: w.Now()}
}

func (w *World) startSandbox(a lifecycle.StartSandbox, s Start) lifecycle.Event {
	if s.Failure != nil && !w.engine.sandboxes[a.Sandbox] {
		return w.failed(a, *s.Failure)
	}
	for n := range w.engine.sandboxes {
		if n != a.Sandbox {
			w.violation("sandbox %d is started while there is sandbox %d", a.Sandbox, n)
		}
	}
	w.engine.sandboxes[a.Sandbox] = true
	return lifecycle.SandboxStarted{Sandbox: a.Sandbox, IPs: []string{"10.88.0.2"}, At: w.Now()}
}

func (w *World) startContainer(a lifecycle.StartContainer, r Run) lifecycle.Event {
	started := lifecycle.ContainerStarted{
		Ref: a.Ref, ID: fmt.Sprintf("%s-%d", a.Container, a.Attempt),
		Image: "docker.io/library/" + a.Container + ":1", ImageID: a.ImageID, At: w.Now(),
	}
	switch {
	case w.engine.processes[a.Ref] != nil:
		return started
	case r.Failure != nil:
		return w.failed(a, *r.Failure)
	case !w.engine.sandboxes[a.Sandbox]:
		return w.failed(a, lifecycle.Failure{Reason: lifecycle.ReasonRunContainerError, Message: "no sandbox"})
	}
	for _, p := range w.alive() {
		if p.ref.Container == a.Container {
			w.violation("%v is started while %v is running", a.Ref, p.ref)
		}
	}
	p := &process{Run: r, ref: a.Ref, sandbox: a.Sandbox, started: w.now}
	w.engine.processes[a.Ref] = p
	if !r.Forever {
		w.At(w.now+r.Lasts, func() { w.exit(p, r.Exit) })
	}
	return started
}

// signal sends a signal to a process, which follows its script.
func (w *World) signal(a lifecycle.Action, ref lifecycle.Ref, kill bool) lifecycle.Event {
	p := w.engine.processes[ref]
	switch {
	case p == nil || p.exited:
		return w.failed(a, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "no such process"})
	case kill && p.IgnoresKills > 0:
		p.IgnoresKills--
	case kill:
		w.At(w.now, func() { w.exit(p, lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonError}) })
	case !p.IgnoresStop:
		w.At(w.now+p.StopTakes, func() { w.exit(p, lifecycle.Exit{Code: 143, Reason: lifecycle.ReasonError}) })
	}
	return lifecycle.SignalSent{Ref: ref, Kill: kill, At: w.Now()}
}

// exit terminates a process and reports its exit to the supervisor that waits for it.
func (w *World) exit(p *process, e lifecycle.Exit) {
	if p.exited || w.engine.processes[p.ref] != p {
		return
	}
	p.exited, p.Exit = true, e
	if p.watched != w.supervisor {
		return // a supervisor that starts to wait for it gets its exit
	}
	w.deliver(lifecycle.ContainerExited{Ref: p.ref, Exit: e, At: w.Now()})
}

// watch waits for the exit of a run. If it has exited, watch reports the exit; otherwise [World.exit] will.
func (w *World) watch(ref lifecycle.Ref) {
	switch p := w.engine.processes[ref]; {
	case p == nil:
		w.deliver(lifecycle.ContainerExited{Ref: ref, Exit: lifecycle.Exit{
			Code: 137, Reason: lifecycle.ReasonStatusUnknown, Message: "not found",
		}, At: w.Now()})
	case p.exited:
		w.deliver(lifecycle.ContainerExited{Ref: ref, Exit: p.Exit, At: w.Now()})
	default:
		p.watched = w.supervisor
	}
}

func (w *World) alive() []*process {
	var list []*process
	for _, p := range w.engine.processes {
		if !p.exited {
			list = append(list, p)
		}
	}
	return list
}

// Processes returns the number of running processes.
func (w *World) Processes() int { return len(w.alive()) }

// Sandboxes returns the number of sandboxes.
func (w *World) Sandboxes() int { return len(w.engine.sandboxes) }

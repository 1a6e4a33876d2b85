package simulate

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// engine is the actual state of the engine.
type engine struct {
	sandboxes map[int]bool           // the sandboxes that exist
	processes map[string][]*process  // by container
	requested map[lifecycle.Ref]*Run // the scripted run of every run that was requested
}

// process is the process of a container that was created.
type process struct {
	Run
	ref     lifecycle.Ref
	sandbox int
	started time.Duration
	exited  bool
	ended   time.Duration // when it has exited
	watched int           // the supervisor that waits for its exit
}

// process returns the process of a run; nil: there is none.
func (e *engine) process(ref lifecycle.Ref) *process {
	for _, proc := range e.processes[ref.Container] {
		if proc.ref == ref {
			return proc
		}
	}
	return nil
}

// prepare reads the script for an action. It returns the duration of the action, and a function that carries it out after that.
func (p *Pod) prepare(a lifecycle.Action) (time.Duration, func() lifecycle.Event) {
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		s := next(&p.Script.Sandboxes, Start{})
		return s.Takes, func() lifecycle.Event { return p.startSandbox(a, s) }
	case lifecycle.ResizePod:
		s := next(&p.Script.Resizes, Start{})
		return s.Takes, func() lifecycle.Event { return p.resize(a, s) }
	case lifecycle.PullImage:
		s, registry := p.pull(a.Container)
		if registry {
			p.pulling(a.Container)
		}
		return s.Takes, func() lifecycle.Event {
			if s.Failure != nil {
				return p.failed(a, *s.Failure)
			}
			return lifecycle.ImagePulled{
				Container: a.Container, For: a.For, Image: imageOf(a.Container, a.Image), Pulled: registry, Took: s.Takes,
				At: p.world.Now(),
			}
		}
	case lifecycle.FindImage:
		return 0, func() lifecycle.Event {
			if !p.present(a.Container) {
				return p.failed(a, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "not found"})
			}
			return lifecycle.ImagePulled{Container: a.Container, For: a.For, Image: imageOf(a.Container, a.Image), At: p.world.Now()}
		}
	case lifecycle.StartContainer:
		r := p.engine.requested[a.Ref]
		if r == nil {
			r = p.run(a.Container)
			p.engine.requested[a.Ref] = r
		}
		takes := r.Takes
		if p.engine.process(a.Ref) != nil {
			takes = 0 // it exists already
		}
		return takes, func() lifecycle.Event { return p.startContainer(a, r) }
	case lifecycle.RunPostStart:
		return p.runHook(a, hook{a.Ref, lifecycle.PostStart}, 0)
	case lifecycle.RunPreStop:
		return p.runHook(a, hook{a.Ref, lifecycle.PreStop}, a.Limit)
	}
	return 0, func() lifecycle.Event { return p.carryOut(a) }
}

// imageOf returns the image of the previous run of a container, or that of its first run.
func imageOf(container string, previous lifecycle.Image) lifecycle.Image {
	if previous.ID == "" {
		return lifecycle.Image{ID: "sha256:" + container}
	}
	return previous
}

// carryOut carries out an action that stops or removes something.
func (p *Pod) carryOut(a lifecycle.Action) lifecycle.Event {
	switch a := a.(type) {
	case lifecycle.StopContainer:
		return p.signal(a, a.Ref, false)
	case lifecycle.KillContainer:
		return p.signal(a, a.Ref, true)
	case lifecycle.RemoveContainer:
		if proc := p.engine.process(a.Ref); proc != nil && !proc.exited {
			p.world.violation("%v is removed while running", a.Ref)
		}
		p.engine.processes[a.Container] = slices.DeleteFunc(p.engine.processes[a.Container], func(proc *process) bool {
			removed := proc.exited && proc.ref.Attempt <= a.Attempt
			if removed {
				delete(p.engine.requested, proc.ref)
			}
			return removed
		})
		return lifecycle.ContainerRemoved{Ref: a.Ref, At: p.world.Now()}
	case lifecycle.RemoveSandbox:
		for _, proc := range p.alive() {
			if proc.sandbox == a.Sandbox {
				p.world.violation("%v is running in sandbox %d, which is removed", proc.ref, a.Sandbox)
			}
		}
		delete(p.engine.sandboxes, a.Sandbox)
		return lifecycle.SandboxRemoved{Sandbox: a.Sandbox, At: p.world.Now()}
	case lifecycle.RemovePod:
		if n := len(p.alive()) + len(p.engine.sandboxes); n > 0 {
			p.world.violation("the pod is removed but %d processes and sandboxes remain", n)
		}
		clear(p.engine.processes)
		return lifecycle.PodRemoved{At: p.world.Now()}
	case lifecycle.RebootHost:
		return p.rebootHost(a)
	case lifecycle.CollectPod:
		if n := len(p.alive()) + len(p.engine.sandboxes); n > 0 {
			p.world.violation("the pod is collected but %d processes and sandboxes remain", n)
		}
		clear(p.engine.processes)
		return lifecycle.PodCollected{At: p.world.Now()}
	}
	p.world.violation("the simulated engine does not know action %T", a)
	return nil
}

func (p *Pod) failed(a lifecycle.Action, f lifecycle.Failure) lifecycle.Event {
	return lifecycle.ActionFailed{Action: a, Failure: f, At: p.world.Now()}
}

func (p *Pod) startSandbox(a lifecycle.StartSandbox, s Start) lifecycle.Event {
	if s.Failure != nil && !p.engine.sandboxes[a.Sandbox] {
		return p.failed(a, *s.Failure)
	}
	for n := range p.engine.sandboxes {
		if n != a.Sandbox {
			p.world.violation("sandbox %d is started while there is sandbox %d", a.Sandbox, n)
		}
	}
	p.engine.sandboxes[a.Sandbox] = true
	return lifecycle.SandboxStarted{Sandbox: a.Sandbox, IPs: []string{"10.88.0.2"}, At: p.world.Now()}
}

func (p *Pod) startContainer(a lifecycle.StartContainer, r *Run) lifecycle.Event {
	started := lifecycle.ContainerStarted{
		Ref: a.Ref, ID: a.Container + "-" + strconv.Itoa(a.Attempt),
		Image: "docker.io/library/" + a.Container + ":1", ImageID: a.ImageID, At: p.world.Now(),
	}
	switch {
	case p.engine.process(a.Ref) != nil:
		return started
	case r.Failure != nil:
		return p.failed(a, *r.Failure)
	case p.missing(a.Container) != nil:
		return p.failed(a, lifecycle.Failure{
			Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonDeviceMissing,
			Message: "device " + p.missing(a.Container).Name() + " does not exist",
		})
	case p.world.diskFull:
		return p.failed(a, lifecycle.Failure{
			Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateContainerError, Message: noSpace,
		})
	case !p.engine.sandboxes[a.Sandbox]:
		return p.failed(a, lifecycle.Failure{Reason: lifecycle.ReasonRunContainerError, Message: "no sandbox"})
	}
	for _, proc := range p.engine.processes[a.Container] {
		if !proc.exited {
			p.world.violation("%v is started while %v is running", a.Ref, proc.ref)
		}
	}
	proc := &process{Run: *r, ref: a.Ref, sandbox: a.Sandbox, started: p.world.now}
	p.engine.processes[a.Container] = append(p.engine.processes[a.Container], proc)
	if !r.Forever {
		p.at(p.world.now+r.Lasts, func() { p.exit(proc, r.Exit) })
	}
	return started
}

// resize gives the pod and its containers the requests and limits of the definition.
func (p *Pod) resize(a lifecycle.ResizePod, s Start) lifecycle.Event {
	switch {
	case !p.engine.sandboxes[a.Sandbox]:
		return p.failed(a, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "no sandbox"})
	case s.Failure != nil:
		return p.failed(a, *s.Failure)
	}
	return lifecycle.PodResized{N: a.N, At: p.world.Now()}
}

// signal sends a signal to a process, which follows its script.
func (p *Pod) signal(a lifecycle.Action, ref lifecycle.Ref, kill bool) lifecycle.Event {
	proc := p.engine.process(ref)
	switch {
	case proc == nil || proc.exited:
		return p.failed(a, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "no such process"})
	case kill && proc.IgnoresKills > 0:
		proc.IgnoresKills--
	case kill:
		p.at(p.world.now, func() { p.exit(proc, lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonError}) })
	case !proc.IgnoresStop:
		e := lifecycle.Exit{Code: 143, Reason: lifecycle.ReasonError}
		if proc.StopCode != nil {
			e.Code = int(*proc.StopCode)
			if e.Code == 0 {
				e.Reason = lifecycle.ReasonCompleted
			}
		}
		p.at(p.world.now+proc.StopTakes, func() { p.exit(proc, e) })
	}
	return lifecycle.SignalSent{Ref: ref, Kill: kill, At: p.world.Now()}
}

// exit terminates a process and reports its exit to the supervisor that waits for it.
func (p *Pod) exit(proc *process, e lifecycle.Exit) {
	if proc.exited || p.engine.process(proc.ref) != proc {
		return
	}
	proc.exited, proc.Exit, proc.ended = true, e, p.world.now
	if proc.watched != p.world.supervisor {
		return // a supervisor that starts to wait for it gets its exit
	}
	p.deliver(lifecycle.ContainerExited{Ref: proc.ref, Exit: e, At: p.world.Now()})
}

// watch waits for the exit of a run. If it has exited, watch reports the exit; otherwise [World.exit] will.
func (p *Pod) watch(ref lifecycle.Ref) {
	switch proc := p.engine.process(ref); {
	case proc == nil:
		p.deliver(lifecycle.ContainerExited{Ref: ref, Exit: lifecycle.Exit{
			Code: 137, Reason: lifecycle.ReasonStatusUnknown, Message: "not found",
		}, At: p.world.Now()})
	case proc.exited:
		p.deliver(lifecycle.ContainerExited{Ref: ref, Exit: proc.Exit, At: p.world.Now()})
	default:
		proc.watched = p.world.supervisor
	}
}

// alive returns the running processes, in an order that does not depend on chance.
func (p *Pod) alive() []*process {
	var list []*process
	for _, processes := range p.engine.processes {
		for _, proc := range processes {
			if !proc.exited {
				list = append(list, proc)
			}
		}
	}
	slices.SortFunc(list, func(a, b *process) int {
		return cmp.Or(cmp.Compare(a.ref.Container, b.ref.Container), cmp.Compare(a.ref.Attempt, b.ref.Attempt))
	})
	return list
}

// Processes returns the number of running processes.
func (p *Pod) Processes() int { return len(p.alive()) }

// Sandboxes returns the number of sandboxes.
func (p *Pod) Sandboxes() int { return len(p.engine.sandboxes) }

package simulate

import (
	"fmt"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Script is the behaviour of the engine for a pod. Each list is consumed from the front; when it is empty everything succeeds.
type Script struct {
	Sandboxes []Start
	Resizes   []Start
	Pulls     map[string][]Start // by container
	Runs      map[string][]Run   // by container
	// Then is every run after those in Runs, by container. Without it, init containers succeed after a second and the others run until
	// they are stopped.
	Then map[string]Run
	// PullTakes is how long the registry takes for the image of a container.
	PullTakes map[string]time.Duration
	// Answers are the results of probes at times of the world, by container. The last one that applies replaces those of the run.
	Answers map[string][]Answer
}

// Start is the start of something. It takes a while and may fail.
type Start struct {
	Takes   time.Duration
	Failure *lifecycle.Failure
}

// Run is one run of a container. The zero Run starts at once and exits at once with code 0.
type Run struct {
	Start
	Lasts        time.Duration
	Forever      bool // it exits only after a signal
	Exit         lifecycle.Exit
	IgnoresStop  bool          // it ignores the stop signal
	StopTakes    time.Duration // from the stop signal to its exit
	StopCode     *int64        // exit code after the stop signal; nil: 143
	IgnoresKills int           // number of SIGKILLs that have no effect

	PostStart, PreStop Start // of its hooks
	// Probes are the results of its probes, in order.
	Probes map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome
	// StartsUp is the time after its start in which its probes fail.
	StartsUp time.Duration
	// Hangs is the time after its start from which its probes time out; 0: they do not.
	Hangs time.Duration
}

// Answer is the result of a probe in a time of the world.
type Answer struct {
	Kind     lifecycle.ProbeKind
	From, To time.Duration // since the start of the world; To is 0 without an end
	Failure  bool
	Latency  time.Duration // until the answer; a probe that takes longer than its timeout fails
}

// next removes and returns the first element of a list, or returns fallback if the list is empty.
func next[T any](list *[]T, fallback T) T {
	if len(*list) == 0 {
		return fallback
	}
	first := (*list)[0]
	*list = (*list)[1:]
	return first
}

// run returns the next run of a container.
func (p *Pod) run(container string) *Run {
	fallback, scripted := p.Script.Then[container]
	if !scripted {
		fallback = p.untilStopped(container)
	}
	list := p.Script.Runs[container]
	r := next(&list, fallback)
	if p.Script.Runs != nil {
		p.Script.Runs[container] = list
	}
	if r.Exit.Reason == "" {
		r.Exit.Reason = lifecycle.ReasonCompleted
		if r.Exit.Code != 0 {
			r.Exit.Reason = lifecycle.ReasonError
		}
	}
	return &r
}

// untilStopped is a run without a script.
func (p *Pod) untilStopped(container string) Run {
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; c.Name == container && !c.IsSidecar() {
			return Run{Lasts: time.Second}
		}
	}
	return Run{Forever: true}
}

// noSpace is the error of a full disk.
const noSpace = "no space left on device"

// pull returns the next pull of a container's image, and whether a registry is asked.
func (p *Pod) pull(container string) (s Start, registry bool) {
	if list := p.Script.Pulls[container]; len(list) > 0 {
		s = next(&list, Start{})
		p.Script.Pulls[container] = list
		return s, true
	}
	if p.present(container) {
		return Start{}, false
	}
	image, w := p.imageName(container), p.world
	s.Takes = p.Script.PullTakes[container]
	fails := func(why string) (Start, bool) {
		s.Failure = &lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: fmt.Sprintf("pull image %q: %s", image, why)}
		return s, true
	}
	switch {
	case w.registryDown:
		return fails("registry unavailable")
	case w.diskFull:
		return fails(noSpace)
	}
	w.images[image] = true
	return s, true
}

// present reports whether the image of a container needs no registry.
func (p *Pod) present(container string) bool {
	c := p.Spec.Container(container)
	if c == nil {
		return p.images[container]
	}
	policy := p.pullPolicy(c)
	return policy == spec.PullNever || policy != spec.PullAlways && (p.images[container] || p.world.images[c.Image])
}

// pullPolicy returns the pull policy of a container. It parses the name of an image once.
func (p *Pod) pullPolicy(c *spec.Container) spec.PullPolicy {
	if c.ImagePullPolicy != "" {
		return c.ImagePullPolicy
	}
	key := imageKey{c.Image, len(p.Spec.ArchivesOf(c)) > 0}
	policy, known := p.world.policies[key]
	if !known {
		policy = spec.DefaultPullPolicy(key.name, key.archived)
		p.world.policies[key] = policy
	}
	return policy
}

// imageKey is an image whose default pull policy is known.
type imageKey struct {
	name     string
	archived bool
}

// imageName returns the image of a container as the pod file has it, or its name if it is an ephemeral container.
func (p *Pod) imageName(container string) string {
	if c := p.Spec.Container(container); c != nil {
		return c.Image
	}
	return container
}

// pulling emits that a registry is asked for an image.
func (p *Pod) pulling(container string) {
	p.emit(api.EventImagePulling, container, event.Fields{"image": p.imageName(container)})
}

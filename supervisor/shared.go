package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// startTimeout bounds how long a start waits for its turn and for the disk. The limit on parallel starts only smooths load, and with
// a hanging disk a running pod is better than a durable one.
const startTimeout = 10 * time.Second

// saveTimeout bounds how long the answer to a client waits for the disk. A write that takes 2 s is reported, so the client then finds the
// event and the condition.
const saveTimeout = 3 * time.Second

// shared is what all loops of a supervisor use.
type shared struct {
	runtime     Runtime
	prober      Prober
	hooks       Hooks
	conditions  HostConditions
	rebooter    Rebooter // nil: reboots are disabled
	peers       peers
	store       state.Store
	checkpoints state.Checkpoints // nil: none are kept
	journal     event.Journal     // nil: none is kept
	space       *disk.Reserve
	quarantine  *state.Quarantine // nil: none is kept
	crash       string            // of the last daemon; empty: it did not
	uncleanBoot string            // that ended without a shutdown of the host; empty: none is known
	now         Clock
	policy      atomic.Pointer[admission.Policy]
	damaged     []lifecycle.Damage // files of the engine
	log         *slog.Logger
	ring        *event.Ring
	starts      chan struct{} // holds one token per start in progress
	// restored has the causes that the journal of earlier supervisors leads to, by UID. After the recovery it has only those of pods that
	// are not supervised yet.
	restored map[string]emit.Causes
	minReady *time.Duration // see [Options]
	// decide is [lifecycle.Decide], except in tests.
	decide func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision
	// between is [change.Between], except in tests.
	between func(from, to *spec.Pod) []change.Change
}

// trial returns a trial of a definition that begins now.
func (s *shared) trial(pod *spec.Pod, rollsBack bool, now lifecycle.Instant) lifecycle.Trial {
	within, minReady, _ := pod.UpdateRule()
	if s.minReady != nil && pod.Update == nil {
		minReady = *s.minReady
	}
	return lifecycle.NewTrial(within, minReady, rollsBack, now)
}

// peers is what the wait for another pod requires of the set of pods.
type peers interface {
	// peer returns the newest snapshot of a pod, and a channel that is closed when it may have changed. The snapshot is nil if there is no
	// such pod, or if it has not been recovered yet.
	peer(name string) (*Snapshot, <-chan struct{})
	// job returns the pods of a Job, and a channel that is closed when they may have changed. They are nil as long as not all of them have
	// been recovered.
	job(name string) ([]lifecycle.JobPod, <-chan struct{})
	// turns is [lifecycle.JobTurns] of a Job, and the channel of job.
	turns(name string) (map[string]string, <-chan struct{})
}

// acquireStart waits for a turn to start a container, for [startTimeout] at most, and returns the function that releases it.
func (s *shared) acquireStart(ctx context.Context) (release func()) {
	select {
	case s.starts <- struct{}{}:
		return func() { <-s.starts }
	case <-time.After(startTimeout):
	case <-ctx.Done():
	}
	return func() {}
}

// Staged is everything that a new definition of a pod needs to start without a registry.
type Staged struct {
	// Images are the images of the containers, by name of the container. Containers that do not change have none.
	Images map[string]lifecycle.Image
	// Shadows are the images of the same containers that differ from other images of their names.
	Shadows map[string][]lifecycle.Shadow
	// RollsBack reports that an earlier definition replaces this one if it fails: until [Supervisor.Keep], what has failed is not started
	// again.
	RollsBack bool
	// Refused is why an earlier attempt to add the pod was rejected. The same reasons are not reported again.
	Refused []lifecycle.Refusal
}

// reservation is for a pod that is being changed or started.
type reservation struct {
	needed   *spec.Pod     // nil: it needs nothing now
	released chan struct{} // closed when the request has been answered
}

// changes returns what differs between two definitions, and between the images that containers use and those that they get.
func (s *shared) changes(from, to *spec.Pod, f lifecycle.Facts, images map[string]lifecycle.Image) []change.Change {
	list := append(s.between(from, to), imageChanges(from, to, f, images)...)
	change.Sort(list)
	return list
}

// affected returns the containers of a new definition that run with it sooner or later, although the pod goes on: those that were added,
// those with a change that is not in place, and all if the pod restarts. Their images must be present.
func affected(from, to *spec.Pod, changes []change.Change) []string {
	var names []string
	for _, c := range slices.Concat(to.InitContainers, to.Containers) {
		changed := slices.ContainsFunc(changes, func(ch change.Change) bool {
			return ch.Effect == change.RestartPod || ch.Container == c.Name && ch.Effect != change.InPlace
		})
		if changed || from.Container(c.Name) == nil {
			names = append(names, c.Name)
		}
	}
	return names
}

// ofSpec reports whether a change is of a field that is in the spec of a pod, not in its metadata.
func ofSpec(c change.Change) bool {
	field, _, _ := strings.Cut(c.Path, ".")
	return field != "labels" && field != "annotations"
}

// maxDescribed limits the changes in an event.
const maxDescribed = 10

// describe lists changes for people. It has no values: they may be long.
func describe(changes []change.Change) string {
	var list []string
	for _, c := range changes {
		list = append(list, c.Path)
	}
	if more := len(list) - maxDescribed; more > 0 {
		list = append(list[:maxDescribed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

// byContainer describes the changes that restart each container of a definition.
func byContainer(to *spec.Pod, changes []change.Change) map[string]string {
	all := map[string][]change.Change{}
	for _, c := range changes {
		switch {
		case c.Effect == change.RestartPod:
			for _, one := range slices.Concat(to.InitContainers, to.Containers) {
				all[one.Name] = append(all[one.Name], c)
			}
		case c.Container != "" && c.Effect != change.InPlace:
			all[c.Container] = append(all[c.Container], c)
		}
	}
	texts := map[string]string{}
	for name, list := range all {
		texts[name] = describe(list)
	}
	return texts
}

// ImageChanges returns the changes of a pod whose containers get images: each that differs from the one that its container uses. Containers
// that only one definition has, and those with another reference, have a change of the definition instead.
func ImageChanges(running *Snapshot, to *spec.Pod, images map[string]lifecycle.Image) []change.Change {
	return imageChanges(running.Pod, to, running.Facts, images)
}

func imageChanges(from, to *spec.Pod, f lifecycle.Facts, images map[string]lifecycle.Image) (changes []change.Change) {
	for kind, list := range map[string][]spec.Container{"initContainers": to.InitContainers, "containers": to.Containers} {
		for i := range list {
			c, image := &list[i], images[list[i].Name]
			now, used := from.Container(c.Name), f.Container(c.Name).Image
			if now == nil || now.Image != c.Image || used.ID == "" || image.ID == "" || image.ID == used.ID {
				continue
			}
			path := kind + "[" + strconv.Itoa(i) + "].image"
			changes = append(changes, change.OfImage(path, c, kind == "initContainers", used.ID, image.ID))
		}
	}
	change.Sort(changes)
	return changes
}

package simulate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Update gives the pod another definition, as apply does. It has no effect while the supervisor is down.
func (p *Pod) Update(to *spec.Pod) {
	from := p.Spec
	changes := change.Between(from, to)
	if p.idle() || p.Facts.Stop.Delete || len(changes) == 0 {
		return
	}
	_, _, rollback := to.UpdateRule()
	p.earlier = nil
	if rollback && !p.Facts.Trial.Passed.IsZero() {
		p.earlier = from
	}
	p.change(to, changes)
}

// change gives the pod another definition, as the supervisor does.
func (p *Pod) change(to *spec.Pod, changes []change.Change) {
	from, now := p.Spec, p.world.Now()
	e := lifecycle.DefinitionChanged{From: from, To: to, Images: map[string]lifecycle.Image{}, At: now}
	e.MetadataOnly = !slices.ContainsFunc(changes, func(c change.Change) bool {
		field, _, _ := strings.Cut(c.Path, ".")
		return field != "labels" && field != "annotations"
	})
	restartsPod := change.Largest(changes) == change.RestartPod
	for _, c := range slices.Concat(to.InitContainers, to.Containers) {
		changed := restartsPod || slices.ContainsFunc(changes, func(ch change.Change) bool {
			return ch.Container == c.Name && ch.Effect != change.InPlace
		})
		if !changed && from.Container(c.Name) != nil {
			continue
		}
		e.Images[c.Name] = lifecycle.Image{ID: "sha256:" + c.Image}
		if from.Container(c.Name) != nil && !lifecycle.InitPassed(from, p.Facts, c.Name) {
			e.Restarted = append(e.Restarted, c.Name)
		}
	}
	if !e.Fits(p.Facts) {
		return
	}
	terminating := lifecycle.Terminating(from, p.Facts)
	again := !p.Facts.Stop.ByUser && terminating && (len(e.Images) > 0 || !lifecycle.Terminating(to, p.Facts.Apply(e)))
	p.Spec = to
	p.fold(e)
	paths, texts := make([]string, len(changes)), map[string]string{}
	for i, c := range changes {
		paths[i] = c.Path
	}
	for _, name := range e.Restarted {
		texts[name] = strings.Join(paths, ", ")
	}
	p.events.Redefine(to, texts)
	p.emit(api.EventDefinitionChanged, "", event.Fields{"changes": strings.Join(paths, ", "), "by": requester})
	switch {
	case again:
		p.fold(lifecycle.RestartRequested{By: requester, JobRun: p.nextRun(), At: now})
	case restartsPod && !terminating:
		p.fold(lifecycle.RestartRequested{By: requester, Redefined: true, At: now})
	}
	p.try()
}

// try begins a trial of the definition.
func (p *Pod) try() {
	within, minReady, _ := p.Spec.UpdateRule()
	p.BeginTrial(within, minReady, p.earlier != nil)
}

// rollBack gives the pod its earlier definition if the newer one has failed.
func (p *Pod) rollBack() {
	t := &p.Facts.Trial
	if p.earlier == nil || !t.Holds() {
		return
	}
	to := p.earlier
	p.earlier = nil
	p.emit(api.EventRollbackStarted, "", event.Fields{
		"generation": strconv.Itoa(t.N + 1), "target": strconv.Itoa(t.N), "error": t.Message,
	})
	p.change(to, change.Between(p.Spec, to))
	p.world.mustDecide(p)
}

// accept begins the trial of a pod that was created now.
func (p *Pod) accept() {
	within, minReady, _ := p.Spec.UpdateRule()
	p.Facts.Trial = lifecycle.NewTrial(within, minReady, false, p.world.Now())
	p.emit(api.EventPodAccepted, "", event.Fields{"by": requester})
}

package podfiles

import (
	"fmt"
	"maps"
	"slices"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// oneByOne defers the updates of pods that are replicas of the same object: one is updated, and the next one when that is complete. A
// replica with the new definition that is not ready, or whose resize is not complete, keeps the others, which run on. One that was rolled
// back keeps them too, until the file changes. The first start of replicas is not deferred, and neither is a rollback.
func (f *facts) oneByOne(d *decision) {
	first := map[string]string{}                               // the pod that is updated now, or that the others wait for, by group
	for _, name := range slices.Sorted(maps.Keys(f.working)) { // a pod that is being replaced may not exist
		s := f.working[name].step
		if group := groupOf(s.target); group != "" && first[group] == "" && (s.kind == redefine || s.kind == replace) {
			first[group] = name
		}
	}
	incomplete := map[string]string{} // why its update is not complete, by group
	for _, name := range sortedNames(f.pods) {
		p, t := f.pods[name], d.targets[name]
		if group := groupOf(t); group != "" && first[group] == "" && f.updates(&p, t) {
			first[group], incomplete[group] = name, p.snapshot.Outcome.Message
		}
	}
	failed := map[string]*content{} // a replica that was rolled back, by group
	for _, name := range slices.Sorted(maps.Keys(d.targets)) {
		t := d.targets[name]
		if group := groupOf(t); group != "" && failed[group] == nil && t.instead != nil && t.instead.By == "" {
			failed[group] = t
		}
	}
	d.steps = slices.DeleteFunc(d.steps, func(s step) bool {
		if s.kind != redefine && s.kind != replace || s.target.instead != nil || len(s.changes) == 0 {
			return false
		}
		group := groupOf(s.target)
		reason, why := api.Reason(""), error(nil)
		switch t := failed[group]; {
		case group == "" || t == nil && first[group] == s.pod:
			return false
		case t != nil:
			reason, why = api.ReasonRolledBack, fmt.Errorf("pod %s: %s; the pod keeps its definition", t.pod.Name, t.instead)
		case first[group] == "":
			first[group] = s.pod
			return false
		default:
			text := fmt.Sprintf("the update waits until that of pod %s is complete", first[group])
			if message := incomplete[group]; message != "" {
				text += ": " + message
			}
			why = &pending{text: text}
		}
		for i := range d.files {
			shown := &d.files[i]
			if shown.Pod == s.pod && shown.Path == s.target.path && (shown.Refused == nil || reason != "") {
				shown.Reason, shown.Refused = reason, why
			}
		}
		return true
	})
}

// updates reports whether a replica has been updated, and that is not complete.
func (f *facts) updates(p *pod, t *content) bool {
	if p.stopped || p.deleting || p.held != "" || p.snapshot == nil || len(f.changes(p, t)) > 0 {
		return false
	}
	state := p.snapshot.Outcome.State
	return state == lifecycle.OutcomeProgressing || state == lifecycle.OutcomeFailed
}

// groupOf returns the object that a pod is a replica of; empty: it is none.
func groupOf(t *content) string {
	if t == nil {
		return ""
	}
	return t.pod.Annotations[spec.AnnotationReplicaOf]
}

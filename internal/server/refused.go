package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// maxFileErrors limits the number of errors of a file in a message.
const maxFileErrors = 10

// refusal is why the newest content of a file, or of several with the same pod, does not run.
type refusal struct {
	reason  api.Reason
	message string
	// waiting reports that the definition is accepted, and runs later.
	waiting bool
	// rolledBack reports that an earlier definition runs. For a moment of a rollback the pod does not exist.
	rolledBack bool
	// undone reports that a person has requested the earlier definition.
	undone bool
	// definition is the newest content; nil: it is invalid.
	definition *spec.Pod
	// admission are the reasons for which the pod was rejected by the admission of the host; none: there is another reason.
	admission []lifecycle.Refusal
	// next is when the pod is added again; zero: not known.
	next time.Time
}

// absent reports whether the pod does not exist because of the file.
func (f *refusal) absent() bool { return !f.waiting && !f.rolledBack }

// noSuchPod is the error for a pod that does not exist yet, although there is a valid file, such as one that a systemd unit starts.
func (f *refusal) noSuchPod(name string) *api.Error {
	return failure(http.StatusNotFound, "no such pod %q: %s", name, f.message)
}

// refusals returns the files of the pods directory that do not run, by name of the pod.
func (s *Server) refusals() map[string]*refusal {
	list := map[string]*refusal{}
	if s.o.Files == nil {
		return list
	}
	for _, f := range s.o.Files.Files() {
		if f.Reason == "" && f.Refused == nil {
			continue
		}
		own := &refusal{
			reason: cmp.Or(f.Reason, api.ReasonUpdatePending), message: fileMessage(&f), waiting: f.Reason == "",
			rolledBack: f.Reason == api.ReasonRolledBack || f.Reason == api.ReasonRolloutUndone,
			undone:     f.Reason == api.ReasonRolloutUndone, definition: f.Definition, next: f.Next,
		}
		if rejected, ok := errors.AsType[*supervisor.RefusedError](f.Refused); ok && f.Reason == api.ReasonRejected {
			own.admission = rejected.Refusals
		}
		if first := list[f.Pod]; first != nil && first.message != own.message {
			if own.waiting || !first.waiting { // a refusal that does not wait is the reason of both
				own.reason = first.reason
			}
			own.waiting, own.message = first.waiting && own.waiting, first.message+"; "+own.message
			own.rolledBack, own.undone = first.rolledBack && own.rolledBack, first.undone && own.undone
			own.admission = nil // the message has more than these
		}
		list[f.Pod] = own
	}
	return list
}

// fileMessage is why a file does not run: its errors with line and column, or why it was refused.
func fileMessage(f *podfiles.File) string {
	if f.Refused != nil {
		return f.Refused.Error()
	}
	errs := f.Problems.Errors()
	var lines []string
	for _, p := range errs[:min(len(errs), maxFileErrors)] {
		lines = append(lines, p.String())
	}
	if more := len(errs) - maxFileErrors; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more errors", more))
	}
	return cmp.Or(strings.Join(lines, "; "), f.Path+": "+string(f.Reason))
}

// list returns all pods, sorted by name. Files of the pods directory that are refused, and whose pod does not exist, are pods without a
// UID, and so are the pods that are started by a schedule.
func (s *Server) list() []api.Pod {
	refused, hostIPs := s.refusals(), s.o.HostIPs()
	list := []api.Pod{}
	for _, snapshot := range s.o.Supervisor.Pods() {
		pod := podOf(&snapshot, hostIPs)
		refused[pod.Metadata.Name].addTo(&pod)
		delete(refused, pod.Metadata.Name)
		list = append(list, pod)
	}
	for name, f := range refused {
		if f.absent() {
			list = append(list, f.pod(name))
		}
	}
	for _, pod := range s.scheduledPods() {
		if _, exists := s.o.Supervisor.Pod(pod.Metadata.Name); !exists { // of before the file had a schedule
			list = append(list, pod)
		}
	}
	order.Sort(list, func(a, b api.Pod) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	return list
}

// pod returns a pod with the status of a file.
func (s *Server) pod(snapshot *supervisor.Snapshot) api.Pod {
	pod := podOf(snapshot, s.o.HostIPs())
	s.refusals()[pod.Metadata.Name].addTo(&pod)
	return pod
}

// addTo adds the condition [api.FileAccepted] to a pod.
func (f *refusal) addTo(p *api.Pod) {
	if f == nil {
		return
	}
	p.Status.Conditions = append(slices.Clone(p.Status.Conditions), api.Condition{
		Type: api.FileAccepted, Status: "False", Reason: f.reason, Message: f.message,
	})
}

// status returns the reason and the message of the status of a pod that does not exist because of its file. Those of a pod that was not
// admitted are the kubelet's (Kubelet.rejectPod).
func (f *refusal) status() (api.Reason, string) {
	if len(f.admission) == 0 {
		return f.reason, f.message
	}
	reason := f.admission[0].Reason
	return api.Reason(reason), "Pod was rejected: " + strings.TrimPrefix(emit.Reasons(f.admission), string(reason)+": ")
}

// pod represents a file whose pod does not exist. As a pod that the kubelet rejects, it has the phase Failed, its definition and no
// containers.
func (f *refusal) pod(name string) api.Pod {
	p := api.Pod{Kind: "Pod", APIVersion: "v1", Metadata: api.Metadata{Name: name, Namespace: "default"}}
	p.Status.Conditions = []api.Condition{}
	p.Status.Phase = api.PhaseFailed
	p.Status.Reason, p.Status.Message = f.status()
	if d := f.definition; d != nil {
		p.Metadata.Labels, p.Metadata.Annotations = d.Labels, d.Annotations
		p.Spec, p.Status.QOSClass = api.PodSpec{Pod: withPullPolicies(d, &lifecycle.Facts{}), NodeName: nodeName()}, d.QOS()
	}
	return p
}

// explain adds to the explanation of a pod why its file is not what runs. After a failed update the file needs to be corrected, although
// the pod runs.
func (f *refusal) explain(e *api.Explanation) {
	if f == nil {
		return
	}
	e.File = f.message
	e.Healthy = e.Healthy && (f.waiting || f.undone)
}

// explanation explains a file whose pod does not exist.
func (f *refusal) explanation(name string) api.Explanation {
	reason, _ := f.status()
	cause := &api.Cause{Kind: api.CauseAdmissionRejected, Reason: reason, Message: f.message}
	if len(f.admission) > 0 { // as the event
		cause.Message, cause.Hint = emit.Reasons(f.admission), emit.Hints(f.admission)
	}
	return api.Explanation{Pod: name, State: api.PodStateRejected, Cause: cause, Next: f.next.UTC()}
}

// withRefused adds the explanations of refused files whose pods do not exist, and those of schedules, to those of pods.
func (s *Server) withRefused(ctx context.Context, list []api.Explanation) []api.Explanation {
	refused := s.refusals()
	maps.DeleteFunc(refused, func(_ string, f *refusal) bool { return !f.absent() })
	for i := range list {
		delete(refused, list[i].Pod)
	}
	now := s.o.Supervisor.Now().Wall.Local()
	for name, f := range refused {
		e := f.explanation(name)
		explain.Render(&e, now)
		list = append(list, e)
	}
	if s.o.Schedules != nil {
		for _, status := range s.o.Schedules.List() {
			list = append(list, s.explainSchedule(ctx, &status))
		}
	}
	order.Sort(list, func(a, b api.Explanation) int { return cmp.Compare(a.Pod, b.Pod) })
	return list
}

package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// RefusedError reports that a pod or an ephemeral container was rejected, with all reasons.
type RefusedError struct {
	Pod      string
	Refusals []lifecycle.Refusal // at least one
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("pod %q rejected: %s", e.Pod, emit.Reasons(e.Refusals))
}

// Unwrap returns the reasons.
func (e *RefusedError) Unwrap() []error {
	errs := make([]error, len(e.Refusals))
	for i, r := range e.Refusals {
		errs[i] = r
	}
	return errs
}

// refused returns a [*RefusedError] with one reason.
func refused(pod string, err error) error {
	return &RefusedError{Pod: pod, Refusals: lifecycle.Refusals(err)}
}

// Policy returns the admission policy.
func (s *Supervisor) Policy() admission.Policy { return *s.shared.policy.Load() }

// SetPolicy replaces the admission policy for new pods and ephemeral containers.
func (s *Supervisor) SetPolicy(p admission.Policy) { s.shared.policy.Store(&p) }

// check returns why the admission policy or the host rejects a pod. Other pods are not considered. Accepted pods are not checked again:
// as with Pod Security in Kubernetes, they keep running under a stricter policy.
func (s *Supervisor) check(pod *spec.Pod) []lifecycle.Refusal {
	return append(s.shared.policy.Load().Check(pod), lifecycle.Refusals(s.shared.runtime.Admit(pod))...)
}

// checkEphemeral returns why the admission policy or the host rejects a container that is added to a pod. The pod itself was admitted.
func (s *shared) checkEphemeral(pod *spec.Pod, c *spec.Container) []lifecycle.Refusal {
	list := lifecycle.Refusals(s.runtime.Admit(withEphemerals(pod, []spec.Container{*c})))
	list = slices.DeleteFunc(list, func(r lifecycle.Refusal) bool { return !strings.HasPrefix(r.Field, "ephemeralContainers[") })
	return append(s.policy.Load().CheckEphemeral(pod, c), list...)
}

// portConflicts returns a refusal for each host port of a pod that another pod uses or has reserved. Pods that have completed or are being
// stopped do not count: the new pod waits for their ports. s.mu must be held.
func (s *Supervisor) portConflicts(pod *spec.Pod) []lifecycle.Refusal {
	if len(pod.HostPorts()) == 0 {
		return nil
	}
	var list []lifecycle.Refusal
	for _, other := range s.activePods(pod.Name, false) {
		for field, port := range pod.HostPortFields() {
			if !slices.ContainsFunc(other.HostPorts(), port.Overlaps) {
				continue
			}
			list = append(list, lifecycle.Refusal{
				Reason: lifecycle.ReasonNodePorts, Field: field,
				Message: fmt.Sprintf("%s: host port %d/%s is in use by pod %q", lifecycle.NodePortsMessage, port.HostPort, port.Protocol,
					other.Name),
				Hint: fmt.Sprintf("use another host port, or delete the other pod: podstead delete %s", other.Name),
			})
		}
	}
	return list
}

// requestConflicts returns a refusal for each resource of which a pod requests more than other pods leave. As in the kubelet, the requests
// of a pod count until it has terminated. s.mu must be held.
func (s *Supervisor) requestConflicts(pod *spec.Pod, allocatable spec.ResourceList) []lifecycle.Refusal {
	current := s.activePods(pod.Name, true)
	next := slices.Clone(current)
	slices.Reverse(next)
	for _, others := range [][]*spec.Pod{current, next} { // once with the first of two definitions of a pod, once with the second
		others = slices.CompactFunc(others, func(a, b *spec.Pod) bool { return a.Name == b.Name })
		if list := s.shared.policy.Load().CheckRequests(pod, others, allocatable); len(list) > 0 {
			return list
		}
	}
	return nil
}

// activePods returns the pods that have not completed, including those that are being added, sorted by name. It omits the pod with the name
// but, and those that are being stopped unless stopping is true. A pod whose definition is being changed is in the list twice, first with
// the old definition. s.mu must be held.
func (s *Supervisor) activePods(but string, stopping bool) []*spec.Pod {
	var list []*spec.Pod
	for name, l := range s.pods {
		if name == but {
			continue
		}
		if l != nil {
			if now := l.snapshot.Load(); !now.Status.Phase.Terminal() && (stopping || now.Facts.Stop.Requested.IsZero()) {
				list = append(list, now.Pod)
			}
		}
		for _, next := range []*spec.Pod{s.adding[name], s.changing[name].needed} {
			if next != nil {
				list = append(list, next)
			}
		}
	}
	for _, p := range s.blocked {
		if p.completed {
			continue
		}
		list = append(list, p.snapshot.Pod)
	}
	order.Sort(list, func(a, b *spec.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// conflicts returns why other pods prevent a pod from running. s.mu must be held.
func (s *Supervisor) conflicts(pod *spec.Pod, allocatable spec.ResourceList) []lifecycle.Refusal {
	return slices.Concat(s.requestConflicts(pod, allocatable), s.portConflicts(pod), s.volumeConflicts(pod), s.waitCycles(pod))
}

// reserveChange reserves what the new definition of a pod needs, in addition to what the old one uses, until release is called. Images
// are those that containers get. The definition is the old one if the pod is started. It waits until other requests that change or start
// the pod have been answered. It reserves nothing for a pod that stays stopped or completed: its start is checked. starts is for requests
// that start the pod in any case.
func (s *Supervisor) reserveChange(
	ctx context.Context, pod *spec.Pod, images map[string]lifecycle.Image, starts bool,
) (release func(), err error) {
	allocatable := s.shared.runtime.Allocatable()
	if err := s.lockUnchanging(ctx, pod.Name); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	l := s.pods[pod.Name]
	if l == nil { // not known: the request is answered without a reservation
		return func() {}, nil
	}
	var needed *spec.Pod
	if starts || s.shared.runsWith(l.snapshot.Load(), withEphemerals(pod, nil), images) {
		if refusals := s.conflicts(pod, allocatable); len(refusals) > 0 {
			return nil, &RefusedError{Pod: pod.Name, Refusals: refusals}
		}
		needed = pod
	}
	released := make(chan struct{})
	s.changing[pod.Name] = reservation{needed, released}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.changing, pod.Name)
		close(released)
	}, nil
}

// lockUnchanging locks s.mu when no request changes or starts a pod. If ctx ends before, it does not lock.
func (s *Supervisor) lockUnchanging(ctx context.Context, name string) error {
	for {
		s.mu.Lock()
		r, changing := s.changing[name]
		if !changing {
			return nil
		}
		s.mu.Unlock()
		select {
		case <-r.released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// runsWith reports whether a pod needs what a new definition with these images needs: it runs, the change starts it again, or a new pod
// replaces it.
func (s *shared) runsWith(now *Snapshot, to *spec.Pod, images map[string]lifecycle.Image) bool {
	from := withEphemerals(now.Pod, nil)
	changes := s.changes(from, to, now.Facts, images)
	if !lifecycle.Terminating(from, now.Facts) || change.Largest(changes) == change.ReplacePod {
		return true
	}
	e := lifecycle.DefinitionChanged{From: from, To: to, Images: map[string]lifecycle.Image{}, At: s.now()}
	for _, name := range affected(from, to, changes) {
		e.Images[name] = lifecycle.Image{}
	}
	return startsAgain(now.Facts, e)
}

// startsAgain reports whether a change starts the pod again: it has completed, failed or is being evicted, and a container was changed, one
// that has failed gets other limits, or the new definition does not let the pod end, for example with another restart policy. A pod that
// was stopped by a user stays stopped.
func startsAgain(f lifecycle.Facts, e lifecycle.DefinitionChanged) bool {
	if f.Stop.ByUser || !lifecycle.Terminating(e.From, f) {
		return false
	}
	return len(e.Images) > 0 || e.ResizesFailed(f) || !lifecycle.Terminating(e.To, f.Apply(e))
}

// peer returns the newest snapshot of a pod for the pods that wait for it. See [peers].
func (s *Supervisor) peer(name string) (*Snapshot, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.blocked[name]; p != nil {
		snapshot := p.snapshot
		return &snapshot, s.changed
	}
	l := s.pods[name]
	if l == nil {
		return nil, s.changed
	}
	select {
	case <-l.ready:
		return l.snapshot.Load(), s.changed
	default:
		return nil, l.ready // its snapshot is that of an earlier supervisor, possibly of an earlier boot
	}
}

// waitCycles returns a refusal for each pod that a new pod waits for and that waits for the new pod, directly or through others: none of
// them would start. Pods that have completed or are being stopped do not count. s.mu must be held.
func (s *Supervisor) waitCycles(pod *spec.Pod) []lifecycle.Refusal {
	if len(pod.WaitFor) == 0 {
		return nil
	}
	waits := map[string][]string{}
	for _, other := range s.activePods(pod.Name, false) {
		waits[other.Name] = append(waits[other.Name], other.WaitsForPods()...) // of both definitions, if it is being changed
	}
	var list []lifecycle.Refusal
	for i, entry := range pod.WaitFor {
		c := spec.ParseWaitCondition(entry)
		if c.Kind != spec.WaitPod {
			continue
		}
		if path := spec.PathOfWaits(waits, c.Object, pod.Name); path != nil {
			list = append(list, lifecycle.Refusal{
				Reason: lifecycle.ReasonWaitForCycle, Field: fmt.Sprintf("waitFor[%d]", i),
				Message: "pods wait for each other: " + strings.Join(append([]string{pod.Name}, path...), " -> "),
				Hint:    "remove one of these pods from waitFor",
			})
		}
	}
	return list
}

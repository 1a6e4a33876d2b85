package supervisor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/podstead/podstead/spec"
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
				Message: fmt.Sprintf("%s: host port %d/%s is in use by pod %q", lifecycle.NodePortsMessage, port.HostPort, port.Protocol, other.Name),
				Hint:    fmt.Sprintf("use another host port, or delete the other pod: podstead delete %s", other.Name),
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
	slices.SortStableFunc(list, func(a, b *spec.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

package supervisor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/podstead/podstead/spec"
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

// check returns why the admission policy or the host rejects a pod. Other pods are not considered. Accepted pods are not checked again:
// as with Pod Security in Kubernetes, they keep running under a stricter policy.
func (s *Supervisor) check(pod *spec.Pod) []lifecycle.Refusal {
	return append(s.shared.policy.Check(pod), lifecycle.Refusals(s.shared.runtime.Admit(pod))...)
}

// portConflicts returns a refusal for each host port of a pod that another pod uses or has reserved. Pods that have completed or are being
// stopped do not count: the new pod waits for their ports. s.mu must be held.
func (s *Supervisor) portConflicts(pod *spec.Pod) []lifecycle.Refusal {
	if len(pod.HostPorts()) == 0 {
		return nil
	}
	var list []lifecycle.Refusal
	for _, other := range s.activePods(pod.Name) {
		for field, port := range pod.HostPortFields() {
			if !slices.ContainsFunc(other.HostPorts(), port.Overlaps) {
				continue
			}
			list = append(list, lifecycle.Refusal{
				Reason: lifecycle.ReasonNodePorts, Field: field,
				Message: fmt.Sprintf("host port %d/%s is in use by pod %q", port.HostPort, port.Protocol, other.Name),
				Hint:    fmt.Sprintf("use another host port, or delete the other pod: podstead delete %s", other.Name),
			})
		}
	}
	return list
}

// activePods returns the pods that hold exclusive resources, including those that are being added, sorted by name. It omits the pod with
// the name but. s.mu must be held.
func (s *Supervisor) activePods(but string) []*spec.Pod {
	var list []*spec.Pod
	for name, l := range s.pods {
		other := s.adding[name]
		if l != nil {
			now := l.snapshot.Load()
			if now.Status.Phase.Terminal() || !now.Facts.Stop.Requested.IsZero() {
				continue
			}
			other = now.Pod
		}
		if other != nil && name != but {
			list = append(list, other)
		}
	}
	for _, p := range s.blocked {
		list = append(list, p.snapshot.Pod)
	}
	slices.SortFunc(list, func(a, b *spec.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

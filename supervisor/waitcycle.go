package supervisor

import (
	"fmt"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

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

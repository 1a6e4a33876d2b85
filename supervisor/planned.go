package supervisor

import "github.com/podstead/podstead/spec"

// Planned returns the definitions of the pods that are being added, changed or started. Call it before [Supervisor.Pods]: a pod is in at
// least one of the two.
func (s *Supervisor) Planned() []*spec.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*spec.Pod
	for _, pod := range s.adding {
		list = append(list, pod)
	}
	for _, r := range s.changing {
		if r.needed != nil {
			list = append(list, r.needed)
		}
	}
	return list
}

package lifecycle

// phase computes the phase from the container statuses as the kubelet does (contract 2.1). Two differences make it shorter: no
// container state is unknown, and the phase is terminal if and only if the pod is terminating and no container can run.
func (v *view) phase(s *Status) Phase {
	if v.allStopped() {
		if v.facts.Stop.Reason != "" {
			return PhaseFailed
		}
		for i := range s.ContainerStatuses {
			if end := s.ContainerStatuses[i].State.Terminated; end == nil || end.ExitCode != 0 {
				return PhaseFailed
			}
		}
		return PhaseSucceeded
	}
	for i := range s.InitContainerStatuses {
		if c := &s.InitContainerStatuses[i]; v.pod.InitContainers[i].IsSidecar() {
			if c.State.Running == nil && lastTermination(c) == nil || c.State.Running != nil && !*c.Started && !v.running() {
				return PhasePending
			}
		} else if lastTermination(c) == nil {
			return PhasePending
		}
	}
	for i := range s.ContainerStatuses {
		if c := &s.ContainerStatuses[i]; c.State.Running == nil && lastTermination(c) == nil {
			return PhasePending
		}
	}
	return PhaseRunning
}

// running reports whether an app container has run in this round (podHasInitialized of the kubelet), also if its next run has no
// outcome yet.
func (v *view) running() bool {
	for i := range v.pod.Containers {
		h := v.facts.Containers[v.pod.Containers[i].Name]
		if a, _ := v.records(&h, roleApp); a.Round == v.facts.Round && a.ran() {
			return true
		}
	}
	return false
}

// lastTermination returns how the container last terminated; nil if it is running or has not run.
func lastTermination(c *ContainerStatus) *Terminated {
	switch {
	case c.State.Running != nil:
		return nil
	case c.State.Terminated != nil:
		return c.State.Terminated
	default:
		return c.LastState.Terminated
	}
}

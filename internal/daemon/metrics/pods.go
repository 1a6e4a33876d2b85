package metrics

import (
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// namespace is the namespace of all pods.
const namespace = "default"

var phases = []lifecycle.Phase{
	lifecycle.PhasePending, lifecycle.PhaseRunning, lifecycle.PhaseSucceeded, lifecycle.PhaseFailed, lifecycle.PhaseUnknown,
}

// states adds the states of pods.
func (s *sample) states(list []supervisor.Snapshot, node string) {
	byPhase := map[lifecycle.Phase]int{}
	var sandboxes, waiting, running, terminated int
	for i := range list {
		p := &list[i]
		byPhase[p.Status.Phase]++
		if sandboxOf(p) != 0 {
			sandboxes++
		}
		s.pod(p, node)
		for _, c := range p.Status.Every() {
			switch {
			case c.State.Running != nil:
				running++
			case c.State.Terminated != nil:
				terminated++
			default:
				waiting++
			}
		}
	}
	for _, phase := range phases {
		s.add(pods, float64(byPhase[phase]), string(phase))
	}
	s.add(runningPods, float64(sandboxes))
	s.add(containers, float64(waiting), "waiting")
	s.add(containers, float64(running), "running")
	s.add(containers, float64(terminated), "terminated")
	s.add(runningContainers, float64(waiting), "created")
	s.add(runningContainers, float64(running), "running")
	s.add(runningContainers, float64(terminated), "exited")
}

// sandboxOf returns the number of the running sandbox of a pod; 0: none.
func sandboxOf(p *supervisor.Snapshot) int {
	if s := &p.Facts.Sandbox; !s.Ready.IsZero() && s.Lost.IsZero() {
		return s.N
	}
	return 0
}

// pod adds the state of a pod and of its containers.
func (s *sample) pod(p *supervisor.Snapshot, node string) {
	name, uid, status := p.Pod.Name, p.Facts.UID, &p.Status
	s.add(podInfo, 1, namespace, name, uid, node, status.PodIP, strconv.FormatBool(p.Pod.HostNetwork))
	if at := p.Facts.Accepted.Wall; !at.IsZero() {
		s.add(podStartTime, float64(at.Unix()), namespace, name, uid)
	}
	for _, phase := range phases {
		s.flag(podPhase, status.Phase == phase, namespace, name, uid, string(phase))
	}
	if status.Reason != "" {
		s.add(podReason, 1, namespace, name, uid, string(status.Reason))
	}
	ready := "unknown"
	for _, c := range status.Conditions {
		if c.Type == lifecycle.PodReady {
			ready = strings.ToLower(c.Status)
		}
		s.flag(podCondition, c.Status == "True", namespace, name, uid, string(c.Type))
	}
	for _, value := range []string{"true", "false", "unknown"} {
		s.flag(podReady, ready == value, namespace, name, uid, value)
	}
	for i := range status.InitContainerStatuses {
		c := &status.InitContainerStatuses[i]
		s.add(initRestarts, float64(c.RestartCount), namespace, name, uid, c.Name)
		s.flag(initReady, c.Ready, namespace, name, uid, c.Name)
		if c.State.Waiting != nil {
			s.add(initWaiting, 1, namespace, name, uid, c.Name, string(c.State.Waiting.Reason))
		}
	}
	for i := range status.ContainerStatuses {
		s.container(name, uid, &status.ContainerStatuses[i])
	}
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		if c.Resources != nil {
			s.resources(requested, c.Resources.Requests, name, uid, c.Name)
			s.resources(limited, c.Resources.Limits, name, uid, c.Name)
		}
	}
}

// container adds the state of a container that is not an init container.
func (s *sample) container(name, uid string, c *lifecycle.ContainerStatus) {
	labels := func(more ...string) []string { return append([]string{namespace, name, uid, c.Name}, more...) }
	s.add(containerInfo, 1, labels(c.Image, c.ImageID, c.ContainerID)...)
	s.flag(containerReady, c.Ready, labels()...)
	s.flag(containerWaiting, c.State.Waiting != nil, labels()...)
	s.flag(containerRuns, c.State.Running != nil, labels()...)
	s.flag(containerEnded, c.State.Terminated != nil, labels()...)
	s.add(restarts, float64(c.RestartCount), labels()...)
	if w := c.State.Waiting; w != nil {
		s.add(waitingReason, 1, labels(string(w.Reason))...)
	}
	if t := c.State.Terminated; t != nil {
		s.add(endedReason, 1, labels(string(t.Reason))...)
	}
	if t := c.LastState.Terminated; t != nil {
		s.add(lastReason, 1, labels(string(t.Reason))...)
		s.add(lastExitCode, float64(t.ExitCode), labels()...)
	}
}

// resources adds requests or limits.
func (s *sample) resources(m *Metric, list spec.ResourceList, labels ...string) {
	for _, resource := range []struct{ name, unit string }{{spec.ResourceCPU, "core"}, {spec.ResourceMemory, "byte"}} {
		if q, ok := list[resource.name]; ok {
			s.add(m, q.AsApproximateFloat64(),
				append([]string{namespace}, append(slices.Clone(labels), resource.name, resource.unit)...)...)
		}
	}
}

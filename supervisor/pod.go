package supervisor

import (
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// withEphemerals returns a copy of a pod with these ephemeral containers and no others.
func withEphemerals(pod *spec.Pod, list []spec.Container) *spec.Pod {
	copied := *pod
	copied.EphemeralContainers = list
	return &copied
}

// podOf returns the pod with the containers as an action needs them: a run of an earlier definition is stopped with the hooks and signals
// of that.
func podOf(pod *spec.Pod, f lifecycle.Facts, a lifecycle.Action) *spec.Pod {
	ref := lifecycle.RefOf(a)
	c := lifecycle.DefinitionOf(pod, f, ref.Container, ref.Attempt)
	if ref == (lifecycle.Ref{}) || c == nil || c == pod.Container(ref.Container) {
		return pod
	}
	return withContainer(pod, c)
}

// withContainer returns a copy of a pod with a container in place of the one with its name, or in addition.
func withContainer(pod *spec.Pod, c *spec.Container) *spec.Pod {
	copied := *pod
	for _, list := range []*[]spec.Container{&copied.InitContainers, &copied.Containers} {
		for i := range *list {
			if (*list)[i].Name == c.Name {
				*list = slices.Clone(*list)
				(*list)[i] = *c
				return &copied
			}
		}
	}
	copied.Containers = append(slices.Clip(copied.Containers), *c)
	return &copied
}

// address returns the address of a pod for probes and hooks; "": it has none yet.
func address(pod *spec.Pod, f lifecycle.Facts) string {
	if pod.HostNetwork {
		return "127.0.0.1"
	}
	for _, ip := range f.Sandbox.IPs {
		return ip
	}
	return ""
}

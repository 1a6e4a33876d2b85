package supervisor

import (
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// withEphemerals returns a copy of a pod with these ephemeral containers and no others.
func withEphemerals(pod *spec.Pod, list []spec.Container) *spec.Pod {
	copied := *pod
	copied.EphemeralContainers = list
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

package oci

import (
	"fmt"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// ForwardedDNS is an address in the network namespace of a daemon without root. pasta sends queries to it to the first name server of the
// host, which can be on a loopback address of the host. It is link-local, so no other host has it. Podman uses the same one.
const ForwardedDNS = "169.254.1.1"

// systemDaemon is the hint for what only root can do.
const systemDaemon = "run the pod as root or as a member of group podstead, with podstead --system"

// CheckRootless returns what a pod requests that a daemon without root cannot do. Each would otherwise be ignored, or mean the namespaces
// of the daemon in place of the host's.
func (h Host) CheckRootless(pod *spec.Pod) []lifecycle.Refusal {
	r := &rootless{}
	if !h.Rootless {
		r.deny(pod.KeepID != nil, "keepID", "requires a pod without root: the users in pods of root are those of the host",
			"run the pod as the owner of its files, with podstead --user, or set runAsUser to the ID of that user")
		return r.refused
	}
	const own = "without root, the namespaces of the host cannot be joined"
	r.deny(pod.HostNetwork, "hostNetwork", own, systemDaemon)
	r.deny(pod.HostPID, "hostPID", own, systemDaemon)
	r.deny(pod.HostIPC, "hostIPC", own, systemDaemon)
	r.deny(pod.HostUsers != nil && !*pod.HostUsers, "hostUsers", "false: without root, all pods share the user namespace of the user",
		"remove the field: root in the pod is unprivileged on the host in any case")
	for field, port := range pod.HostPortFields() {
		r.deny(port.Protocol == spec.ProtocolSCTP, field, "without root, host ports of SCTP are not supported", systemDaemon)
	}
	r.mapped("keepID", pod.KeepID, h.LastID)
	if h.NoCgroups != "" {
		r.withoutCgroups(pod, h.NoCgroups)
	}
	r.delegated(pod, h)
	for i := range pod.Volumes {
		if e := pod.Volumes[i].EmptyDir; e != nil {
			field := fmt.Sprintf("volumes[%d].emptyDir.medium", i)
			r.deny(e.InHugePages(), field, "without root, huge pages cannot be mounted", systemDaemon)
		}
	}
	if s := pod.SecurityContext; s != nil {
		r.mapped("securityContext.runAsUser", s.RunAsUser, h.LastID)
		r.mapped("securityContext.runAsGroup", s.RunAsGroup, h.LastID)
		r.mapped("securityContext.fsGroup", s.FSGroup, h.LastID)
		for i := range s.SupplementalGroups {
			r.mapped(fmt.Sprintf("securityContext.supplementalGroups[%d]", i), &s.SupplementalGroups[i], h.LastID)
		}
	}
	for _, l := range []struct {
		name       string
		containers []spec.Container
	}{{"initContainers", pod.InitContainers}, {"containers", pod.Containers}, {"ephemeralContainers", pod.EphemeralContainers}} {
		for i := range l.containers {
			r.container(fmt.Sprintf("%s[%d].", l.name, i), h.LastID, &l.containers[i])
		}
	}
	return r.refused
}

// rootless collects refusals.
type rootless struct{ refused []lifecycle.Refusal }

func (r *rootless) deny(requested bool, field, message, hint string) {
	if requested {
		r.refused = append(r.refused, lifecycle.Refusal{
			Reason: lifecycle.ReasonUnexpectedAdmissionError, Field: field, Message: message, Hint: hint,
		})
	}
}

// CheckWithoutCgroups returns what a pod requests that needs cgroups. It is for a pod that was started without, such as by an earlier
// version.
func (h Host) CheckWithoutCgroups(pod *spec.Pod) []lifecycle.Refusal {
	h = h.WithoutCgroups()
	r := &rootless{}
	r.withoutCgroups(pod, h.NoCgroups)
	r.delegated(pod, h)
	return r.refused
}

// withoutCgroups checks the fields that need a cgroup to find the processes of a container.
func (r *rootless) withoutCgroups(pod *spec.Pod, reason string) {
	const message = "without root, a PID namespace of several containers needs a delegated cgroup: "
	r.deny(pod.ShareProcessNamespace, "shareProcessNamespace", message+reason, "remove the field, or "+systemDaemon)
	for i := range pod.EphemeralContainers {
		r.deny(pod.EphemeralContainers[i].TargetContainerName != "", fmt.Sprintf("ephemeralContainers[%d].targetContainerName", i),
			message+reason, "use podstead exec POD -- COMMAND, or debug without a target")
	}
}

// delegated checks that the controllers that limits need are delegated to the user.
func (r *rootless) delegated(pod *spec.Pod, h Host) {
	check := func(controller string, fields ...string) {
		message := "without root, the limit needs the cgroup controller " + controller + ", which is not delegated to this user"
		if h.NoCgroups != "" {
			message = "without root, the limit needs a delegated cgroup: " + h.NoCgroups
		}
		for _, field := range fields {
			r.deny(!h.Controllers.Has(controller), field, message, "see podstead doctor, remove the limit, or "+systemDaemon)
		}
	}
	check(cgroup.CPU, pod.LimitFields(spec.ResourceCPU)...)
	check(cgroup.Memory, pod.LimitFields(spec.ResourceMemory)...)
	if pod.PidsLimit != nil {
		check(cgroup.Pids, "pidsLimit")
	}
}

// container checks the fields of a container.
func (r *rootless) container(at string, last int64, c *spec.Container) {
	if s := c.SecurityContext; s != nil {
		r.deny(s.Privileged != nil && *s.Privileged, at+"securityContext.privileged",
			"without root, a container cannot have the devices and the capabilities of the host", systemDaemon)
		r.mapped(at+"securityContext.runAsUser", s.RunAsUser, last)
		r.mapped(at+"securityContext.runAsGroup", s.RunAsGroup, last)
	}
	r.deny(len(c.Devices) > 0, at+"devices", "without root, containers get no devices of the host", systemDaemon)
}

// mapped checks that an ID is mapped.
func (r *rootless) mapped(field string, id *int64, last int64) {
	if id != nil {
		r.deny(*id > last, field, fmt.Sprintf("%d: the IDs of pods of this user are 0 to %d", *id, last),
			"use a lower ID, or give the user more IDs in /etc/subuid and /etc/subgid and run podstead daemon stop --pods: "+
				"pods that run keep the namespaces with the present IDs")
	}
}

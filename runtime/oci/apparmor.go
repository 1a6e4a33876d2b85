package oci

import (
	"fmt"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// CheckAppArmor returns a refusal for each AppArmor profile that a pod sets on a host without AppArmor, as the kubelet does. Without a
// profile of their own, containers are not confined there.
func (h Host) CheckAppArmor(pod *spec.Pod) []lifecycle.Refusal {
	if h.AppArmor {
		return nil
	}
	message, hint := "Cannot enforce AppArmor: AppArmor is not enabled on the host",
		"enable AppArmor with apparmor=1 on the kernel command line, or remove the profile from the pod"
	if h.Rootless {
		message = "Cannot enforce AppArmor: without root, profiles cannot be loaded"
		hint = "remove the profile from the pod, or " + systemDaemon
	}
	var list []lifecycle.Refusal
	check := func(field string, p *spec.SecurityProfile) {
		if p != nil && p.Type != profileUnconfined {
			list = append(list, lifecycle.Refusal{
				Reason: lifecycle.ReasonAppArmor, Field: field + "securityContext.appArmorProfile",
				Message: message, Hint: hint,
			})
		}
	}
	check("", podContextOf(pod).AppArmorProfile)
	for _, l := range []struct {
		name       string
		containers []spec.Container
	}{{"initContainers", pod.InitContainers}, {"containers", pod.Containers}, {"ephemeralContainers", pod.EphemeralContainers}} {
		for i := range l.containers {
			check(fmt.Sprintf("%s[%d].", l.name, i), contextOf(&l.containers[i]).AppArmorProfile)
		}
	}
	return list
}

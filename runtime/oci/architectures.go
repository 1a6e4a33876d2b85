package oci

import (
	"slices"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/spec"
)

// nativeSeccomp returns the default profile for processes that have no 32-bit code. The OCI runtime compiles the rules for each architecture,
// which is most of the time that it needs. System calls of an architecture without rules kill the process.
func nativeSeccomp(s *specs.Spec) *specs.LinuxSeccomp {
	profile := seccomp.DefaultProfile(s)
	if native := nativeArch(); slices.Contains(profile.Architectures, native) {
		profile.Architectures = []specs.Arch{native}
	}
	return profile
}

// hasOtherPrograms reports whether a container can have programs from elsewhere than its image: from a volume that is older than the pod, from
// another container, or from the image of a volume.
func hasOtherPrograms(pod *spec.Pod, c *spec.Container) bool {
	if c.TargetContainerName != "" { // its processes are visible, and through them their files
		return true
	}
	return slices.ContainsFunc(c.VolumeMounts, func(m spec.VolumeMount) bool {
		i := slices.IndexFunc(pod.Volumes, func(v spec.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			return true
		}
		v := &pod.Volumes[i]
		if v.EmptyDir != nil {
			return isShared(pod, c, v.Name)
		}
		return v.ConfigMap == nil && v.Secret == nil && v.Projected == nil && v.DownwardAPI == nil
	})
}

// isShared reports whether a container with another image mounts a volume.
func isShared(pod *spec.Pod, c *spec.Container, volume string) bool {
	for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers, pod.EphemeralContainers} {
		for i := range list {
			mounts := func(m spec.VolumeMount) bool { return m.Name == volume }
			if list[i].Image != c.Image && slices.ContainsFunc(list[i].VolumeMounts, mounts) {
				return true
			}
		}
	}
	return false
}

package admission

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// protected refuses hostPath volumes that overlap a protected path, unless all containers that mount them are privileged. It compares
// the text; links and bind mounts are resolved where the volume is used.
func (r *review) protected(paths []string, rootless bool) {
	for i := range r.pod.Volumes {
		v := &r.pod.Volumes[i]
		if v.HostPath == nil {
			continue
		}
		at := slices.IndexFunc(paths, func(path string) bool { return below(v.HostPath.Path, path) || below(path, v.HostPath.Path) })
		if at < 0 {
			continue
		}
		if !r.privilegedOnly(v.Name) {
			r.denyProtected(fmt.Sprintf("volumes[%d].hostPath.path", i), v.HostPath.Path, paths[at], rootless)
		}
		for n := range r.pod.EphemeralContainers {
			c := &r.pod.EphemeralContainers[n]
			if m := mountOf(c, v.Name); m >= 0 && !privileged(c) {
				r.denyProtected(ephemeral+strconv.Itoa(n)+fmt.Sprintf("].volumeMounts[%d].name", m), v.HostPath.Path, paths[at], rootless)
			}
		}
	}
}

func (r *review) denyProtected(field, path, protected string, rootless bool) {
	message, hint := fmt.Sprintf("%q: overlaps Podstead's path %s", path, protected), "mount a directory that does not contain "+protected
	if !rootless {
		message += ", only privileged containers can mount it"
		hint += ", or set securityContext.privileged in the container"
	}
	r.refusals = append(r.refusals, lifecycle.Refusal{
		Reason: lifecycle.ReasonHostPathForbidden, Field: field, Message: message, Hint: hint,
	})
}

// privilegedOnly reports whether a volume is mounted by privileged containers only, and by at least one. Ephemeral containers do not
// count.
func (r *review) privilegedOnly(volume string) bool {
	mounted := false
	for c := range r.pod.OwnContainers() {
		if mountOf(c, volume) < 0 {
			continue
		}
		if !privileged(c) {
			return false
		}
		mounted = true
	}
	return mounted
}

// mountOf returns the index of the first mount of a volume, -1 if there is none.
func mountOf(c *spec.Container, volume string) int {
	return slices.IndexFunc(c.VolumeMounts, func(m spec.VolumeMount) bool { return m.Name == volume })
}

func privileged(c *spec.Container) bool {
	return c.SecurityContext != nil && isTrue(c.SecurityContext.Privileged)
}

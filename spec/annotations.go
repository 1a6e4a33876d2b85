package spec

import (
	"maps"
	"slices"
	"strings"
)

// Annotations from which Kubernetes read the profiles of a pod before it had
// fields for them.
const (
	appArmorPrefix         = "container.apparmor.security.beta.kubernetes.io/"
	seccompPod             = "seccomp.security.alpha.kubernetes.io/pod"
	seccompContainerPrefix = "container.seccomp.security.alpha.kubernetes.io/"
)

// profileAnnotations handles the annotations of AppArmor and seccomp as the API
// server does: those of AppArmor set the field of a container that does not have
// it, those of seccomp have no effect. Both are reported.
func (v *validator) profileAnnotations() {
	p := v.pod
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		at := entry{&p.Annotations, key}
		container, isAppArmor := strings.CutPrefix(key, appArmorPrefix)
		switch {
		case isAppArmor:
			v.warn(at, `deprecated since v1.30; use the "appArmorProfile" field instead`)
			v.appArmorAnnotation(at, container, p.Annotations[key])
		case key == seccompPod || strings.HasPrefix(key, seccompContainerPrefix):
			v.warn(at, `non-functional in v1.27+; use the "seccompProfile" field instead`)
		}
	}
}

func (v *validator) appArmorAnnotation(at entry, name, value string) {
	var profile SecurityProfile
	local, isLocal := strings.CutPrefix(value, "localhost/")
	switch {
	case value == "runtime/default":
		profile.Type = "RuntimeDefault"
	case value == "unconfined":
		profile.Type = "Unconfined"
	case isLocal && local != "":
		profile.Type, profile.LocalhostProfile = "Localhost", &local
	default:
		v.bad(at, "Invalid value: invalid AppArmor profile name: %s", quote(value))
		return
	}
	c := v.pod.Container(name)
	if c == nil {
		v.bad(at, "Not found: container %s", quote(name))
		return
	}
	if c.SecurityContext == nil {
		c.SecurityContext = &SecurityContext{}
	}
	field := c.SecurityContext.AppArmorProfile
	switch {
	case field == nil:
		c.SecurityContext.AppArmorProfile = &profile
	case field.Type != profile.Type:
		v.bad(at, "Forbidden: apparmor type in annotation and field must match")
	case isLocal && (field.LocalhostProfile == nil || *field.LocalhostProfile != local):
		v.bad(at, "Forbidden: apparmor profile in annotation and field must match")
	}
}

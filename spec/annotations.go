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
// it, those of seccomp have no effect, but must match the field. Both are reported.
func (v *validator) profileAnnotations() {
	p := v.pod
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		at := entry{&p.Annotations, key}
		container, isAppArmor := strings.CutPrefix(key, appArmorPrefix)
		switch {
		case isAppArmor:
			v.warn(at, `deprecated since v1.30; use the "appArmorProfile" field instead`)
			v.appArmorAnnotation(at, container, p.Annotations[key])
		case key == seccompPod:
			v.warn(at, nonFunctional)
			if s := p.SecurityContext; s != nil {
				v.seccompAnnotation(s.SeccompProfile, p.Annotations[key])
			}
		case strings.HasPrefix(key, seccompContainerPrefix):
			v.warn(at, nonFunctional)
			if c := p.Container(strings.TrimPrefix(key, seccompContainerPrefix)); c != nil && c.SecurityContext != nil {
				v.seccompAnnotation(c.SecurityContext.SeccompProfile, p.Annotations[key])
			}
		}
	}
}

const nonFunctional = `non-functional in v1.27+; use the "seccompProfile" field instead`

// seccompAnnotation reports a field that does not match its annotation (validateSeccompAnnotationsAndFieldsMatch).
func (v *validator) seccompAnnotation(field *SecurityProfile, value string) {
	if field == nil {
		return
	}
	local, isLocal := strings.CutPrefix(value, "localhost/")
	matches := true
	switch field.Type {
	case "Unconfined":
		matches = value == "unconfined"
	case "RuntimeDefault":
		matches = value == "runtime/default" || value == "docker/default"
	case "Localhost":
		if matches = isLocal; matches && field.LocalhostProfile != nil && *field.LocalhostProfile != local {
			v.bad(field.LocalhostProfile, "Forbidden: seccomp profile in annotation and field must match")
		}
	}
	if !matches {
		v.bad(&field.Type, "Forbidden: seccomp type in annotation and field must match")
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

package change

import (
	"slices"

	"github.com/podstead/podstead/spec"
)

// user is a container that depends on a value of the pod which it has since its start.
type user struct {
	name   string
	isInit bool // an init container that is not a sidecar
}

// source is a value of an inline config map or secret that containers can have in their environment and in volumes.
type source struct {
	kind string // "configMaps" or "secrets"
	name string
	key  string // empty: all keys
}

// usedBy reports whether a container has the value since its start.
func (s source) usedBy(pod *spec.Pod, c *spec.Container) bool {
	return slices.ContainsFunc(c.Env, func(e spec.EnvVar) bool { return e.ValueFrom != nil && s.inVariable(e.ValueFrom) }) ||
		slices.ContainsFunc(c.EnvFrom, s.inAllOf) || slices.ContainsFunc(c.VolumeMounts, func(m spec.VolumeMount) bool {
		return (m.SubPath != "" || m.SubPathExpr != "") &&
			slices.ContainsFunc(pod.Volumes, func(v spec.Volume) bool { return v.Name == m.Name && s.inVolume(&v) })
	})
}

func (s source) inVariable(from *spec.EnvVarSource) bool {
	ref := from.ConfigMapKeyRef
	if s.kind == "secrets" {
		ref = from.SecretKeyRef
	}
	return ref != nil && ref.Name == s.name && (s.key == "" || s.key == ref.Key)
}

func (s source) inAllOf(from spec.EnvFrom) bool {
	ref := from.ConfigMapRef
	if s.kind == "secrets" {
		ref = from.SecretRef
	}
	return ref != nil && ref.Name == s.name
}

func (s source) inVolume(v *spec.Volume) bool {
	switch {
	case v.ConfigMap != nil:
		return s.kind == "configMaps" && v.ConfigMap.Name == s.name && s.inItems(v.ConfigMap.Items)
	case v.Secret != nil:
		return s.kind == "secrets" && v.Secret.SecretName == s.name && s.inItems(v.Secret.Items)
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, s.inProjection)
	}
	return false
}

func (s source) inProjection(p spec.Projection) bool {
	switch {
	case p.ConfigMap != nil:
		return s.kind == "configMaps" && p.ConfigMap.Name == s.name && s.inItems(p.ConfigMap.Items)
	case p.Secret != nil:
		return s.kind == "secrets" && p.Secret.Name == s.name && s.inItems(p.Secret.Items)
	}
	return false
}

// inItems reports whether the key is among items. Without items, all keys are.
func (s source) inItems(items []spec.KeyToPath) bool {
	return len(items) == 0 || s.key == "" || slices.ContainsFunc(items, func(i spec.KeyToPath) bool { return i.Key == s.key })
}

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

// source is a value of the pod that containers can have in their environment and in volumes.
type source struct {
	kind string // "labels", "annotations", "configMaps" or "secrets"
	name string // of the config map or secret
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
	switch {
	case from.FieldRef != nil:
		return s.isField(from.FieldRef.FieldPath)
	case s.kind == "secrets":
		ref = from.SecretKeyRef
	case s.kind != "configMaps":
		return false
	}
	return ref != nil && ref.Name == s.name && (s.key == "" || s.key == ref.Key)
}

func (s source) inAllOf(from spec.EnvFrom) bool {
	ref := from.ConfigMapRef
	if s.kind == "secrets" {
		ref = from.SecretRef
	}
	return (s.kind == "secrets" || s.kind == "configMaps") && ref != nil && ref.Name == s.name
}

// isField reports whether a field of the downward API contains the value.
func (s source) isField(path string) bool {
	all := "metadata." + s.kind
	return path == all || path == all+"['"+s.key+"']"
}

func (s source) inVolume(v *spec.Volume) bool {
	switch {
	case v.ConfigMap != nil:
		return s.kind == "configMaps" && v.ConfigMap.Name == s.name && s.inItems(v.ConfigMap.Items)
	case v.Secret != nil:
		return s.kind == "secrets" && v.Secret.SecretName == s.name && s.inItems(v.Secret.Items)
	case v.DownwardAPI != nil:
		return s.inFiles(v.DownwardAPI.Items)
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
	case p.DownwardAPI != nil:
		return s.inFiles(p.DownwardAPI.Items)
	}
	return false
}

// inItems reports whether the key is among items. Without items, all keys are.
func (s source) inItems(items []spec.KeyToPath) bool {
	return len(items) == 0 || s.key == "" || slices.ContainsFunc(items, func(i spec.KeyToPath) bool { return i.Key == s.key })
}

func (s source) inFiles(items []spec.DownwardFile) bool {
	return slices.ContainsFunc(items, func(f spec.DownwardFile) bool { return f.FieldRef != nil && s.isField(f.FieldRef.FieldPath) })
}

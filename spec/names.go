package spec

import (
	"iter"
	"slices"
)

// ConfigMapNames returns the names of the inline config maps of a pod, and of those that its environment variables and volumes refer to.
// The value is false if every reference is optional, or in a volume that no container mounts.
func (p *Pod) ConfigMapNames() map[string]bool {
	names := objectNames{}
	for i := range p.ConfigMaps {
		names.add(p.ConfigMaps[i].Name, false)
	}
	for c := range p.EveryContainer() {
		for _, from := range c.EnvFrom {
			if ref := from.ConfigMapRef; ref != nil {
				names.add(ref.Name, ref.Optional)
			}
		}
		for _, env := range c.Env {
			if env.ValueFrom != nil && env.ValueFrom.ConfigMapKeyRef != nil {
				names.add(env.ValueFrom.ConfigMapKeyRef.Name, env.ValueFrom.ConfigMapKeyRef.Optional)
			}
		}
	}
	for v, unused := range p.volumes() {
		if v.ConfigMap != nil {
			names.add(v.ConfigMap.Name, v.ConfigMap.Optional || unused)
		}
		for _, source := range v.projections() {
			if c := source.ConfigMap; c != nil {
				names.add(c.Name, c.Optional || unused)
			}
		}
	}
	return names
}

// SecretNames returns the names of the inline secrets of a pod, and of those that its environment variables and volumes refer to. The value
// is false if every reference is optional, or in a volume that no container mounts. Credentials for registries are not among them.
func (p *Pod) SecretNames() map[string]bool {
	names := objectNames{}
	for i := range p.Secrets {
		names.add(p.Secrets[i].Name, false)
	}
	for c := range p.EveryContainer() {
		for _, from := range c.EnvFrom {
			if ref := from.SecretRef; ref != nil {
				names.add(ref.Name, ref.Optional)
			}
		}
		for _, env := range c.Env {
			if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
				names.add(env.ValueFrom.SecretKeyRef.Name, env.ValueFrom.SecretKeyRef.Optional)
			}
		}
	}
	for v, unused := range p.volumes() {
		if v.Secret != nil {
			names.add(v.Secret.SecretName, v.Secret.Optional || unused)
		}
		for _, source := range v.projections() {
			if s := source.Secret; s != nil {
				names.add(s.Name, s.Optional || unused)
			}
		}
	}
	return names
}

// volumes yields the volumes, and whether no container mounts them.
func (p *Pod) volumes() iter.Seq2[*Volume, bool] {
	mounted := p.Mounted().Volumes
	return func(yield func(*Volume, bool) bool) {
		for i := range p.Volumes {
			v := &p.Volumes[i]
			unused := !slices.ContainsFunc(mounted, func(m Volume) bool { return m.Name == v.Name })
			if !yield(v, unused) {
				return
			}
		}
	}
}

// objectNames has, by name, whether an object is required.
type objectNames map[string]bool

func (n objectNames) add(name string, optional bool) { n[name] = n[name] || !optional }

// projections returns the sources of a projected volume.
func (v *Volume) projections() []Projection {
	if v.Projected == nil {
		return nil
	}
	return v.Projected.Sources
}

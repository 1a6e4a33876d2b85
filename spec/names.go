package spec

// ConfigMapNames returns the names of the inline config maps of a pod, and of those that its environment variables and volumes refer to.
// The value is false if every reference is optional.
func (p *Pod) ConfigMapNames() map[string]bool {
	names := objectNames{}
	for i := range p.ConfigMaps {
		names.add(p.ConfigMaps[i].Name, false)
	}
	for c := range p.everyContainer() {
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
	for i := range p.Volumes {
		if v := p.Volumes[i].ConfigMap; v != nil {
			names.add(v.Name, v.Optional)
		}
		for _, source := range p.Volumes[i].projections() {
			if c := source.ConfigMap; c != nil {
				names.add(c.Name, c.Optional)
			}
		}
	}
	return names
}

// SecretNames returns the names of the inline secrets of a pod, and of those that its environment variables and volumes refer to. The value
// is false if every reference is optional. Credentials for registries are not among them.
func (p *Pod) SecretNames() map[string]bool {
	names := objectNames{}
	for i := range p.Secrets {
		names.add(p.Secrets[i].Name, false)
	}
	for c := range p.everyContainer() {
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
	for i := range p.Volumes {
		if v := p.Volumes[i].Secret; v != nil {
			names.add(v.SecretName, v.Optional)
		}
		for _, source := range p.Volumes[i].projections() {
			if s := source.Secret; s != nil {
				names.add(s.Name, s.Optional)
			}
		}
	}
	return names
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

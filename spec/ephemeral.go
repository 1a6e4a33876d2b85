package spec

import "reflect"

// ParseEphemeral reads one container that is to be added to a running pod
// (v1.EphemeralContainer): a TOML file with the keys of a container's table at
// the top level. What it refers to is looked for in the pod, which stays as it
// is. Whether its name is free is not checked here. The container is nil if one
// of the problems is an error.
func ParseEphemeral(file string, data []byte, pod *Pod) (*Container, Problems) {
	if len(data) > maxFileBytes {
		return nil, tooLarge.problems().in(file)
	}
	root, syntax := readTOML(data)
	if syntax != nil {
		return nil, syntax.problems().in(file)
	}
	problems := expandContainer(root)
	d := &decoder{at: map[any]*node{}, subject: "a container"}
	whole := *pod
	whole.EphemeralContainers = make([]Container, 1)
	c := &whole.EphemeralContainers[0]
	d.decode(root, reflect.ValueOf(c).Elem())
	c.Hash = hash(root)
	(&defaulter{pod: &whole}).container(c)
	v := &validator{decoder: d, pod: &whole, root: root, whole: true}
	v.collect()
	v.ephemeral(c)
	problems = append(append(problems, d.problems...), unsupportedBelow(root, "containers[]")...).in(file)
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return c, problems
}

// ephemeral checks a container that runs once, beside whatever the pod is at, so
// that nothing can depend on it.
func (v *validator) ephemeral(c *Container) {
	v.required(c, "name", c.Name == "")
	v.name(&c.Name, dnsLabel)
	v.container(c, &[]ContainerPort{})
	for _, field := range []any{
		&c.Ports, &c.Resources, &c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe, &c.Lifecycle,
		&c.RestartPolicy, &c.RestartPolicyRules, &c.RestartBackoff,
	} {
		v.bad(field, "an ephemeral container cannot have this")
	}
}

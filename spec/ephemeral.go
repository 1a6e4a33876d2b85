package spec

import "reflect"

// ParseEphemeral reads an ephemeral container for a running pod
// (v1.EphemeralContainer): a TOML file with the fields of a container at the top
// level. References are checked against the pod, which is not modified. The
// caller checks that the name is unique. The container is nil if one of the
// problems is an error.
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
	extended := *pod
	extended.EphemeralContainers = make([]Container, 1)
	c := &extended.EphemeralContainers[0]
	d.decode(root, reflect.ValueOf(c).Elem())
	c.Hash = hash(root)
	(&defaulter{pod: &extended}).container(c)
	v := &validator{decoder: d, pod: &extended, root: root, hasEnvFiles: true}
	v.collect()
	v.ephemeral(c)
	problems = append(append(problems, d.problems...), unsupportedBelow(root, "containers[]")...).in(file)
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return c, problems
}

// ephemeral checks an ephemeral container. It runs once, at any phase of the
// pod, so it has none of the fields that others depend on.
func (v *validator) ephemeral(c *Container) {
	v.required(c, "name", c.Name == "")
	v.name(&c.Name, dnsLabel)
	v.container(c, &[]ContainerPort{})
	for _, field := range []any{
		&c.Ports, &c.Resources, &c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe, &c.Lifecycle,
		&c.RestartPolicy, &c.RestartPolicyRules, &c.RestartBackoff,
	} {
		v.bad(field, "Forbidden: cannot be set for an Ephemeral Container")
	}
}

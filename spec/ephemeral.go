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
	target, problems := targetContainer(root, pod)
	x := &expander{root: root, format: formatTOML}
	x.tables(root)
	problems = append(x.problems, problems...)
	d := &decoder{at: map[any]*node{}, subject: "a container"}
	extended := *pod
	extended.EphemeralContainers = make([]Container, 1)
	c := &extended.EphemeralContainers[0]
	d.decode(root, reflect.ValueOf(c).Elem())
	c.Hash, c.TargetContainerName = hash(root), target
	(&defaulter{pod: &extended}).container(c)
	v := &validator{decoder: d, pod: &extended, root: root, hasEnvFiles: true}
	v.collect()
	v.ephemeral(c)
	problems = append(problems, d.problems...).in(file)
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return c, problems
}

// targetContainer checks targetContainerName and removes it from the table. The field asks for the process namespace of another container.
// The result is empty if the containers share one.
func targetContainer(root *node, pod *Pod) (target string, problems Problems) {
	const key = "targetContainerName"
	n := root.child(key)
	if n == nil {
		return "", nil
	}
	root.remove(key)
	problem := func(message string) Problems {
		return Problems{{Line: n.at.line, Column: n.at.column, Path: n.path(), Message: message}}
	}
	switch name, isString := n.value.(string); {
	case !isString:
		return "", problem("must be a string, found " + n.describe())
	case name == "" || pod.Container(name) != nil && (pod.ShareProcessNamespace || pod.HostPID):
		return "", nil
	case pod.Container(name) == nil:
		return "", problem("Not found: " + quote(name))
	default:
		return name, nil
	}
}

// ephemeral checks an ephemeral container. It runs once, at any phase of the
// pod, so it has none of the fields that others depend on.
func (v *validator) ephemeral(c *Container) {
	v.requiredName(c, "name", &c.Name, dnsLabel)
	v.container(c, &[]ContainerPort{})
	for _, field := range []any{
		&c.Ports, &c.Resources, &c.ResizePolicy, &c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe, &c.Lifecycle,
		&c.RestartPolicy, &c.RestartPolicyRules, &c.RestartBackoff, &c.Devices,
	} {
		if n := v.at[field]; n != nil && len(n.items) == 0 && (field == any(&c.Ports) || field == any(&c.Resources)) {
			continue // as kubectl writes it
		}
		v.bad(field, "Forbidden: cannot be set for an Ephemeral Container")
	}
}

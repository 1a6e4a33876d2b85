package changetest

import "strings"

// inlineObjects are two config maps and two secrets.
const inlineObjects = `[[configMaps]]
name = "a"
data = { k = "1", l = "2" }

[[configMaps]]
name = "b"
data = { k = "3", l = "4" }

[[secrets]]
name = "a"
data = { k = "1", l = "2" }

[[secrets]]
name = "b"
data = { k = "3", l = "4" }
`

// twoVolumes are the volumes a and b.
const twoVolumes = "[[volumes]]\nname = \"a\"\n\n[[volumes]]\nname = \"b\"\n"

// inHugePages is the volume v.
const inHugePages = "[[volumes]]\nname = \"v\"\nemptyDir.medium = \"HugePages\"\n"

func containerTemplates() []template {
	const c = "containers[]."
	list := []template{
		{field: c + "name", app: "name = %s", before: `"app"`, after: `"app2"`, effect: restart},
		{
			field: c + "image", app: "image = %s", before: `"` + Image + `"`, after: `"localhost/podstead/busybox:2"`, effect: restart,
			fails: true,
		},
		{field: c + "imagePullPolicy", app: "imagePullPolicy = %s", before: `"IfNotPresent"`, after: `"Never"`, effect: inPlace},
		{field: c + "command", app: "command = %s", before: `["sleep", "3600"]`, after: `["sleep", "3601"]`, effect: restart},
		{field: c + "args", app: "command = [\"sleep\"]\nargs = [%s]", before: `"3600"`, after: `"3601"`, effect: restart},
		{field: c + "workingDir", app: "workingDir = %s", before: `"/"`, after: `"/tmp"`, effect: restart},
		{field: c + "ports[].name", app: "ports = [{ name = %s, containerPort = 80 }]", before: `"a"`, after: `"b"`, effect: inPlace},
		{field: c + "ports[].containerPort", app: "ports = [{ containerPort = %s }]", before: "80", after: "81", effect: inPlace},
		{
			field: c + "ports[].containerPort", app: "ports = [{ containerPort = %s, hostPort = 31820 }]", before: "80", after: "81",
			effect: again,
		},
		{
			field: c + "ports[].hostPort", app: "ports = [{ containerPort = 80, hostPort = %s }]", before: "31820", after: "31821",
			effect: again,
		},
		{
			field: c + "ports[].hostIP", app: "ports = [{ containerPort = 80, hostPort = 31820, hostIP = %s }]",
			before: `"127.0.0.1"`, after: `"127.0.0.2"`, effect: again,
		},
		{
			field: c + "ports[].protocol", app: "ports = [{ containerPort = 80, protocol = %s }]", before: `"TCP"`, after: `"UDP"`,
			effect: inPlace,
		},
		{field: c + "resources.requests", app: "resources.requests.cpu = %s", before: `"10m"`, after: `"20m"`, effect: inPlace},
		{field: c + "resources.limits", app: "resources.limits.memory = %s", before: `"64Mi"`, after: `"65Mi"`, effect: inPlace},
		{ // the QoS class
			field: c + "resources.limits", app: "resources = %s", before: `{}`, after: `{ limits.memory = "64Mi" }`, effect: again,
		},
		{
			field: c + "resources.requests", app: "resources = { requests = %s, limits.memory = \"64Mi\" }", before: `{ cpu = "10m" }`,
			after: `{}`, effect: again,
		},
		{
			field: c + "resources.limits", app: "resources.limits.ephemeral-storage = %s", before: `"1Gi"`, after: `"2Gi"`,
			effect: again,
		},
		{
			field: c + "resources.limits", app: "resources.limits = { cpu = 1, hugepages-2Mi = %s }", before: `"2Mi"`, after: `"4Mi"`,
			effect: again, fails: true,
		},
		{
			field: c + "resources.limits", app: "resources.limits = { cpu = 1, %s }\nvolumeMounts.v = \"/v\"", tables: inHugePages,
			before: `hugepages-2Mi = "1Gi"`, after: `hugepages-1Gi = "1Gi"`, effect: again, fails: true,
		},
		{
			field: c + "resources.limits", app: "resources.limits.memory = %s\n" + resizePolicy("memory"), before: `"64Mi"`,
			after: `"65Mi"`, effect: restart,
		},
		{
			field: c + "resources.limits", app: "resources.limits.memory = %s\n" + resizePolicy("cpu"), before: `"64Mi"`,
			after: `"65Mi"`, effect: inPlace,
		},
		{
			field: c + "resizePolicy[].resourceName", app: `resizePolicy = [{ resourceName = %s, restartPolicy = "NotRequired" }]`,
			before: `"cpu"`, after: `"memory"`, effect: inPlace,
		},
		{
			field: c + "resizePolicy[].restartPolicy", app: `resizePolicy = [{ resourceName = "cpu", restartPolicy = %s }]`,
			before: `"NotRequired"`, after: `"RestartContainer"`, effect: inPlace,
		},
		{
			field: c + "volumeMounts[].name", app: "volumeMounts = [{ name = %s, mountPath = \"/v\" }]", tables: twoVolumes, before: `"a"`,
			after: `"b"`, effect: restart,
		},
		{
			field: c + "volumeMounts[].mountPath", app: "volumeMounts.a = %s", tables: twoVolumes, before: `"/v"`, after: `"/w"`,
			effect: restart,
		},
		{field: c + "maxRestarts", app: "maxRestarts = %s", before: "1", after: "2", effect: inPlace},
		{field: c + "restartPolicy", app: "restartPolicy = %s", before: `"Always"`, after: `"OnFailure"`, effect: inPlace},
		{
			field: c + "restartPolicyRules[].action", app: rules(`"In"`, "[42]", "%s"),
			before: `"Restart"`, after: `"RestartAllContainers"`, effect: inPlace,
		},
		{
			field: c + "restartPolicyRules[].exitCodes.operator", app: rules("%s", "[42]", `"Restart"`), before: `"In"`, after: `"NotIn"`,
			effect: inPlace,
		},
		{
			field: c + "restartPolicyRules[].exitCodes.values", app: rules(`"In"`, "[%s]", `"Restart"`), before: "42", after: "43",
			effect: inPlace,
		},
		{field: c + "terminationMessagePath", app: "terminationMessagePath = %s", before: `"/dev/a"`, after: `"/dev/b"`, effect: restart},
		{
			field: c + "terminationMessagePolicy", app: "terminationMessagePolicy = %s", before: `"File"`, after: `"FallbackToLogsOnError"`,
			effect: restart,
		},
		{
			field: c + "ulimits[].name", app: "ulimits = [{ name = %s, soft = 1, hard = 2 }]", before: `"core"`, after: `"msgqueue"`,
			effect: restart,
		},
		{field: c + "ulimits[].soft", app: `ulimits = [{ name = "core", soft = %s, hard = 3 }]`, before: "1", after: "2", effect: restart},
		{field: c + "ulimits[].hard", app: `ulimits = [{ name = "core", soft = 1, hard = %s }]`, before: "1", after: "2", effect: restart},
		{field: c + "init", app: "init = %s", before: "false", after: "true", effect: restart},
		{field: c + "stdin", app: "stdin = %s", before: "false", after: "true", effect: restart},
		{field: c + "stdinOnce", app: "stdin = true\nstdinOnce = %s", before: "false", after: "true", effect: restart},
		{field: c + "tty", app: "tty = %s", before: "false", after: "true", effect: restart},
	}
	for _, d := range []template{
		{field: "path", app: `devices = [{ path = %s, containerPath = "/dev/a" }]`, before: `"/dev/null"`, after: `"/dev/zero"`},
		{field: "cdi", app: "devices = [{ cdi = %s }]", before: `"vendor.com/class=a"`, after: `"vendor.com/class=b"`, fails: true},
		{field: "containerPath", app: `devices = [{ path = "/dev/null", containerPath = %s }]`, before: `"/dev/a"`, after: `"/dev/b"`},
		{
			field: "permissions", app: `devices = [{ path = "/dev/null", containerPath = "/dev/a", permissions = %s }]`,
			before: `"r"`, after: `"rw"`,
		},
		{
			field: "optional", app: `devices = [{ path = "/dev/null", containerPath = "/dev/a", optional = %s }]`,
			before: "false", after: "true",
		},
		{
			field: "onRemove", app: `devices = [{ path = "/dev/null", containerPath = "/dev/a", onRemove = %s }]`,
			before: `"keep"`, after: `"restart"`,
		},
	} {
		d.field, d.effect = c+"devices[]."+d.field, restart
		list = append(list, d)
	}
	for _, b := range backoffs {
		list = append(list,
			template{
				field: c + "restartBackoff." + b[0], app: "restartBackoff." + b[0] + " = %s", before: b[1], after: b[2], effect: inPlace,
			})
	}
	for _, m := range []struct {
		field, with, before, after string
		fails                      bool
	}{
		{field: "subPath", before: `"x"`, after: `"y"`},
		{field: "subPathExpr", before: `"x"`, after: `"y"`},
		{field: "readOnly", before: "false", after: "true"},
		{field: "recursiveReadOnly", with: "readOnly = true, ", before: `"Disabled"`, after: `"IfPossible"`},
		{field: "mountPropagation", before: `"None"`, after: `"HostToContainer"`, fails: true}, // depends on the mounts of the host
	} {
		list = append(list, template{
			field: c + "volumeMounts[]." + m.field, app: `volumeMounts.a = { mountPath = "/v", ` + m.with + m.field + " = %s }",
			tables: twoVolumes,
			before: m.before, after: m.after, effect: restart, fails: m.fails,
		})
	}
	return list
}

// resizePolicy restarts a container when a resource changes.
func resizePolicy(resource string) string {
	return `resizePolicy = [{ resourceName = "` + resource + `", restartPolicy = "RestartContainer" }]`
}

// rules are restart rules of a container.
func rules(operator, values, action string) string {
	return "restartPolicy = \"Never\"\nrestartPolicyRules = [{ action = " + action + ", exitCodes = { operator = " + operator +
		", values = " + values + " } }]"
}

func environmentTemplates() []template {
	const c = "containers[]."
	list := []template{
		{field: c + "env[].name", app: "env = [{ name = %s, value = \"1\" }]", before: `"A"`, after: `"B"`, effect: restart},
		{field: c + "env[].value", app: "env.A = %s", before: `"1"`, after: `"2"`, effect: restart},
		{
			field: c + "env[].value", app: "env = [%s]", effect: restart, before: `{ name = "A" }, { name = "B" }`,
			after: `{ name = "B" }, { name = "A" }`,
		},
		{
			field: c + "env[].valueFrom.fieldRef.fieldPath", app: "env.A.fieldRef.fieldPath = %s", before: `"metadata.name"`,
			after: `"metadata.uid"`, effect: restart,
		},
		{
			field:  c + "env[].valueFrom.resourceFieldRef.containerName",
			app:    `env.A.resourceFieldRef = { resource = "limits.cpu", containerName = %s }`,
			before: `"app"`, after: `"other"`, effect: restart,
		},
		{
			field: c + "env[].valueFrom.resourceFieldRef.resource", app: "env.A.resourceFieldRef.resource = %s",
			before: `"limits.cpu"`, after: `"limits.memory"`, effect: restart,
		},
		{
			field:  c + "env[].valueFrom.resourceFieldRef.divisor",
			app:    `env.A.resourceFieldRef = { resource = "limits.memory", divisor = %s }`,
			before: `"1Ki"`, after: `"1Mi"`, effect: restart,
		},
		{
			field: c + "envFrom[].prefix", app: `envFrom = [{ configMapRef.name = "a", prefix = %s }]`, before: `"A_"`, after: `"B_"`,
			effect: restart,
		},
	}
	for _, t := range []template{
		{field: "volumeName", app: `volumeName = %s, path = "f", key = "K", optional = true`, before: `"a"`, after: `"b"`},
		{field: "path", app: `volumeName = "a", path = %s, key = "K", optional = true`, before: `"f"`, after: `"g"`},
		{field: "key", app: `volumeName = "a", path = "f", key = %s, optional = true`, before: `"K"`, after: `"L"`},
		{field: "optional", app: `volumeName = "a", path = "f", key = "K", optional = %s`, before: "true", after: "false", fails: true},
	} {
		t.field, t.app = c+"env[].valueFrom.fileKeyRef."+t.field, "env.A.fileKeyRef = { "+t.app+" }"
		t.tables, t.effect = strings.ReplaceAll(twoVolumes, "\n\n", "\nemptyDir = {}\n\n")+"emptyDir = {}\n", restart
		list = append(list, t)
	}
	for _, kind := range []string{"configMap", "secret"} {
		key, from := kind+"KeyRef", kind+"Ref"
		for _, t := range []template{
			{field: "env[].valueFrom." + key + ".name", app: "env.A." + key + ` = { name = %s, key = "k" }`, before: `"a"`, after: `"b"`},
			{field: "env[].valueFrom." + key + ".key", app: "env.A." + key + ` = { name = "a", key = %s }`, before: `"k"`, after: `"l"`},
			{
				field: "env[].valueFrom." + key + ".optional", app: "env.A." + key + ` = { name = "a", key = "k", optional = %s }`,
				before: "false", after: "true",
			},
			{field: "envFrom[]." + from + ".name", app: "envFrom = [{ " + from + ".name = %s }]", before: `"a"`, after: `"b"`},
			{
				field: "envFrom[]." + from + ".optional", app: "envFrom = [{ " + from + ` = { name = "a", optional = %s } }]`,
				before: "false", after: "true",
			},
		} {
			t.field, t.tables, t.effect = c+t.field, inlineObjects, restart
			list = append(list, t)
		}
	}
	list[7].tables = inlineObjects
	return list
}

func securityTemplates() []template {
	var list []template
	both := func(t template) {
		pod, name := t, t.field
		t.field, t.effect = "containers[].securityContext."+name, restart
		list = append(list, t)
		pod.field, pod.effect, pod.pod, pod.app = "securityContext."+name, again, pod.app, ""
		list = append(list, pod)
	}
	both(template{field: "runAsUser", app: "securityContext.runAsUser = %s", before: "1000", after: "1001"})
	both(template{field: "runAsGroup", app: "securityContext = { runAsUser = 1000, runAsGroup = %s }", before: "1000", after: "1001"})
	both(template{field: "runAsNonRoot", app: "securityContext = { runAsUser = 1000, runAsNonRoot = %s }", before: "false", after: "true"})
	for _, kind := range []string{"seccompProfile", "appArmorProfile"} {
		both(template{
			field: kind + ".type", app: "securityContext." + kind + ".type = %s", before: `"RuntimeDefault"`, after: `"Unconfined"`,
			fails: kind == "appArmorProfile", // a host without AppArmor refuses it
		})
		both(template{
			field: kind + ".localhostProfile", app: "securityContext." + kind + ` = { type = "Localhost", localhostProfile = %s }`,
			before: `"a"`, after: `"b"`, fails: true,
		})
	}
	for _, t := range []template{
		{field: "privileged", app: "securityContext.privileged = %s", before: "false", after: "true"},
		{field: "allowPrivilegeEscalation", app: "securityContext.allowPrivilegeEscalation = %s", before: "true", after: "false"},
		{field: "capabilities.add", app: "securityContext.capabilities.add = [%s]", before: `"CHOWN"`, after: `"KILL"`},
		{field: "capabilities.drop", app: "securityContext.capabilities.drop = [%s]", before: `"CHOWN"`, after: `"KILL"`},
		{field: "readOnlyRootFilesystem", app: "securityContext.readOnlyRootFilesystem = %s", before: "false", after: "true"},
		{
			field: "procMount", pod: "hostUsers = false", app: "securityContext.procMount = %s", before: `"Default"`, after: `"Unmasked"`,
			fails: true,
		},
	} {
		t.field, t.effect = "containers[].securityContext."+t.field, restart
		list = append(list, t)
	}
	for _, t := range []template{
		{field: "supplementalGroups", pod: "securityContext.supplementalGroups = [%s]", before: "1000", after: "1001"},
		{field: "supplementalGroupsPolicy", pod: "securityContext.supplementalGroupsPolicy = %s", before: `"Merge"`, after: `"Strict"`},
		{field: "fsGroup", pod: "securityContext.fsGroup = %s", before: "1000", after: "1001"},
		{
			field: "sysctls[].name", pod: `securityContext.sysctls = [{ name = %s, value = "1" }]`,
			before: `"net.ipv4.ip_unprivileged_port_start"`, after: `"net.ipv4.tcp_syncookies"`,
		},
		{
			field: "sysctls[].value", pod: `securityContext.sysctls = [{ name = "net.ipv4.ip_unprivileged_port_start", value = %s }]`,
			before: `"1"`, after: `"2"`,
		},
	} {
		t.field, t.effect = "securityContext."+t.field, again
		list = append(list, t)
	}
	return append(list, template{
		field: "securityContext.fsGroupChangePolicy", pod: "securityContext = { fsGroup = 1000, fsGroupChangePolicy = %s }",
		before: `"Always"`, after: `"OnRootMismatch"`, effect: nextRound,
	})
}

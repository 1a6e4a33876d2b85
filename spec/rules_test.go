package spec

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Parts of pod files for the rules below.
const (
	podTail = "\n[[containers]]\nname = \"app\"\nimage = \"busybox\"\n"
	podHead = "name = \"web\"\nrestartPolicy = \"Always\"\nterminationGracePeriodSeconds = 30\nresources = {}\nsecurityContext = " +
		"{}\nrestartBackoff = {}\n"
	initHead  = podHead + "[[initContainers]]\nname = \"prepare\"\nimage = \"busybox\"\n"
	appHead   = podHead + podTail
	probeHead = appHead + "[containers.livenessProbe]\n"
)

func pod(lines string) string      { return podHead + lines + podTail }
func appWith(lines string) string  { return appHead + lines }
func initWith(lines string) string { return initHead + lines + podTail }
func liveness(lines string) string { return probeHead + lines }
func volume(source string) string  { return appHead + "[[volumes]]\nname = \"v\"\n" + source }
func mount(lines string) string {
	return volume("emptyDir = {}\n") + "[[containers]]\nname = \"second\"\nimage = \"b\"\nvolumeMounts = [" + lines + "]\n"
}
func repeat(s string, n int) string { return strings.TrimSuffix(strings.Repeat(s+", ", n), ", ") }
func containersOf(n int) string     { return podHead + manyContainers(n) }
func security(lines string) string  { return appHead + "[containers.securityContext]\n" + lines }
func podSecurity(lines string) string {
	return strings.Replace(pod(""), "securityContext = {}", "securityContext = { "+lines+" }", 1)
}
func envVariable(source string) string { return appHead + "env.X." + source }

// fileVariable is a pod with a variable from a file, and two volumes.
func fileVariable(ref string) string {
	return envVariable("fileKeyRef = { "+ref+" }") +
		"\n[[volumes]]\nname = \"v\"\nemptyDir = {}\n\n[[volumes]]\nname = \"host\"\nhostPath.path = \"/srv\"\n"
}

func manyPaths(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("\"path:/%d\"", i)
	}
	return strings.Join(list, ", ")
}

func manyContainers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[[containers]]\nname = \"c%d\"\nimage = \"busybox\"\n", i)
	}
	return b.String()
}

// rule is a pod file that breaks one rule of validation, with the path and a part of the message of its only error.
type rule struct{ file, path, words string }

func checkRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, test := range rules {
		t.Run(test.path+" "+test.words, func(t *testing.T) {
			pod, problems := parse("web.toml", []byte(test.file), Options{})
			errors := problems.Errors()
			if pod != nil || len(errors) != 1 {
				t.Fatalf("want one error, got:\n%v\n%s", problems, clipFile(test.file))
			}
			if p := errors[0]; p.Path != test.path || !strings.Contains(p.Message, test.words) || p.Line < 1 || p.Column < 1 {
				t.Errorf("got %v\nwant path %s and words %q", p, test.path, test.words)
			}
		})
	}
}

// TestPodRules checks the rules for the fields of the pod.
func TestPodRules(t *testing.T) {
	checkRules(t, []rule{
		{strings.Replace(pod(""), `"web"`, `""`, 1), "name", "must not be empty"},
		{pod(`labels = { "a b" = "c" }`), `labels."a b"`, "Invalid value"},
		{pod(`labels = { a = "b c" }`), "labels.a", `"b c"`},
		{pod(`labels = { a = 1 }`), "labels.a", "must be a string"},
		{pod(`labels = "a"`), "labels", "must be a table"},
		{pod(`annotations = { "a b" = "c" }`), `annotations."a b"`, "Invalid value"},
		{pod(`annotations = { a = "` + strings.Repeat("x", 256<<10) + `" }`), "annotations", "may not be more than 262144 bytes"},
		{pod(`activeDeadlineSeconds = 0`), "activeDeadlineSeconds", "greater than 0"},
		{pod(`activeDeadlineSeconds = 2147483648`), "activeDeadlineSeconds", "less than or equal to 2147483647"},
		{pod(`activeDeadlineSeconds = inf`), "activeDeadlineSeconds", "finite"},
		{pod(`activeDeadlineSeconds = 1e-10`), "activeDeadlineSeconds", "at least 1 nanosecond"},
		{pod(`activeDeadlineSeconds = "60"`), "activeDeadlineSeconds", "must be a number"},
		{pod(`readinessGates = [{}]`), "readinessGates[0].conditionType", "Required value"},
		{pod(`readinessGates = [{ conditionType = "a b" }]`), "readinessGates[0].conditionType", `"a b"`},
		{pod(`imagePullSecrets = [{ name = "A" }]`), "imagePullSecrets[0].name", "subdomain"},
		{pod(`runtimeClassName = "A"`), "runtimeClassName", "subdomain"},
		{
			liveness("exec.command = [\"a\"]\nfailureThreshold = 3000000000"), "containers[0].livenessProbe.failureThreshold",
			"must be between -2147483648 and 2147483647",
		},
		{
			liveness("exec.command = [\"a\"]\nfailureThreshold = 1.5"), "containers[0].livenessProbe.failureThreshold",
			"must be an integer, found float 1.5",
		},
		{
			liveness("exec.command = [\"a\"]\nfailureThreshold = 2026-01-01"), "containers[0].livenessProbe.failureThreshold",
			"must be an integer, found date 2026-01-01",
		},
		{pod(`imageArchives = [""]`), "imageArchives[0]", "must not be empty"},
		{pod(`imageArchives = ["a.tar", "./a.tar"]`), "imageArchives[1]", "Duplicate value"},
		{pod(`imageArchives = ["a\u0000b"]`), "imageArchives[0]", "NUL"},
		{pod(`waitFor = ["pod:web:ready"]`), "waitFor[0]", "itself"},
		{pod(`waitFor = ["pod:db:gone"]`), "waitFor[0]", "succeeded"},
		{pod(`waitFor = ["pod:db"]`), "waitFor[0]", `must be "pod:NAME:ready"`},
		{pod(`waitFor = ["pod:DB:ready"]`), "waitFor[0]", `must be "pod:NAME:ready"`},
		{pod(`waitFor = ["path:dev"]`), "waitFor[0]", "absolute"},
		{pod(`waitFor = ["mount:"]`), "waitFor[0]", "absolute"},
		{pod(`waitFor = ["path:/a\u0000b"]`), "waitFor[0]", "NUL"},
		{pod(`waitFor = ["path:/a", "path:/a"]`), "waitFor[1]", "Duplicate value"},
		{pod(`waitFor = "path:/a"`), "waitFor", "must be an array"},
		{pod(`waitFor = [` + manyPaths(65) + `]`), "waitFor", "at most 64 items"},
		{pod(`waitFor = ["network-online:"]`), "waitFor[0]", "without an object"},
		{pod(`waitFor = ["dns:"]`), "waitFor[0]", "host name"},
		{pod(`waitFor = ["time-synced:now"]`), "waitFor[0]", "without an object"},
		{pod(`waitFor = ["time-sync"]`), "waitFor[0]", `supported values: "pod"`},
		{pod(`systemd.after = ["network"]`), "systemd.after[0]", "name of a systemd unit"},
		{pod(`systemd.wants = ["a b.service"]`), "systemd.wants[0]", "name of a systemd unit"},
		{pod(`systemd.requires = ["../a.service"]`), "systemd.requires[0]", "name of a systemd unit"},
		{pod(`systemd.bindsTo = ["a@.service"]`), "systemd.bindsTo[0]", "name of a systemd unit"},
		{pod(`systemd.wantedBy = ["a.target", "a.target"]`), "systemd.wantedBy[1]", "Duplicate value"},
		{pod(`update.readyWithinSeconds = 0`), "update.readyWithinSeconds", "greater than 0"},
		{pod(`update.readyWithinSeconds = -1`), "update.readyWithinSeconds", "greater than or equal to 0"},
		{pod(`update.readyWithinSeconds = 86401`), "update.readyWithinSeconds", "less than or equal to 86400"},
		{pod(`update.minReadySeconds = -1`), "update.minReadySeconds", "greater than or equal to 0"},
		{pod(`update.minReadySeconds = 86401`), "update.minReadySeconds", "less than or equal to 86400"},
		{pod(`update.onFailure = "undo"`), "update.onFailure", `supported values: "rollback", "keep"`},
		{pod(`update = "rollback"`), "update", "must be a table"},
		{pod(`hostname = "a.b"`), "hostname", "dots"},
		{pod(`subdomain = "a.b"`), "subdomain", "dots"},
		{appWith(`maxRestarts = 0`), "containers[0].maxRestarts", "must be greater than or equal to 1"},
		{
			appWith("restartPolicy = \"Never\"\nmaxRestarts = 1"), "containers[0].maxRestarts",
			"may not be set when restartPolicy is Never",
		},
		{
			"restartPolicy = \"OnFailure\"\nbackoffLimit = 1\n[[containers]]\nname = \"a\"\nimage = \"i\"\nmaxRestarts = 1\n",
			"containers[0].maxRestarts", "may not be set when backoffLimit is set",
		},
		{
			appWith("") + "[[initContainers]]\nname = \"init\"\nimage = \"i\"\nmaxRestarts = 1\n", "initContainers[0].maxRestarts",
			"may not be set for init containers",
		},
		{pod(`hostnameOverride = ""`), "hostnameOverride", "empty"},
		{pod(`hostnameOverride = "a_b"`), "hostnameOverride", "subdomain"},
		{pod(`hostnameOverride = "` + strings.Repeat("a", 65) + `"`), "hostnameOverride", "Too long: may not be more than 64 bytes"},
		{pod("hostnameOverride = \"a.b\"\nhostNetwork = true"), "hostnameOverride", "Forbidden: may not be set when hostNetwork is true"},
		{
			pod("hostnameOverride = \"a.b\"\nsubdomain = \"c\"\nsetHostnameAsFQDN = true"), "hostnameOverride",
			"Forbidden: may not be set when setHostnameAsFQDN is true",
		},
		{pod("hostPID = true\nshareProcessNamespace = true"), "shareProcessNamespace", "hostPID"},
		{pod("hostIPC = true\nhostUsers = false"), "hostUsers", "hostIPC"},
		{pod(`hostAliases = [{ ip = "fe80::1%eth0", hostnames = ["a"] }]`), "hostAliases[0].ip", "IP address"},
		{pod(`hostAliases = [{ ip = "::ffff:10.0.0.1", hostnames = ["a"] }]`), "hostAliases[0].ip", "IPv4-mapped"},
		{pod(`hostAliases = [{ ip = "10.0.0.1", hostnames = [""] }]`), "hostAliases[0].hostnames[0]", "empty"},
		{pod(`hostAliases = [{ ip = "10.0.0.1", hostnames = ["a b"] }]`), "hostAliases[0].hostnames[0]", "subdomain"},
		{pod(`dnsPolicy = "None"`), "dnsPolicy", "at least one DNS nameserver"},
		{pod(`dnsConfig.nameservers = ["dns"]`), "dnsConfig.nameservers[0]", "IP address"},
		{pod(`dnsConfig.searches = ["a b"]`), "dnsConfig.searches[0]", "subdomain"},
		{pod(`dnsConfig.searches = [` + repeat(`"a"`, 33) + `]`), "dnsConfig.searches", "more than 32 search paths"},
		{pod(`dnsConfig.options = [{ value = "1" }]`), "dnsConfig.options[0].name", "Required value"},
		{pod(`dnsConfig.options = [{ name = "a b" }]`), "dnsConfig.options[0].name", "spaces"},
		{pod(`dnsConfig.options = [{ name = "a", value = "1 2" }]`), "dnsConfig.options[0].value", "spaces"},
		{
			strings.Replace(pod(""), "restartBackoff = {}", "restartBackoff = { factor = 0.5 }", 1), "restartBackoff.factor",
			"greater than or equal to 1",
		},
		{strings.Replace(pod(""), "restartBackoff = {}", "restartBackoff = { factor = nan }", 1), "restartBackoff.factor", "finite"},
		{
			strings.Replace(pod(""), "restartBackoff = {}", "restartBackoff = { maxSeconds = 0 }", 1), "restartBackoff.maxSeconds",
			"greater than 0",
		},
	})
}

// TestInlineObjectRules checks the rules for inline config maps and secrets.
func TestInlineObjectRules(t *testing.T) {
	checkRules(t, []rule{
		{pod(`configMaps = [{ name = "a" }, { name = "a" }]`), "configMaps[1].name", "Duplicate value"},
		{pod(`configMaps = [{ name = "a", data = { "../b" = "" } }]`), `configMaps[0].data."../b"`, "Invalid value"},
		{pod(`secrets = [{ name = "../a" }]`), "secrets[0].name", "subdomain"},
		{pod(`secrets = [{ name = "a", credential = "../b" }]`), "secrets[0].credential", "config key"},
		{pod(`secrets = [{ name = "a", credentialFile = "b", envFile = "c" }]`), "secrets[0].credentialFile", "data or envFile is set"},
		{pod(`secrets = [{ name = "a", credentialFile = "b c" }]`), "secrets[0].credentialFile", "its base name is the key"},
		{pod(`secrets = [{ name = "a", credential = "b", envFile = "c" }]`), "secrets[0].credential", "data or envFile is set"},
	})
}

// TestContainerRules checks the rules for the fields of containers.
func TestContainerRules(t *testing.T) {
	checkRules(t, []rule{
		{containersOf(65), "containers", "at most 64"},
		{
			strings.Replace(containersOf(65), "[[containers]]", "[[initContainers]]", 64) +
				strings.Replace(manyContainers(1), "c0", "x", 1),
			"containers", "at most 64",
		},
		{strings.ReplaceAll(containersOf(65), "[[containers]]", "[[initContainers]]"), "initContainers", "at most 64"},
		{strings.Replace(appHead, `"app"`, `"a.b"`, 1), "containers[0].name", "dots"},
		{strings.Replace(appHead, `name = "app"`, "", 1), "containers[0].name", "Required value"},
		{initWith("") + strings.Replace(podTail, "app", "prepare", 1), "containers[1].name", "Duplicate value"},
		{appWith(`workingDir = "srv"`), "containers[0].workingDir", "absolute"},
		{appWith(`command = [1]`), "containers[0].command[0]", "must be a string"},
		{appWith(`restartPolicy = ""`), "containers[0].restartPolicy", `Unsupported value: ""`},
		{appWith(`terminationMessagePolicy = "Logs"`), "containers[0].terminationMessagePolicy", "Unsupported value"},
		{appWith(`volumeDevices = [{ name = "a", devicePath = "/a" }]`), "containers[0].volumeDevices", "volumes are directories"},
		{initWith(`livenessProbe.exec.command = ["a"]`), "initContainers[0].livenessProbe", "may not be set for init containers"},
		{initWith(`lifecycle.preStop.sleep.seconds = 1`), "initContainers[0].lifecycle", "may not be set for init containers"},
		{initWith(`lifecycle = {}`), "initContainers[0].lifecycle", "may not be set for init containers"},
		{initWith(`lifecycle.stopSignal = "SIGINT"`), "initContainers[0].lifecycle", "may not be set for init containers"},
	})
}

// TestRestartRules checks the rules for restartPolicyRules.
func TestRestartRules(t *testing.T) {
	checkRules(t, []rule{
		{
			appWith("restartPolicyRules = [{ action = \"Restart\", exitCodes = { operator = \"In\", values = [1] } }]"),
			"containers[0].restartPolicyRules", "must specify restartPolicy",
		},
		{restartRules(`{ exitCodes = { operator = "In", values = [1] } }`), "containers[0].restartPolicyRules[0].action", "Required value"},
		{
			restartRules(`{ action = "Stop", exitCodes = { operator = "In", values = [1] } }`),
			"containers[0].restartPolicyRules[0].action", "Unsupported value",
		},
		{restartRules(`{ action = "Restart" }`), "containers[0].restartPolicyRules[0].exitCodes", "Required value"},
		{
			restartRules(`{ action = "Restart", exitCodes = { operator = "in", values = [1] } }`),
			"containers[0].restartPolicyRules[0].exitCodes.operator", "Unsupported value",
		},
		{
			restartRules(repeat(`{ action = "Restart", exitCodes = { operator = "In", values = [1] } }`, 21)),
			"containers[0].restartPolicyRules", "at most 20",
		},
	})
}

// TestResizePolicyRules checks the rules for resizePolicy.
func TestResizePolicyRules(t *testing.T) {
	const at = "containers[0].resizePolicy"
	policy := func(list string) string { return appWith("resizePolicy = [" + list + "]") }
	const (
		restart = `{ resourceName = "cpu", restartPolicy = "RestartContainer" }`
		never   = "restartPolicy = \"Never\"\n[[containers]]\nname = \"a\"\nimage = \"a\"\n"
	)
	checkRules(t, []rule{
		{policy(`{ restartPolicy = "NotRequired" }`), at + "[0].resourceName", "Required value"},
		{policy(`{ resourceName = "cpu" }`), at + "[0].restartPolicy", "Required value"},
		{
			policy(`{ resourceName = "ephemeral-storage", restartPolicy = "NotRequired" }`), at + "[0].resourceName",
			`Unsupported value: "ephemeral-storage": supported values: "cpu", "memory"`,
		},
		{
			policy(`{ resourceName = "cpu", restartPolicy = "Always" }`), at + "[0].restartPolicy",
			`Unsupported value: "Always": supported values: "NotRequired", "RestartContainer"`,
		},
		{policy(restart + ", " + restart), at + "[1].resourceName", `Duplicate value: "cpu"`},
		{
			never + "resizePolicy = [" + restart + "]", at + "[0].restartPolicy",
			"must be 'NotRequired' when pod `restartPolicy` is 'Never'",
		},
		{
			pod("[[initContainers]]\nname = \"i\"\nimage = \"i\"\nresizePolicy = [" + restart + "]\n"),
			"initContainers[0].resizePolicy[0].restartPolicy", "must not be set to 'RestartContainer' for non-sidecar initContainers",
		},
	})
	sidecar := "[[initContainers]]\nname = \"i\"\nimage = \"i\"\nrestartPolicy = \"Always\"\nresizePolicy = [" + restart + "]\n"
	for name, text := range map[string]string{
		"both resources": policy(restart + `, { resourceName = "memory", restartPolicy = "NotRequired" }`),
		"a sidecar":      pod(sidecar),
		"Never":          never + `resizePolicy = [{ resourceName = "cpu", restartPolicy = "NotRequired" }]`,
	} {
		if p, problems := Parse("p.toml", []byte(text)); p == nil {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

// TestEnvironmentRules checks the rules for env and envFrom.
func TestEnvironmentRules(t *testing.T) {
	checkRules(t, []rule{
		{appWith(`env."A=B" = "c"`), `containers[0].env."A=B"`, "environment variable"},
		{appWith(`env = [{ value = "c" }]`), "containers[0].env[0].name", "Required value"},
		{
			appWith(`env = [{ name = "A", value = "c", valueFrom = { fieldRef = { fieldPath = "metadata.name" } } }]`),
			"containers[0].env[0].value", "valueFrom is set",
		},
		{appWith(`env.A = true`), "containers[0].env.A", "must be a string, found boolean"},
		{appWith(`env = 1`), "containers[0].env", "must be an array of tables"},
		{envVariable(`fieldReff = {}`), "containers[0].env.X.fieldReff", "unknown field"},
		{fileVariable(`path = "a", key = "K"`), "containers[0].env.X.fileKeyRef.volumeName", "Required value"},
		{fileVariable(`volumeName = "v", key = "K"`), "containers[0].env.X.fileKeyRef.path", "Required value"},
		{fileVariable(`volumeName = "v", path = "a"`), "containers[0].env.X.fileKeyRef.key", "Required value"},
		{fileVariable(`volumeName = "v", path = "a/../b", key = "K"`), "containers[0].env.X.fileKeyRef.path", "must not contain '..'"},
		{fileVariable(`volumeName = "v", path = "a", key = "K=L"`), "containers[0].env.X.fileKeyRef.key", "printable ASCII"},
		{fileVariable(`volumeName = "V", path = "a", key = "K"`), "containers[0].env.X.fileKeyRef.volumeName", "RFC 1123 label"},
		{fileVariable(`volumeName = "w", path = "a", key = "K"`), "containers[0].env.X.fileKeyRef.volumeName", `Not found: volume "w"`},
		{
			fileVariable(`volumeName = "host", path = "a", key = "K"`), "containers[0].env.X.fileKeyRef.volumeName",
			"referenced volume must be of type emptyDir",
		},
		{appWith(`env.X = {}`), "containers[0].env.X", "must specify one of"},
		{envVariable(`fieldRef.fieldPath = "metadata.nam"`), "containers[0].env.X.fieldRef.fieldPath", "Unsupported value"},
		{envVariable(`fieldRef.fieldPath = "metadata.labels"`), "containers[0].env.X.fieldRef.fieldPath", "Unsupported value"},
		{envVariable(`fieldRef.fieldPath = "metadata.labels['a b']"`), "containers[0].env.X.fieldRef.fieldPath", `"a b"`},
		{envVariable(`fieldRef = { apiVersion = "v2", fieldPath = "metadata.name" }`), "containers[0].env.X.fieldRef.apiVersion", `"v1"`},
		{envVariable(`resourceFieldRef.resource = "limits.disk"`), "containers[0].env.X.resourceFieldRef.resource", "Unsupported value"},
		{
			envVariable(`resourceFieldRef = { resource = "limits.cpu", containerName = "ap" }`),
			"containers[0].env.X.resourceFieldRef.containerName", `Not found: container "ap"`,
		},
		{
			envVariable(`resourceFieldRef.resource = "wishes.hugepages-2Mi"`), "containers[0].env.X.resourceFieldRef.resource",
			"Unsupported value",
		},
		{
			envVariable(`resourceFieldRef = { resource = "limits.hugepages-2Mi", divisor = "1m" }`),
			"containers[0].env.X.resourceFieldRef.divisor", `"1Ei"`,
		},
		{
			envVariable(`resourceFieldRef = { resource = "limits.cpu", divisor = "2" }`),
			"containers[0].env.X.resourceFieldRef.divisor", `supported values: "1m", "1"`,
		},
		{
			envVariable(`resourceFieldRef = { resource = "limits.memory", divisor = "1m" }`),
			"containers[0].env.X.resourceFieldRef.divisor", `"1Ei"`,
		},
		{
			envVariable(`resourceFieldRef = { resource = "limits.memory", divisor = "1024" }`),
			"containers[0].env.X.resourceFieldRef.divisor", `"1024": supported values: "1"`,
		},
		{
			envVariable(`resourceFieldRef = { resource = "limits.cpu", divisor = "x" }`), "containers[0].env.X.resourceFieldRef.divisor",
			"quantity",
		},
		{envVariable(`secretKeyRef.name = "a"`), "containers[0].env.X.secretKeyRef.key", "Required value"},
		{
			envVariable("configMapKeyRef = { name = \"a\", key = \"b\" }\n[[configMaps]]\nname = \"a\"\ndata.c = \"\""),
			"containers[0].env.X.configMapKeyRef.key", `Not found: key "b"`,
		},
		{appWith(`envFrom = [{}]`), "containers[0].envFrom[0]", "must specify one of"},
		{appWith(`envFrom = [{ secretRef = {} }]`), "containers[0].envFrom[0].secretRef.name", "Required value"},
		{appWith(`envFrom = [{ prefix = "=", secretRef = { name = "a" } }]`), "containers[0].envFrom[0].prefix", "environment variable"},
	})
}

// TestPortRules checks the rules for ports.
func TestPortRules(t *testing.T) {
	checkRules(t, []rule{
		{appWith(`ports = [{}]`), "containers[0].ports[0].containerPort", "Required value"},
		{appWith(`ports = [{ containerPort = 0 }]`), "containers[0].ports[0].containerPort", "greater than 0"},
		{appWith(`ports = [{ containerPort = 80, hostPort = -1 }]`), "containers[0].ports[0].hostPort", "between 1 and 65535"},
		{appWith(`ports = [{ containerPort = 80, protocol = "tcp" }]`), "containers[0].ports[0].protocol", "Unsupported value"},
		{appWith(`ports = [{ containerPort = 80, hostIP = "localhost" }]`), "containers[0].ports[0].hostIP", "IP address"},
		{appWith(`ports = [{ containerPort = 80, name = "a_b" }]`), "containers[0].ports[0].name", `"a_b"`},
		{
			appWith(`ports = [{ containerPort = 80, name = "a" }, { containerPort = 81, name = "a" }]`), "containers[0].ports[1].name",
			"Duplicate value",
		},
		{
			appWith(`ports = [{ containerPort = 80, hostPort = 1 }, { containerPort = 81, hostPort = 1 }]`),
			"containers[0].ports[1].hostPort", "Duplicate value",
		},
		{
			appWith(`ports = [{ containerPort = 80, hostPort = 1 }, { containerPort = 81, hostPort = 1, hostIP = "127.0.0.1" }]`),
			"containers[0].ports[1].hostPort", "Duplicate value",
		},
		{
			strings.Replace(appWith(`ports = [{ containerPort = 80, hostPort = 81 }]`), "resources", "hostNetwork = true\nresources", 1),
			"containers[0].ports[0].hostPort", "hostNetwork",
		},
		{
			strings.Replace(appWith("ports = [{ containerPort = 80 }]"+strings.Replace(podTail, "app", "b", 1)+
				"ports = [{ containerPort = 80 }]"),
				"resources", "hostNetwork = true\nresources", 1),
			"containers[1].ports[0].containerPort", "Duplicate value",
		},
	})
}

// TestProbeAndHookRules checks the rules for probes and hooks.
func TestProbeAndHookRules(t *testing.T) {
	checkRules(t, []rule{
		{liveness(``), "containers[0].livenessProbe", "must specify one of"},
		{liveness("exec.command = [\"a\"]\ngrpc.port = 1"), "containers[0].livenessProbe", "more than one of"},
		{liveness(`exec = {}`), "containers[0].livenessProbe.exec.command", "Required value"},
		{liveness(`httpGet = {}`), "containers[0].livenessProbe.httpGet.port", "Required value"},
		{liveness(`httpGet.port = 0`), "containers[0].livenessProbe.httpGet.port", "between 1 and 65535"},
		{liveness(`httpGet.port = ""`), "containers[0].livenessProbe.httpGet.port", "between 1 and 65535"},
		{liveness(`httpGet.port = "80"`), "containers[0].livenessProbe.httpGet.port", "must contain at least one letter"},
		{liveness(`tcpSocket.port = "HTTP"`), "containers[0].livenessProbe.tcpSocket.port", `"HTTP"`},
		{liveness(`httpGet.port = true`), "containers[0].livenessProbe.httpGet.port", "must be a port"},
		{liveness(`httpGet = { port = 1, scheme = "http" }`), "containers[0].livenessProbe.httpGet.scheme", "Unsupported value"},
		{
			liveness(`httpGet = { port = 1, httpHeaders = [{ name = "a b", value = "" }] }`),
			"containers[0].livenessProbe.httpGet.httpHeaders[0].name", `"a b"`,
		},
		{
			liveness(`httpGet = { port = 1, httpHeaders = [{ name = "a", value = "\n" }] }`),
			"containers[0].livenessProbe.httpGet.httpHeaders[0].value", "line breaks",
		},
		{liveness(`tcpSocket.host = "a"`), "containers[0].livenessProbe.tcpSocket.port", "Required value"},
		{liveness(`grpc.port = "a"`), "containers[0].livenessProbe.grpc.port", "must be an integer"},
		{liveness("exec.command = [\"a\"]\nsuccessThreshold = 2"), "containers[0].livenessProbe.successThreshold", "must be 1"},
		{
			liveness("exec.command = [\"a\"]\nfailureThreshold = -2"), "containers[0].livenessProbe.failureThreshold",
			"greater than or equal to 0",
		},
		{
			liveness("exec.command = [\"a\"]\nterminationGracePeriodSeconds = 0"),
			"containers[0].livenessProbe.terminationGracePeriodSeconds", "greater than 0",
		},
		{
			appWith("readinessProbe = { exec.command = [\"a\"], terminationGracePeriodSeconds = 1 }"),
			"containers[0].readinessProbe.terminationGracePeriodSeconds", "must not be set for readinessProbes",
		},
		{appWith(`lifecycle.stopSignal = ""`), "containers[0].lifecycle.stopSignal", `Unsupported value: ""`},
		{appWith(`lifecycle.preStop = {}`), "containers[0].lifecycle.preStop", "must specify one of"},
		{
			appWith(`lifecycle.preStop.sleep.seconds = 31`), "containers[0].lifecycle.preStop.sleep.seconds",
			"less than or equal to terminationGracePeriodSeconds",
		},
		{appWith(`lifecycle.postStart.tcpSocket = {}`), "containers[0].lifecycle.postStart.tcpSocket", "a hook that only connects"},
	})
}

// TestProcessLimitRules checks the rules for limits of processes.
func TestProcessLimitRules(t *testing.T) {
	const at = "containers[0].ulimits"
	ulimit := func(text string) string { return appWith(`ulimits = [` + text + `]`) }
	checkRules(t, []rule{
		{ulimit(`{ soft = 1 }`), at + "[0].name", "Required value"},
		{ulimit(`{ name = "nofile" }`), at + "[0].soft", "Required value"},
		{ulimit(`{ name = "nofiles", soft = 1 }`), at + "[0].name", `Unsupported value: "nofiles": supported values: "core", "cpu"`},
		{ulimit(`"core=1", { name = "core", soft = 1 }`), at + "[1].name", `Duplicate value: "core"`},
		{ulimit(`{ name = "core", soft = -2 }`), at + "[0].soft", "greater than or equal to 0, or -1 for unlimited"},
		{ulimit(`{ name = "core", soft = -1, hard = -2 }`), at + "[0].hard", "greater than or equal to 0"},
		{ulimit(`{ name = "core", soft = 2, hard = 1 }`), at + "[0].soft", "must be less than or equal to the hard limit 1"},
		{ulimit(`{ name = "core", soft = -1, hard = 1 }`), at + "[0].soft", `"-1 (unlimited)": must be less than or equal to`},
		{ulimit(`"nofile"`), at + "[0]", `must be "NAME=LIMIT" or "NAME=SOFT:HARD"`},
		{ulimit(`"nofile=1:2:3"`), at + "[0]", `must be "NAME=LIMIT"`},
		{ulimit(`"nofile=9999999999999999999"`), at + "[0]", `must be "NAME=LIMIT"`},
		{ulimit(`"files=1"`), at + "[0]", `Unsupported value: "files"`},
		{ulimit(`5`), at + "[0]", "must be a table, found integer"},
		{appWith(`ulimits = { nofile = 1 }`), at, "must be an array, found table"},
		{pod(`keepID = 0`), "keepID", "must be between 1 and 65535, inclusive"},
		{pod(`keepID = 65536`), "keepID", "must be between 1 and 65535, inclusive"},
		{pod("keepID = 1000\nhostUsers = false"), "keepID", "Forbidden: the pod has the IDs that hostUsers = false gives it"},
		{pod(`pidsLimit = 0`), "pidsLimit", "must be between 1 and 4194304, inclusive"},
		{pod(`pidsLimit = 4194305`), "pidsLimit", "must be between 1 and 4194304, inclusive"},
		{pod(`shmSize = 0`), "shmSize", "must be greater than 0"},
		{pod(`shmSize = "64MB"`), "shmSize", "must be a quantity"},
		{pod("shmSize = 1\nhostIPC = true"), "shmSize", "Forbidden: /dev/shm is that of the host"},
		{mountedAt("/dev"), "containers[1].init", "the volume that is mounted at /dev hides the program /dev/podstead-init"},
		{mountedAt("/dev/podstead-init"), "containers[1].init", "hides the program"},
	})
}

// mountedAt is a pod whose second container has an init process and mounts a volume.
func mountedAt(path string) string {
	return mount(`{ name = "v", mountPath = "`+path+`" }`) + "init = true\nsecurityContext.privileged = true\n"
}

// podWith is a pod with one container, and lines of both.
func podWith(pod, app string) string { return strings.Replace(appWith(app), "resources = {}", pod, 1) }

const (
	containerLimits = "containers[0].resources.limits."

	hugeContainer = "resources.limits = { cpu = 1, hugepages-2Mi = \"2Mi\" }\n"

	hugeLimit   = containerLimits + "hugepages-2Mi"
	hugeRequest = "containers[0].resources.requests.hugepages-2Mi"
)

// TestResourceRules checks the rules for resources.
func TestResourceRules(t *testing.T) {
	checkRules(t, []rule{
		{appWith(`resources.limits = { cpu = 1, hugepages-2Mi = "3Mi" }`), hugeLimit, "3Mi is not positive integer multiple of"},
		{appWith(`resources.limits = { cpu = 1, hugepages-2Mi = -1 }`), hugeLimit, "greater than or equal to 0"},
		{appWith(`resources.limits = { cpu = 1, hugepages-x = "2Mi" }`), containerLimits + "hugepages-x", "not positive integer"},
		{appWith(`resources.limits = { cpu = 1, hugepages-0 = "2Mi" }`), containerLimits + "hugepages-0", "not positive integer"},
		{appWith(`resources.limits.hugepages-2Mi = "2Mi"`), hugeLimit, "Forbidden: HugePages require cpu or memory"},
		{appWith(`resources = { requests = { cpu = 1, hugepages-2Mi = "2Mi" } }`), hugeRequest, "Limit must be set for non overcommitable"},
		{
			appWith(`resources = { requests = { cpu = 1, hugepages-2Mi = "2Mi" }, limits.hugepages-2Mi = "4Mi" }`), hugeRequest,
			"must be equal to hugepages-2Mi limit of 4Mi",
		},
		{
			appWith(`resources = { requests = { cpu = 1, hugepages-2Mi = "4Mi" }, limits.hugepages-2Mi = "2Mi" }`), hugeRequest,
			"must be equal to hugepages-2Mi limit of 2Mi",
		},
		{podWith(`resources.limits.hugepages-2Mi = "2Mi"`, ``), "resources.limits.hugepages-2Mi", "HugePages require cpu or memory"},
		{
			podWith(`resources = { limits.cpu = 1, requests.hugepages-2Mi = "2Mi" }`, ``), "resources.requests.hugepages-2Mi",
			"Limit must be set for non overcommitable",
		},
		{
			podWith(`resources.limits = { cpu = 2, hugepages-2Mi = "2Mi" }`, hugeContainer+
				"[[containers]]\nname = \"second\"\nimage = \"b\"\n"+hugeContainer),
			"resources.limits.hugepages-2Mi", "greater than or equal to aggregate container requests of 4Mi",
		},
		{appWith(`resources.limits.mem = 1`), "containers[0].resources.limits.mem", "Unsupported value"},
		{appWith(`resources.limits.memory = -1`), "containers[0].resources.limits.memory", "greater than or equal to 0"},
		{appWith(`resources.limits.memory = "64MB"`), "containers[0].resources.limits.memory", "must be a quantity"},
		{appWith(`resources.limits.memory = "1e999999999"`), "containers[0].resources.limits.memory", "out of range"},
		{appWith(`resources.limits.memory = true`), "containers[0].resources.limits.memory", "must be a quantity"},
		{
			appWith(`resources = { limits.cpu = 1, requests.cpu = 2 }`), "containers[0].resources.requests.cpu",
			"less than or equal to cpu limit of 1",
		},
		{
			strings.Replace(appWith(``), "resources = {}", `resources.limits.ephemeral-storage = 1`, 1),
			"resources.limits.ephemeral-storage", `supported values: "cpu", "memory"`,
		},
		{
			strings.Replace(appWith(`resources.requests.cpu = 2`), "resources = {}", `resources.requests.cpu = 1`, 1),
			"resources.requests.cpu", "greater than or equal to aggregate container requests of 2",
		},
		{
			strings.Replace(appWith(`resources.requests.cpu = 2`), "resources = {}", `resources.limits.cpu = 1`, 1), "resources.limits.cpu",
			"greater than or equal to aggregate container requests of 2",
		},
		{
			strings.Replace(appWith(`resources = { limits.memory = 2, requests.memory = 1 }`), "resources = {}",
				`resources.limits.memory = 1`, 1),
			"containers[0].resources.limits.memory", "less than or equal to pod limits of 1",
		},
	})
}

// TestFileRules checks the rules for the syntax and the limits of a file.
func TestFileRules(t *testing.T) {
	checkRules(t, []rule{
		{pod(`"" = 1`), `""`, "unknown field"},
		{pod("[a.b]\n"), "a", "unknown field"},
		{"name = \"web\"\ncontainers = [1]\n", "containers[0]", "must be a table"},
		{"name = \"web\"\ncontainers = \"app\"\n", "containers", "must be an array of tables"},
		{"name = \"web\xff\"\n", "", "UTF-8"},
		{"a" + strings.Repeat(".a", 40) + " = 1\n", "", "more than 32 levels"},
		{"a = " + strings.Repeat("[", 20000), "", "nested"},
		{strings.Repeat("a", 2000) + " = 1\n", "", "longer than 1024 bytes"},
		{"[" + strings.Repeat("a", 2000) + "]\n", "", "longer than 1024 bytes"},
		{"a = [" + repeat("1", 30000) + "]\n", "", "more than 20000"},
		{strings.Repeat("#", 1<<20) + "\n", "", "larger than 1048576"},
		{"[a]\nb = 1\n[a.b]\nc = 1\n", "", "invalid TOML"},
		{"a = [1]\n[[a]]\n", "", "invalid TOML"},
		{"[a]\n[[a]]\n", "", "invalid TOML"},
		{"[[a]]\n[a]\n", "", "invalid TOML"},
		{"a = 1\na.b = 2\n", "", "invalid TOML"},
		{"a = 99999999999999999999\n", "", "invalid TOML"},
	})
}

func restartRules(list string) string {
	return appWith("restartPolicy = \"Always\"\nrestartPolicyRules = [" + list + "]\n")
}

func clipFile(s string) string { return s[:min(len(s), 1000)] }

// TestWarnings checks the problems of files that are accepted.
func TestWarnings(t *testing.T) {
	for _, test := range []struct{ file, path, words string }{
		{pod(`nodeSelector = { disk = "ssd" }`), "nodeSelector", "ignored: there is one host"},
		{pod(`tolerations = [{ anything = 1 }]`), "tolerations", "ignored: there is one host"},
		{pod("setHostnameAsFQDN = true"), "setHostnameAsFQDN", "has no effect: a pod without subdomain has no full name"},
		{
			pod("setHostnameAsFQDN = true\nsubdomain = \"a\"\nhostNetwork = true"), "setHostnameAsFQDN",
			"has no effect: a pod with hostNetwork has the host name of the host",
		},
		{
			pod("setHostnameAsFQDN = true\nsubdomain = \"" + strings.Repeat("a", 40) + `"`), "setHostnameAsFQDN",
			"has 70 characters, at most 64",
		},
		{
			appWith(`env = [{ name = "A", value = "1" }, { name = "A", value = "2" }]`), "containers[0].env[1].name",
			`hides previous definition of "A"`,
		},
		{
			appWith(`ports = [{ containerPort = 80 }, { containerPort = 80 }]`), "containers[0].ports[1].containerPort",
			"duplicate port definition 80/TCP",
		},
		{appWith(`resources.limits.memory = "128m"`), "containers[0].resources.limits.memory", `fractional byte value "128m" is invalid`},
		{appWith(`command = ["httpd -f -p 80"]`), "containers[0].command[0]", "this whole line as its name"},
		{appWith(`livenessProbe.exec.command = ["cat /ok"]`), "containers[0].livenessProbe.exec.command[0]", "this whole line as its name"},
	} {
		pod, problems := parse("web.toml", []byte(test.file), Options{})
		if pod == nil || len(problems) != 1 || len(problems.Warnings()) != 1 {
			t.Errorf("want one warning, got:\n%v", problems)
			continue
		}
		if p := problems[0]; p.Path != test.path || !strings.Contains(p.Message, test.words) {
			t.Errorf("got %v\nwant path %s and words %q", p, test.path, test.words)
		}
	}
}

// TestOneLine checks the hints for commands that are a single line: a command with that list of words does what was meant.
func TestOneLine(t *testing.T) {
	for line, want := range map[string]string{
		"httpd -f -p 80":                  `["httpd", "-f", "-p", "80"]`,
		`sh -c "echo hello; sleep 1000"`:  `["sh", "-c", "echo hello; sleep 1000"]`,
		"/bin/sh -c 'exec nginx'":         `["/bin/sh", "-c", "exec nginx"]`,
		"echo $HOME | tee /tmp/a":         `["sh", "-c", "echo $HOME | tee /tmp/a"]`,
		`sh -c "echo \"a\"" && sh -c "b"`: `["sh", "-c", "sh -c \"echo \\\"a\\\"\" && sh -c \"b\""]`,
	} {
		text := appWith("command = [" + strconv.Quote(line) + "]")
		_, problems := Parse("web.toml", []byte(text))
		if len(problems) != 1 || problems[0].Hint != "write each word as an element: "+want {
			t.Errorf("%s: %+v", line, problems)
			continue
		}
		if pod, problems := Parse("web.toml", []byte(appWith("command = "+want))); pod == nil || len(problems) > 0 {
			t.Errorf("%s: %v", want, problems)
		}
	}
}

// TestAllProblemsAtOnce checks that all problems of a file are reported, sorted by line.
func TestAllProblemsAtOnce(t *testing.T) {
	file := pod("dnsPolicy = \"x\"\nhostname = \"a b\"\nnope = 1") + "imagePullPolicy = \"x\"\nenv.A = 1\n"
	_, problems := Parse("web.toml", []byte(file))
	if len(problems) != 5 {
		t.Fatalf("want 5 problems, got:\n%v", problems)
	}
	for i, p := range problems[1:] {
		if p.Line < problems[i].Line {
			t.Errorf("line %d is reported after line %d", p.Line, problems[i].Line)
		}
	}
}

// TestProblemsHideSecrets checks that no problem contains the value of a secret.
func TestProblemsHideSecrets(t *testing.T) {
	for _, value := range []string{"31337", "[31337]", "{ a = 31337 }", "2026-03-13", `"31337\u0000"`} {
		file := pod("secrets = [{ name = \"db\", data = { pin = " + value + " } }]")
		_, problems := parse("web.toml", []byte(file), Options{})
		text := report(problems)
		if text == "" || strings.Contains(text, "31337") || strings.Contains(text, "2026") {
			t.Errorf("%s: reported as: %s", value, text)
		}
	}
}

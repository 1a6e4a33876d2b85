package repo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
)

// warning is a section of docs/reference/warnings.md. In its texts and those of the page, ' stands for a backquote.
type warning struct {
	code, what string
	bad        string // a pod file that provokes it
	why        string // with the arithmetic
	fix        string
	good       string // a pod file without it; empty: the fix is not in the file
}

// warnings are the sections of the page, the most serious ones first. warningsPage checks the files.
var warnings = []warning{
	{
		code: "liveness-before-start", what: "A liveness probe stops the container before it can have started",
		bad: `[[containers]]
name = "app"
image = "app:1"
livenessProbe = { httpGet = ":8080/healthz", initialDelaySeconds = 5, failureThreshold = 3 }
readinessProbe = { httpGet = ":8080/healthz", initialDelaySeconds = 60 }
`,
		why: `A container that does not respond fails its liveness probe first after 'initialDelaySeconds' and then every ` +
			`'periodSeconds'. The last of
'failureThreshold' failures stops it:

'''text
initialDelaySeconds + (failureThreshold - 1) x periodSeconds = the time that the container has to start
'''

The time is compared with what the file has of the need:

- A readiness probe with the same handler has a longer 'initialDelaySeconds': the file expects no response before that.
- The time is 0, and the probe is 'httpGet', 'tcpSocket' or 'grpc': no program listens at the instant of its start.

There is no warning if the container has a startup probe, or a postStart hook, for which probes wait. The need of other containers is
not known: 'podstead simulate' prints the time that they have (START-UP).`,
		fix: `add a startup probe with the same handler. The liveness probe begins when it has succeeded:`,
		good: `[[containers]]
name = "app"
image = "app:1"
startupProbe = { httpGet = ":8080/healthz", failureThreshold = 7 }
livenessProbe = { httpGet = ":8080/healthz" }
readinessProbe = { httpGet = ":8080/healthz" }
`,
	},
	{
		code: "prestop-over-grace", what: "A preStop hook takes longer than the grace period",
		bad: `[[containers]]
name = "app"
image = "app:1"
lifecycle.preStop.exec = ["sh", "-c", "sleep 45; nginx -s quit"]
`,
		why: `The hook counts against the grace period. When that has passed, the hook is cancelled, and the container gets its stop ` +
			`signal and, 2
seconds later, SIGKILL. The warning compares 'terminationGracePeriodSeconds' of the pod, and of a liveness or a startup probe, with the
time that a hook takes at least: 'sleep', or a command that is 'sleep N', or a shell that runs 'sleep N' first. How long other commands
and requests take is not known. (A hook 'sleep' that is longer than the grace period of the pod is an error, as in Kubernetes.)`,
		fix: `the grace period covers the hook and the stop of the process:`,
		good: `terminationGracePeriodSeconds = 60

[[containers]]
name = "app"
image = "app:1"
lifecycle.preStop.exec = ["sh", "-c", "sleep 45; nginx -s quit"]
`,
	},
	{
		code: "grace-over-shutdown", what: "The host shuts down faster than the pod",
		bad: `terminationGracePeriodSeconds = 300

[[containers]]
name = "app"
image = "app:1"
`,
		why: `When the host shuts down, all pods together have 'pods.shutdownGracePeriod' of 'podstead.toml', 60 seconds by default. A ` +
			`container that
still runs is killed then, such as a database that writes its memory to the disk. The warning depends on the configuration of the host
on which 'validate' runs. systemd does not limit the time: the daemon extends 'TimeoutStopSec=' of its unit while pods stop, and so does
the unit of a pod ([The system service](../design/system-service.md#shutdown-of-the-host)).`,
		fix: `raise 'pods.shutdownGracePeriod' of the host, as the hint has it.`,
	},
	{
		code: "timeout-over-period", what: "A liveness or startup probe can last longer than its period",
		bad: `[[containers]]
name = "app"
image = "app:1"
livenessProbe = { httpGet = ":8080/healthz", periodSeconds = 5, timeoutSeconds = 20 }
`,
		why: `Attempts of a probe do not overlap. If each times out, the next one begins after it, and the period has no effect: a ` +
			`container that
hangs is noticed later than 'periodSeconds' suggests.

'''text
failureThreshold x timeoutSeconds = the time until the probe has failed
'''

The warning is for liveness and startup probes, whose failure stops the container, if the file sets 'timeoutSeconds'. A readiness probe
with a short period and a long timeout waits for a slow response, and does not stop anything.`,
		fix: `set a longer period, or a shorter timeout:`,
		good: `[[containers]]
name = "app"
image = "app:1"
livenessProbe = { httpGet = ":8080/healthz", periodSeconds = 20, timeoutSeconds = 20 }
`,
	},
	{
		code: "startup-order", what: "A startup probe waits for a container that waits for it",
		bad: `[[initContainers]]
name = "proxy"
image = "proxy:1"
restartPolicy = "Always"
startupProbe = { httpGet = ":8080/healthz" }

[[containers]]
name = "app"
image = "app:1"
ports = ["8080"]
`,
		why: `A sidecar has started when its startup probe has succeeded, and the containers after it start then. This probe connects ` +
			`to a port that
only such a container lists. So it fails, and the sidecar is restarted. A readiness probe of a sidecar does not delay other containers.`,
		fix: `probe the sidecar itself. What depends on both is a readiness probe:`,
		good: `[[initContainers]]
name = "proxy"
image = "proxy:1"
restartPolicy = "Always"
readinessProbe = { httpGet = ":8080/healthz" }

[[containers]]
name = "app"
image = "app:1"
ports = ["8080"]
`,
	},
	{
		code: "wait-unfulfilled", what: "'waitFor' has a condition that is never met",
		bad: `[[pods]]
name = "web"
waitFor = ["pod:db:ready", "pod:migrate:succeeded"]

[[pods.containers]]
name = "app"
image = "app:1"

[[pods]]
name = "migrate"

[[pods.containers]]
name = "app"
image = "app:1"
`,
		why: `A condition 'pod:NAME:succeeded' is never met if the pod restarts a container also after exit code 0. A condition for a ` +
			`pod that does
not exist is a warning if several pods are checked, in one file or in several, and neither they nor the pods of this host have the name.
A single pod can wait for one that is applied later. A pod with 'schedule' does not run itself, so no condition for it is met. Pods that
wait for each other are an error. 'plan' and 'apply' do not have this
warning.`,
		fix: `correct the name, and give the pod that must succeed a restart policy with which it terminates:`,
		good: `[[pods]]
name = "web"
waitFor = ["pod:migrate:succeeded"]

[[pods.containers]]
name = "app"
image = "app:1"

[[pods]]
name = "migrate"
restartPolicy = "OnFailure"

[[pods.containers]]
name = "app"
image = "app:1"
`,
	},
	{
		code: "liveness-without-restart", what: "A liveness probe ends the pod",
		bad: `restartPolicy = "Never"

[[containers]]
name = "app"
image = "app:1"
livenessProbe = { exec = ["check"] }
`,
		why: `A liveness probe is for a restart. With 'restartPolicy' 'Never' its failure stops the container for good, and the pod ` +
			`fails. A container
with 'restartPolicyRules' has no warning: they can restart it.`,
		fix: `if a hanging container is to be restarted:`,
		good: `restartPolicy = "OnFailure"

[[containers]]
name = "app"
image = "app:1"
livenessProbe = { exec = ["check"] }
`,
	},
	{
		code: "memory-volume-over-limit", what: "A volume in memory does not fit into the memory limit",
		bad: `[[containers]]
name = "app"
image = "app:1"
resources.limits.memory = "256Mi"
volumeMounts.cache = "/cache"

[volumes.cache]
emptyDir = { medium = "Memory", sizeLimit = "1Gi" }
`,
		why: `Files of an 'emptyDir' in memory count towards the memory limit of the container that writes them, and towards that of ` +
			`the pod. If
'sizeLimit' is larger than the limits of all containers that write to the volume, or than the limit of the pod, a container is
OOM-killed before the volume is full. A program that fills it gets no error "no space left on device", which it could handle.`,
		fix: `make the volume smaller than the limit by what the process needs:`,
		good: `[[containers]]
name = "app"
image = "app:1"
resources.limits.memory = "256Mi"
volumeMounts.cache = "/cache"

[volumes.cache]
emptyDir = { medium = "Memory", sizeLimit = "128Mi" }
`,
	},
	{
		code: "no-memory-limit", what: "A container can use all memory of the host",
		bad: `[[containers]]
name = "app"
image = "app:1"
`,
		why: `Without a limit, a leak in one container makes the kernel kill processes of any pod. Most files have no limits, which is ` +
			`right for a
host with one purpose, so this warning exists with '--strict' only. A limit of the pod ('resources.limits.memory' at the top level) is
the limit of each of its containers.`,
		fix: `set a limit:`,
		good: `[[containers]]
name = "app"
image = "app:1"
resources.limits.memory = "256Mi"
`,
	},
	{
		code: "low-port", what: "A process that is not root cannot listen on the port",
		bad: `hostNetwork = true

[[containers]]
name = "app"
image = "app:1"
ports = ["80"]
securityContext = { runAsUser = 1000, allowPrivilegeEscalation = false }
`,
		why: `In the network of the host, ports below 1024 are for root and for programs with CAP_NET_BIND_SERVICE. The warning needs ` +
			`all of these:

- the pod has 'hostNetwork', or sets the sysctl 'net.ipv4.ip_unprivileged_port_start' to a number above the port,
- the file sets another user than root, or 'runAsNonRoot',
- the program cannot have the capability by its file: 'allowPrivilegeEscalation' is false, or the capability is dropped.

In a pod with a network of its own, each user can listen on each port: Podstead sets the sysctl to 0 there.`,
		fix: `use another port, or the network of the pod with a host port:`,
		good: `[[containers]]
name = "app"
image = "app:1"
ports = ["80:80"]
securityContext = { runAsUser = 1000, allowPrivilegeEscalation = false }
`,
	},
	{
		code: "missing-program", what: "An image does not have the program of a probe or hook",
		bad: `[[containers]]
name = "app"
image = "app:1"
livenessProbe.exec = ["curl", "-f", "http://localhost:8080/healthz"]
`,
		why: `The command of a probe or hook runs in the container. If its program is missing there, it fails each time: a liveness ` +
			`probe restarts
the container forever, and a container with a readiness probe is never ready. The warning looks into the image as it is on this host: the
next pull may replace it. It needs the daemon and its socket with all rights. There is none if the image is not here or not unpacked, comes
from 'imageArchives', if a volume has the place of the program, or if the container sets 'PATH' or takes variables with 'envFrom'. What a
shell runs, as in '["sh", "-c", "curl ..."]', is not known. If the container creates the program when it starts, silence the warning.`,
		fix: `a probe of the daemon needs no program in the image:`,
		good: `[[containers]]
name = "app"
image = "app:1"
livenessProbe = { httpGet = ":8080/healthz" }
readinessProbe.exec = ["pg_isready"]
`,
	},
	{
		code: "command-in-one-string", what: "A command has only one element, with spaces",
		bad: `[[containers]]
name = "app"
image = "app:1"
command = ["nginx -g daemon"]
`,
		why: `A command is not run in a shell. Its first element is the name of the program, so that 'nginx -g daemon' is not found. ` +
			`The same holds
for commands of probes and hooks.`,
		fix: `write each word as an element:`,
		good: `[[containers]]
name = "app"
image = "app:1"
command = ["nginx", "-g", "daemon"]
`,
	},
	{
		code: "millibytes", what: "A number of bytes has a fraction",
		bad: `[[containers]]
name = "app"
image = "app:1"
resources.limits.memory = "100m"
`,
		why: `'m' is the suffix for thousandths, as in 'cpu = "100m"'. 100 thousandths of a byte are rounded up to one byte.`,
		fix: `'M' is for megabytes, 'Mi' for mebibytes:`,
		good: `[[containers]]
name = "app"
image = "app:1"
resources.limits.memory = "100Mi"
`,
	},
	{
		code: "latest-with-rollback", what: "An image changes without an update",
		bad: `[update]

[[containers]]
name = "app"
image = "registry.example/app"
`,
		why: `An image with the tag 'latest', which is the default, has the pull policy 'Always': each start of the container pulls the ` +
			`newest image
of the name, also a restart after a crash and the start after a reboot. Such a change is no update. So the table '[update]' neither
tests it nor rolls it back. An update of the file is rolled back to the image that ran before, also with this tag. Images from
'imageArchives' and other pull policies have no warning.`,
		fix: `give each version a tag, which makes its change an update:`,
		good: `[update]

[[containers]]
name = "app"
image = "registry.example/app:1.27"
`,
	},
	{
		code: "secret-readable", what: "Others can read the file of a secret",
		bad: `[[containers]]
name = "app"
image = "app:1"
secrets.db = "db.env"
`,
		why: `The file, 'db.env' with the mode 0644, has values of a secret. Other users of the host can read it.`,
		fix: `run 'chmod 600 db.env'.`,
	},
	{
		code: "unknown-code", what: "A comment silences a warning that does not exist",
		bad: `# podstead: allow low-prot
[[containers]]
name = "app"
image = "app:1"
`,
		why: `The code in the comment is misspelled, or is that of another version. A comment that silences nothing has no warning.`,
		fix: `use a code of this page.`,
	},
}

// warningsHead is the page before its sections.
const warningsHead = `# Warnings of pod files

A file can be valid and still not work well. 'podstead validate', 'plan' and 'apply' warn of it, with the arithmetic:

'''console
$ podstead validate web.toml
%s'''

Each warning has a code in its last parentheses, and a section on this page. A warning without a code is about a field that is ignored or
written in another way than it is meant.

- 'podstead validate --strict' makes warnings with a code errors: the exit code is 1.
- 'podstead validate -o json' prints 'file', 'line', 'column', 'path' (the field), 'message', 'hint' and 'code' of each problem, and for
  each file whether it is valid.
- Most warnings follow from the definition of the pod alone. 'grace-over-shutdown' uses the configuration of the host, 'secret-readable'
  the mode of a file, 'missing-program' the images of the host, and 'wait-unfulfilled' the other files and the pods of the host.
  [Test your pod files](../howto/test-your-pod-files.md) shows what 'podstead simulate' adds.

## Silence a warning

'''toml
%s'''

A comment 'podstead: allow CODE' in a TOML or YAML file silences a warning. It can have several codes, separated by commas, and a reason
after a second '#'. What it applies to depends on its place:

| place | silences the warnings of |
| --- | --- |
| beside a value, or on a line above it | the value and all that it contains, such as a container for a comment above '[[containers]]' or '- name: app' |
| above the first value of the file | the file |
| above the first value of a later document of a YAML stream | the document |

A comment beside a dotted key, such as 'resources.limits.memory', applies to the value of the key only.

A code that does not exist is [a warning itself](#unknown-code).

## Codes

| code | what it is about |
| --- | --- |
%s
## What has no warning

| case | reason |
| --- | --- |
| a grace period that is longer than 'TimeoutStopSec=' of 'podstead.service' | the daemon extends it while pods stop. See [grace-over-shutdown](#grace-over-shutdown) |
| a port below 1024 and a user other than root, in the network of the pod | each user can listen on each port there. See [low-port](#low-port) |
| a program that a shell of a probe runs, such as 'curl' in '["sh", "-c", "curl ..."]' | the program of a shell is not read |
| a preStop hook that sends a request, or runs another command than 'sleep' | its duration is not known |
| pods that wait for each other | it is an error |
| Compose files | 'podstead convert' writes a pod file, which can be validated |
`

// silencedExample is a pod file with comments that silence a warning.
const silencedExample = `# podstead: allow latest-with-rollback
[update]

[[containers]]
name = "app"
image = "registry.example/app"
livenessProbe = { exec = ["check"], periodSeconds = 1, timeoutSeconds = 5 } # podstead: allow timeout-over-period # it responds slowly

# podstead: allow millibytes, command-in-one-string
[[containers]]
name = "test"
image = "registry.example/test:1"
command = ["no such program"]
resources.limits.memory = "100m"
`

// warningsPage returns docs/reference/warnings.md. Each section has the output of its file, and its fix has no warning.
func warningsPage(t *testing.T) string {
	t.Helper()
	var b, codes strings.Builder
	var documented []string
	for i := range warnings {
		w := &warnings[i]
		documented = append(documented, w.code)
		command := "podstead validate web.toml"
		if w.code == spec.CodeNoMemoryLimit {
			command += " --strict"
		}
		codes.WriteString("| ['" + w.code + "'](#" + w.code + ") | " + lowerFirst(w.what) + " |\n")
		b.WriteString("\n## '" + w.code + "'\n\n" + w.what + ".\n\n" + fenced("toml", w.bad) +
			fenced("console", "$ "+command+"\n"+warningsOf(t, w.bad, w.code)) + w.why + "\n\nFix: " + w.fix + "\n")
		if w.good == "" {
			continue
		}
		b.WriteString("\n" + strings.TrimSuffix(fenced("toml", w.good), "\n"))
		if out := warningsOf(t, w.good, w.code); out != "web.toml: ok\n" && !strings.HasPrefix(out, "web.toml: ok (pods ") {
			t.Errorf("the fix of %s has problems:\n%s", w.code, out)
		}
	}
	slices.Sort(documented)
	if !slices.Equal(documented, spec.Codes()) {
		t.Errorf("the page has the codes %q, want %q", documented, spec.Codes())
	}
	if out := warningsOf(t, silencedExample, ""); out != "web.toml: ok\n" {
		t.Errorf("the example with comments has problems:\n%s", out)
	}
	head := fmt.Sprintf(strings.ReplaceAll(warningsHead, "'", "`"), warningsOf(t, warnings[0].bad, ""), silencedExample, codes.String())
	return strings.ReplaceAll(head+b.String(), "'", "`")
}

func fenced(language, text string) string { return "'''" + language + "\n" + text + "'''\n\n" }

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// warningsOf returns what podstead validate prints of web.toml on a host with the default configuration.
func warningsOf(t *testing.T, text, code string) string {
	t.Helper()
	dir := t.TempDir()
	env := filepath.Join(dir, "db.env")
	if err := os.WriteFile(env, []byte("A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(env, 0o644); err != nil {
		t.Fatal(err)
	}
	strict := code == spec.CodeNoMemoryLimit
	o := spec.Options{Lint: &spec.Lint{ShutdownGracePeriod: time.Minute, Strict: strict}}
	if code == spec.CodeMissingProgram {
		o.Lint.Programs = func(string, []string) (map[string]string, []string) {
			return map[string]string{"curl": "", "pg_isready": "/usr/bin/pg_isready"}, []string{"/usr/bin"}
		}
	}
	parts, problems := o.AcceptParts(filepath.Join(dir, "web.toml"), []byte(text))
	if len(problems.Errors()) == 0 {
		problems = append(problems, spec.LintWaits(parts, nil, len(parts) > 1)...)
	}
	for i := range problems {
		problems[i].Warning = problems[i].Warning && !strict
	}
	return strings.ReplaceAll(validated("web.toml", parts, problems), dir+"/", "")
}

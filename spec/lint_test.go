package spec_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/simulate"
)

// lintOptions are those of a strict check on a host with the default configuration.
var lintOptions = spec.Lint{ShutdownGracePeriod: time.Minute, Programs: withoutCurl}

// withoutCurl has an image app:1 that lacks curl, and no other image.
func withoutCurl(image string, names []string) (found map[string]string, search []string) {
	if image != "app:1" {
		return nil, nil
	}
	found = map[string]string{}
	for _, name := range names {
		if path.Base(name) == "curl" {
			found[name] = ""
		} else {
			found[name] = "/bin/" + path.Base(name)
		}
	}
	return found, []string{"/usr/bin", "/bin"}
}

// lint returns the warnings with a code of a file, each as "line: path: message (code)", and its pods.
func lint(t *testing.T, file, text string, o spec.Lint) ([]string, []*spec.Pod) {
	t.Helper()
	parts, problems := spec.Options{Lint: &o}.AcceptParts(file, []byte(text))
	if errs := problems.Errors(); len(errs) > 0 {
		t.Fatalf("%s: %v", file, errs)
	}
	var pods []*spec.Pod
	for i := range parts {
		pods = append(pods, parts[i].Pod)
	}
	return coded(append(problems, spec.LintWaits(parts, nil, len(parts) > 1)...)), pods
}

// coded returns the problems with a code.
func coded(problems spec.Problems) (list []string) {
	for _, p := range problems {
		if p.Code != "" {
			line := strings.TrimPrefix(p.String(), p.File+":")
			line, rest, _ := strings.Cut(line, ":")
			_, rest, _ = strings.Cut(rest, ":")
			list = append(list, line+":"+rest+" ("+p.Code+")")
		}
	}
	return list
}

// world simulates pods and returns what happened.
func world(t *testing.T, pods []*spec.Pod, s *simulate.Scenario) *simulate.Result {
	t.Helper()
	r, err := simulate.Pods(pods, simulate.Options{Scenario: s})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// runs is a scenario in which the only container of a pod does the same in each run.
func runs(container string, run simulate.ContainerRun, events ...simulate.Happening) *simulate.Scenario {
	return &simulate.Scenario{
		For: "1h", Containers: []simulate.Container{{Name: container, Runs: []simulate.ContainerRun{run}}}, Events: events,
	}
}

// count returns how many events of a kind there are.
func count(r *simulate.Result, kind api.EventKind) (n int) {
	for i := range r.Timeline {
		if r.Timeline[i].Kind == kind {
			n++
		}
	}
	return n
}

const (
	// head is that of a pod with a container.
	head = "name = \"web\"\n[[containers]]\nname = \"app\"\nimage = \"app:1\"\n"
	// toolsHead is that of a pod with a volume, which the container may mount with mountedTools.
	toolsHead = "volumes.tools.hostPath.path = \"/opt/tools\"\n" + head
	// sidecarHead is that of a pod with a sidecar and a container.
	sidecarHead = "name = \"web\"\n[[initContainers]]\nname = \"proxy\"\nimage = \"proxy:1\"\nrestartPolicy = \"Always\"\n"
)

func mountedTools(path string) string {
	return "volumeMounts = [{ name = \"tools\", mountPath = \"" + path + "\" }]"
}

// lintTests has, for each warning, a file that provokes it and one that just does not.
var lintTests = []struct {
	name      string
	bad, good string
	want      string // the warning of bad, as of lint
	// shows simulates a file and returns what is different; nil: nothing of it is simulated, see notSimulated.
	shows    func(t *testing.T, pods []*spec.Pod) any
	is, isOK any // what it returns for bad and good
	strict   bool
}{
	{
		name: "liveness: no time to start",
		bad:  head + `livenessProbe = { httpGet = ":80/", failureThreshold = 1 }`,
		good: head + `livenessProbe = { httpGet = ":80/", failureThreshold = 2 }`,
		want: "5: containers[0].livenessProbe: stops a container that does not listen at the instant of its start: initialDelaySeconds " +
			"0 + (failureThreshold 1 - 1) x periodSeconds 10 = 0s (liveness-before-start)",
		shows: func(t *testing.T, pods []*spec.Pod) any {
			return len(world(t, pods, runs("app", simulate.ContainerRun{ReadyAfter: "100ms"})).Pods[0].Restarts["app"]) > 10
		},
		is: true, isOK: false,
	},
	{
		name: "liveness: less than the readiness probe expects",
		bad: head + "livenessProbe = { exec = [\"check\"], initialDelaySeconds = 5, failureThreshold = 6 }\n" +
			`readinessProbe = { exec = ["check"], initialDelaySeconds = 56 }`,
		good: head + "livenessProbe = { exec = [\"check\"], initialDelaySeconds = 5, failureThreshold = 6 }\n" +
			`readinessProbe = { exec = ["check"], initialDelaySeconds = 55 }`,
		want: "5: containers[0].livenessProbe: stops a container that does not respond for 55s, while readinessProbe expects the first " +
			"response after 56s: initialDelaySeconds 5 + (failureThreshold 6 - 1) x periodSeconds 10 = 55s (liveness-before-start)",
		// The container responds when the readiness probe is run first.
		shows: func(t *testing.T, pods []*spec.Pod) any {
			delay := simulate.Duration(pods[0].Containers[0].ReadinessProbe.InitialDelaySeconds.Duration().String())
			r := world(t, pods, runs("app", simulate.ContainerRun{ReadyAfter: delay}))
			return len(r.Pods[0].Restarts["app"]) > 10 && len(r.Pods[0].Ready) == 0
		},
		is: true, isOK: false,
	},
	{
		name: "preStop: a command that sleeps",
		bad:  head + `lifecycle.preStop.exec = ["sh", "-c", "sleep 31; nginx -s quit"]`,
		good: head + `lifecycle.preStop.exec = ["sh", "-c", "sleep 29; nginx -s quit"]`,
		want: "5: containers[0].lifecycle.preStop: takes at least 31s, longer than terminationGracePeriodSeconds 30: it is cancelled " +
			"after 30s, and SIGKILL follows 2s after the stop signal (prestop-over-grace)",
		// The process exits at its stop signal.
		shows: func(t *testing.T, pods []*spec.Pod) any {
			command := pods[0].Containers[0].Lifecycle.PreStop.Exec.Command[2]
			takes := simulate.Duration(strings.Fields(strings.ReplaceAll(command, ";", "s"))[1])
			stop := simulate.Happening{At: "10m", Event: "stop"}
			return firstExit(world(t, pods, runs("app", simulate.ContainerRun{PreStopTakes: takes}, stop))).At - 10*time.Minute
		},
		is: 30 * time.Second, isOK: 29 * time.Second,
	},
	{
		name: "preStop: the grace period of a probe",
		bad: head + "lifecycle.preStop.sleep.seconds = 20\n" +
			`livenessProbe = { exec = ["check"], failureThreshold = 1, terminationGracePeriodSeconds = 19 }`,
		good: head + "lifecycle.preStop.sleep.seconds = 20\n" +
			`livenessProbe = { exec = ["check"], failureThreshold = 1, terminationGracePeriodSeconds = 20 }`,
		want: "6: containers[0].livenessProbe.terminationGracePeriodSeconds: the preStop hook takes at least 20s, longer than 19s: " +
			"after a failure of this probe it is cancelled, and SIGKILL follows 2s after the stop signal (prestop-over-grace)",
		// The probe at 10 minutes times out a second later. The process ignores the stop signal.
		shows: func(t *testing.T, pods []*spec.Pod) any {
			r := world(t, pods, runs("app", simulate.ContainerRun{HangsAfter: "595s", PreStopTakes: "20s", IgnoresStop: true}))
			return firstExit(r).At - 10*time.Minute - time.Second
		},
		is: 21 * time.Second, isOK: 22 * time.Second,
	},
	{
		name: "grace period: longer than the shutdown of the host",
		bad:  "terminationGracePeriodSeconds = 61\n" + head,
		good: "terminationGracePeriodSeconds = 60\n" + head,
		want: "1: terminationGracePeriodSeconds: 61s is longer than pods.shutdownGracePeriod of this host: when the host shuts down, " +
			"all pods have 60s together (grace-over-shutdown)",
		// The container uses its grace period but for half a second.
		shows: func(t *testing.T, pods []*spec.Pod) any {
			takes := simulate.Duration((pods[0].TerminationGracePeriodSeconds.Duration() - time.Second/2).String())
			reboot := simulate.Happening{At: "10m", Event: "reboot"}
			return firstExit(world(t, pods, runs("app", simulate.ContainerRun{StopTakes: takes}, reboot))).Fields["code"]
		},
		is: "137", isOK: "143",
	},
	{
		name: "probe: timeout longer than the period",
		bad:  head + `livenessProbe = { httpGet = ":80/", periodSeconds = 5, timeoutSeconds = 20 }`,
		good: head + `livenessProbe = { httpGet = ":80/", periodSeconds = 5, timeoutSeconds = 5 }`,
		want: "5: containers[0].livenessProbe.timeoutSeconds: a probe that times out lasts 20s, longer than periodSeconds 5, and the " +
			"next one begins after it: a container that does not respond fails the probe after failureThreshold 3 x timeoutSeconds 20 = " +
			"60s (timeout-over-period)",
		// From the first probe that hangs. The worst case begins directly after the probe before that.
		shows: func(t *testing.T, pods []*spec.Pod) any {
			limits, err := simulate.WorstCases(pods[0])
			if err != nil {
				t.Fatal(err)
			}
			return limits[0].Hang - 5*time.Second
		},
		is: 60 * time.Second, isOK: 15 * time.Second,
	},
	{
		name: "probe: a period that is shorter than the default timeout",
		bad:  head + `startupProbe = { httpGet = ":80/", periodSeconds = 0.5, timeoutSeconds = 1 }`,
		good: head + `startupProbe = { httpGet = ":80/", periodSeconds = 0.5 }`,
		want: "5: containers[0].startupProbe.timeoutSeconds: a probe that times out lasts 1s, longer than periodSeconds 0.5, and the " +
			"next one begins after it: a container that does not respond fails the probe after failureThreshold 3 x timeoutSeconds 1 = " +
			"3s (timeout-over-period)",
	},
	{
		name: "probe: a readiness probe that waits for a slow response",
		bad:  head + `livenessProbe = { httpGet = ":80/", periodSeconds = 5, timeoutSeconds = 5.5, failureThreshold = 2 }`,
		good: head + `readinessProbe = { httpGet = ":80/", periodSeconds = 5, timeoutSeconds = 5.5, failureThreshold = 2 }`,
		want: "5: containers[0].livenessProbe.timeoutSeconds: a probe that times out lasts 5.5s, longer than periodSeconds 5, and the " +
			"next one begins after it: a container that does not respond fails the probe after failureThreshold 2 x timeoutSeconds 5.5 " +
			"= 11s (timeout-over-period)",
	},
	{
		name: "startup probe: a port of a later container",
		bad:  sidecarHead + "startupProbe = { tcpSocket = 8080 }\n[[containers]]\nname = \"app\"\nimage = \"app:1\"\nports = [\"8080\"]",
		good: sidecarHead + "readinessProbe = { tcpSocket = 8080 }\n[[containers]]\nname = \"app\"\nimage = \"app:1\"\nports = [\"8080\"]",
		want: `6: initContainers[0].startupProbe: port 8080 is that of container "app", which does not start before this probe has ` +
			`succeeded (startup-order)`,
		// The probe fails while the container does not run.
		shows: func(t *testing.T, pods []*spec.Pod) any {
			r := world(t, pods, runs("proxy", simulate.ContainerRun{ReadyAfter: "1000h"}))
			return slices.ContainsFunc(r.Timeline, func(e simulate.Entry) bool {
				return e.Kind == api.EventContainerStarted && e.Container == "app"
			})
		},
		is: false, isOK: true,
	},
	{
		name: "waitFor: no such pod",
		bad:  "[[pods]]\nname = \"web\"\nwaitFor = [\"pod:db:ready\"]\n" + podOf("web") + "[[pods]]\nname = \"dbs\"\n" + podOf("dbs"),
		good: "[[pods]]\nname = \"web\"\nwaitFor = [\"pod:db:ready\"]\n" + podOf("web") + "[[pods]]\nname = \"db\"\n" + podOf("db"),
		want: `3: pods.web.waitFor[0]: there is no pod "db" in these files or on this host (wait-unfulfilled)`,
		shows: func(t *testing.T, pods []*spec.Pod) any {
			return len(world(t, pods, &simulate.Scenario{For: "24h"}).Pods[0].Ready) > 0
		},
		is: false, isOK: true,
	},
	{
		name: "waitFor: the success of a pod that does not terminate",
		bad: "[[pods]]\nname = \"web\"\nwaitFor = [\"pod:init:succeeded\"]\n" + podOf("web") +
			"[[pods]]\nname = \"init\"\n" + podOf("init"),
		good: "[[pods]]\nname = \"web\"\nwaitFor = [\"pod:init:succeeded\"]\n" + podOf("web") +
			"[[pods]]\nname = \"init\"\nrestartPolicy = \"OnFailure\"\n" + podOf("init"),
		want: `3: pods.web.waitFor[0]: pod "init" never succeeds: restartPolicy Always starts its container "of-init" again ` +
			`(wait-unfulfilled)`,
		shows: func(t *testing.T, pods []*spec.Pod) any {
			s := runs("of-init", simulate.ContainerRun{Lasts: "1s"})
			s.For = "24h"
			return len(world(t, pods, s).Pods[0].Ready) > 0
		},
		is: false, isOK: true,
	},
	{
		name: "liveness: no restart",
		bad:  "restartPolicy = \"Never\"\n" + head + `livenessProbe = { exec = ["check"] }`,
		good: "restartPolicy = \"OnFailure\"\n" + head + `livenessProbe = { exec = ["check"] }`,
		want: "6: containers[0].livenessProbe: a failure stops the container, and restartPolicy Never does not start it again: the pod " +
			"fails (liveness-without-restart)",
		shows: func(t *testing.T, pods []*spec.Pod) any {
			return world(t, pods, runs("app", simulate.ContainerRun{HangsAfter: "10m"})).Pods[0].Status.Phase
		},
		is: lifecycle.PhaseFailed, isOK: lifecycle.PhaseRunning,
	},
	{
		name: "volume in memory: larger than the limit of what writes to it",
		bad: head + "resources.limits.memory = \"64Mi\"\nvolumeMounts.cache = \"/cache\"\n" +
			"[volumes.cache]\nemptyDir = { medium = \"Memory\", sizeLimit = \"65Mi\" }",
		good: head + "resources.limits.memory = \"64Mi\"\nvolumeMounts.cache = \"/cache\"\n" +
			"[volumes.cache]\nemptyDir = { medium = \"Memory\", sizeLimit = \"64Mi\" }",
		want: `8: volumes.cache.emptyDir.sizeLimit: 65Mi is larger than the memory limit of container "app", 64Mi: its files count ` +
			`towards the limit, so that a container is out of memory before the volume is full (memory-volume-over-limit)`,
	},
	{
		name: "volume in memory: larger than the limits of several",
		bad: head + "resources.limits.memory = \"64Mi\"\nvolumeMounts.cache = \"/cache\"\n" +
			"[[containers]]\nname = \"other\"\nimage = \"other:1\"\nresources.limits.memory = \"1Mi\"\nvolumeMounts.cache = \"/cache\"\n" +
			"[volumes.cache]\nemptyDir = { medium = \"Memory\", sizeLimit = \"66Mi\" }",
		good: head + "resources.limits.memory = \"64Mi\"\nvolumeMounts.cache = \"/cache\"\n" +
			"[[containers]]\nname = \"other\"\nimage = \"other:1\"\nvolumeMounts.cache = \"/cache\"\n" +
			"[volumes.cache]\nemptyDir = { medium = \"Memory\", sizeLimit = \"66Mi\" }",
		want: "13: volumes.cache.emptyDir.sizeLimit: 66Mi is larger than the memory limits of the containers that write to it, 64Mi + " +
			"1Mi = 65Mi: its files count towards the limit, so that a container is out of memory before the volume is full " +
			"(memory-volume-over-limit)",
	},
	{
		name: "volume in memory: larger than the limit of the pod",
		bad: "resources.limits.memory = \"64Mi\"\n" + head + "volumeMounts.cache = \"/cache\"\n" +
			"[volumes.cache]\nemptyDir = { medium = \"Memory\", sizeLimit = \"65Mi\" }",
		good: "resources.limits.memory = \"64Mi\"\n" + head + "volumeMounts.cache = { mountPath = \"/cache\", readOnly = true }\n" +
			"[volumes.cache]\nemptyDir = { medium = \"Memory\", sizeLimit = \"65Mi\" }",
		want: "8: volumes.cache.emptyDir.sizeLimit: 65Mi is larger than the memory limit of the pod, 64Mi: its files count towards the " +
			"limit, so that a container is out of memory before the volume is full (memory-volume-over-limit)",
	},
	{
		name: "no memory limit", strict: true,
		bad:  head,
		good: head + "resources.limits.memory = \"64Mi\"",
		want: "2: containers[0]: has no memory limit: it can use all memory of the host (no-memory-limit)",
	},
	{
		name: "no memory limit of the pod", strict: true,
		bad:  "resources.limits.cpu = 1\n" + head,
		good: "resources.limits.memory = \"64Mi\"\n" + head,
		want: "3: containers[0]: has no memory limit: it can use all memory of the host (no-memory-limit)",
	},
	{
		name: "low port on the host",
		bad: "hostNetwork = true\n" + head + "ports = [\"1023\"]\n" +
			"securityContext = { runAsUser = 1000, allowPrivilegeEscalation = false }",
		good: "hostNetwork = true\n" + head + "ports = [\"1024\"]\n" +
			"securityContext = { runAsUser = 1000, allowPrivilegeEscalation = false }",
		want: "6: containers[0].ports[0]: only root can listen on port 1023, below 1024, net.ipv4.ip_unprivileged_port_start, and the " +
			"container neither runs as root nor can get CAP_NET_BIND_SERVICE (low-port)",
	},
	{
		name: "low port by a sysctl",
		bad: "securityContext = { runAsNonRoot = true, sysctls = [{ name = \"net/ipv4/ip_unprivileged_port_start\", value = \"81\" }] }\n" +
			head + "ports = [{ containerPort = 80 }]\nsecurityContext.capabilities.drop = [\"ALL\"]",
		good: "securityContext.runAsNonRoot = true\n" + head +
			"ports = [{ containerPort = 80 }]\nsecurityContext.capabilities.drop = [\"ALL\"]",
		want: "6: containers[0].ports[0].containerPort: only root can listen on port 80, below 81, net.ipv4.ip_unprivileged_port_start, " +
			"and the container neither runs as root nor can get CAP_NET_BIND_SERVICE (low-port)",
	},
	{
		name: "low port: a capability of the file",
		bad: "hostNetwork = true\n" + head + "ports = [\"80\"]\n" +
			"securityContext = { runAsUser = 1, capabilities.drop = [\"NET_BIND_SERVICE\"] }",
		good: "hostNetwork = true\n" + head + "ports = [\"80\"]\nsecurityContext.runAsUser = 1",
		want: "6: containers[0].ports[0]: only root can listen on port 80, below 1024, net.ipv4.ip_unprivileged_port_start, and the " +
			"container neither runs as root nor can get CAP_NET_BIND_SERVICE (low-port)",
	},
	{
		name: "a command in one string",
		bad:  head + `command = ["nginx -g daemon"]`,
		good: head + `command = ["nginx"]`,
		want: "5: containers[0].command[0]: the program has this whole line as its name (command-in-one-string)",
	},
	{
		name: "millibytes",
		bad:  head + `resources.limits.memory = "100m"`,
		good: head + `resources.limits.memory = "100M"`,
		want: `5: containers[0].resources.limits.memory: fractional byte value "100m" is invalid, must be an integer (millibytes)`,
	},
	{
		name: "program: missing in the image",
		bad:  head + `livenessProbe.exec = ["curl", "-f", "localhost:80"]`,
		good: head + `livenessProbe.httpGet = ":80/"`,
		want: "5: containers[0].livenessProbe: runs \"curl\", which image \"app:1\", as it is on this host, does not " +
			"have (missing-program)",
		// The container responds to all requests. A command whose program is missing fails, as that of a container that never responds.
		shows: func(t *testing.T, pods []*spec.Pod) any {
			var run simulate.ContainerRun
			if exec := pods[0].Containers[0].LivenessProbe.Exec; exec != nil {
				if found, _ := withoutCurl("app:1", exec.Command[:1]); found[exec.Command[0]] == "" {
					run.ReadyAfter = "2h"
				}
			}
			return len(world(t, pods, runs("app", run)).Pods[0].Restarts["app"]) > 10
		},
		is: true, isOK: false,
	},
	{
		name: "program: of a hook, by its path",
		bad:  toolsHead + `lifecycle.postStart.exec = ["/opt/tools/curl", "http://registry.example"]`,
		good: toolsHead + "lifecycle.postStart.exec = [\"/opt/tools/curl\", \"http://registry.example\"]\n" + mountedTools("/opt/tools"),
		want: "6: containers[0].lifecycle.postStart: runs \"/opt/tools/curl\", which image \"app:1\", as it is on this host, does not " +
			"have (missing-program)",
	},
	{
		name: "program: in another directory",
		bad:  head + "env.PATHS = \"/tools\"\n" + `readinessProbe.exec = ["curl", "localhost"]`,
		good: head + "env.PATH = \"/tools\"\n" + `readinessProbe.exec = ["curl", "localhost"]`,
		want: "6: containers[0].readinessProbe: runs \"curl\", which image \"app:1\", as it is on this host, does not " +
			"have (missing-program)",
	},
	{
		name: "program: a volume beside the directories",
		bad:  toolsHead + "startupProbe.exec = [\"curl\", \"localhost\"]\n" + mountedTools("/usr/binary"),
		good: toolsHead + "startupProbe.exec = [\"curl\", \"localhost\"]\n" + mountedTools("/usr"),
		want: "6: containers[0].startupProbe: runs \"curl\", which image \"app:1\", as it is on this host, does not " +
			"have (missing-program)",
	},
	{
		name: "program: a volume below the directories",
		bad:  toolsHead + "startupProbe.exec = [\"/bin/curl\", \"localhost\"]\n" + mountedTools("/binary"),
		good: toolsHead + "startupProbe.exec = [\"/bin/curl\", \"localhost\"]\n" + mountedTools("/bin/curl"),
		want: "6: containers[0].startupProbe: runs \"/bin/curl\", which image \"app:1\", as it is on this host, does not " +
			"have (missing-program)",
	},
	{
		name: "program: a file that is mounted in the root directory",
		bad:  toolsHead + `startupProbe.exec = ["/curl", "localhost"]`,
		good: toolsHead + "startupProbe.exec = [\"/curl\", \"localhost\"]\n" + mountedTools("/curl"),
		want: "6: containers[0].startupProbe: runs \"/curl\", which image \"app:1\", as it is on this host, does not have " +
			"(missing-program)",
	},
	{
		name: "program: a variable",
		bad:  head + "env.TOOL = \"curl\"\n" + `startupProbe.exec = ["$(TOOL)", "localhost"]`,
		good: head + "env.TOOL = \"sh\"\n" + `startupProbe.exec = ["$(TOOL)", "localhost"]`,
		want: "6: containers[0].startupProbe: runs \"curl\", which image \"app:1\", as it is on this host, does not have " +
			"(missing-program)",
	},
	{
		name: "program: an unknown variable",
		bad:  head + `startupProbe.exec = ["curl", "localhost"]`,
		good: head + `startupProbe.exec = ["/opt/$(TOOL)/curl", "localhost"]`,
		want: "5: containers[0].startupProbe: runs \"curl\", which image \"app:1\", as it is on this host, does not have " +
			"(missing-program)",
	},
	{
		name: "program: variables of a source",
		bad:  head + "envFrom = [{ secretRef.name = \"tools\" }]\n" + `startupProbe.exec = ["/bin/curl", "localhost"]`,
		good: head + "envFrom = [{ secretRef.name = \"tools\" }]\n" + `startupProbe.exec = ["curl", "localhost"]`,
		want: "6: containers[0].startupProbe: runs \"/bin/curl\", which image \"app:1\", as it is on this host, does not have " +
			"(missing-program)",
	},
	{
		name: "program: of an image that is not here",
		bad:  head + `readinessProbe.exec = ["/usr/bin/curl", "localhost"]`,
		good: strings.ReplaceAll(head, "app:1", "app:2") + `readinessProbe.exec = ["/usr/bin/curl", "localhost"]`,
		want: "5: containers[0].readinessProbe: runs \"/usr/bin/curl\", which image \"app:1\", as it is on this host, does not " +
			"have (missing-program)",
	},
	{
		name: "program: an image of an archive",
		bad:  head + `readinessProbe.exec = ["/usr/bin/curl", "localhost"]`,
		good: "imageArchives = [\"app.tar\"]\n" + head + `readinessProbe.exec = ["/usr/bin/curl", "localhost"]`,
		want: "5: containers[0].readinessProbe: runs \"/usr/bin/curl\", which image \"app:1\", as it is on this host, does not " +
			"have (missing-program)",
	},
	{
		name: "latest with rollback",
		bad:  "[update]\n[[containers]]\nname = \"app\"\nimage = \"app\"",
		good: "[update]\n[[containers]]\nname = \"app\"\nimage = \"app\"\nimagePullPolicy = \"IfNotPresent\"",
		want: "4: containers[0].image: is pulled at each start: a restart can change the image without a rollback (latest-with-rollback)",
		// The container restarts once. The registry is asked for its image at each start.
		shows: func(t *testing.T, pods []*spec.Pod) any {
			r := world(t, pods, runs("app", simulate.ContainerRun{}, simulate.Happening{At: "10m", Event: "restart", Container: "app"}))
			return count(r, api.EventImagePulling)
		},
		is: 2, isOK: 1,
	},
	{
		name: "latest without rollback",
		bad:  "[update]\n[[containers]]\nname = \"app\"\nimage = \"app:latest\"",
		good: "[update]\nonFailure = \"keep\"\n[[containers]]\nname = \"app\"\nimage = \"app:latest\"",
		want: "4: containers[0].image: is pulled at each start: a restart can change the image without a rollback (latest-with-rollback)",
	},
	{
		name: "unknown code in a comment",
		bad:  "# podstead: allow liveness-befor-start\n" + head,
		good: "# podstead: allow liveness-before-start\n" + head,
		want: `1: there is no warning "liveness-befor-start" (unknown-code)`,
	},
}

// podOf is the container of a pod in a file with several.
func podOf(name string) string {
	return "[[pods.containers]]\nname = \"of-" + name + "\"\nimage = \"app:1\"\n"
}

// notSimulated has the warnings whose claims no simulation shows, and what shows them. A simulation has no kernel.
var notSimulated = map[string]string{
	spec.CodeMemoryVolumeOverLimit: onContainers, spec.CodeNoMemoryLimit: onContainers, spec.CodeLowPort: onContainers,
	spec.CodeCommandInOneString: onContainers, spec.CodeMillibytes: onContainers,
	spec.CodeSecretReadable: "the mode of a file, as in inode(7)",
	spec.CodeUnknownCode:    "nothing happens to the pod",
}

const onContainers = "TestE2EScripts/warnings of cmd/podstead"

// firstExit returns the first exit with a code other than 0.
func firstExit(r *simulate.Result) simulate.Entry {
	i := slices.IndexFunc(r.Timeline, func(e simulate.Entry) bool { return e.Kind == api.EventContainerFailed })
	if i < 0 {
		return simulate.Entry{}
	}
	return r.Timeline[i]
}

// TestLint checks each warning: its text, and that what it claims happens to the file that provokes it and not to the other one.
func TestLint(t *testing.T) {
	covered, shown := map[string]bool{}, map[string]bool{}
	for _, test := range lintTests {
		t.Run(test.name, func(t *testing.T) {
			o := lintOptions
			o.Strict = test.strict
			got, bad := lint(t, "/pods/web.toml", test.bad, o)
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			none, good := lint(t, "/pods/web.toml", test.good, o)
			if len(none) > 0 {
				t.Errorf("the file that is right: %q", none)
			}
			_, code, _ := strings.Cut(strings.TrimSuffix(test.want, ")"), " (")
			code = code[strings.LastIndex(code, "(")+1:]
			covered[code] = true
			if test.shows == nil {
				return
			}
			shown[code] = true
			if is, isOK := test.shows(t, bad), test.shows(t, good); is != test.is || isOK != test.isOK {
				t.Errorf("the simulation shows %v, and %v of the file that is right; want %v and %v", is, isOK, test.is, test.isOK)
			}
		})
	}
	covered[spec.CodeSecretReadable] = true // TestSecretReadable
	for _, code := range spec.Codes() {
		if !covered[code] {
			t.Errorf("no test for %s", code)
		}
		if elsewhere := notSimulated[code]; shown[code] == (elsewhere != "") {
			t.Errorf("%s: simulated %v, shown by %q", code, shown[code], elsewhere)
		}
	}
	if codes := spec.Codes(); !slices.IsSorted(codes) || len(codes) != len(covered) {
		t.Errorf("%d codes, %d in tests: %q", len(codes), len(covered), codes)
	}
}

// TestSecretReadable checks the mode of the file of a secret.
func TestSecretReadable(t *testing.T) {
	env := filepath.Join(t.TempDir(), "db.env")
	if err := os.WriteFile(env, []byte("A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := head + "secrets.db = \"" + env + "\"\n"
	if got, _ := lint(t, "/pods/web.toml", text, lintOptions); len(got) > 0 {
		t.Errorf("mode 0600: %q", got)
	}
	if err := os.Chmod(env, 0o604); err != nil {
		t.Fatal(err)
	}
	want := []string{"5: containers[0].secrets.db: the secret is accessible to group or others (mode 0604) (secret-readable)"}
	if got, _ := lint(t, "/pods/web.toml", text, lintOptions); !slices.Equal(got, want) {
		t.Errorf("mode 0604: %q, want %q", got, want)
	}
}

// TestLintNumbers checks that large numbers have no exponent, which the configuration does not accept, and that no hint has one that a
// field does not accept.
func TestLintNumbers(t *testing.T) {
	for _, test := range []struct{ text, message, hint string }{
		{
			"terminationGracePeriodSeconds = 2592000\n" + head,
			"2592000s is longer than pods.shutdownGracePeriod of this host: when the host shuts down, all pods have 60s together",
			`set shutdownGracePeriod = "2592000s" in [pods] of podstead.toml`,
		},
		{
			head + "lifecycle.preStop.exec = [\"sleep\", \"30d\"]\n",
			"takes at least 2592000s, longer than terminationGracePeriodSeconds 30: it is cancelled after 30s, and SIGKILL follows 2s " +
				"after the stop signal",
			"set terminationGracePeriodSeconds to more than 2592000",
		},
		{
			head + "lifecycle.preStop.exec = [\"sleep\", \"2147483647d\"]\n",
			"takes at least 2147483647s, longer than terminationGracePeriodSeconds 30: it is cancelled after 30s, and SIGKILL follows 2s " +
				"after the stop signal",
			"shorten the hook",
		},
		{
			head + "livenessProbe = { tcpSocket = 80, periodSeconds = 1000000, " +
				"timeoutSeconds = 2147483647, failureThreshold = 2147483647 }\n",
			"a probe that times out lasts 2147483647s, longer than periodSeconds 1000000, and the next one begins after it: a container " +
				"that does not respond fails the probe after failureThreshold 2147483647 x timeoutSeconds 2147483647 = " +
				"4611686014132420600s",
			"set timeoutSeconds to at most periodSeconds",
		},
		{
			head + "livenessProbe = { tcpSocket = 80, periodSeconds = 1000000 }\n" +
				"readinessProbe = { tcpSocket = 80, initialDelaySeconds = 1000000000 }\n",
			"stops a container that does not respond for 2000000s, while readinessProbe expects the first response after 1000000000s: " +
				"initialDelaySeconds 0 + (failureThreshold 3 - 1) x periodSeconds 1000000 = 2000000s",
			"add a startupProbe with the same handler and failureThreshold 100000001",
		},
		{
			"terminationGracePeriodSeconds = 1000000\n" + head + "lifecycle.preStop.sleep.seconds = 2000000\n",
			"must be less than or equal to terminationGracePeriodSeconds (1000000)", "",
		},
	} {
		_, problems := spec.Options{Lint: &lintOptions}.ParseParts("/pods/web.toml", []byte(test.text))
		if len(problems) != 1 || problems[0].Message != test.message || problems[0].Hint != test.hint {
			t.Errorf("%+v\nwant\n%s\nhint: %s", problems, test.message, test.hint)
		}
	}
}

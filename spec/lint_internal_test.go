package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSleeps checks what is known of how long a command takes.
func TestSleeps(t *testing.T) {
	for _, test := range []struct {
		command string // with ~ between the arguments
		want    Seconds
	}{
		{"sleep~45", 45},
		{"/bin/sleep~0.5", 0.5},
		{"sleep~1m", 60},
		{"sleep~2h~1d", 2*60*60 + 24*60*60},
		{"sleep~1~2s", 3},
		{"sleep~2147483647d", maxSeconds},
		{"sleep~2147483647~1", maxSeconds},
		{"sh~-c~sleep 45", 45},
		{"/bin/bash~-c~  sleep 20 && kill 1", 20},
		{"sh~-c~sleep 5\nexit", 5},
		{"sh~-c~sleep 5 | cat", 5},
		{"sleep", 0},
		{"sleep~", 0},
		{"sleep~x", 0},
		{"sleep~-1", 0},
		{"sleep~infinity", 0},
		{"sleep~nan", 0},
		{"sleep~5x", 0},
		{"sleep~ms", 0},
		{"sleep~1e300", 0},
		{"sleep~$N", 0},
		{"sh~-c~sleep 45 &", 0},
		{"sh~-c~sleep 45 & wait", 0},
		{"sh~-c~kill 1; sleep 45", 0},
		{"sh~-c~if sleep 45", 0},
		{"sh~-c~", 0},
		{"sh~sleep 45", 0},
		{"sh~-x~sleep 45", 0},
		{"python~-c~sleep 45", 0},
		{"sleeper~45", 0},
		{"sh~-c~sleep 45 >/dev/null", 0},
		{"sleep 45", 0},
	} {
		if got := sleeps(strings.Split(test.command, "~")); got != test.want {
			t.Errorf("%q sleeps %v, want %v", test.command, got, test.want)
		}
	}
}

// TestLintNone has pods that have no warning, beside those of TestLint that just do not.
func TestLintNone(t *testing.T) {
	const fast = "livenessProbe = { httpGet = \":80/\", failureThreshold = 1 }\n"
	app := func(lines string) string { return "[[containers]]\nname = \"app\"\nimage = \"app:1\"\n" + lines }
	sidecar := func(probe, rest string) string {
		return "[[initContainers]]\nname = \"side\"\nimage = \"side:1\"\nrestartPolicy = \"Always\"\nstartupProbe = { " + probe + " " +
			"}\n" + rest +
			app("ports = [\"80\", \"81/udp\"]\n")
	}
	inMemory := "[volumes.v]\nemptyDir = { medium = \"Memory\", sizeLimit = \"1Gi\" }\n"
	bound := "hostNetwork = true\n" + app("ports = [\"80\"]\n")
	for i, text := range []string{
		// liveness-before-start
		app(fast + "startupProbe.httpGet = \":80/\"\n"),
		app(fast + "lifecycle.postStart.exec = [\"warm-up\"]\n"),
		app("livenessProbe = { exec = [\"true\"], failureThreshold = 1 }\n"),
		app("livenessProbe = { tcpSocket = { port = 80, host = \"db.example\" }, failureThreshold = 1 }\n"),
		app("livenessProbe = { httpGet = \":80/live\" }\nreadinessProbe = { httpGet = \":80/ready\", initialDelaySeconds = 600 }\n"),
		app("livenessProbe = { httpGet = \":80/\" }\nreadinessProbe = { httpGet = \":80/\", initialDelaySeconds = 20 }\n"),
		// liveness-without-restart
		"restartPolicy = \"Never\"\n" + app("restartPolicy = \"OnFailure\"\nlivenessProbe.exec = [\"check\"]\n"),
		"restartPolicy = \"Never\"\n" + app("restartPolicy = \"Never\"\nlivenessProbe.exec = [\"check\"]\n"+
			"restartPolicyRules = [{ action = \"Restart\", exitCodes = { operator = \"In\", values = [137] } }]\n"),
		"restartPolicy = \"Never\"\n" + app("readinessProbe.exec = [\"check\"]\nstartupProbe.exec = [\"check\"]\n"),
		// startup-order
		sidecar("exec = [\"check\"]", ""),
		sidecar("tcpSocket = { port = 80, host = \"10.0.0.1\" }", ""),
		sidecar("tcpSocket = 80", "ports = [\"80\"]\n"),
		sidecar("tcpSocket = \"web\"", "ports = [{ name = \"web\", containerPort = 8080 }]\n"),
		sidecar("grpc = 81", ""), // UDP
		sidecar("grpc = 82", ""),
		// memory-volume-over-limit
		app("volumeMounts.v = \"/v\"\n") + inMemory,
		app("resources.limits.memory = \"64Mi\"\n") + inMemory,
		app("resources.limits.memory = \"64Mi\"\nvolumeMounts.v = { mountPath = \"/v\", readOnly = true }\n") + inMemory,
		app("resources.limits.memory = \"64Mi\"\nvolumeMounts.v = \"/v\"\n") + "[volumes.v]\nemptyDir.medium = \"Memory\"\n",
		app("resources.limits.memory = \"64Mi\"\nvolumeMounts.v = \"/v\"\n") + "[volumes.v]\nemptyDir.sizeLimit = \"1Gi\"\n",
		// low-port
		bound,
		bound + "securityContext.runAsUser = 0\n",
		bound + "securityContext = { runAsNonRoot = true }\n",
		bound + "securityContext = { runAsUser = 1000, capabilities = { drop = [\"ALL\"], add = [\"NET_BIND_SERVICE\"] } }\n",
		"securityContext.runAsUser = 1000\n" + bound + "securityContext = { runAsUser = 0, allowPrivilegeEscalation = false }\n",
		"securityContext.runAsNonRoot = true\n" + bound + "securityContext = { runAsNonRoot = false, allowPrivilegeEscalation = false }\n",
		// latest-with-rollback
		app(""), "[update]\n" + app(""),
		"[update]\n[[containers]]\nname = \"app\"\nimage = \"app@sha256:" + strings.Repeat("a", 64) + "\"\n",
		"imageArchives = [\"app.tar\"]\n[update]\n[[containers]]\nname = \"app\"\nimage = \"app\"\n",
		// prestop-over-grace
		app("lifecycle.preStop.sleep.seconds = 30\n"),
		"terminationGracePeriodSeconds = 0\n" + app("lifecycle.preStop.exec = [\"sleep\", \"1\"]\n"),
		app("lifecycle.postStart.exec = [\"sleep\", \"600\"]\n"),
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			parts, problems := Options{Lint: &Lint{ShutdownGracePeriod: time.Minute}}.ParseParts("/pods/web.toml", []byte(text))
			if len(parts) == 0 || len(problems) > 0 {
				t.Errorf("%v\n%s", problems, text)
			}
			if waits := LintWaits(parts, nil, true); len(waits) > 0 {
				t.Errorf("%v\n%s", waits, text)
			}
		})
	}
}

// TestLintOfInvalidFile checks that the warnings of an invalid file are those that it had without Lint: what is computed from invalid
// values would be wrong.
func TestLintOfInvalidFile(t *testing.T) {
	text := "restartPolicy = \"never\"\nname = \"web\"\n[[containers]]\nname = \"app\"\nimage = \"app:1\"\ncommand = [\"a b\"]\n" +
		"livenessProbe = { httpGet = \":80/\", failureThreshold = 1 }\n"
	_, want := Options{}.ParseParts("/pods/web.toml", []byte(text))
	_, got := Options{Lint: &Lint{}}.ParseParts("/pods/web.toml", []byte(text))
	if len(want.Errors()) == 0 || !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

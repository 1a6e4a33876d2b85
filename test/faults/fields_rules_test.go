//go:build e2e

package faults

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

// TestFieldsRules: a container's rules take precedence over its restart policy, and that over the pod's.
//
// fields: containers[].restartPolicy, containers[].restartPolicyRules[].{action,exitCodes.operator,exitCodes.values}
func TestFieldsRules(t *testing.T) {
	f := newFixture(t)
	for i, test := range []struct {
		pod, fields, codes string
		starts, exitCode   int
	}{
		{"Never", `restartPolicy = "OnFailure"`, "1 2 0", 3, 0},
		{"Always", `restartPolicy = "Never"`, "1 1", 1, 1},
		{"Always", `restartPolicy = "Never"
			restartPolicyRules = [{ action = "Restart", exitCodes = { operator = "In", values = [42, 43] } }]`, "42 43 7 0", 3, 1},
		{"Never", `restartPolicy = "Never"
			restartPolicyRules = [{ action = "Restart", exitCodes = { operator = "NotIn", values = [0, 7] } }]`, "1 2 7 0", 3, 1},
	} {
		name := fmt.Sprintf("p%d", i)
		script := "n=$(cat /state/n || echo 0); n=$((n+1)); echo $n > /state/n; set -- " + test.codes + "; shift $((n-1)); exit $1"
		r := f.start(f.PodFile(name, "restartPolicy = \""+test.pod+"\"\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+
			"volumes = [{ name = \"state\", emptyDir = {} }]\n"+container("c", script)+"volumeMounts.state = \"/state\"\n"+test.fields+
			"\n"))
		if code := r.exitCode(); code != test.exitCode {
			t.Errorf("%s: exit code %d, want %d", test.fields, code, test.exitCode)
		}
		if got := r.starts("c"); got != test.starts {
			t.Errorf("%s: started %d times with exit codes %s, want %d", test.fields, got, test.codes, test.starts)
		}
	}
}

// TestFieldsRestartAll: a rule restarts all containers of the pod, including init containers.
//
// fields: containers[].restartPolicyRules[].action
func TestFieldsRestartAll(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("p", "restartPolicy = \"Never\"\nvolumes = [{ name = \"state\", emptyDir = {} }]\n"+
		strings.Replace(container("prepare", "echo prepared"), "containers", "initContainers", 1)+
		container("c", "[ -e /state/again ] && exit 0; touch /state/again; exit 42")+`volumeMounts.state = "/state"
restartPolicy = "Never"
restartPolicyRules = [{ action = "RestartAllContainers", exitCodes = { operator = "In", values = [42] } }]
`))
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if diff := cmp.Diff([]string{"prepared", "prepared"}, r.lines("prepare")); diff != "" {
		t.Errorf("output of the init container (-want +got):\n%s", diff)
	}
}

// TestFieldsSidecar: an init container with restartPolicy Always runs beside the regular containers, and stops after them.
//
// fields: initContainers, containers[].restartPolicy
func TestFieldsSidecar(t *testing.T) {
	f := newFixture(t)
	sidecar := container("sidecar", "trap 'echo term; exit 0' TERM; touch /state/up; while :; do sleep 0.05; done") +
		"restartPolicy = \"Always\"\nvolumeMounts.state = \"/state\"\n"
	r := f.start(f.PodFile("p",
		"restartPolicy = \"Never\"\nterminationGracePeriodSeconds = 20\nvolumes = [{ name = \"state\", emptyDir = {} }]\n"+
			strings.Replace(sidecar, "containers", "initContainers", 1)+
			container("app", "until [ -e /state/up ]; do sleep 0.05; done; echo done")+"volumeMounts.state = \"/state\"\n"))
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if app, beside := r.lines("app"), r.lines("sidecar"); len(app) != 1 || len(beside) != 1 || beside[0] != "term" {
		t.Errorf("output of the container %q, of the sidecar %q", app, beside)
	}
}

// TestFieldsDeadline: a pod that exceeds activeDeadlineSeconds fails.
//
// fields: activeDeadlineSeconds
func TestFieldsDeadline(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("p", "activeDeadlineSeconds = 1.5\nterminationGracePeriodSeconds = 2\n"+container("c", idle)))
	r.event(api.EventPodDeadlineExceeded)
	r.event(api.EventPodFailed)
	if code := r.exitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

//go:build e2e

package faults

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// The tests of fields cover those that the supervisor handles. What is visible inside a container is tested in package runtime. Their
// comments list the fields, from which docs/fields.md is generated.

// TestFieldsInit: init containers run to completion one after the other, before the regular containers.
//
// fields: name, initContainers, containers[].{name,command}, imageArchives
func TestFieldsInit(t *testing.T) {
	f := newFixture(t)
	volume := "volumeMounts.state = \"/state\"\n"
	initContainer := func(name, script string) string {
		return strings.Replace(container(name, script), "containers", "initContainers", 1) + volume
	}
	r := f.start(f.PodFile("ordered", "restartPolicy = \"Never\"\nvolumes = [{ name = \"state\", emptyDir = {} }]\n"+
		initContainer("one", "sleep 0.5; echo one >> /state/order")+initContainer("two", "echo two >> /state/order")+
		container("app", "cat /state/order")+volume))
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if diff := cmp.Diff([]string{"one", "two"}, r.lines("app")); diff != "" {
		t.Errorf("output of the init containers (-want +got):\n%s", diff)
	}
	if pod := r.event(api.EventPodSucceeded).Pod; pod != "ordered" {
		t.Errorf("pod %q succeeded", pod)
	}
}

// TestFieldsRestartPolicy: after which exits a container restarts.
//
// fields: restartPolicy
func TestFieldsRestartPolicy(t *testing.T) {
	f := newFixture(t)
	text := func(policy, script string) string {
		return "restartPolicy = \"" + policy + "\"\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n" +
			"volumes = [{ name = \"state\", emptyDir = {} }]\n" +
			container("c", "n=$(cat /state/n || echo 0); n=$((n+1)); echo $n > /state/n; echo $n; "+script) +
			"volumeMounts.state = \"/state\"\n"
	}
	for _, test := range []struct {
		policy, script string
		runs, exitCode int
	}{
		{"Never", "exit 1", 1, 1},
		{"Never", "exit 0", 1, 0},
		{"OnFailure", "[ $n -eq 3 ]", 3, 0},
		{"Always", "exit 0", 4, 0},
	} {
		r := f.start(f.PodFile("p", text(test.policy, test.script)))
		if test.policy == "Always" {
			r.line("c", test.runs)
			r.interrupt()
			r.exitCode()
			continue
		}
		if code := r.exitCode(); code != test.exitCode {
			t.Errorf("%s, %s: exit code %d, want %d", test.policy, test.script, code, test.exitCode)
		}
		if got := r.starts("c"); got != test.runs {
			t.Errorf("%s, %s: started %d times, want %d", test.policy, test.script, got, test.runs)
		}
	}
}

// TestFieldsMaxRestarts: a container that has been restarted often enough stays terminated, and a restart of the pod sets the count to 0.
//
// fields: containers[].maxRestarts
func TestFieldsMaxRestarts(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("p", "restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+container("c", "exit 3")+
		"maxRestarts = 2\n"))
	if code := r.exitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if got := r.starts("c"); got != 3 {
		t.Errorf("started %d times, want 3", got)
	}
	if fields := r.event(api.EventMaxRestartsReached).Fields; fields["limit"] != "2" {
		t.Errorf("fields of the event: %v", fields)
	}
}

// starts returns how often a container was started.
func (r *run) starts(container string) int {
	running := r.events(api.EventContainerStarted)
	return len(slices.DeleteFunc(running, func(i item) bool { return i.Container != container }))
}

// delays returns the back-off delays of a container's restarts.
func (r *run) delays(container string) []string {
	var delays []string
	for _, i := range r.events(api.EventContainerBackOff) {
		if i.Container == container {
			delays = append(delays, i.Fields["delay"])
		}
	}
	return delays
}

// TestFieldsRestartBackoff: a container's restart back-off takes precedence over the pod's. The first restart is immediate, also after a
// run of resetAfterSeconds. The delays are long, because a delay that is over before the exit is noticed is not reported.
//
// fields: {restartBackoff,containers[].restartBackoff}.{initialSeconds,maxSeconds,factor,resetAfterSeconds}
func TestFieldsRestartBackoff(t *testing.T) {
	f := newFixture(t)
	script := "n=$(cat /state/$0 || echo 0); n=$((n+1)); echo $n > /state/$0; [ $n -eq 5 ] && sleep 5; exit 1"
	failing := func(name string) string {
		return strings.Replace(container(name, script), "command = [",
			"volumeMounts.state = \"/state\"\nargs = [\""+name+"\"]\ncommand = [", 1)
	}
	r := f.start(f.PodFile("p", "restartBackoff = { initialSeconds = 1, maxSeconds = 4, factor = 3, resetAfterSeconds = 4 }\n"+
		"volumes = [{ name = \"state\", emptyDir = {} }]\n"+failing("pods")+failing("own")+
		"restartBackoff = { initialSeconds = 1.5, maxSeconds = 4, factor = 2, resetAfterSeconds = 1000 }\n"))
	for name, want := range map[string][]string{
		"pods": {"1s", "3s", "4s", "1s"},   // the fifth run is long enough for a reset
		"own":  {"1.5s", "3s", "4s", "4s"}, // and here it is not
	} {
		r.until("the delays of "+name, func() bool { return len(r.delays(name)) >= len(want) })
		if diff := cmp.Diff(want, r.delays(name)[:len(want)]); diff != "" {
			t.Errorf("delays of %s (-want +got):\n%s", name, diff)
		}
	}
	r.interrupt()
	r.exitCode()
}

// TestFieldsShown: fields that are only shown, and used to select pods.
//
// fields: name, labels, annotations, update.{readyWithinSeconds,minReadySeconds,onFailure}, containers[].ports[].{name,containerPort,protocol}
func TestFieldsShown(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("shown",
		"labels = { app = \"shop\" }\nannotations = { note = \"free text\" }\nterminationGracePeriodSeconds = 1\n"+
			"update = { readyWithinSeconds = 90, minReadySeconds = 5, onFailure = \"keep\" }\n"+
			container("c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done")+
			"ports = [{ name = \"dns\", containerPort = 53, protocol = \"UDP\" }, { name = \"http\", containerPort = 80 }]\n"))
	r.line("c", 1)
	got := f.get("shown")
	if got.Metadata.Name != "shown" || got.Metadata.Labels["app"] != "shop" || got.Metadata.Annotations["note"] != "free text" {
		t.Errorf("metadata: %+v", got.Metadata)
	}
	if diff := cmp.Diff(&spec.Update{ReadyWithinSeconds: 90, MinReadySeconds: 5, OnFailure: spec.OnFailureKeep},
		got.Spec.Update); diff != "" {
		t.Errorf("update (-want +got):\n%s", diff)
	}
	ports := []spec.ContainerPort{
		{Name: "dns", ContainerPort: 53, Protocol: spec.ProtocolUDP}, {Name: "http", ContainerPort: 80, Protocol: spec.ProtocolTCP},
	}
	if diff := cmp.Diff(ports, got.Spec.Containers[0].Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	for selector, found := range map[string]bool{"app=shop": true, "app=other": false} {
		if out := f.MustRun("get", "-o", "name", "-l", selector); strings.Contains(out, "pod/shown") != found {
			t.Errorf("get -l %s: %q", selector, out)
		}
	}
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestFieldsReadinessGates: a pod with ready containers waits for a condition that a client sets. The condition survives a restart of
// the daemon.
//
// fields: readinessGates[].conditionType
func TestFieldsReadinessGates(t *testing.T) {
	f := newFixture(t)
	const gate = "example.org/gate"
	r := f.start(f.PodFile("gated", "readinessGates = [{ conditionType = \""+gate+"\" }]\n"+
		container("c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done")))
	r.line("c", 1)
	expect := func(want string) {
		f.Await(func() error {
			for _, c := range f.get("gated").Status.Conditions {
				if c.Type == api.PodReady && c.Status+" "+string(c.Reason) == want {
					return nil
				}
			}
			return errors.New("condition Ready is not: " + want)
		})
	}
	set := func(status string) {
		if _, err := f.Client().SetCondition(f.Ctx(), "gated", gate, api.ConditionRequest{Status: status}); err != nil {
			f.Fatal(err)
		}
	}
	expect("False " + string(api.ReasonReadinessGatesNotReady))
	set("True")
	expect("True ")
	f.MustKillDaemon()
	expect("True ")
	set("False")
	expect("False " + string(api.ReasonReadinessGatesNotReady))
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

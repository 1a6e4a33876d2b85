package lifecycle_test

import (
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestReadinessOfChangedProbe checks that the result of a readiness probe counts after a change if the new probe checks the same.
func TestReadinessOfChangedProbe(t *testing.T) {
	exec := func(command string) *spec.Probe {
		return &spec.Probe{Exec: &spec.ExecAction{Command: []string{command}}, PeriodSeconds: 1}
	}
	http := func(port spec.Port) *spec.Probe { return &spec.Probe{HTTPGet: &spec.HTTPGetAction{Port: port}} }
	tcp := func(port spec.Port) *spec.Probe { return &spec.Probe{TCPSocket: &spec.TCPSocketAction{Port: port}} }
	grpc := func(port int32) *spec.Probe { return &spec.Probe{GRPC: &spec.GRPCAction{Port: port}} }
	number, name := spec.Port{Number: 80}, spec.Port{Name: "web"}
	slower := exec("a")
	slower.PeriodSeconds = 60
	for _, test := range []struct {
		name      string
		from, to  *spec.Probe
		otherPort bool // a port of the container changes
		keeps     bool
	}{
		{name: "the same", from: exec("a"), to: exec("a"), keeps: true},
		{name: "period", from: exec("a"), to: slower, keeps: true},
		{name: "command", from: exec("a"), to: exec("b")},
		{name: "exec to http", from: exec("a"), to: http(number)},
		{name: "http port", from: http(number), to: http(spec.Port{Number: 81})},
		{name: "http, the same", from: http(number), to: http(number), keeps: true},
		{name: "tcp port", from: tcp(number), to: tcp(spec.Port{Number: 81})},
		{name: "tcp, the same", from: tcp(number), to: tcp(number), keeps: true},
		{name: "grpc port", from: grpc(1), to: grpc(2)},
		{name: "grpc, the same", from: grpc(1), to: grpc(1), keeps: true},
		{name: "number, another port changed", from: http(number), to: http(number), otherPort: true, keeps: true},
		{name: "name, the port changed", from: http(name), to: http(name), otherPort: true},
		{name: "name, nothing changed", from: http(name), to: http(name), keeps: true},
		{name: "tcp number, another port changed", from: tcp(number), to: tcp(number), otherPort: true, keeps: true},
		{name: "tcp name, the port changed", from: tcp(name), to: tcp(name), otherPort: true},
		{name: "added", to: exec("a")},
		{name: "removed", from: exec("a"), keeps: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := podOf(spec.RestartAlways, "app"), podOf(spec.RestartAlways, "app")
			from.Containers[0].ReadinessProbe, to.Containers[0].ReadinessProbe = test.from, test.to
			from.Containers[0].Ports = []spec.ContainerPort{{Name: "web", ContainerPort: 80}}
			to.Containers[0].Ports = []spec.ContainerPort{{Name: "web", ContainerPort: 80}}
			if test.otherPort {
				to.Containers[0].Ports[0].ContainerPort = 8080
			}
			facts := fold(history{up(), running("app", 1)})
			was := lifecycle.ProbeStatus{Verdict: lifecycle.VerdictSuccess, Count: 1, At: at(1)}
			c := facts.Containers["app"]
			c.Newest.Probes.Readiness = was
			facts.Containers["app"] = c
			want := lifecycle.ProbeStatus{At: at(2)}
			if test.keeps {
				want = was
			}
			got := facts.Apply(lifecycle.DefinitionChanged{From: from, To: to, At: at(2)}).Containers["app"].Newest.Probes.Readiness
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	stopped := fold(history{up(), running("app", 1), exited("app", 1, 0)})
	from, to := podOf(spec.RestartAlways, "app"), podOf(spec.RestartAlways, "app")
	to.Containers[0].ReadinessProbe = exec("a")
	if got := stopped.Apply(lifecycle.DefinitionChanged{From: from, To: to, At: at(2)}).Containers["app"].Newest.Probes.Readiness; got != (lifecycle.ProbeStatus{}) {
		t.Errorf("a container that has exited: %+v", got)
	}
}

// TestProbesOfReplacedRun checks that a run that is replaced because its definition changed keeps its own probes and hooks until it exits.
func TestProbesOfReplacedRun(t *testing.T) {
	exec := func(command string) *spec.Probe {
		return &spec.Probe{Exec: &spec.ExecAction{Command: []string{command}}, PeriodSeconds: 1}
	}
	from, to := podOf(spec.RestartAlways, "app"), podOf(spec.RestartAlways, "app")
	from.Containers[0].ReadinessProbe = exec("old")
	to.Containers[0].ReadinessProbe, to.Containers[0].StartupProbe = exec("new"), exec("new")
	to.Containers[0].Lifecycle = &spec.Lifecycle{PostStart: &spec.LifecycleHandler{Exec: exec("new").Exec}}
	facts := fold(history{up(), running("app", 1)})
	c := facts.Containers["app"]
	c.Newest.Probes.Readiness = lifecycle.ProbeStatus{Verdict: lifecycle.VerdictSuccess, Count: 1, At: at(1)}
	facts.Containers["app"] = c
	facts = facts.Apply(lifecycle.DefinitionChanged{From: from, To: to, Restarted: []string{"app"}, At: at(2)})

	s := lifecycle.StatusOf(to, facts, at(2)).ContainerStatuses[0]
	if s.State.Running == nil || !*s.Started || !s.Ready {
		t.Errorf("status %+v, want a ready container", s)
	}
	probes := lifecycle.Decide(to, facts, at(2)).Probes
	if len(probes) != 1 || probes[0].Kind != lifecycle.ProbeReadiness || probes[0].Spec.Exec.Command[0] != "old" || probes[0].Definition.Lifecycle != nil {
		t.Errorf("probes %+v, want the earlier readiness probe", probes)
	}
}

// TestRestartKeepsPull checks that a requested restart keeps a pull that runs or has completed, and forgets one that failed.
func TestRestartKeepsPull(t *testing.T) {
	request := func(past history) lifecycle.Pull {
		return fold(past).Apply(lifecycle.ContainerRestartRequested{Container: "app", At: at(3)}).Containers["app"].Pull
	}
	if p := request(history{up(), running("app", 1), exited("app", 1, 1), pull("app", 2, 1)}); p.Requested.IsZero() {
		t.Errorf("a pull that runs: %+v", p)
	}
	if p := request(history{up(), running("app", 1)}); p.Done.IsZero() {
		t.Errorf("a pull that has completed: %+v", p)
	}
}

package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestRestartRules checks whether a container is restarted after an exit, according to its own policy and rules (contract 4.1).
func TestRestartRules(t *testing.T) {
	in42, notIn42 := rule(again, "In", 1, 42), rule(again, "NotIn", 0, 42)
	for _, row := range []struct {
		pod   spec.RestartPolicy
		own   spec.RestartPolicy
		rules []spec.RestartRule
		code  int
		want  bool
	}{
		{always, "", nil, 0, true},
		{never, "", nil, 1, false},
		{never, always, nil, 0, true},
		{always, never, nil, 1, false},
		{always, onFailure, nil, 0, false},
		{always, onFailure, nil, 1, true},
		{never, onFailure, nil, 1, true},
		{always, never, []spec.RestartRule{in42}, 42, true},
		{always, never, []spec.RestartRule{in42}, 2, false},
		{never, onFailure, []spec.RestartRule{in42}, 2, true},
		{always, never, []spec.RestartRule{notIn42}, 42, false},
		{always, never, []spec.RestartRule{notIn42}, 0, false},
		{always, never, []spec.RestartRule{notIn42}, 1, true},
		{always, never, []spec.RestartRule{rule(again, "In", 3), in42}, 42, true},
		{always, never, []spec.RestartRule{rule(again, "In", 0)}, 0, true},
	} {
		t.Run(fmt.Sprintf("4.1 pod %s, own %s, rules %d, code %d", row.pod, row.own, len(row.rules), row.code), func(t *testing.T) {
			pod := with(podOf(row.pod, "app", "other"), own(row.own, row.rules...))
			d := lifecycle.Decide(pod, fold(history{up(), ran("app", 1, row.code), running("other", 1)}), at(1))
			if got := len(d.Actions) == 1 && d.Actions[0] == pull("app", 2, 1); got != row.want || len(d.Actions) > 1 {
				t.Errorf("decided %v, want a restart: %v", d.Actions, row.want)
			}
		})
	}
}

// TestMaxRestarts checks which exits count for maxRestarts, what resets the count, and that a container that has reached it stays
// terminated.
func TestMaxRestarts(t *testing.T) {
	limited := func(policy spec.RestartPolicy, limit int32, change ...func(*spec.Container)) *spec.Pod {
		pod := with(podOf(policy, "app", "other"), change...)
		pod.Containers[0].MaxRestarts = &limit
		return pod
	}
	request := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerRestartRequested{Container: "app", At: t}
	})
	live := history{up(), running("other", 1)}
	lost := func(n int) happened {
		return exitedFor("app", n, 137, lifecycle.ReasonStatusUnknown)
	}
	removed := func(n int) history { return history{removeContainer("app", n), containerRemoved("app", n)} }
	twice := func(code int) history { return history{live, ran("app", 1, code), ran("app", 2, code), removed(1)} }
	once := limited(always, 1)
	again3, all := do{pull("app", 3, 1)}, rule("RestartAllContainers", "In", 1)
	decisions{
		{now: 1, name: "a first restart", pod: once, past: history{live, ran("app", 1, 1)}, want: do{pull("app", 2, 1)}},
		{now: 100, name: "no second one", pod: once, past: twice(1)},
		{now: 100, name: "success counts, because Always restarts it", pod: once, past: twice(0)},
		{
			now: 100, name: "no second one by a rule", pod: limited(never, 1, own(never, rule(again, "In", 1))),
			past: twice(1),
		},
		{
			now: 100, name: "no second restart of all containers by a rule", pod: limited(never, 1, own(never, all)),
			past: twice(1),
		},
		{
			now: 100, name: "a lost run does not count", pod: once,
			past: history{live, ran("app", 1, 1), running("app", 2), lost(2), removed(1)}, want: again3,
		},
		{
			now: 100, name: "a run that a liveness probe stops does", pod: limited(always, 1, probe(liveness)),
			past: history{
				live, ran("app", 1, 1), running("app", 2), probed("app", 2, liveness, bad),
				lifecycle.StopContainer{Ref: run("app", 2), Reason: lifecycle.ReasonLivenessProbe},
				exited("app", 2, 0), removed(1),
			},
		},
		{
			now: 100, name: "a run that is replaced does not", pod: once,
			past: history{
				live, ran("app", 1, 1), running("app", 2), request,
				lifecycle.StopContainer{Ref: run("app", 2), Reason: lifecycle.ReasonRestartRequested},
				exited("app", 2, 143), removed(1),
			},
			want: again3,
		},
		{
			now: 100, name: "a requested restart of the container resets the count", pod: once,
			past: history{twice(1), request}, want: again3,
		},
		{
			now: 100, name: "and it has its restarts again", pod: once,
			past: history{twice(1), request, ran("app", 3, 1), removed(2)}, want: do{pull("app", 4, 1)},
		},
		{
			now: 100, name: "a restart of the container by onUnhealthy does not", pod: once,
			past: history{
				live, ran("app", 1, 1), running("app", 2),
				lifecycle.RestartUnhealthy{Container: "app"},
				lifecycle.StopContainer{Ref: run("app", 2), Reason: lifecycle.ReasonRestartRequested},
				exited("app", 2, 143), removed(1), ran("app", 3, 1), removed(2),
			},
		},
	}.check(t)

	both := limited(always, 1)
	both.Containers[1].RestartPolicy = never
	for code, phase := range map[int]lifecycle.Phase{0: lifecycle.PhaseSucceeded, 1: lifecycle.PhaseFailed} {
		f := fold(history{up(), ran("other", 1, 0), ran("app", 1, code), ran("app", 2, code), removeSandbox(1), sandboxRemoved(1)})
		s := lifecycle.StatusOf(both, f, at(100))
		end := s.ContainerStatuses[0].State.Terminated
		if s.Phase != phase || end == nil || end.Message != "The container has reached its maxRestarts of 1" {
			t.Errorf("with exit code %d: phase %s, app %+v; want phase %s, as with the restart policy Never", code, s.Phase, end, phase)
		}
	}
}

// TestMaxRestartsOfReplacedPod checks who starts a pod again with all restarts of its containers.
func TestMaxRestartsOfReplacedPod(t *testing.T) {
	replace := lifecycle.Escalate{Step: lifecycle.StepReplace}
	by := func(who string) happened {
		return func(t lifecycle.Instant) lifecycle.Event { return lifecycle.RestartRequested{By: who, At: t} }
	}
	redefined := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.RestartRequested{By: "files", Redefined: true, At: t}
	})
	for name, c := range map[string]struct {
		request history
		want    int
	}{
		"a person":                         {history{by("uid 0")}, 0},
		"a change of the definition":       {history{redefined}, 0},
		"a start of the host":              {history{by(lifecycle.ByStart)}, 1},
		"onUnhealthy":                      {history{replace}, 1},
		"a person, while onUnhealthy does": {history{replace, by("uid 0")}, 0},
	} {
		f := fold(history{up(), ran("app", 1, 1), c.request, removeSandbox(1), sandboxRemoved(1), lifecycle.StartAgain{Round: 2}})
		if got := f.Containers["app"].Exits; got != c.want || f.Round != 2 {
			t.Errorf("%s starts the pod again: %d exits count in round %d, want %d in round 2", name, got, f.Round, c.want)
		}
	}
}

func TestDecideContainerRestartPolicy(t *testing.T) {
	liveKill := func(policy spec.RestartPolicy) *spec.Pod {
		return with(podOf(always, "app", "other"), own(policy, rule(again, "In", 42)), probe(liveness))
	}
	killed := func(code int) history {
		return history{
			up(), running("other", 1), running("app", 1), probed("app", 1, liveness, bad),
			lifecycle.StopContainer{Ref: run("app", 1), Reason: lifecycle.ReasonLivenessProbe},
			exited("app", 1, code),
		}
	}
	initOwn := func(policy spec.RestartPolicy, rules ...spec.RestartRule) *spec.Pod {
		return within(podOf(always, "init", "app"), "init", own(policy, rules...))
	}
	crashed := history{up(), ran("app", 1, 1), tick(5), sandboxLost(1)}
	decisions{
		{name: "5.2 container policy Never applies to a container stopped by a probe", pod: liveKill(never), past: killed(1), now: 1},
		{
			name: "5.2 restart rule applies to a container stopped by a probe", pod: liveKill(never), past: killed(42), now: 1,
			want: do{pull("app", 2, 1)},
		},
		{
			name: "5.2 container policy OnFailure restarts a container stopped by a probe despite exit code 0", pod: liveKill(onFailure),
			past: killed(0), now: 1, want: do{pull("app", 2, 1)},
		},
		{
			name: "3 failed init container with its own Never terminates the pod", pod: initOwn(never),
			past: history{up(), ran("init", 1, 1)}, now: 1, want: do{removeSandbox(1)},
		},
		{
			name: "4.1 restart rule restarts a failed init container with Never", pod: initOwn(never, rule(again, "In", 1)),
			past: history{up(), ran("init", 1, 1)}, now: 1, want: do{pull("init", 2, 1)},
		},
		{
			name: "4.1 restart rule does not restart a succeeded init container", pod: initOwn(never, rule(again, "In", 0)),
			past: history{up(), ran("init", 1, 0)}, now: 1, want: do{pull("app", 1, 1)},
		},
		{
			name: "3 init container with its own OnFailure is restarted with pod policy Never",
			pod:  within(podOf(never, "init", "app"), "init", own(onFailure)),
			past: history{up(), ran("init", 1, 1)}, now: 1, want: do{pull("init", 2, 1)},
		},
		{
			name: "3 lost sandbox terminates a pod with Never after a container ran", pod: podOf(never, "app", "other"), past: crashed,
			now: 5, want: do{removeSandbox(1)},
		},
		{
			name: "3 lost sandbox terminates a pod whose containers all have their own Never",
			pod:  with(within(podOf(always, "app", "other"), "other", own(never)), own(never)), past: history{crashed, sandboxRemoved(1)},
			now: 6,
		},
		{
			name: "3 lost sandbox is replaced if a container has its own OnFailure",
			pod:  within(podOf(never, "app", "other"), "other", own(onFailure)), past: history{crashed, sandboxRemoved(1)}, now: 6,
			want: do{startSandbox(2)},
		},
		{
			name: "3 lost sandbox is replaced if a container has a restart rule",
			pod:  within(podOf(never, "app", "other"), "other", own(never, rule(again, "In", 42))),
			past: history{crashed, sandboxRemoved(1)}, now: 6,
			want: do{startSandbox(2)},
		},
	}.check(t)
}

// TestRunsAgain checks which terminated containers are restarted.
func TestRunsAgain(t *testing.T) {
	always, never := podOf(spec.RestartAlways, "init", "side", "app"), podOf(spec.RestartNever, "init", "side", "app")
	initialized := history{up(), ran("init", 1, 0), running("side", 1)}
	for _, row := range []struct {
		name, container string
		pod             *spec.Pod
		past            history
		want            bool
	}{
		{"app container with Always", "app", always, history{initialized, ran("app", 1, 0)}, true},
		{"app container with Never", "app", never, history{initialized, ran("app", 1, 1)}, false},
		{"sidecar with Never", "side", never, history{initialized, running("app", 1), exited("side", 1, 0)}, true},
		{"sidecar after the app containers completed", "side", never, history{initialized, ran("app", 1, 1), exited("side", 1, 0)}, false},
		{"failed init container", "init", always, history{up(), ran("init", 1, 1)}, true},
		{"completed init container", "init", always, initialized, false},
		{"app container in a stopping pod", "app", always, history{initialized, ran("app", 1, 1), stopped(time.Minute)}, false},
		{"unknown container", "other", always, initialized, false},
	} {
		if got := lifecycle.RunsAgain(row.pod, fold(row.past), row.container); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// TestInitPassed checks which init containers do not run again.
func TestInitPassed(t *testing.T) {
	pod := podOf(spec.RestartAlways, "init", "init2", "side", "app")
	between := history{up(), ran("init", 1, 0), running("init2", 1)}
	for _, row := range []struct {
		name, container string
		past            history
		want            bool
	}{
		{"completed", "init", between, true},
		{"completed, and no other has started", "init", history{up(), ran("init", 1, 0)}, true},
		{"running", "init2", between, false},
		{"failed", "init", history{up(), ran("init", 1, 1)}, false},
		{"not started", "init2", history{up(), ran("init", 1, 1)}, false},
		{"sidecar", "side", history{between, exited("init2", 1, 0), running("side", 1), running("app", 1)}, false},
		{"app container", "app", history{between, exited("init2", 1, 0), running("side", 1), ran("app", 1, 0)}, false},
	} {
		if got := lifecycle.InitPassed(pod, fold(row.past), row.container); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestDecideRestart(t *testing.T) {
	always := podOf(spec.RestartAlways, "app")
	paced := podOf(spec.RestartAlways, "app")
	paced.RestartBackoff = &spec.Backoff{InitialSeconds: 3}
	crashed := history{up(), tick(10), ran("app", 1, 1), tick(20), running("app", 2)}
	again := history{crashed, exited("app", 2, 0), removeContainer("app", 1)}
	refused := history{
		up(), tick(10), pulled("app", 1), failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}),
	}
	decisions{
		{name: "first restart is immediate", pod: always, past: history{up(), ran("app", 1, 0)}, now: 1, want: do{pull("app", 2, 1)}},
		{
			name: "first restart leads to level 1", pod: always,
			past: history{up(), ran("app", 1, 0), pulled("app", 2)}, now: 1, want: do{start("app", 2, 1, 1)},
		},
		{name: "second restart waits for 10 s after the exit, whatever the exit code", pod: always, past: again, now: 29.999, wake: 30},
		{name: "second restart is due after 10 s", pod: always, past: again, now: 30, want: do{pull("app", 3, 1)}},
		{
			name: "second restart leads to level 2", pod: always,
			past: history{again, tick(30), pulled("app", 3)}, now: 30, want: do{start("app", 3, 2, 2)},
		},
		{
			name: "restartBackoff of the pod applies", pod: paced, past: history{again, tick(23), pulled("app", 3)}, now: 23,
			want: do{start("app", 3, 2, 2)},
		},
		{
			name: "run that lasted 600 s since it was granted keeps the level", pod: always,
			past: history{crashed, tick(620), exited("app", 2, 1), removeContainer("app", 1)}, now: 620, wake: 630,
		},
		{
			name: "run that lasted longer than 600 s resets the level", pod: always,
			past: history{crashed, tick(620.001), exited("app", 2, 1), removeContainer("app", 1), pulled("app", 3)}, now: 620.001,
			want: do{start("app", 3, 2, 1)},
		},
		{name: "failed creation is not retried before 10 s", pod: always, past: refused, now: 19.999, wake: 20},
		{
			name: "failed creation is retried at once in a new sandbox", pod: always,
			past: history{
				refused, tick(11), sandboxLost(1), sandboxRemoved(1), startSandbox(2),
				happened(func(t lifecycle.Instant) lifecycle.Event {
					return lifecycle.SandboxStarted{Sandbox: 2, At: t}
				}),
			}, now: 11, want: do{pull("app", 2, 1)},
		},
		{
			name: "failed creation does not count as a restart", pod: always,
			past: history{refused, tick(20), pulled("app", 2)}, now: 20, want: do{start("app", 2, 0, 0)},
		},
		{
			name: "OnFailure restarts a failed container", pod: podOf(spec.RestartOnFailure, "app"),
			past: history{up(), ran("app", 1, 1)}, now: 1, want: do{pull("app", 2, 1)},
		},
		{
			name: "OnFailure does not restart a succeeded container", pod: podOf(spec.RestartOnFailure, "app", "other"),
			past: history{up(), ran("app", 1, 0), running("other", 1)}, now: 1,
		},
		{
			name: "Never does not restart", pod: podOf(spec.RestartNever, "app", "other"),
			past: history{up(), ran("app", 1, 1), running("other", 1)}, now: 1,
		},
		{
			name: "pod without containers left to run terminates", pod: podOf(spec.RestartNever, "app"),
			past: history{up(), ran("app", 1, 1)}, now: 1, want: do{removeSandbox(1)},
		},
		{
			name: "unanswered start is retried after 1 s", pod: always,
			past: history{up(), pulled("app", 1), tick(10), failing(start("app", 1, 0, 0), unavailable)}, now: 10.999, wake: 11,
		},
		{
			name: "retried start is the same run and leaves the back-off level unchanged", pod: always,
			past: history{up(), pulled("app", 1), tick(10), failing(start("app", 1, 0, 1), unavailable)}, now: 11,
			want: do{start("app", 1, 0, 0)},
		},
		{
			name: "retried start is awaited", pod: always,
			past: history{up(), pulled("app", 1), tick(10), failing(start("app", 1, 0, 0), unavailable), start("app", 1, 0, 0)}, now: 20,
		},
	}.check(t)
}

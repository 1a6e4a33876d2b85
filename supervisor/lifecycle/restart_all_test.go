package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	always, onFailure, never = spec.RestartAlways, spec.RestartOnFailure, spec.RestartNever
	again, restartAll        = "Restart", "RestartAllContainers"
)

// TestRestartRules says whether a container that ended so runs again, by its own policy and rules (4.1).
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

func TestDecideOwnPolicy(t *testing.T) {
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
	crashed := history{up(), ran("app", 1, 1), tick(5), lost(1)}
	decisions{
		{name: "5.2 a probe's kill follows the container's policy first", pod: liveKill(never), past: killed(1), now: 1},
		{name: "5.2 but what it said as it went is looked at too", pod: liveKill(never), past: killed(42), now: 1, want: do{pull("app", 2, 1)}},
		{name: "5.2 under its own OnFailure it runs again", pod: liveKill(onFailure), past: killed(0), now: 1, want: do{pull("app", 2, 1)}},
		{name: "3 an init container with its own Never ends the pod", pod: initOwn(never), past: history{up(), ran("init", 1, 1)}, now: 1, want: do{removeSandbox(1)}},
		{name: "4.1 unless a rule says otherwise", pod: initOwn(never, rule(again, "In", 1)), past: history{up(), ran("init", 1, 1)}, now: 1, want: do{pull("init", 2, 1)}},
		{name: "4.1 which it does not about a success", pod: initOwn(never, rule(again, "In", 0)), past: history{up(), ran("init", 1, 0)}, now: 1, want: do{pull("app", 1, 1)}},
		{
			name: "3 one with its own OnFailure is tried again under Never", pod: within(podOf(never, "init", "app"), "init", own(onFailure)),
			past: history{up(), ran("init", 1, 1)}, now: 1, want: do{pull("init", 2, 1)},
		},
		{name: "3 a lost sandbox is the end of a pod that never runs twice", pod: podOf(never, "app", "other"), past: crashed, now: 5, want: do{removeSandbox(1)}},
		{
			name: "3 whatever the pod's policy", pod: with(within(podOf(always, "app", "other"), "other", own(never)), own(never)), past: history{crashed, sandboxRemoved(1)}, now: 6,
		},
		{
			name: "3 not if one of its containers may", pod: within(podOf(never, "app", "other"), "other", own(onFailure)), past: history{crashed, sandboxRemoved(1)}, now: 6,
			want: do{startSandbox(2)},
		},
		{
			name: "3 by a rule too", pod: within(podOf(never, "app", "other"), "other", own(never, rule(again, "In", 42))), past: history{crashed, sandboxRemoved(1)}, now: 6,
			want: do{startSandbox(2)},
		},
	}.check(t)
}

func TestDecideRestartAll(t *testing.T) {
	pod := with(podOf(never, "init", "side", "app", "other"), own(never, rule(restartAll, "In", 42)), hook(lifecycle.PreStop))
	within(pod, "other", hook(lifecycle.PreStop))
	up1 := history{up(), ran("init", 1, 0), running("side", 1), running("app", 1), running("other", 1)}
	asks := history{up1, tick(10), exited("app", 1, 42)}
	end := func(name string) lifecycle.StopContainer {
		return lifecycle.StopContainer{Ref: run(name, 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonRestartingAllContainers}
	}
	ended := history{asks, end("other"), end("side"), exited("other", 1, 0), exited("side", 1, 0)}
	begin := lifecycle.StartRound{Round: 2, By: run("app", 1)}
	round2 := history{ended, begin}
	start2 := func(name string, restarts int) lifecycle.StartContainer {
		return lifecycle.StartContainer{
			Ref: lifecycle.Ref{Container: name, Round: 2, Attempt: 2}, Sandbox: 1, Restarts: restarts,
		}
	}
	up2 := func(name string) history {
		return history{pulled(name, 2), start2(name, 1), happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerStarted{Ref: start2(name, 1).Ref, At: t}
		})}
	}
	done2 := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: start2("init", 1).Ref, At: t}
	})
	again42 := history{up2("init"), done2, reap("init", 1), up2("app"), happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: start2("app", 1).Ref, Exit: lifecycle.Exit{Code: 42}, At: t}
	}), reap("app", 1)}
	initRule := within(podOf(always, "init", "app"), "init", own(never, rule(restartAll, "In", 0, 7)))
	sideEnds := within(podOf(never, "side", "init", "app"), "side", own(always, rule(restartAll, "In", 7)))
	sideRule := within(podOf(always, "side", "app"), "side", own(always, rule(restartAll, "In", 7)))
	decisions{
		{name: "4.2 everything ends at once, without hooks and with 2 s", pod: pod, past: asks, now: 10, want: do{end("other"), end("side")}},
		{name: "4.2 another code does not ask for it", pod: pod, past: history{up1, tick(10), exited("app", 1, 41)}, now: 10},
		{name: "4.2 nothing begins before all has ended", pod: pod, past: history{asks, end("other"), end("side"), exited("other", 1, 0)}, now: 11, wake: 12},
		{name: "4.2 what is deaf is killed", pod: pod, past: history{asks, end("other"), end("side"), exited("other", 1, 0)}, now: 12, want: do{kill("side", 1)}},
		{name: "4.2 then a round begins", pod: pod, past: ended, now: 10, want: do{begin}},
		{name: "4.2 two rounds are never less than 1 s apart", pod: pod, past: history{round2, again42}, now: 10.999, wake: 11},
		{name: "4.2 and are when it is over", pod: pod, past: history{round2, again42}, now: 11, want: do{lifecycle.StartRound{Round: 3, By: start2("app", 1).Ref}}},
		{name: "4.2 in the same sandbox, with the first init container, at once", pod: pod, past: round2, now: 10, want: do{pull("init", 2, 1)}},
		{name: "4.2 whose restarts count and whose backoff does not", pod: pod, past: history{round2, pulled("init", 2)}, now: 10, want: do{start2("init", 1)}},
		{name: "4.2 then the sidecar", pod: pod, past: history{round2, up2("init"), done2, reap("init", 1)}, now: 10, want: do{pull("side", 2, 1)}},
		{
			name: "4.2 then all app containers, those that never run twice and have succeeded included", pod: pod,
			past: history{round2, up2("init"), done2, reap("init", 1), up2("side"), pulled("app", 2), pulled("other", 2)}, now: 10, want: do{start2("app", 1)},
		},
		{
			name: "4.2 also if one is run again by its policy already", pod: with(podOf(always, "app", "other"), own(never, rule(restartAll, "In", 42))),
			past: history{
				up(), running("app", 1), ran("other", 1, 1), tick(10), exited("app", 1, 42), begin, pulled("app", 2), pulled("other", 2), up2("app"),
			}, now: 10, want: do{start2("other", 1)},
		},
		{name: "4.2 a preStop hook that runs is cut short", pod: pod, past: history{
			up1, lifecycle.RunPreStop{Ref: run("other", 1), Limit: time.Minute, Reason: lifecycle.ReasonLivenessProbe}, tick(10), exited("app", 1, 42),
		}, now: 10, want: do{
			lifecycle.StopContainer{Ref: run("other", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonLivenessProbe}, end("side"),
		}},
		{
			name: "4.2 the first is at once, however young the machine", pod: with(podOf(never, "app"), own(never, rule(restartAll, "In", 42))),
			past: history{tick(0.2), up(), ran("app", 1, 42)}, now: 0.5, want: do{lifecycle.StartRound{Round: 2, By: run("app", 1)}},
		},
		{
			name: "4.2 any of the app containers can", pod: within(podOf(never, "app", "other"), "other", own(never, rule(restartAll, "In", 42))),
			past: history{up(), ran("app", 1, 0), ran("other", 1, 42)}, now: 1, want: do{lifecycle.StartRound{Round: 2, By: run("other", 1)}},
		},
		{name: "4.2 an init container can ask for it", pod: initRule, past: history{up(), ran("init", 1, 7)}, now: 1, want: do{lifecycle.StartRound{Round: 2, By: run("init", 1)}}},
		{name: "4.2 by a success too", pod: initRule, past: history{up(), ran("init", 1, 0)}, now: 1, want: do{lifecycle.StartRound{Round: 2, By: run("init", 1)}}},
		{name: "4.2 nor does a pod that was done before the machine was started", pod: podOf(never, "app"), past: history{tick(-5), up(), ran("app", 1, 0)}, now: 1, want: do{removeSandbox(1)}},
		{name: "4.2 but none that has ended after the work was done", pod: sideEnds, past: history{up(), running("side", 1), ran("app", 1, 0), tick(5), exited("side", 1, 7)}, now: 5, want: do{removeSandbox(1)}},
		{name: "4.2 or that was given up", pod: sideEnds, past: history{up(), running("side", 1), ran("init", 1, 3), tick(5), exited("side", 1, 7)}, now: 5, want: do{removeSandbox(1)}},
		{name: "4.2 one that has ended before does, whatever the others say then", pod: sideEnds, past: history{up(), running("side", 1), running("app", 1), tick(3), exited("side", 1, 7), tick(5), exited("app", 1, 0)}, now: 5, want: do{lifecycle.StartRound{Round: 2, By: run("side", 1)}}},
		{name: "4.2 and a sidecar", pod: sideRule, past: history{up(), ran("side", 1, 7)}, now: 1, want: do{lifecycle.StartRound{Round: 2, By: run("side", 1)}}},
		{
			name: "4.2 the first to ask is the cause, not one that ends by it", pod: within(with(podOf(never, "app", "other"), own(never, rule(restartAll, "NotIn", 0))), "other", own(never, rule(restartAll, "In", 42))),
			past: history{up(), running("app", 1), running("other", 1), tick(10), exited("other", 1, 42), end("app"), tick(11), exited("app", 1, 143)}, now: 11,
			want: do{lifecycle.StartRound{Round: 2, By: run("other", 1)}},
		},
		{
			name: "4.2 in whatever order they are written", pod: within(with(podOf(never, "app", "other"), own(never, rule(restartAll, "In", 42))), "other", own(never, rule(restartAll, "NotIn", 0))),
			past: history{up(), running("app", 1), running("other", 1), tick(10), exited("app", 1, 42), end("other"), tick(11), exited("other", 1, 143)}, now: 11,
			want: do{lifecycle.StartRound{Round: 2, By: run("app", 1)}},
		},
		{
			name: "7.4 a sidecar that ends with the pod asks for nothing", pod: within(podOf(never, "side", "app"), "side", own(always, rule(restartAll, "NotIn", 0))),
			past: history{
				up(), running("side", 1), ran("app", 1, 0), lifecycle.StopContainer{Ref: run("side", 1), Reason: lifecycle.ReasonPodFinished}, tick(2), exited("side", 1, 143),
			}, now: 2, want: do{removeSandbox(1)},
		},
		{
			name: "4.2 a pod that is to end does", pod: pod, past: history{asks, stopped(9 * time.Second), exited("side", 1, 0)}, now: 10,
			want: do{preStop("other", 1, 9*time.Second, lifecycle.ReasonStopped)},
		},
		{
			name: "4.2 with the sandbox goes the wish", pod: with(podOf(always, "app", "other"), own(never, rule(restartAll, "In", 42))),
			past: history{up(), running("app", 1), ran("other", 1, 0), tick(10), exited("app", 1, 42), lost(1)}, now: 10, want: do{removeSandbox(1)},
		},
		{
			name: "4.2 void runs are no record of a pod that never runs twice", pod: podOf(never, "app", "other"),
			past: history{up(), ran("app", 1, 42), begin, tick(10), lost(1), sandboxRemoved(1)}, now: 11,
			want: do{lifecycle.StartSandbox{Sandbox: 2, Round: 3}},
		},
		{
			name: "7.5 the deadline holds in the middle of it", pod: func() *spec.Pod {
				p := with(podOf(never, "app", "other"), own(never, rule(restartAll, "In", 42)))
				limit := spec.Seconds(9)
				p.ActiveDeadlineSeconds = &limit
				return p
			}(),
			past: history{up(), running("app", 1), running("other", 1), exited("app", 1, 42), end("other")}, now: 10, want: do{endPod(30 * time.Second)},
		},
	}.check(t)
}

func TestNoted(t *testing.T) {
	for _, a := range []lifecycle.Action{lifecycle.StartRound{}, lifecycle.FailPod{}, lifecycle.WaitForTurn{Ref: run("app", 1)}} {
		if !lifecycle.RecordOnly(a) {
			t.Errorf("%T has an effect", a)
		}
		before := fold(history{running("app", 1)})
		if after := before.Apply(lifecycle.ActionFailed{Action: a, Failure: oops, At: at(2)}); text(after) != text(before) {
			t.Errorf("%T can fail: %s", a, text(after))
		}
	}
	if lifecycle.RecordOnly(lifecycle.RemovePod{}) {
		t.Error("RemovePod has no effect")
	}
}

func TestDecideDeadline(t *testing.T) {
	pod := func(policy spec.RestartPolicy, names ...string) *spec.Pod {
		p := with(podOf(policy, names...), hook(lifecycle.PreStop))
		limit := spec.Seconds(99.5) // the pods of these tables are accepted at 1 s
		p.ActiveDeadlineSeconds = &limit
		return p
	}
	app := pod(always, "app")
	live := history{up(), running("app", 1)}
	limit := 30 * time.Second
	ending := history{live, tick(50), stopped(time.Minute), preStop("app", 1, time.Minute, lifecycle.ReasonStopped)}
	evicted := happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodEvicted{Message: "full", At: t} })
	side := pod(never, "side", "app")
	work := history{up(), running("side", 1), ran("app", 1, 0)}
	decisions{
		{name: "7.5 it is waited for", pod: app, past: live, now: 100.499, wake: 100.5},
		{name: "7.5 then the pod ends, with its own grace", pod: app, past: live, now: 100.5, want: do{endPod(limit)}},
		{name: "7.5 through preStop", pod: app, past: history{live, tick(100.5), endPod(limit)}, now: 100.5, want: do{preStop("app", 1, limit, lifecycle.ReasonStopped)}},
		{name: "7.5 it covers pulls", pod: app, past: history{up(), pull("app", 1, 1)}, now: 101, want: do{endPod(limit)}},
		{name: "7.5 and a sandbox that does not come", pod: app, past: history{startSandbox(1)}, now: 101, want: do{endPod(limit)}},
		{name: "7.5 and init containers", pod: pod(never, "init", "app"), past: history{up(), running("init", 1)}, now: 101, want: do{endPod(limit)}},
		{name: "7.5 a pod that is done has none", pod: pod(never, "app"), past: history{up(), ran("app", 1, 0)}, now: 101, want: do{removeSandbox(1)}},
		{name: "7.5 nor one without", pod: podOf(always, "app"), past: live, now: 1e6},
		{name: "7.5 nor one that was stopped and has ended", pod: app, past: history{live, tick(100), stopped(limit), exited("app", 1, 0)}, now: 101, want: do{removeSandbox(1)}},
		{name: "2.1 it holds while the pod is being ended", pod: app, past: ending, now: 100.499, wake: 100.5},
		{name: "2.1 which has failed by it then", pod: app, past: ending, now: 100.5, want: do{endPod(limit)}},
		{name: "2.1 once", pod: app, past: history{ending, tick(100.5), endPod(limit)}, now: 101, wake: 110},
		{name: "2.1 and while sidecars end behind the work", pod: side, past: history{work, await("side", limit, lifecycle.ReasonPodFinished)}, now: 101, want: do{endPod(limit)}},
		{name: "2.1 not after another limit", pod: app, past: history{live, tick(100), evicted, preStop("app", 1, time.Second, lifecycle.ReasonStopped)}, now: 100.9, wake: 101},
	}.check(t)
}

func TestDecideAway(t *testing.T) {
	pod := podOf(never, "app")
	decisions{
		{name: "DEVIATIONS 20 nothing is done, but to look when the status changes", pod: pod, past: history{up(), running("app", 1), tick(10), engineLost}, now: 20, wake: 20 + 1e-9},
		{name: "DEVIATIONS 20 nor after that", pod: pod, past: history{up(), running("app", 1), tick(10), engineLost}, now: 20.1},
		{name: "DEVIATIONS 20 nor when it is back", pod: pod, past: history{up(), running("app", 1), tick(10), engineLost, engineFound}, now: 15},
		{name: "DEVIATIONS 20 a pod at rest does not care", pod: pod, past: history{up(), ran("app", 1, 0), sandboxRemoved(1), tick(10), engineLost}, now: 15},
	}.check(t)
}

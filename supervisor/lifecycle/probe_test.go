package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// answers are those of a probe's handler: one letter each, asked when it is due and given some time later.
var answers = map[rune]lifecycle.ProbeOutcome{
	'+': lifecycle.ProbeSuccess, '!': lifecycle.ProbeWarning, '-': lifecycle.ProbeFailure, '?': lifecycle.ProbeError,
}

// TestProbe lets a probe of a run that started at 100 s be asked, and writes down what it tells, each with its second:
// "-1" is the first failure in a row, "?" a handler that could not run, "!" a warning, "Failure" and "Success" verdicts.
func TestProbe(t *testing.T) {
	for _, row := range []struct {
		name    string
		kind    lifecycle.ProbeKind
		spec    spec.Probe // what differs from every 10 s, one success, three failures
		on      float64    // when it is switched on
		spread  time.Duration
		holds   lifecycle.Verdict
		takes   float64 // each answer
		answers string
		told    string
		due     float64 // 0: never again
	}{
		{name: "5.2 the first answer is due at once", kind: liveness, on: 100, due: 100},
		{name: "5.1 but not before the initial delay, from the start of the run", kind: liveness, spec: spec.Probe{InitialDelaySeconds: 15}, on: 103, due: 115},
		{name: "5.1 which is over for what was switched on later", kind: readiness, spec: spec.Probe{InitialDelaySeconds: 15}, on: 140, due: 140},
		{name: "5.2 nor before the spread of a supervisor that has come up", kind: liveness, on: 500, spread: 4 * time.Second, due: 504},
		{name: "5.2 of the two the later", kind: liveness, spec: spec.Probe{InitialDelaySeconds: 15}, on: 100, spread: 4 * time.Second, due: 115},
		{name: "5.2 it is asked every period", kind: liveness, on: 100, holds: good, answers: "+++", due: 130},
		{name: "5.2 the time that an answer takes is part of it", kind: liveness, on: 100, takes: 4, holds: good, answers: "++", due: 120},
		{name: "5.2 one that takes longer is asked again at once, and does not pile up", kind: liveness, on: 100, takes: 25, holds: good, answers: "++", due: 150},
		{name: "5.1 periods can be fractions", kind: liveness, spec: spec.Probe{PeriodSeconds: 0.5}, on: 100, holds: good, answers: "+++", due: 101.5},
		{name: "5.2.11 below the threshold what held holds", kind: liveness, on: 100, holds: good, answers: "--+", told: "100 -1, 110 -2", due: 130},
		{name: "5.2.11 another answer begins to count anew", kind: liveness, on: 100, holds: good, answers: "--+--", told: "100 -1, 110 -2, 130 -1, 140 -2", due: 150},
		{name: "5.2.12 a liveness probe that failed is asked no more", kind: liveness, on: 100, holds: good, answers: "---", told: "100 -1, 110 -2, 120 -3, 120 Failure after 3"},
		{name: "5.2.12 whatever comes after that", kind: liveness, on: 100, holds: good, answers: "-----", told: "100 -1, 110 -2, 120 -3, 120 Failure after 3"},
		{name: "5.2 failureThreshold", kind: liveness, spec: spec.Probe{FailureThreshold: 1}, on: 100, holds: good, answers: "-", told: "100 -1, 100 Failure after 1"},
		{name: "5.2 a liveness probe begins as a success, which is no news", kind: liveness, on: 100, holds: good, answers: "+", due: 110},
		{name: "5.2.12 a startup probe that succeeded is asked no more", kind: startup, on: 100, answers: "--+", told: "100 -1, 110 -2, 120 Success after 1"},
		{name: "5.2.12 nor one that failed", kind: startup, on: 100, answers: "---", told: "100 -1, 110 -2, 120 -3, 120 Failure after 3"},
		{name: "5.2 a startup probe's budget is initial delay and failureThreshold periods", kind: startup, spec: spec.Probe{InitialDelaySeconds: 5, FailureThreshold: 2, PeriodSeconds: 3}, on: 100, answers: "--", told: "105 -1, 108 -2, 108 Failure after 2"},
		{name: "5.2 a readiness probe begins as a failure, which is no news", kind: readiness, on: 100, holds: bad, answers: "---", told: "100 -1, 110 -2, 120 -3", due: 130},
		{name: "5.2.11 a success makes it ready", kind: readiness, on: 100, holds: bad, answers: "-++", told: "100 -1, 110 Success after 1", due: 130},
		{name: "5.1 successThreshold", kind: readiness, spec: spec.Probe{SuccessThreshold: 2}, on: 100, holds: bad, answers: "+-++", told: "110 -1, 130 Success after 2", due: 140},
		{name: "5.2 three failures make it unready, and it is asked on", kind: readiness, on: 100, holds: bad, answers: "+---+", told: "100 Success after 1, 110 -1, 120 -2, 130 -3, 130 Failure after 3, 140 Success after 1", due: 150},
		{name: "5.5 what was ready stays so until its own answers say otherwise", kind: readiness, on: 500, holds: good, answers: "--+---", told: "500 -1, 510 -2, 530 -1, 540 -2, 550 -3, 550 Failure after 3", due: 560},
		{name: "5.2.10 a handler that cannot run is asked three times at once, and counts for nothing", kind: liveness, on: 100, holds: good, answers: "--???-", told: "100 -1, 110 -2, 120 ?, 130 -3, 130 Failure after 3"},
		{name: "5.2.10 one that can the second time is nothing to be told", kind: liveness, on: 100, holds: good, answers: "?+", due: 110},
		{name: "5.2.10 at once is when its answer came", kind: liveness, on: 100, takes: 4, holds: good, answers: "?", due: 104},
		{name: "5.2.10 and the tries are counted anew", kind: liveness, on: 100, holds: good, answers: "??+??+", due: 120},
		{name: "5.2.10 also after they were used up", kind: liveness, on: 100, holds: good, answers: "?????", told: "100 ?", due: 110},
		{name: "5.2 a warning is a success and is told", kind: startup, on: 100, answers: "-!", told: "100 -1, 110 !, 110 Success after 1"},
		{name: "5.2 which ends a row of failures", kind: liveness, on: 100, holds: good, answers: "--!--", told: "100 -1, 110 -2, 120 !, 130 -1, 140 -2", due: 150},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := row.spec
			if p.PeriodSeconds == 0 {
				p.PeriodSeconds = 10
			}
			p.SuccessThreshold, p.FailureThreshold = max(1, p.SuccessThreshold), max(0, p.FailureThreshold)
			if p.FailureThreshold == 0 {
				p.FailureThreshold = 3
			}
			ref := lifecycle.ProbeRef{Ref: run("app", 1), Kind: row.kind}
			probe := lifecycle.NewProbe(lifecycle.ProbeOrder{
				ProbeRef: ref, Spec: &p, Started: at(100), Initial: row.holds,
			}, at(row.on), row.spread)
			var told []string
			now := at(row.on)
			for _, c := range row.answers {
				if due := probe.Due(); !due.IsZero() {
					now = due.Add(time.Duration(row.takes * float64(time.Second)))
				}
				var events []lifecycle.Event
				events, probe = probe.Step(now, lifecycle.ProbeResult{Outcome: answers[c], Message: "no good"})
				for _, e := range events {
					told = append(told, tell(t, e, ref, now))
				}
			}
			if got := strings.Join(told, ", "); got != row.told {
				t.Errorf("told\n got %s\nwant %s", got, row.told)
			}
			want := lifecycle.Instant{}
			if row.due > 0 {
				want = at(row.due)
			}
			if got := probe.Due(); got != want {
				t.Errorf("due at %v, want %v", got, want)
			}
		})
	}
}

func tell(t *testing.T, e lifecycle.Event, ref lifecycle.ProbeRef, now lifecycle.Instant) string {
	t.Helper()
	var who lifecycle.ProbeRef
	var when lifecycle.Instant
	var what, message string
	switch e := e.(type) {
	case lifecycle.ProbeFailed:
		who, when, message, what = e.ProbeRef, e.At, e.Result.Message, "?"
		if e.Result.Outcome == lifecycle.ProbeFailure {
			what = fmt.Sprintf("-%d", e.Count)
		}
	case lifecycle.ProbeWarned:
		who, when, message, what = e.ProbeRef, e.At, e.Result.Message, "!"
	case lifecycle.ProbeChanged:
		who, when, message, what = e.ProbeRef, e.At, e.Message, fmt.Sprintf("%s after %d", e.Verdict, e.Count)
	}
	if who != ref || when != now || message != "no good" {
		t.Errorf("%#v is not of %v at %v", e, ref, now)
	}
	return fmt.Sprintf("%v %s", now.Mono.Seconds(), what)
}

// TestDecideProbes says which probes are to be on: kinds in the order of the decision, "app" left out.
func TestDecideProbes(t *testing.T) {
	all := func() *spec.Pod {
		return with(podOf(spec.RestartAlways, "app"), probe(startup), probe(liveness), probe(readiness), hook(lifecycle.PostStart))
	}
	two := func() *spec.Pod { return with(podOf(spec.RestartAlways, "app"), probe(liveness), probe(readiness)) }
	live := history{up(), running("app", 1)}
	hooked := history{live, postStart("app", 1), hooked("app", 1, lifecycle.PostStart)}
	upAndStarted := history{hooked, probed("app", 1, startup, good)}
	for _, row := range []struct {
		name string
		pod  *spec.Pod
		past history
		want string
	}{
		{"5.2.3 none of a container that does not run", all(), up(), ""},
		{"5.2.3 nor while its start has no outcome", two(), history{up(), asked("app", 1)}, ""},
		{"6 nor before its postStart hook is asked for", all(), live, ""},
		{"6 nor while that runs", all(), history{live, postStart("app", 1)}, ""},
		{"6 nor when that has failed", all(), history{live, failing(postStart("app", 1), oops)}, ""},
		{"5.2.9 then the startup probe alone", all(), hooked, "startup"},
		{"5.2.9 and the others when it has succeeded", all(), upAndStarted, "liveness Success, readiness Failure"},
		{"5.2.12 none when it has failed", all(), history{hooked, probed("app", 1, startup, bad)}, ""},
		{"5.2.9 without a startup probe the others at once", two(), live, "liveness Success, readiness Failure"},
		{"5.2.12 a liveness probe that failed is off, readiness is not", two(), history{live, probed("app", 1, liveness, bad)}, "readiness Failure"},
		{"5.5 what was ready holds", two(), history{live, probed("app", 1, readiness, good)}, "liveness Success, readiness Success"},
		{"5.5 and what was not", two(), history{live, probed("app", 1, readiness, good), probed("app", 1, readiness, bad)}, "liveness Success, readiness Failure"},
		{"5.2.6 none of a run that has ended", two(), history{up(), ran("app", 1, 1)}, ""},
		{"5.2.4 those of the next run begin anew", two(), history{live, probed("app", 1, readiness, good), exited("app", 1, 1), running("app", 2)}, "liveness Success, readiness Failure"},
		{"5.6 of a pod that is to end readiness alone", all(), history{upAndStarted, stopped(time.Minute)}, "readiness Failure"},
		{"5.6 and nothing of what has not started", all(), history{hooked, stopped(time.Minute)}, ""},
		{"5.6 until it has ended", all(), history{upAndStarted, stopped(time.Minute), exited("app", 1, 143)}, ""},
		{"5.6 while a preStop hook runs readiness alone", two(), history{live, preStop("app", 1, 9, lifecycle.ReasonSandboxChanged)}, "readiness Failure"},
		{"5.6 or it waits for its turn to end", two(), history{live, await("app", 9, lifecycle.ReasonPodFinished)}, "readiness Failure"},
		{"5.6 or after the stop signal", two(), history{live, stop("app", 1, 9)}, "readiness Failure"},
		{"5.6 or after SIGKILL", two(), history{live, kill("app", 1)}, "readiness Failure"},
		{"5.6 a startup probe is off in a kill", with(podOf(spec.RestartAlways, "app"), probe(startup)), history{live, kill("app", 1)}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			facts := fold(row.past)
			var got []string
			for _, o := range lifecycle.Decide(row.pod, facts, at(2)).Probes {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s", o.Kind, o.Initial)))
				newest := facts.Containers["app"].Newest
				if o.Ref != newest.Ref || o.Started != newest.Started || o.Spec != specOf(&row.pod.Containers[0], o.Kind) {
					t.Errorf("order %+v", o)
				}
			}
			if text := strings.Join(got, ", "); text != row.want {
				t.Errorf("probes\n got %s\nwant %s", text, row.want)
			}
		})
	}
}

func specOf(c *spec.Container, kind lifecycle.ProbeKind) *spec.Probe {
	return map[lifecycle.ProbeKind]*spec.Probe{
		startup: c.StartupProbe, liveness: c.LivenessProbe, readiness: c.ReadinessProbe,
	}[kind]
}

func TestDecideProbeKill(t *testing.T) {
	const hadLiveness, hadStartup = lifecycle.ReasonLivenessProbe, lifecycle.ReasonStartupProbe
	pod := func(policy spec.RestartPolicy, change ...func(*spec.Container)) *spec.Pod {
		return with(podOf(policy, "app", "other"), append(change, probe(liveness, ownGrace(5)), probe(startup))...)
	}
	always := pod(spec.RestartAlways)
	hooks := pod(spec.RestartAlways, hook(lifecycle.PreStop))
	live := history{up(), running("other", 1), running("app", 1)}
	alive := history{live, probed("app", 1, startup, good)}
	dead := history{alive, tick(10), probed("app", 1, liveness, bad)}
	signal := lifecycle.StopContainer{Ref: run("app", 1), Grace: 5 * time.Second, Reason: hadLiveness}
	killed := history{dead, signal, tick(11), exited("app", 1, 0)}
	decisions{
		{name: "5.2 a readiness failure ends nothing", pod: always, past: history{alive, probed("app", 1, readiness, bad)}, now: 10},
		{name: "5.2 a liveness failure ends the run, with the probe's own grace", pod: always, past: dead, now: 10, want: do{signal}},
		{
			name: "5.2 a startup failure with the pod's where it has none", pod: always, past: history{live, tick(10), probed("app", 1, startup, bad)}, now: 10,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: hadStartup}},
		},
		{
			name: "5.2 or with its own", pod: with(podOf(spec.RestartAlways, "app", "other"), probe(startup, ownGrace(7))),
			past: history{live, tick(10), probed("app", 1, startup, bad)}, now: 10,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 7 * time.Second, Reason: hadStartup}},
		},
		{
			name: "5.1 a probe's own grace is for its own kills only", pod: always, past: history{alive, tick(10), lost(1)}, now: 10,
			want: do{
				lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
				lifecycle.StopContainer{Ref: run("other", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
			},
		},
		{name: "5.2 it goes on though its probes say well", pod: always, past: history{dead, signal, probed("app", 1, liveness, good)}, now: 14.9, wake: 15},
		{name: "5.2 and what is deaf is killed", pod: always, past: history{dead, signal}, now: 15, want: do{kill("app", 1)}},
		{name: "an end that was begun is brought to its end", pod: always, past: history{live, tick(10), stop("app", 1, 5*time.Second)}, now: 15, want: do{kill("app", 1)}},
		{
			name: "5.1 two that a probe ends have a grace period each", pod: within(pod(spec.RestartAlways), "other", probe(liveness)),
			past: history{alive, tick(8), probed("other", 1, liveness, bad), lifecycle.StopContainer{Ref: run("other", 1), Grace: 30 * time.Second, Reason: hadLiveness}, tick(10), probed("app", 1, liveness, bad)}, now: 10, want: do{signal}, wake: 38,
		},
		{name: "6 through preStop", pod: hooks, past: dead, now: 10, want: do{preStop("app", 1, 5*time.Second, hadLiveness)}},
		{name: "DEVIATIONS 5 the first restart is immediate", pod: always, past: killed, now: 11, want: do{pull("app", 2, 1)}},
		{name: "DEVIATIONS 5 and counts in the backoff", pod: always, past: history{killed, pulled("app", 2)}, now: 11, want: do{start("app", 2, 1, 1)}},
		{
			name: "DEVIATIONS 5 the next one waits", pod: always, past: history{
				killed, pulled("app", 2), start("app", 2, 1, 1), started("app", 2), probed("app", 2, startup, good), tick(20), probed("app", 2, liveness, bad),
				lifecycle.StopContainer{Ref: run("app", 2), Grace: 5 * time.Second, Reason: hadLiveness},
				tick(21), exited("app", 2, 137), reap("app", 1),
			}, now: 21, wake: 31,
		},
		{name: "5.2 under OnFailure it runs again though it said 0", pod: pod(spec.RestartOnFailure), past: killed, now: 11, want: do{pull("app", 2, 1)}},
		{
			name: "5.2 after a startup failure too", pod: pod(spec.RestartOnFailure),
			past: history{
				live, tick(10), probed("app", 1, startup, bad),
				lifecycle.StopContainer{Ref: run("app", 1), Reason: hadStartup},
				exited("app", 1, 0),
			},
			now: 11, want: do{pull("app", 2, 1)},
		},
		{
			name: "4.1 but not what said 0 for another reason", pod: pod(spec.RestartOnFailure),
			past: history{live, tick(10), lifecycle.StopContainer{Ref: run("app", 1), Reason: lifecycle.ReasonFailedPostStartHook}, exited("app", 1, 0)}, now: 11,
		},
		{name: "5.2 under Never it does not", pod: pod(spec.RestartNever), past: history{dead, signal, exited("app", 1, 137)}, now: 11},
		{
			name: "5.1 a pod that is to end has its own grace", pod: always, past: history{dead, stopped(20 * time.Second)}, now: 10,
			want: do{stop("app", 1, 20*time.Second), stop("other", 1, 20*time.Second)},
		},
		{
			name: "5.1 which does not lengthen a kill that is under way", pod: podOf(spec.RestartAlways, "app"),
			past: history{dead, exited("other", 1, 0), signal, stopped(20 * time.Second)}, now: 14.9, wake: 15,
		},
	}.check(t)
}

func TestVerdicts(t *testing.T) {
	past := history{
		up(), running("b", 1), running("a", 1), tick(5), probed("b", 1, startup, good), probed("b", 1, readiness, bad),
		tick(6), probed("a", 1, liveness, bad), running("a-dead", 1), probed("a-dead", 1, startup, good), exited("a-dead", 1, 1), running("d", 1),
	}
	change := func(name string, kind lifecycle.ProbeKind, v lifecycle.Verdict, second float64) lifecycle.ProbeChanged {
		return lifecycle.ProbeChanged{
			ProbeRef: lifecycle.ProbeRef{Ref: run(name, 1), Kind: kind}, Verdict: v, Message: "no good", Count: 3, At: at(second),
		}
	}
	facts := fold(past)
	got := facts.Verdicts()
	want := []lifecycle.ProbeChanged{change("a", liveness, bad, 6), change("b", startup, good, 5), change("b", readiness, bad, 5)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	older := fold(history{up(), running("b", 1), running("a", 1)})
	for _, e := range got {
		older = older.Apply(e)
	}
	if diff := cmp.Diff(facts.Containers["b"], older.Containers["b"]); diff != "" {
		t.Errorf("facts that the verdicts are folded into (-want +got):\n%s", diff)
	}
}

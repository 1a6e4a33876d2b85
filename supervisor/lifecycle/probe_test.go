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

// results are the results of a probe's handler: one letter each, requested when the probe is due and available after a delay.
var results = map[rune]lifecycle.ProbeOutcome{
	'+': lifecycle.ProbeSuccess, '!': lifecycle.ProbeWarning, '-': lifecycle.ProbeFailure, '?': lifecycle.ProbeError,
}

// TestProbe runs a probe of a container that started at 100 s and records the events with their times: "-1" is the first
// consecutive failure, "?" a handler that could not run, "!" a warning, "Failure" and "Success" are verdicts.
func TestProbe(t *testing.T) {
	for _, row := range []struct {
		name    string
		kind    lifecycle.ProbeKind
		spec    spec.Probe // differences to a period of 10 s, successThreshold 1, failureThreshold 3
		start   float64    // when the probe starts
		spread  time.Duration
		initial lifecycle.Verdict
		takes   float64 // duration of the handler
		results string
		events  string
		due     float64 // 0: never again
	}{
		{name: "5.2 first run is due at once", kind: liveness, start: 100, due: 100},
		{
			name: "5.1 first run is due after the initial delay, counted from the start of the container", kind: liveness,
			spec: spec.Probe{InitialDelaySeconds: 15}, start: 103, due: 115,
		},
		{
			name: "5.1 initial delay has passed when the probe starts", kind: readiness, spec: spec.Probe{InitialDelaySeconds: 15},
			start: 140, due: 140,
		},
		{name: "5.2 first run is due after the spread", kind: liveness, start: 500, spread: 4 * time.Second, due: 504},
		{
			name: "5.2 first run is due after the longer of spread and initial delay", kind: liveness,
			spec: spec.Probe{InitialDelaySeconds: 15}, start: 100, spread: 4 * time.Second, due: 115,
		},
		{name: "5.2 runs once per period", kind: liveness, start: 100, initial: good, results: "+++", due: 130},
		{
			name: "5.2 period includes the duration of the handler", kind: liveness, start: 100, takes: 4, initial: good, results: "++",
			due: 120,
		},
		{
			name: "5.2 handler that takes longer than the period runs again at once, without piling up", kind: liveness, start: 100,
			takes: 25, initial: good, results: "++", due: 150,
		},
		{
			name: "5.1 period may be fractional", kind: liveness, spec: spec.Probe{PeriodSeconds: 0.5}, start: 100, initial: good,
			results: "+++", due: 101.5,
		},
		{
			name: "5.2.11 verdict is unchanged below the threshold", kind: liveness, start: 100, initial: good, results: "--+",
			events: "100 -1, 110 -2", due: 130,
		},
		{
			name: "5.2.11 opposite result resets the count", kind: liveness, start: 100, initial: good, results: "--+--",
			events: "100 -1, 110 -2, 130 -1, 140 -2", due: 150,
		},
		{
			name: "5.2.12 liveness probe stops after its failure", kind: liveness, start: 100, initial: good, results: "---",
			events: "100 -1, 110 -2, 120 -3, 120 Failure after 3",
		},
		{
			name: "5.2.12 results after the failure are ignored", kind: liveness, start: 100, initial: good, results: "-----",
			events: "100 -1, 110 -2, 120 -3, 120 Failure after 3",
		},
		{
			name: "5.2 failureThreshold", kind: liveness, spec: spec.Probe{FailureThreshold: 1}, start: 100, initial: good, results: "-",
			events: "100 -1, 100 Failure after 1",
		},
		{name: "5.2 first success of a liveness probe is no change", kind: liveness, start: 100, initial: good, results: "+", due: 110},
		{
			name: "5.2.12 startup probe stops after its success", kind: startup, start: 100, results: "--+",
			events: "100 -1, 110 -2, 120 Success after 1",
		},
		{
			name: "5.2.12 startup probe stops after its failure", kind: startup, start: 100, results: "---",
			events: "100 -1, 110 -2, 120 -3, 120 Failure after 3",
		},
		{
			name: "5.2 startup probe has the initial delay plus failureThreshold periods", kind: startup,
			spec: spec.Probe{InitialDelaySeconds: 5, FailureThreshold: 2, PeriodSeconds: 3}, start: 100, results: "--",
			events: "105 -1, 108 -2, 108 Failure after 2",
		},
		{
			name: "5.2 first failures of a readiness probe are no change", kind: readiness, start: 100, initial: bad, results: "---",
			events: "100 -1, 110 -2, 120 -3", due: 130,
		},
		{
			name: "5.2.11 readiness probe succeeds", kind: readiness, start: 100, initial: bad, results: "-++",
			events: "100 -1, 110 Success after 1", due: 130,
		},
		{
			name: "5.1 successThreshold", kind: readiness, spec: spec.Probe{SuccessThreshold: 2}, start: 100, initial: bad, results: "+-++",
			events: "110 -1, 130 Success after 2", due: 140,
		},
		{
			name: "5.2 readiness probe continues after three failures", kind: readiness, start: 100, initial: bad, results: "+---+",
			events: "100 Success after 1, 110 -1, 120 -2, 130 -3, 130 Failure after 3, 140 Success after 1", due: 150,
		},
		{
			name: "5.5 ready container stays ready until the failure threshold", kind: readiness, start: 500, initial: good,
			results: "--+---", events: "500 -1, 510 -2, 530 -1, 540 -2, 550 -3, 550 Failure after 3", due: 560,
		},
		{
			name: "5.2.10 handler error is retried three times and does not count", kind: liveness, start: 100, initial: good,
			results: "--???-", events: "100 -1, 110 -2, 120 ?, 130 -3, 130 Failure after 3",
		},
		{
			name: "5.2.10 successful retry after a handler error emits nothing", kind: liveness, start: 100, initial: good, results: "?+",
			due: 110,
		},
		{name: "5.2.10 retry is due when the error arrived", kind: liveness, start: 100, takes: 4, initial: good, results: "?", due: 104},
		{name: "5.2.10 result resets the count of handler errors", kind: liveness, start: 100, initial: good, results: "??+??+", due: 120},
		{
			name: "5.2.10 count of handler errors starts again after the last retry", kind: liveness, start: 100, initial: good,
			results: "?????", events: "100 ?", due: 110,
		},
		{
			name: "5.2 warning is a success and is emitted", kind: startup, start: 100, results: "-!",
			events: "100 -1, 110 !, 110 Success after 1",
		},
		{
			name: "5.2 warning resets the count of failures", kind: liveness, start: 100, initial: good, results: "--!--",
			events: "100 -1, 110 -2, 120 !, 130 -1, 140 -2", due: 150,
		},
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
				ProbeRef: ref, Spec: &p, Started: at(100), Initial: row.initial,
			}, at(row.start), row.spread)
			var texts []string
			now := at(row.start)
			for _, c := range row.results {
				if due := probe.Due(); !due.IsZero() {
					now = due.Add(time.Duration(row.takes * float64(time.Second)))
				}
				var events []lifecycle.Event
				events, probe = probe.Step(now, lifecycle.ProbeResult{Outcome: results[c], Message: "failed"})
				for _, e := range events {
					texts = append(texts, describeProbeEvent(t, e, ref, now))
				}
			}
			if got := strings.Join(texts, ", "); got != row.events {
				t.Errorf("events\n got %s\nwant %s", got, row.events)
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

func describeProbeEvent(t *testing.T, e lifecycle.Event, ref lifecycle.ProbeRef, now lifecycle.Instant) string {
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
	if who != ref || when != now || message != "failed" {
		t.Errorf("%#v: want ref %v and time %v", e, ref, now)
	}
	return fmt.Sprintf("%v %s", now.Mono.Seconds(), what)
}

// TestDecideProbes checks which probes run for the container "app".
func TestDecideProbes(t *testing.T) {
	all := func() *spec.Pod {
		return with(podOf(spec.RestartAlways, "app"), probe(startup), probe(liveness), probe(readiness), hook(lifecycle.PostStart))
	}
	two := func() *spec.Pod { return with(podOf(spec.RestartAlways, "app"), probe(liveness), probe(readiness)) }
	live := history{up(), running("app", 1)}
	hooked := history{live, postStart("app", 1), hookDone("app", 1, lifecycle.PostStart)}
	upAndStarted := history{hooked, probed("app", 1, startup, good)}
	for _, row := range []struct {
		name string
		pod  *spec.Pod
		past history
		want string
	}{
		{"5.2.3 none before the container started", all(), up(), ""},
		{"5.2.3 none while the start is in progress", two(), history{up(), issued("app", 1)}, ""},
		{"6 none before the postStart hook", all(), live, ""},
		{"6 none while the postStart hook runs", all(), history{live, postStart("app", 1)}, ""},
		{"6 none after the postStart hook failed", all(), history{live, failing(postStart("app", 1), oops)}, ""},
		{"5.2.9 only startup after the postStart hook", all(), hooked, "startup"},
		{"5.2.9 liveness and readiness after startup succeeded", all(), upAndStarted, "liveness Success, readiness Failure"},
		{"5.2.12 none after startup failed", all(), history{hooked, probed("app", 1, startup, bad)}, ""},
		{"5.2.9 liveness and readiness at once without a startup probe", two(), live, "liveness Success, readiness Failure"},
		{"5.2.12 only readiness after liveness failed", two(), history{live, probed("app", 1, liveness, bad)}, "readiness Failure"},
		{
			"5.5 ready container starts as ready", two(),
			history{live, probed("app", 1, readiness, good)},
			"liveness Success, readiness Success",
		},
		{
			"5.5 unready container starts as unready", two(),
			history{live, probed("app", 1, readiness, good), probed("app", 1, readiness, bad)},
			"liveness Success, readiness Failure",
		},
		{"5.2.6 none after the container exited", two(), history{up(), ran("app", 1, 1)}, ""},
		{
			"5.2.4 restarted container starts with initial verdicts", two(),
			history{live, probed("app", 1, readiness, good), exited("app", 1, 1), running("app", 2)},
			"liveness Success, readiness Failure",
		},
		{"5.6 only readiness in a stopping pod", all(), history{upAndStarted, stopped(time.Minute)}, "readiness Failure"},
		{"5.6 none in a stopping pod before startup succeeded", all(), history{hooked, stopped(time.Minute)}, ""},
		{
			"5.6 none after the container exited in a stopping pod", all(),
			history{upAndStarted, stopped(time.Minute), exited("app", 1, 143)},
			"",
		},
		{
			"5.6 only readiness during the preStop hook", two(),
			history{live, preStop("app", 1, 9, lifecycle.ReasonSandboxChanged)},
			"readiness Failure",
		},
		{
			"5.6 only readiness while waiting for other containers to stop", two(),
			history{live, waitForTurn("app", 9, lifecycle.ReasonPodFinished)},
			"readiness Failure",
		},
		{"5.6 only readiness after the stop signal", two(), history{live, stop("app", 1, 9)}, "readiness Failure"},
		{"5.6 only readiness after SIGKILL", two(), history{live, kill("app", 1)}, "readiness Failure"},
		{"5.6 no startup probe after SIGKILL", with(podOf(spec.RestartAlways, "app"), probe(startup)), history{live, kill("app", 1)}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			facts := fold(row.past)
			var got []string
			for _, o := range lifecycle.Decide(row.pod, facts, at(2)).Probes {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s", o.Kind, o.Initial)))
				newest := facts.Container("app").Newest
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

func TestDecideProbeFailure(t *testing.T) {
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
		{
			name: "5.2 readiness failure does not stop the container", pod: always, past: history{alive, probed("app", 1, readiness, bad)},
			now: 10,
		},
		{
			name: "5.2 liveness failure stops the container with the probe's grace period", pod: always, past: dead, now: 10,
			want: do{signal},
		},
		{
			name: "5.2 startup failure stops the container with the pod's grace period", pod: always,
			past: history{live, tick(10), probed("app", 1, startup, bad)}, now: 10,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: hadStartup}},
		},
		{
			name: "5.2 startup failure stops the container with the probe's grace period",
			pod:  with(podOf(spec.RestartAlways, "app", "other"), probe(startup, ownGrace(7))),
			past: history{live, tick(10), probed("app", 1, startup, bad)}, now: 10,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 7 * time.Second, Reason: hadStartup}},
		},
		{
			name: "5.1 probe's grace period does not apply to other stops", pod: always, past: history{alive, tick(10), sandboxLost(1)},
			now: 10,
			want: do{
				lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
				lifecycle.StopContainer{Ref: run("other", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
			},
		},
		{
			name: "5.2 later success does not revoke the stop", pod: always, past: history{dead, signal, probed("app", 1, liveness, good)},
			now: 14.9, wake: 15,
		},
		{
			name: "5.2 container is killed after the grace period", pod: always, past: history{dead, signal}, now: 15,
			want: do{kill("app", 1)},
		},
		{
			name: "termination in progress continues", pod: always, past: history{live, tick(10), stop("app", 1, 5*time.Second)}, now: 15,
			want: do{kill("app", 1)},
		},
		{
			name: "5.1 two containers stopped by probes have their own grace periods",
			pod:  within(pod(spec.RestartAlways), "other", probe(liveness)),
			past: history{
				alive, tick(8), probed("other", 1, liveness, bad),
				lifecycle.StopContainer{Ref: run("other", 1), Grace: 30 * time.Second, Reason: hadLiveness},
				tick(10),
				probed("app", 1, liveness, bad),
			},
			now: 10, want: do{signal}, wake: 38,
		},
		{
			name: "6 liveness failure stops the container through the preStop hook", pod: hooks, past: dead, now: 10,
			want: do{preStop("app", 1, 5*time.Second, hadLiveness)},
		},
		{
			name: "deviation 5 first restart after a probe failure is immediate", pod: always, past: killed, now: 11,
			want: do{pull("app", 2, 1)},
		},
		{
			name: "deviation 5 first restart after a probe failure raises the back-off level", pod: always,
			past: history{killed, pulled("app", 2)}, now: 11, want: do{start("app", 2, 1, 1)},
		},
		{
			name: "deviation 5 second restart after a probe failure backs off", pod: always, past: history{
				killed, pulled("app", 2), start("app", 2, 1, 1), started("app", 2), probed("app", 2, startup, good), tick(20),
				probed("app", 2, liveness, bad),
				lifecycle.StopContainer{Ref: run("app", 2), Grace: 5 * time.Second, Reason: hadLiveness},
				tick(21), exited("app", 2, 137), removeContainer("app", 1),
			}, now: 21, wake: 31,
		},
		{
			name: "5.2 OnFailure restarts after a liveness failure despite exit code 0", pod: pod(spec.RestartOnFailure), past: killed,
			now: 11, want: do{pull("app", 2, 1)},
		},
		{
			name: "5.2 OnFailure restarts after a startup failure despite exit code 0", pod: pod(spec.RestartOnFailure),
			past: history{
				live, tick(10), probed("app", 1, startup, bad),
				lifecycle.StopContainer{Ref: run("app", 1), Reason: hadStartup},
				exited("app", 1, 0),
			},
			now: 11, want: do{pull("app", 2, 1)},
		},
		{
			name: "4.1 OnFailure does not restart after exit code 0 for another stop reason", pod: pod(spec.RestartOnFailure),
			past: history{
				live, tick(10),
				lifecycle.StopContainer{Ref: run("app", 1), Reason: lifecycle.ReasonFailedPostStartHook},
				exited("app", 1, 0),
			},
			now: 11,
		},
		{
			name: "5.2 Never does not restart after a liveness failure", pod: pod(spec.RestartNever),
			past: history{dead, signal, exited("app", 1, 137)}, now: 11,
		},
		{
			name: "5.1 pod's grace period applies to a stopping pod", pod: always, past: history{dead, stopped(20 * time.Second)}, now: 10,
			want: do{stop("app", 1, 20*time.Second), stop("other", 1, 20*time.Second)},
		},
		{
			name: "5.1 stop request does not extend the grace period of a probe failure", pod: podOf(spec.RestartAlways, "app"),
			past: history{dead, exited("other", 1, 0), signal, stopped(20 * time.Second)}, now: 14.9, wake: 15,
		},
	}.check(t)
}

func TestVerdicts(t *testing.T) {
	past := history{
		up(), running("b", 1), running("a", 1), tick(5), probed("b", 1, startup, good), probed("b", 1, readiness, bad),
		tick(6), probed("a", 1, liveness, bad), running("a-dead", 1), probed("a-dead", 1, startup, good), exited("a-dead", 1, 1),
		running("d", 1),
	}
	change := func(name string, kind lifecycle.ProbeKind, v lifecycle.Verdict, second float64) lifecycle.ProbeChanged {
		return lifecycle.ProbeChanged{
			ProbeRef: lifecycle.ProbeRef{Ref: run(name, 1), Kind: kind}, Verdict: v, Message: "failed", Count: 3, At: at(second),
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
			facts.Containers["app"].Newest.Probes.Readiness = was
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
	if got := stopped.Apply(lifecycle.DefinitionChanged{
		From: from, To: to, At: at(2),
	}).Containers["app"].Newest.Probes.Readiness; got != (lifecycle.ProbeStatus{}) {
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
	facts.Containers["app"].Newest.Probes.Readiness = lifecycle.ProbeStatus{Verdict: lifecycle.VerdictSuccess, Count: 1, At: at(1)}
	facts = facts.Apply(lifecycle.DefinitionChanged{From: from, To: to, Restarted: []string{"app"}, At: at(2)})

	s := lifecycle.StatusOf(to, facts, at(2)).ContainerStatuses[0]
	if s.State.Running == nil || !*s.Started || !s.Ready {
		t.Errorf("status %+v, want a ready container", s)
	}
	probes := lifecycle.Decide(to, facts, at(2)).Probes
	if len(probes) != 1 || probes[0].Kind != lifecycle.ProbeReadiness || probes[0].Spec.Exec.Command[0] != "old" ||
		probes[0].Definition.Lifecycle != nil {
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
	if p := request(history{up(), pullFailed("app", 1, 1, lifecycle.ReasonErrImagePull)}); p != (lifecycle.Pull{}) {
		t.Errorf("a pull that has failed: %+v", p)
	}
}

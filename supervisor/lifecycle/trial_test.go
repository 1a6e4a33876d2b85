package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/lifecycle/lifecycletest"
)

// tried checks that nothing of a definition is started that has failed and is rolled back.
func (v *invariants) tried(f lifecycle.Facts, a lifecycle.Action, now lifecycle.Instant) {
	switch a.(type) {
	case lifecycle.StartSandbox, lifecycle.StartContainer, lifecycle.StartRound, lifecycle.ResizePod:
	default:
		return
	}
	t := &f.Trial
	if !t.RollsBack || !t.Passed.IsZero() {
		return
	}
	if !t.Failed.IsZero() {
		v.violation("%#v after the trial has failed: %s", a, t.Message)
	}
	for name, c := range f.Containers {
		r := &c.Newest
		lost := r.Exit.Reason == lifecycle.ReasonUnknown || r.Exit.Reason == lifecycle.ReasonStatusUnknown
		ephemeral := slices.ContainsFunc(f.Ephemeral, func(e spec.Container) bool { return e.Name == name })
		failed := !r.Exited.IsZero() && r.Exit.Code != 0 && r.StopReason == "" && !lost && !r.Requested.Before(t.Since)
		if failed && v.pod.Container(name) != nil && !ephemeral {
			v.violation("%#v after %v has failed with exit code %d", a, r.Ref, r.Exit.Code)
		}
	}
	ready := slices.ContainsFunc(lifecycle.StatusOf(v.pod, f, now).Conditions, func(c lifecycle.Condition) bool {
		return c.Type == lifecycle.PodReady && c.Status == "True"
	})
	if !t.Due.IsZero() && !now.Before(t.Due) && !ready && f.EngineUnavailable.IsZero() {
		v.violation("%#v after the pod was not ready in time", a)
	}
}

// TestFailedUpdateIsNotRestarted: whatever makes an update fail, and whatever happens until it is rolled back, no container of it is
// started again. The rollback then starts what it needs, without the grace period of what has failed.
func TestFailedUpdateIsNotRestarted(t *testing.T) {
	const (
		updated  = time.Minute
		rollback = 5 * time.Minute
	)
	once := lifecycletest.Run{Lasts: 15 * time.Second, Exit: lifecycle.Exit{Code: 9, Reason: lifecycle.ReasonError}}
	probed := func(kind lifecycle.ProbeKind) lifecycletest.Run {
		never := slices.Repeat([]lifecycle.ProbeOutcome{lifecycle.ProbeFailure}, 100)
		return lifecycletest.Run{Forever: true, Probes: map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome{kind: never}}
	}
	withProbe := func(kind lifecycle.ProbeKind) func(*spec.Pod) {
		return func(p *spec.Pod) { probe(kind)(&p.Containers[0]) }
	}
	rule := spec.RestartRule{Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "In", Values: []int32{9}}}
	type events = func(*lifecycletest.World)
	at := func(at time.Duration, do events) events {
		return func(w *lifecycletest.World) { w.At(updated+at, func() { do(w) }) }
	}
	all := func(list ...events) events {
		return func(w *lifecycletest.World) {
			for _, do := range list {
				do(w)
			}
		}
	}
	crash := func(w *lifecycletest.World) { w.Crash(10 * time.Second) }
	reboot := func(w *lifecycletest.World) { w.Reboot(10 * time.Second) }
	lose := func(w *lifecycletest.World) { w.LoseSandbox(true) }
	unavailable := func(is bool) events { return func(w *lifecycletest.World) { w.SetUnavailable(is) } }
	otherEnds := func(w *lifecycletest.World) { w.Exit("other", lifecycle.Exit{Code: 1}) }
	const exit9 = `container "app" exited with code 9`
	startFails := lifecycletest.Start{Failure: &lifecycle.Failure{Message: "no such file"}}
	slow := lifecycletest.Run{Start: lifecycletest.Start{Takes: 2 * time.Second}, Exit: once.Exit}
	unready := lifecycletest.Run{Lasts: 90 * time.Second, Probes: probed(readiness).Probes}
	const stopped = `container "app" was stopped because its %s probe failed`
	const cannotStart = `container "app" could not be started: no such file`
	noEngine := all(at(16*time.Second, unavailable(true)), at(30*time.Second, unavailable(false)))
	for name, test := range map[string]struct {
		run    lifecycletest.Run // of the updated container
		change func(*spec.Pod)   // of the updated definition
		events events
		why    string
	}{
		"exit":              {once, nil, nil, exit9},
		"exit at once":      {lifecycletest.Run{Exit: lifecycle.Exit{Code: 1}}, nil, nil, `container "app" exited with code 1`},
		"cannot be started": {lifecycletest.Run{Start: startFails}, nil, nil, cannotStart},
		"liveness":          {probed(liveness), withProbe(liveness), nil, fmt.Sprintf(stopped, "liveness")},
		"startup":           {probed(startup), withProbe(startup), nil, fmt.Sprintf(stopped, "startup")},
		"not ready in time": {unready, withProbe(readiness), nil, "the pod was not ready within 1m0s"},
		"restarts all containers": {once, func(p *spec.Pod) {
			p.Containers[0].RestartPolicy, p.Containers[0].RestartPolicyRules = spec.RestartNever, []spec.RestartRule{rule}
		}, nil, exit9},
		"supervisor is killed at the exit":         {once, nil, at(15*time.Second, crash), exit9},
		"container exits while there is none":      {once, nil, at(10*time.Second, crash), exit9},
		"supervisor is killed while it starts":     {slow, nil, at(time.Second, crash), exit9},
		"supervisor is killed again and again":     {once, nil, all(at(14*time.Second, crash), at(40*time.Second, crash)), exit9},
		"host reboots after the exit":              {once, nil, at(20*time.Second, reboot), exit9},
		"sandbox is lost after the exit":           {once, nil, at(20*time.Second, lose), exit9},
		"engine is unavailable after the exit":     {once, nil, noEngine, exit9},
		"another container ends after the failure": {once, nil, at(20*time.Second, otherEnds), exit9},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(spec.RestartAlways, "app", "other")
			pod.TerminationGracePeriodSeconds = 30
			next := podOf(spec.RestartAlways, "app", "other")
			next.Containers[0].Image = "next"
			if test.change != nil {
				test.change(next)
			}
			w := lifecycletest.New(pod, lifecycletest.Script{Runs: map[string][]lifecycletest.Run{
				"app": {{Forever: true, Probes: map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome{}}, test.run},
			}})
			timeline, v, starts, from := lifecycletest.NewTimeline(pod), invariants{}, 0, time.Duration(0)
			w.Observe = func(s lifecycletest.Step) {
				timeline.Observe(s)
				if err := v.step(s); err != nil {
					w.Violation(err)
				}
				issued, ok := s.Event.(lifecycle.Issued)
				start, is := issued.Action.(lifecycle.StartContainer)
				switch {
				case ok && s.Since >= rollback && from == 0:
					from = s.Since
				case is && start.Container == "app" && s.Since >= updated && s.Since < rollback:
					starts++
				}
			}
			w.At(updated, func() {
				w.Redefine(next, true, "app")
				w.BeginTrial(time.Minute, 100*time.Second, true)
			})
			if test.events != nil {
				test.events(w)
			}
			outcome, why := lifecycle.Outcome{}, ""
			w.At(rollback, func() {
				s := lifecycle.StatusOf(w.Spec, w.Facts, w.Now())
				outcome, why = lifecycle.OutcomeOf(w.Spec, w.Facts, &s), w.Facts.Trial.Message
				w.Redefine(pod, true, "app")
				w.BeginTrial(0, 5*time.Second, false)
			})
			if err := w.Run(10 * time.Minute); err != nil {
				t.Error(err)
			}
			if starts != 1 || outcome.State != lifecycle.OutcomeFailed || !strings.Contains(why, test.why) || outcome.Message != why {
				t.Errorf("%d starts of the update, want one; outcome %+v, %q, want %q\n%s", starts, outcome, why, test.why, timeline)
			}
			s := lifecycle.StatusOf(w.Spec, w.Facts, w.Now())
			if o := lifecycle.OutcomeOf(w.Spec, w.Facts, &s); o.State != lifecycle.OutcomeComplete || from != rollback {
				t.Errorf("outcome of the rollback %+v, first action at %v\n%s", o, from, timeline)
			}
		})
	}
}

// TestTimeOfTrial: the time of an update to become ready is its own. It does not count while what it replaces stops, while the daemon
// is stopped, and while nothing can be started. A good update is not rolled back, and a bad one is as late.
func TestTimeOfTrial(t *testing.T) {
	const updated = time.Minute
	after := func(d time.Duration, do func(*lifecycletest.World)) func(*lifecycletest.World) {
		return func(w *lifecycletest.World) { w.At(updated+d, func() { do(w) }) }
	}
	restartPod := after(0, func(w *lifecycletest.World) { w.Restart() })
	for name, test := range map[string]struct {
		stops  time.Duration // how long the earlier run takes to stop
		events func(*lifecycletest.World)
		counts time.Duration // from the update until its time counts
	}{
		"at once":              {0, nil, 0},
		"container is stopped": {90 * time.Second, nil, 90 * time.Second},
		"pod is stopped":       {90 * time.Second, restartPod, 90 * time.Second},
		"daemon is stopped":    {0, after(10*time.Second, func(w *lifecycletest.World) { w.ShutDown(5 * time.Minute) }), 310 * time.Second},
		"engine is unavailable": {0, func(w *lifecycletest.World) {
			after(10*time.Second, func(w *lifecycletest.World) { w.SetUnavailable(true) })(w)
			after(80*time.Second, func(w *lifecycletest.World) { w.SetUnavailable(false) })(w)
		}, 70 * time.Second},
	} {
		for _, good := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/good=%t", name, good), func(t *testing.T) {
				pod, next := podOf(spec.RestartAlways, "app"), podOf(spec.RestartAlways, "app")
				pod.TerminationGracePeriodSeconds, next.TerminationGracePeriodSeconds = 120, 120
				next.Containers[0].Image = "next"
				probe(readiness)(&next.Containers[0])
				slow := lifecycletest.Run{Forever: true, Probes: map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome{
					readiness: slices.Repeat([]lifecycle.ProbeOutcome{lifecycle.ProbeFailure}, 1000),
				}}
				if good {
					slow.Probes = nil
				}
				w := lifecycletest.New(pod, lifecycletest.Script{Runs: map[string][]lifecycletest.Run{
					"app": {{Forever: true, StopTakes: test.stops}, slow, slow},
				}})
				timeline := lifecycletest.NewTimeline(pod)
				w.Observe = timeline.Observe
				w.At(updated, func() {
					w.Redefine(next, true, "app")
					w.BeginTrial(time.Minute, 5*time.Second, true)
				})
				if test.events != nil {
					test.events(w)
				}
				run := func(d time.Duration) lifecycle.OutcomeState {
					if err := w.Run(updated + test.counts + d); err != nil {
						t.Fatal(err)
					}
					s := lifecycle.StatusOf(w.Spec, w.Facts, w.Now())
					return lifecycle.OutcomeOf(w.Spec, w.Facts, &s).State
				}
				before, end := run(55*time.Second), run(65*time.Second)
				want := [2]lifecycle.OutcomeState{lifecycle.OutcomeProgressing, lifecycle.OutcomeFailed}
				if good {
					want = [2]lifecycle.OutcomeState{lifecycle.OutcomeComplete, lifecycle.OutcomeComplete}
				}
				if got := [2]lifecycle.OutcomeState{before, end}; got != want {
					t.Errorf("outcomes %v before and after its time, want %v\n%s", got, want, timeline)
				}
			})
		}
	}
}

// TestFailedUpdateStaysFailed: an update that was not ready in time and is being rolled back has failed, also if it becomes ready before
// the earlier definition replaces it.
func TestFailedUpdateStaysFailed(t *testing.T) {
	for rollsBack, want := range map[bool]lifecycle.OutcomeState{true: lifecycle.OutcomeFailed, false: lifecycle.OutcomeComplete} {
		pod := podOf(spec.RestartAlways, "app")
		probe(readiness)(&pod.Containers[0])
		late := lifecycletest.Run{Forever: true, Probes: map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome{
			readiness: slices.Repeat([]lifecycle.ProbeOutcome{lifecycle.ProbeFailure}, 7),
		}}
		w := lifecycletest.New(pod, lifecycletest.Script{Runs: map[string][]lifecycletest.Run{"app": {late}}})
		w.At(0, func() { w.BeginTrial(time.Minute, time.Second, rollsBack) })
		if err := w.Run(5 * time.Minute); err != nil {
			t.Fatal(err)
		}
		s := lifecycle.StatusOf(w.Spec, w.Facts, w.Now())
		if got := lifecycle.OutcomeOf(w.Spec, w.Facts, &s).State; got != want || !s.ContainerStatuses[0].Ready {
			t.Errorf("rolls back %t: outcome %s, want %s; ready %t", rollsBack, got, want, s.ContainerStatuses[0].Ready)
		}
	}
}

// TestTrialOfCompletedContainer: a pod is not ready while one of its containers has completed, and fails its trial for that (contract 2.2).
func TestTrialOfCompletedContainer(t *testing.T) {
	begun := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.TrialBegun{Trial: lifecycle.NewTrial(time.Minute, time.Second, false, t)}
	})
	past := history{begun, up(), lifecycle.TimeTrial{}, running("app", 1), ran("job", 1, 0)}
	const why = "the pod was not ready within 1m0s: containers with unready status: [job]"
	decisions{
		{name: "before its time is over", pod: podOf(onFailure, "app", "job"), past: past, now: 60, wake: 61},
		{name: "after it", pod: podOf(onFailure, "app", "job"), past: past, now: 61, want: do{lifecycle.FailTrial{Message: why}}},
	}.check(t)
}

// TestTrialOfGatedPod: a pod with a readiness gate is ready since the condition of the gate is True.
func TestTrialOfGatedPod(t *testing.T) {
	begun := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.TrialBegun{Trial: lifecycle.NewTrial(0, 5*time.Second, false, t)}
	})
	pod := podOf(always, "app")
	pod.ReadinessGates = []spec.ReadinessGate{{ConditionType: "example.com/a"}}
	running := history{begun, up(), running("app", 1)}
	open := history{running, tick(10), setCondition("example.com/a", "True"), tick(12), setCondition("example.com/a", "True")}
	decisions{
		{name: "gate is closed", pod: pod, past: running, now: 20},
		{name: "gate is open", pod: pod, past: open, now: 14, wake: 15},
		{name: "gate is open for the minimum ready time", pod: pod, past: open, now: 15, want: do{lifecycle.PassTrial{}}},
	}.check(t)
}

// TestOutcomeOfOtherRuns: a change or a restart is complete when what it replaces has stopped. An ephemeral container does not count.
func TestOutcomeOfOtherRuns(t *testing.T) {
	pod := podOf(always, "app")
	live := history{up(), running("app", 1), running("old", 1)}
	removed := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.DefinitionChanged{From: podOf(always, "app", "old"), To: pod, At: t}
	})
	restarted := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerRestartRequested{Container: "app", At: t}
	})
	for name, test := range map[string]struct {
		past history
		want lifecycle.OutcomeState
	}{
		"container was removed":           {history{live, removed}, lifecycle.OutcomeProgressing},
		"it is forgotten":                 {history{live, removed, lifecycle.ForgetContainer{Container: "old"}}, lifecycle.OutcomeComplete},
		"container is to be restarted":    {history{live, restarted}, lifecycle.OutcomeProgressing},
		"it runs again":                   {history{live, restarted, exited("app", 1, 0), running("app", 2)}, lifecycle.OutcomeComplete},
		"pod is to be restarted":          {history{live, restartRequested}, lifecycle.OutcomeProgressing},
		"ephemeral container is to start": {history{live, addEphemeral("debug"), pull("debug", 1, 1)}, lifecycle.OutcomeComplete},
	} {
		f := fold(test.past)
		s := lifecycle.StatusOf(pod, f, at(5))
		if got := lifecycle.OutcomeOf(pod, f, &s); got.State != test.want {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}

// TestTimeAfterGap: after a time without supervision probes can run before a trial fails.
func TestTimeAfterGap(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{30 * time.Second: 30 * time.Second, time.Hour: time.Minute} {
		f := lifecycle.Facts{}.Apply(lifecycle.TrialBegun{Trial: lifecycle.NewTrial(within, 0, true, at(0))})
		f = f.Apply(lifecycle.Issued{Action: lifecycle.TimeTrial{}, At: at(0)})
		end := at(0).Add(within)
		if got := f.Apply(lifecycle.SupervisionGap{At: end}).Trial.Due.Sub(end); got != want {
			t.Errorf("a trial of %v has %v after a gap, want %v", within, got, want)
		}
	}
}

// TestOutcome: what became of the newest request, second by second.
func TestOutcome(t *testing.T) {
	const crash, fine = 1, 0
	exits := func(code int, lasts ...time.Duration) (list []lifecycletest.Run) {
		for _, d := range lasts {
			list = append(list, lifecycletest.Run{Lasts: d, Exit: lifecycle.Exit{Code: code}})
		}
		return list
	}
	stopsSlowly := []lifecycletest.Run{{Forever: true, StopTakes: 9 * time.Second}}
	for name, test := range map[string]struct {
		policy spec.RestartPolicy
		runs   []lifecycletest.Run
		events func(*lifecycletest.World)
		want   string // the states with the seconds at which they begin
	}{
		"stays ready":             {spec.RestartAlways, nil, nil, "0 Ready, 5 Complete"},
		"crashes at once, always": {spec.RestartAlways, slices.Repeat(exits(crash, 0), 5), nil, "0 Failed, 155 Complete"},
		"dies late":               {spec.RestartAlways, exits(crash, 1500*time.Millisecond), nil, "0 Ready, 2 Failed, 7 Complete"},
		"crashes after it passed": {spec.RestartAlways, exits(crash, 8*time.Second), nil, "0 Ready, 5 Complete"},
		"ends with 0 and starts":  {spec.RestartAlways, exits(fine, 2*time.Second), nil, "0 Ready, 7 Complete"},
		"job":                     {spec.RestartNever, exits(fine, 2*time.Second), nil, "0 Ready, 2 Complete"},
		"job fails":               {spec.RestartNever, exits(crash, 2*time.Second), nil, "0 Ready, 2 Failed"},
		"job fails late":          {spec.RestartNever, exits(crash, 9*time.Second), nil, "0 Ready, 5 Complete, 9 Failed"},
		"supervisor is killed": {spec.RestartAlways, nil, func(w *lifecycletest.World) {
			w.At(3*time.Second, func() { w.Crash(time.Second) })
		}, "0 Ready, 5 Complete"},
		"host reboots": {spec.RestartAlways, nil, func(w *lifecycletest.World) {
			w.At(3*time.Second, func() { w.Reboot(time.Second) })
		}, "0 Ready, 10 Complete"},
		"restarted": {spec.RestartAlways, nil, func(w *lifecycletest.World) {
			w.At(20*time.Second, func() { w.Restart(); w.BeginTrial(0, 5*time.Second, false) })
		}, "0 Ready, 5 Complete, 20 Ready, 25 Complete"},
		"in-place change": {spec.RestartAlways, nil, func(w *lifecycletest.World) {
			w.At(20*time.Second, func() { w.BeginTrial(0, 5*time.Second, false) })
		}, "0 Ready, 5 Complete, 20 Ready, 25 Complete"},
		"in-place change of a failed job": {spec.RestartNever, exits(crash, 2*time.Second), func(w *lifecycletest.World) {
			w.At(20*time.Second, func() { w.BeginTrial(0, 5*time.Second, false) })
		}, "0 Ready, 2 Failed"},
		"in-place change of a job": {spec.RestartNever, exits(fine, 2*time.Second), func(w *lifecycletest.World) {
			w.At(20*time.Second, func() { w.BeginTrial(0, 5*time.Second, false) })
		}, "0 Ready, 2 Complete"},
		"evicted before the change has started anything": {spec.RestartAlways, stopsSlowly, func(w *lifecycletest.World) {
			w.At(20*time.Second, func() { w.Redefine(w.Spec, true, "app"); w.BeginTrial(0, 5*time.Second, false) })
			w.At(21*time.Second, w.Evict)
		}, "0 Ready, 5 Complete, 22 Failed"},
		"deadline before the restart has started anything": {spec.RestartAlways, nil, func(w *lifecycletest.World) {
			limit := spec.Seconds(60)
			w.Spec.ActiveDeadlineSeconds = &limit
			w.At(20*time.Second, func() {
				w.Script.Sandboxes = slices.Repeat([]lifecycletest.Start{{Failure: &lifecycle.Failure{Message: "no network"}}}, 1000)
				w.Restart()
				w.BeginTrial(0, 5*time.Second, false)
			})
		}, "0 Ready, 5 Complete, 80 Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := lifecycletest.New(podOf(test.policy, "app"), lifecycletest.Script{Runs: map[string][]lifecycletest.Run{"app": test.runs}})
			w.Facts.Trial = lifecycle.NewTrial(0, 5*time.Second, false, w.Now())
			if test.events != nil {
				test.events(w)
			}
			var states []string
			last := lifecycle.OutcomeState("")
			for second := range 200 {
				if err := w.Run(time.Duration(second) * time.Second); err != nil {
					t.Fatal(err)
				}
				s := lifecycle.StatusOf(w.Spec, w.Facts, w.Now())
				if o := lifecycle.OutcomeOf(w.Spec, w.Facts, &s); o.State != last && o.State != lifecycle.OutcomeProgressing {
					states, last = append(states, fmt.Sprintf("%d %s", second, o.State)), o.State
				}
			}
			if got := strings.Join(states, ", "); got != test.want {
				t.Errorf("outcomes %s, want %s", got, test.want)
			}
		})
	}
}

package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/lifecycle/lifecycletest"
)

// unhealthy returns a pod with onUnhealthy and a readiness probe every second.
func unhealthy(last spec.UnhealthyStep, change ...func(*spec.Pod)) *spec.Pod {
	pod := &spec.Pod{
		Name: "p", RestartPolicy: spec.RestartAlways, OnUnhealthy: last, UnhealthyAfterSeconds: 100, TerminationGracePeriodSeconds: 5,
		Containers: []spec.Container{{Name: "app", Image: "i", ReadinessProbe: &spec.Probe{
			Exec: &spec.ExecAction{Command: []string{"x"}}, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
		}}},
	}
	for _, do := range change {
		do(pod)
	}
	return pod
}

// unready is a run whose readiness probe fails for some times before it succeeds.
func unready(times int) lifecycletest.Run {
	return lifecycletest.Run{Forever: true, Probes: map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome{
		lifecycle.ProbeReadiness: slices.Repeat([]lifecycle.ProbeOutcome{lifecycle.ProbeFailure}, times),
	}}
}

// steps runs a world and returns its steps with their times.
func steps(t *testing.T, pod *spec.Pod, script lifecycletest.Script, until time.Duration, change func(*lifecycletest.World)) []string {
	t.Helper()
	w := lifecycletest.New(pod, script)
	v := invariants{}
	var got []string
	w.Observe = func(s lifecycletest.Step) {
		if err := v.step(s); err != nil {
			w.Violation(err)
		}
		if e, ok := s.Event.(lifecycle.Issued); ok {
			switch a := e.Action.(type) {
			case lifecycle.Escalate:
				got = append(got, fmt.Sprintf("%.0fs: %v after %v", s.Since.Seconds(), a.Step, a.Unready.Round(time.Second)))
			case lifecycle.RestartUnhealthy:
				got = append(got, "restart "+a.Container)
			case lifecycle.RebootHost:
				got = append(got, fmt.Sprintf("%.0fs: %v after %v", s.Since.Seconds(), lifecycle.StepReboot, a.Unready.Round(time.Second)))
			case lifecycle.EndEscalation:
				got = append(got, fmt.Sprintf("%.0fs: recovered", s.Since.Seconds()))
			}
		}
	}
	if change != nil {
		change(w)
	}
	if err := w.Run(until); err != nil {
		t.Fatal(err)
	}
	return got
}

func runs(list ...lifecycletest.Run) lifecycletest.Script {
	return lifecycletest.Script{Runs: map[string][]lifecycletest.Run{"app": list}}
}

// TestEscalation checks when the steps for an unready pod are taken, and when unready time does not count.
func TestEscalation(t *testing.T) {
	const never = 1 << 14
	bad := func() lifecycletest.Script {
		return runs(unready(never), unready(never), unready(never), unready(never), unready(never))
	}
	crash := lifecycletest.Run{Lasts: time.Second, Exit: lifecycle.Exit{Code: 1}}
	crashes := runs(slices.Repeat([]lifecycletest.Run{crash}, 1000)...)
	pulls := lifecycletest.Script{
		Pulls: map[string][]lifecycletest.Start{
			"app": slices.Repeat([]lifecycletest.Start{{Failure: &lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull}}}, 100),
		},
	}
	mounts := lifecycletest.Script{
		Sandboxes: slices.Repeat([]lifecycletest.Start{{Failure: &lifecycle.Failure{Reason: lifecycle.ReasonFailedMount}}}, 1000),
	}
	noProbe := func(p *spec.Pod) { p.Containers[0].ReadinessProbe = nil }
	startup := func(p *spec.Pod) {
		p.Containers[0].StartupProbe = &spec.Probe{
			Exec: &spec.ExecAction{Command: []string{"x"}}, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1,
			FailureThreshold: 1000,
		}
	}
	initial := func(p *spec.Pod) { p.InitContainers = []spec.Container{{Name: "init", Image: "i"}} }
	slowInit := lifecycletest.Script{Runs: map[string][]lifecycletest.Run{"init": {{Lasts: 250 * time.Second}}, "app": {unready(never)}}}
	slowStart := runs(lifecycletest.Run{Forever: true, Probes: map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome{
		lifecycle.ProbeStartup: slices.Repeat([]lifecycle.ProbeOutcome{lifecycle.ProbeFailure}, never),
	}})
	for _, test := range []struct {
		name   string
		pod    *spec.Pod
		script lifecycletest.Script
		change func(*lifecycletest.World)
		want   string
	}{
		{"off by default", unhealthy(""), bad(), nil, ""},
		{
			"restart is repeated", unhealthy(spec.UnhealthyRestart), bad(), nil,
			"100s: restart all containers after 1m40s|restart app|200s: restart all containers after 1m40s|restart app|300s: restart all " +
				"containers after 1m40s|restart app",
		},
		{
			"replace follows", unhealthy(spec.UnhealthyReplace), bad(), nil,
			"100s: restart all containers after 1m40s|restart app|200s: replace the pod sandbox after 1m40s|300s: replace the pod " +
				"sandbox after 1m40s",
		},
		{
			"reboot follows", unhealthy(spec.UnhealthyReboot), bad(), nil,
			"100s: restart all containers after 1m40s|restart app|200s: replace the pod sandbox after 1m40s|300s: reboot the host " +
				"after 1m40s",
		},
		{"a reboot starts the steps again", unhealthy(spec.UnhealthyReboot), bad(), func(w *lifecycletest.World) {
			w.At(150*time.Second, func() { w.Reboot(0) })
		}, "100s: restart all containers after 1m40s|restart app|250s: restart all containers after 1m40s|restart app"},
		{"ready in time", unhealthy(spec.UnhealthyReboot), runs(unready(90)), nil, "150s: recovered"},
		{
			"recovered after a restart", unhealthy(spec.UnhealthyReboot), runs(unready(never), unready(3)), nil,
			"100s: restart all containers after 1m40s|restart app|163s: recovered",
		},
		{
			"a crash loop that is ready for moments", unhealthy(spec.UnhealthyReplace, noProbe), crashes, nil,
			"105s: restart all containers after 1m40s|restart app|210s: replace the pod sandbox after 1m40s",
		},
		{
			"a crash loop before a startup probe succeeds", unhealthy(spec.UnhealthyReplace, noProbe, startup), crashes, nil,
			"105s: restart all containers after 1m40s|restart app|210s: replace the pod sandbox after 1m40s",
		},
		{"an init container that takes long", unhealthy(spec.UnhealthyReplace, initial), slowInit, nil, ""},
		{"a startup probe that takes long", unhealthy(spec.UnhealthyReplace, startup), slowStart, nil, ""},
		{"an unreachable registry", unhealthy(spec.UnhealthyReboot), pulls, nil, ""},
		{"a volume that is missing", unhealthy(spec.UnhealthyReboot), mounts, nil, ""},
		{"stopped by a person", unhealthy(spec.UnhealthyReboot), bad(), func(w *lifecycletest.World) {
			w.At(50*time.Second, func() { w.Stop(nil, false) })
		}, ""},
		{"restarted by a person", unhealthy(spec.UnhealthyReboot), bad(), func(w *lifecycletest.World) {
			w.At(150*time.Second, w.Restart)
		}, "100s: restart all containers after 1m40s|restart app|250s: restart all containers after 1m40s|restart app"},
		{
			"a crash of the daemon keeps the step", unhealthy(spec.UnhealthyReplace), bad(), func(w *lifecycletest.World) {
				w.At(120*time.Second, func() { w.Crash(0) })
			},
			"100s: restart all containers after 1m40s|restart app|200s: replace the pod sandbox after 1m40s|300s: replace the pod " +
				"sandbox after 1m40s",
		},
		{"an unavailable engine", unhealthy(spec.UnhealthyRestart), bad(), func(w *lifecycletest.World) {
			w.At(50*time.Second, func() { w.SetUnavailable(true) })
			w.At(250*time.Second, func() { w.SetUnavailable(false) })
		}, "300s: restart all containers after 1m40s|restart app"},
		{
			"a clock that is set", unhealthy(spec.UnhealthyRestart), bad(), func(w *lifecycletest.World) {
				w.At(50*time.Second, func() { w.JumpClock(20 * 365 * 24 * time.Hour) })
			},
			"100s: restart all containers after 1m40s|restart app|200s: restart all containers after 1m40s|restart app|300s: restart all " +
				"containers after 1m40s|restart app",
		},
		{"a definition that waits", unhealthy(spec.UnhealthyRestart, func(p *spec.Pod) { p.WaitFor = []string{disk} }), bad(), nil, ""},
		{"a held reboot is requested again", unhealthy(spec.UnhealthyReboot), bad(), func(w *lifecycletest.World) {
			w.HoldsReboots = true
			w.Facts.Escalation = lifecycle.Escalation{Step: lifecycle.StepReplace, At: w.Now()}
		}, "100s: reboot the host after 1m40s|200s: reboot the host after 1m40s|300s: reboot the host after 1m40s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := steps(t, test.pod, test.script, 310*time.Second, test.change)
			if diff := cmp.Diff(strings.Split(test.want, "|"), strings.Split(strings.Join(got, "|"), "|")); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEscalationRate checks in random worlds that a step never follows the one before in less time than the pod file says, that no step is
// skipped, and that a reboot is only requested if the pod file says so.
func TestEscalationRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		pod.OnUnhealthy = rapid.SampledFrom([]spec.UnhealthyStep{
			spec.UnhealthyRestart, spec.UnhealthyReplace, spec.UnhealthyReboot,
		}).Draw(t,
			"last")
		pod.UnhealthyAfterSeconds = spec.Seconds(rapid.IntRange(5, 60).Draw(t, "after"))
		w := lifecycletest.New(pod, drawScript(t, pod))
		w.HoldsReboots = rapid.Bool().Draw(t, "held")
		last, at := lifecycle.StepNone, time.Duration(-1)
		w.Observe = func(s lifecycletest.Step) {
			e, _ := s.Event.(lifecycle.Issued)
			step := lifecycle.StepNone
			switch a := e.Action.(type) {
			case lifecycle.EndEscalation:
				last = lifecycle.StepNone
			case lifecycle.Escalate:
				step = a.Step
			case lifecycle.RebootHost:
				step = lifecycle.StepReboot
			}
			if step == lifecycle.StepNone {
				return
			}
			if limit := lifecycle.LastStep(pod); step > limit || step > last+1 || step < min(last+1, limit) {
				w.Violation(fmt.Errorf("step %d follows step %d", step, last))
			}
			if at >= 0 && s.Since-at < pod.UnhealthyAfter() {
				w.Violation(fmt.Errorf("step after %v, want at least %v", s.Since-at, pod.UnhealthyAfter()))
			}
			last, at = step, s.Since
		}
		if err := w.Run(20 * time.Minute); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStoppedPodHasNotRecovered: the unready time of a pod that the shutdown of the host has stopped does not count, and the pod is not
// ready.
func TestStoppedPodHasNotRecovered(t *testing.T) {
	f := fold(history{up(), running("app", 1), happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.HostShutdown{Grace: time.Second, By: lifecycle.ByShutdown, At: t}
	}), exited("app", 1, 0), sandboxRemoved(1)})
	f.Escalation = lifecycle.Escalation{Step: lifecycle.StepRestart, At: at(1), Since: at(1)}
	want := []lifecycle.Action{lifecycle.PauseUnready{}}
	if got := lifecycle.Decide(unhealthy(spec.UnhealthyReboot), f, at(5)).Actions; !slices.Equal(got, want) {
		t.Errorf("%#v, want %#v", got, want)
	}
}

// TestUnhealthyCondition checks the condition of a pod with onUnhealthy: the last step, and when the next one is due.
func TestUnhealthyCondition(t *testing.T) {
	const day = "2001-09-09T" // at(0) is 01:46:40
	escalation := func(step lifecycle.Step, taken, since float64) lifecycle.Escalation {
		e := lifecycle.Escalation{Step: step}
		if taken > 0 {
			e.At = at(taken)
		}
		if since > 0 {
			e.Since = at(since)
		}
		return e
	}
	failed := escalation(lifecycle.StepReboot, 310, 0)
	failed.Reboot = lifecycle.HostReboot{Failed: at(311), Reason: "Why", Message: "no permission"}
	for name, row := range map[string]struct {
		escalation lifecycle.Escalation
		want       lifecycle.Condition
	}{
		"healthy": {lifecycle.Escalation{}, lifecycle.Condition{Status: "False"}},
		"unready": {
			escalation(lifecycle.StepNone, 0, 10),
			lifecycle.Condition{Status: "False", Message: "unready, next step at " + day + "01:48:30Z: restart all containers"},
		},
		"restarted": {escalation(lifecycle.StepRestart, 110, 0), lifecycle.Condition{
			Status: "True", Reason: lifecycle.ReasonContainersRestarted,
			Message: "step 1 of 3, at " + day + "01:48:30Z: all containers were restarted",
		}},
		"replaced and unready": {escalation(lifecycle.StepReplace, 210, 220), lifecycle.Condition{
			Status: "True", Reason: lifecycle.ReasonSandboxReplaced,
			Message: "step 2 of 3, at " + day + "01:50:10Z: the pod sandbox was replaced; " +
				"unready, next step at " + day + "01:52:00Z: reboot the host",
		}},
		"the last step is repeated": {escalation(lifecycle.StepReboot, 310, 320), lifecycle.Condition{
			Status: "True", Reason: lifecycle.ReasonHostRebootRequested,
			Message: "step 3 of 3, at " + day + "01:51:50Z: a reboot of the host was requested; " +
				"unready, next step at " + day + "01:53:40Z: reboot the host",
		}},
		"reboot failed": {failed, lifecycle.Condition{
			Status: "True", Reason: "Why", Message: "step 3 of 3, at " + day + "01:51:50Z: the host is not rebooted: no permission",
		}},
	} {
		f := fold(history{up(), running("app", 1)})
		f.Escalation, row.want.Type = row.escalation, lifecycle.PodUnhealthy
		var got []lifecycle.Condition
		for _, c := range lifecycle.StatusOf(unhealthy(spec.UnhealthyReboot), f, at(400)).Conditions {
			if c.Type == lifecycle.PodUnhealthy {
				got = append(got, c)
			}
		}
		if diff := cmp.Diff([]lifecycle.Condition{row.want}, got); diff != "" {
			t.Errorf("%s: condition (-want +got):\n%s", name, diff)
		}
	}
	for _, c := range lifecycle.StatusOf(podOf(always, "app"), fold(nil), at(5)).Conditions {
		if c.Type == lifecycle.PodUnhealthy {
			t.Errorf("a pod without onUnhealthy has the condition %+v", c)
		}
	}
}

// TestRebootOutcome checks that the first outcome of a request to reboot the host counts, and that an outcome without a request does not.
func TestRebootOutcome(t *testing.T) {
	request := lifecycle.RebootHost{Unready: time.Minute}
	accepted := happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.HostRebootRequested{At: t} })
	held := failed(request, lifecycle.Failure{Reason: lifecycle.ReasonRebootHeldBack, Message: "held back"})
	for name, test := range map[string]struct {
		past                        history
		requested, accepted, failed bool
		message                     string
	}{
		"requested":          {history{request}, true, false, false, ""},
		"accepted":           {history{request, accepted}, true, true, false, ""},
		"held back":          {history{request, held}, true, false, true, "held back"},
		"accepted, then no":  {history{request, accepted, held}, true, true, false, ""},
		"held back, then no": {history{request, held, accepted}, true, false, true, "held back"},
		"without a request":  {history{accepted, held}, false, false, false, ""},
		"requested again":    {history{request, held, request, accepted}, true, true, false, ""},
	} {
		r := fold(test.past).Escalation.Reboot
		if r.Requested.IsZero() == test.requested || r.Accepted.IsZero() == test.accepted || r.Failed.IsZero() == test.failed ||
			r.Message != test.message {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestEscalationGap checks that no step follows directly after a time in which nothing was supervised.
func TestEscalationGap(t *testing.T) {
	pod := unhealthy(spec.UnhealthyRestart)
	f := lifecycle.Facts{UID: "u", Accepted: at(1)}
	f.Escalation = lifecycle.Escalation{Since: at(10)}
	for _, test := range []struct {
		now  float64
		gap  bool
		wake float64 // 0: a step is taken
	}{{109, false, 110}, {110, false, 0}, {5000, true, 5060}} {
		facts := f
		facts.Sandbox = lifecycle.Sandbox{N: 1, Requested: at(1), Failed: at(test.now), Failures: 1}
		if test.gap {
			facts = facts.Apply(lifecycle.SupervisionGap{At: at(test.now)})
		}
		d := lifecycle.Decide(pod, facts, at(test.now))
		escalates := slices.ContainsFunc(d.Actions, func(a lifecycle.Action) bool { _, is := a.(lifecycle.Escalate); return is })
		if escalates != (test.wake == 0) {
			t.Errorf("%v: actions %v", test, d.Actions)
		}
	}
	if got := (lifecycle.Facts{}).Apply(lifecycle.SupervisionGap{At: at(1)}); got.Escalation != (lifecycle.Escalation{}) {
		t.Errorf("a ready pod has %+v", got.Escalation)
	}
}

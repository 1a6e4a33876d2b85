package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// limitedPod returns a pod of the containers app and other, of which app has a CPU limit.
func limitedPod(cpu string) *spec.Pod {
	pod := podOf(always, "app", "other")
	pod.Containers[0].Resources = limitedTo(cpu)
	return pod
}

func limitedTo(cpu string) spec.Resources {
	return spec.Resources{Limits: spec.ResourceList{spec.ResourceCPU: resource.MustParse(cpu)}}
}

// resizeTo changes the definition to another CPU limit, which restarts containers.
func resizeTo(from, to string, restarted ...string) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.DefinitionChanged{From: limitedPod(from), To: limitedPod(to), Restarted: restarted, At: t}
	}
}

var resizeRequested = resizeTo("1", "2")

func resizePod(n int) lifecycle.Action { return lifecycle.ResizePod{N: n, Sandbox: 1} }

func resizedPod(n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodResized{N: n, At: t} }
}

var resizeInterrupted happened = func(lifecycle.Instant) lifecycle.Event { return lifecycle.ResizeInterrupted{} }

// TestDecideResize checks when a pod is resized: when no container of an earlier definition runs and none is being started, once at a time,
// and again after a failure.
func TestDecideResize(t *testing.T) {
	both := history{up(), running("app", 1), running("other", 1)}
	failed := failing(resizePod(1), oops)
	decisions{
		{name: "all containers run", pod: limitedPod("2"), past: history{both, resizeRequested}, now: 1, want: do{resizePod(1)}},
		{name: "it is being resized", pod: limitedPod("2"), past: history{both, resizeRequested, resizePod(1)}, now: 1},
		{
			name: "it is resized again when the earlier resize has an outcome", pod: limitedPod("3"),
			past: history{both, resizeRequested, resizePod(1), resizeTo("2", "3")}, now: 1,
		},
		{
			name: "the earlier resize has an outcome", pod: limitedPod("3"),
			past: history{both, resizeRequested, resizePod(1), resizeTo("2", "3"), resizedPod(1)}, now: 1, want: do{resizePod(2)},
		},
		{
			name: "the earlier resize has failed", pod: limitedPod("3"),
			past: history{both, resizeRequested, resizePod(1), resizeTo("2", "3"), failed}, now: 1, want: do{resizePod(2)},
		},
		{name: "it was resized", pod: limitedPod("2"), past: history{both, resizeRequested, resizePod(1), resizedPod(1)}, now: 1},
		{
			name: "a container is being started", pod: limitedPod("2"),
			past: history{up(), running("app", 1), issued("other", 1), resizeRequested}, now: 1,
		},
		{
			name: "the delay after a failure has not passed", pod: limitedPod("2"),
			past: history{both, resizeRequested, failed}, now: 10.9, wake: 11,
		},
		{
			name: "a failure is repeated after a delay", pod: limitedPod("2"),
			past: history{both, resizeRequested, failed}, now: 11, want: do{resizePod(1)},
		},
		{
			name: "a container restarts for it", pod: limitedPod("2"), past: history{both, resizeTo("1", "2", "app")}, now: 1,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonDefinitionChanged}},
		},
		{
			name: "the container has stopped for it", pod: limitedPod("2"),
			past: history{both, resizeTo("1", "2", "app"), stop("app", 1, 30*time.Second), exited("app", 1, 143), pulled("app", 2)}, now: 1,
			want: do{resizePod(1), start("app", 2, 1, 0)},
		},
		{
			name: "an interrupted resize is repeated", pod: limitedPod("2"),
			past: history{both, resizeRequested, resizePod(1), resizeInterrupted}, now: 1, want: do{resizePod(1)},
		},
		{
			name: "an interrupted resize is not repeated while a run of an earlier definition stops", pod: limitedPod("3"),
			past: history{
				both, resizeRequested, resizePod(1), resizeTo("2", "3", "app"), stop("app", 1, 30*time.Second), resizeInterrupted,
			},
			now: 1, wake: 31,
		},
		{
			name: "it is repeated when the run has stopped", pod: limitedPod("3"),
			past: history{
				both, resizeRequested, resizePod(1), resizeTo("2", "3", "app"), stop("app", 1, 30*time.Second), resizeInterrupted,
				exited("app", 1, 143), pulled("app", 2),
			},
			now: 1, want: do{resizePod(2), start("app", 2, 1, 0)},
		},
		{
			name: "an interrupted resize of an earlier sandbox is not repeated", pod: limitedPod("2"),
			past: history{
				both, resizeRequested, resizePod(1), exited("app", 1, 1), exited("other", 1, 1), sandboxRemoved(1), startSandbox(2),
				resizeInterrupted,
			},
			now: 1,
		},
	}.check(t)
}

// TestStaleResize: what an earlier version of the daemon has kept of a resize, and has not understood, changes nothing after the sandbox
// was replaced.
func TestStaleResize(t *testing.T) {
	pod := limitedPod("2")
	facts := fold(history{up(), running("app", 1), running("other", 1), trialBegun(0, time.Second, false)})
	clean := facts
	facts.Resize = lifecycle.Resize{
		N: 7, Sandbox: facts.Sandbox.N + 1, Requested: at(9e6), Issued: 7, Failed: at(9e6), Message: "below usage", Done: at(9e6),
	}
	facts = facts.Apply(lifecycle.ResizeInterrupted{})
	first := facts // of the first version with resizes, which dropped a request with the sandbox
	first.Resize.Sandbox = 0
	if d := lifecycle.Decide(pod, first, at(9e7)); !slices.Contains(d.Actions, resizePod(7)) {
		t.Errorf("a request without a sandbox leads to %v, want the resize", d.Actions)
	}
	got, want := lifecycle.Decide(pod, facts, at(5)), lifecycle.Decide(pod, clean, at(5))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	is, expected := lifecycle.StatusOf(pod, facts, at(5)), lifecycle.StatusOf(pod, clean, at(5))
	if diff := cmp.Diff(expected, is); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(lifecycle.OutcomeOf(pod, clean, &is), lifecycle.OutcomeOf(pod, facts, &is)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	resized := facts.Apply(resizeRequested(at(6)).(lifecycle.DefinitionChanged))
	if d := lifecycle.Decide(pod, resized, at(6)); !slices.Contains(d.Actions, resizePod(8)) {
		t.Errorf("the next change leads to %v, want a resize", d.Actions)
	}
}

// trialBegun begins the trial of a request.
func trialBegun(within, minReady time.Duration, rollsBack bool) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.TrialBegun{Trial: lifecycle.NewTrial(within, minReady, rollsBack, t)}
	}
}

// TestTrialOfResize: a change of limits is complete when they have been in effect for the minimum ready time, and has failed if they
// are not in effect in time.
func TestTrialOfResize(t *testing.T) {
	const refused = `the resize of container "app" is not complete: below current usage`
	below := failing(resizePod(1), lifecycle.Failure{Message: "below current usage"})
	infeasible := lifecycle.Failure{Reason: lifecycle.ReasonInfeasible, Message: "a restart sets them"}
	changed := func(within time.Duration) history {
		return history{up(), running("app", 1), running("other", 1), resizeRequested, trialBegun(within, 5*time.Second, true)}
	}
	timed := history{changed(30 * time.Second), lifecycle.TimeTrial{}}
	passed := lifecycle.Outcome{State: lifecycle.OutcomeComplete}
	progressing := func(message string) lifecycle.Outcome {
		return lifecycle.Outcome{State: lifecycle.OutcomeProgressing, Message: message}
	}
	ready := lifecycle.Outcome{State: lifecycle.OutcomeReady, Message: "the pod is ready and must stay so for 5s"}
	const pending = `the resize of container "app" is not complete`
	late := `the resize of container "app" was not completed within 30s: below current usage`
	for _, test := range []struct {
		name string
		past history
		now  float64
		want lifecycle.Outcome
		next lifecycle.Action
	}{
		{"requested", changed(0), 9, progressing(pending), resizePod(1)},
		{"in process", history{changed(0), resizePod(1)}, 9, progressing(pending), nil},
		{"refused", history{changed(0), below}, 9, progressing(refused), nil},
		{"refused for long", history{changed(0), below}, 9e5, progressing(refused), resizePod(1)},
		{"its time begins", changed(30 * time.Second), 0, progressing(pending), lifecycle.TimeTrial{}},
		{"it is not late", history{timed, below}, 30.9, progressing(refused), resizePod(1)},
		{"it is late", history{timed, below}, 31, progressing(refused), lifecycle.FailTrial{Message: late}},
		{
			"it was late",
			history{timed, below, lifecycle.FailTrial{Message: late}},
			99,
			lifecycle.Outcome{State: lifecycle.OutcomeFailed, Message: late},
			nil,
		},
		{"completed", history{timed, below, tick(20), resizePod(1), resizedPod(1)}, 24, ready, nil},
		{"completed for long", history{timed, below, tick(20), resizePod(1), resizedPod(1)}, 25, ready, lifecycle.PassTrial{}},
		{"passed", history{changed(0), resizePod(1), resizedPod(1), tick(5), lifecycle.PassTrial{}}, 5, passed, nil},
		{
			"it must restart",
			history{changed(0), failing(resizePod(1), infeasible)},
			9,
			lifecycle.Outcome{State: lifecycle.OutcomeFailed, Message: pending + ": a restart sets them"},
			nil,
		},
		{"refused after it has passed", history{changed(0), lifecycle.PassTrial{}, below}, 9, progressing(refused), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod, f := limitedPod("2"), fold(test.past)
			status := lifecycle.StatusOf(pod, f, at(test.now))
			if diff := cmp.Diff(test.want, lifecycle.OutcomeOf(pod, f, &status)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			var want []lifecycle.Action
			if test.next != nil {
				want = []lifecycle.Action{test.next}
			}
			var got []lifecycle.Action
			for _, a := range lifecycle.Decide(pod, f, at(test.now)).Actions {
				if _, is := a.(lifecycle.ResizePod); !is || want == nil || want[0] == a {
					got = append(got, a)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatusOfResize checks what the status has while a resize is pending.
func TestStatusOfResize(t *testing.T) {
	both := history{up(), running("app", 1), running("other", 1)}
	pending := lifecycle.Condition{Type: lifecycle.PodResizeInProgress, Status: "True"}
	refused := pending
	refused.Reason, refused.Message = lifecycle.ReasonError, oops.Message
	infeasible := lifecycle.Failure{Reason: lifecycle.ReasonInfeasible, Message: "a restart of the pod sets them"}
	restarts := lifecycle.Condition{
		Type: lifecycle.PodResizePending, Status: "True", Reason: "Infeasible", Message: "a restart of the pod sets them",
	}
	otherResized := happened(func(t lifecycle.Instant) lifecycle.Event {
		to := limitedPod("2")
		to.Containers[1].Resources = limitedTo("5")
		return lifecycle.DefinitionChanged{From: limitedPod("2"), To: to, At: t}
	})
	for name, test := range map[string]struct {
		past history
		want *lifecycle.Condition
		cpu  string // the limit of app
	}{
		"unchanged":                      {both, nil, "2"},
		"requested":                      {history{both, resizeRequested}, &pending, "1"},
		"in process":                     {history{both, resizeRequested, resizePod(1)}, &pending, "1"},
		"failed":                         {history{both, resizeRequested, failing(resizePod(1), oops)}, &refused, "1"},
		"repeated":                       {history{both, resizeRequested, failing(resizePod(1), oops), resizePod(1)}, &refused, "1"},
		"completed":                      {history{both, resizeRequested, resizePod(1), resizedPod(1)}, nil, "2"},
		"the first of two is in process": {history{both, resizeTo("1", "3"), resizePod(1), resizeTo("3", "2")}, &pending, "1"},
		"the first of two was completed": {
			history{both, resizeTo("1", "3"), resizePod(1), resizeTo("3", "2"), resizedPod(1)}, &pending, "3",
		},
		"the first of three was completed": {
			history{both, resizeTo("1", "3"), resizePod(1), resizeTo("3", "4"), resizeTo("4", "2"), resizedPod(1)}, &pending, "3",
		},
		"the first of two has failed": {
			history{both, resizeTo("1", "3"), resizePod(1), resizeTo("3", "2"), failed(resizePod(1), oops)}, &pending, "1",
		},
		"the first of two was completed, the second has failed": {
			history{both, resizeTo("1", "3"), resizePod(1), resizeTo("3", "2"), resizedPod(1), failing(resizePod(2), oops)}, &refused, "3",
		},
		"the first of two was interrupted": {
			history{both, resizeTo("1", "3"), resizePod(1), resizeTo("3", "2"), resizeInterrupted}, &pending, "1",
		},
		"both were completed": {
			history{both, resizeTo("1", "3"), resizePod(1), resizeTo("3", "2"), resizedPod(1), resizePod(2), resizedPod(2)}, nil, "2",
		},
		"the second gives another container other limits": {
			history{both, resizeRequested, resizePod(1), otherResized, resizedPod(1)}, &pending, "2",
		},
		"refused, and the definition changes again": {
			history{both, resizeRequested, failing(resizePod(1), oops), resizeTo("2", "2")}, &pending, "1",
		},
		"must restart": {history{both, resizeRequested, failing(resizePod(1), infeasible)}, &restarts, "1"},
		"the container has started again": {
			history{both, resizeRequested, failing(resizePod(1), oops), exited("app", 1, 1), issued("app", 2), started("app", 2)},
			&refused, "2",
		},
		"other fields have changed": {history{both, resizeTo("2", "2")}, nil, "2"},
		"the pod is stopped":        {history{both, resizeRequested, stopped(time.Minute)}, nil, "1"},
		"the sandbox is lost":       {history{both, resizeRequested, sandboxLost(1)}, nil, "1"},
		"the pod has no sandbox":    {history{resizeRequested}, nil, "2"},
		"another sandbox was started": {
			history{both, resizeRequested, exited("app", 1, 1), exited("other", 1, 1), sandboxRemoved(1), startSandbox(2)},
			nil, "2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := lifecycle.StatusOf(limitedPod("2"), fold(test.past), at(20))
			var found *lifecycle.Condition
			for _, c := range status.Conditions {
				if c.Type == lifecycle.PodResizeInProgress || c.Type == lifecycle.PodResizePending {
					found = &c
				}
			}
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			limit := status.ContainerStatuses[0].Resources.Limits[spec.ResourceCPU]
			if limit.String() != test.cpu {
				t.Errorf("the limit is %s, want %s", limit.String(), test.cpu)
			}
		})
	}
}

// TestResizesFailed: other limits start a pod again that has failed, if they are those of a container that has.
func TestResizesFailed(t *testing.T) {
	change := lifecycle.DefinitionChanged{From: limitedPod("1"), To: limitedPod("2")}
	same := lifecycle.DefinitionChanged{From: limitedPod("1"), To: limitedPod("1")}
	for _, test := range []struct {
		name   string
		past   history
		change lifecycle.DefinitionChanged
		want   bool
	}{
		{"it has failed", history{up(), ran("app", 1, 137)}, change, true},
		{"it has failed, and its limits are the same", history{up(), ran("app", 1, 137)}, same, false},
		{"it has succeeded", history{up(), ran("app", 1, 0)}, change, false},
		{"it runs", history{up(), running("app", 1)}, change, false},
		{"another one has failed", history{up(), running("app", 1), ran("other", 1, 1)}, change, false},
		{"it has not been started", history{}, change, false},
	} {
		f := fold(test.past)
		if got := test.change.ResizesFailed(f); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

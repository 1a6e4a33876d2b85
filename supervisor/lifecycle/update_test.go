package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

var restartRequested happened = func(t lifecycle.Instant) lifecycle.Event {
	return lifecycle.RestartRequested{By: "a test", At: t}
}

// ready2 is the second sandbox, in the round after [lifecycle.StartAgain].
func ready2() history {
	return history{
		lifecycle.StartAgain{Round: 2},
		lifecycle.StartSandbox{Sandbox: 2, Round: 3},
		happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.SandboxStarted{Sandbox: 2, At: t}
		}),
	}
}

// TestDecideRestartAfterDeadline checks that a requested restart resets activeDeadlineSeconds.
func TestDecideRestartAfterDeadline(t *testing.T) {
	pod := podOf(never, "app")
	limit := spec.Seconds(60)
	pod.ActiveDeadlineSeconds = &limit
	succeeded := history{up(), ran("app", 1, 0), sandboxRemoved(1), tick(100), restartRequested}
	expired := history{
		up(), running("app", 1), tick(61), failPod(30 * time.Second), stop("app", 1, 30*time.Second), exited("app", 1, 143),
		sandboxRemoved(1),
		tick(100), restartRequested,
	}
	stopping := lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonRestartRequested}
	decisions{
		{
			name: "2.1 succeeded pod is restarted after its deadline", pod: pod, past: succeeded, now: 100,
			want: do{lifecycle.StartAgain{Round: 2}},
		},
		{
			name: "2.1 pod that exceeded its deadline is restarted", pod: pod, past: expired, now: 100,
			want: do{lifecycle.StartAgain{Round: 2}},
		},
		{
			name: "2.1 deadline does not apply while the pod is stopped for a restart", pod: pod,
			past: history{up(), running("app", 1), tick(59), restartRequested, stopping}, now: 62, wake: 89,
		},
		{
			name: "2.1 deadline counts from the restart", pod: pod, past: history{succeeded, ready2(), pull("app", 2, 1)}, now: 159.5,
			wake: 160,
		},
		{
			name: "2.1 pod exceeds its deadline again", pod: pod, past: history{succeeded, ready2(), pull("app", 2, 1)}, now: 160,
			want: do{failPod(30 * time.Second)},
		},
	}.check(t)
}

// TestRestartRequested checks that a restart replaces a stop, and changes nothing if one is pending or if the pod is being deleted.
func TestRestartRequested(t *testing.T) {
	part := func(f lifecycle.Facts) any { return []any{f.Restart, f.Stop.Requested} }
	first := lifecycle.Restart{Requested: at(2), By: "a test"}
	foldings{
		{"the pod is stopped", history{stopped(time.Minute), tick(2), restartRequested}, part, []any{first, lifecycle.Instant{}}},
		{
			"a restart is pending", history{tick(2), restartRequested, tick(3), happened(func(t lifecycle.Instant) lifecycle.Event {
				return lifecycle.RestartRequested{By: "another test", Redefined: true, At: t}
			})}, part, []any{first, lifecycle.Instant{}},
		},
		{"the pod is deleted", history{deleted(time.Minute), tick(2), restartRequested}, part, []any{lifecycle.Restart{}, at(1)}},
	}.check(t)
}

// TestContainerRestartRequested checks that a request changes nothing for a container that is not known, for an ephemeral one, and for a
// run that is being replaced already.
func TestContainerRestartRequested(t *testing.T) {
	pod := podOf(always, "app")
	before := fold(history{up(), running("app", 1), addEphemeral("debug"), running("debug", 1)}).Apply(
		lifecycle.DefinitionChanged{From: pod, To: pod, Restarted: []string{"app"}, At: at(2)})
	for _, name := range []string{"other", "debug", "app"} {
		after := before.Apply(lifecycle.ContainerRestartRequested{Container: name, By: "a test", At: at(3)})
		if diff := cmp.Diff(before.Containers, after.Containers); diff != "" {
			t.Errorf("restart of %s (-before +after):\n%s", name, diff)
		}
	}
}

// TestDecideRestartWithEphemeral checks that an ephemeral container that ran does not prevent the start of a pod with Never.
func TestDecideRestartWithEphemeral(t *testing.T) {
	pod := podOf(never, "app")
	done := history{
		up(), running("app", 1), addEphemeral("d"), ran("d", 1, 0), exited("app", 1, 0), sandboxRemoved(1), tick(100), restartRequested,
	}
	decisions{
		{name: "restart is carried out", pod: pod, past: done, now: 100, want: do{lifecycle.StartAgain{Round: 2}}},
		{
			name: "sandbox is started again", pod: pod, past: history{done, lifecycle.StartAgain{Round: 2}}, now: 100,
			want: do{startSandbox2},
		},
		{
			name: "3 lost sandbox is replaced if only an ephemeral container ran", pod: pod,
			past: history{up(), addEphemeral("d"), ran("d", 1, 0), tick(50), sandboxLost(1), sandboxRemoved(1)}, now: 50,
			want: do{startSandbox(2)},
		},
	}.check(t)
}

// startSandbox2 is the second sandbox after a restart of the pod.
var startSandbox2 = lifecycle.StartSandbox{Sandbox: 2, Round: 3}

// TestDecideDefinitionChanged checks that a run is stopped with the grace period of the definition that it was started from, and that the
// pull of a removed container is cancelled before the container is forgotten.
func TestDecideDefinitionChanged(t *testing.T) {
	from, to := podOf(always, "app", "old"), podOf(always, "app")
	to.TerminationGracePeriodSeconds = 5
	changed := func(restarted ...string) happened {
		return func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.DefinitionChanged{From: from, To: to, Restarted: restarted, At: t}
		}
	}
	redefined := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.RestartRequested{Redefined: true, By: "a test", At: t}
	})
	end := func(name string, grace time.Duration, why lifecycle.Reason) lifecycle.StopContainer {
		return lifecycle.StopContainer{Ref: run(name, 1), Grace: grace, Reason: why}
	}
	const differs, removed = lifecycle.ReasonDefinitionChanged, lifecycle.ReasonContainerRemoved
	pulling := history{up(), running("app", 1), pull("old", 1, 1), changed()}
	cancelled := history{pulling, lifecycle.CancelPull{Container: "old", For: 1}}
	decisions{
		{
			name: "changed and removed container", pod: to,
			past: history{up(), running("app", 1), running("old", 1), changed("app")}, now: 1,
			want: do{end("old", 30*time.Second, removed), end("app", 30*time.Second, differs)},
		},
		{
			name: "unchanged container of a pod that starts again", pod: to, past: history{up(), running("app", 1), changed(), redefined},
			now: 1, want: do{end("app", 5*time.Second, differs)},
		},
		{name: "pull of a removed container", pod: to, past: pulling, now: 1, want: do{lifecycle.CancelPull{Container: "old", For: 1}}},
		{name: "cancelled pull in progress", pod: to, past: cancelled, now: 1},
		{
			name: "cancelled pull is complete", pod: to, past: history{cancelled, failed(pull("old", 1, 1), oops)}, now: 1,
			want: do{lifecycle.ForgetContainer{Container: "old"}},
		},
	}.check(t)
}

// TestDefinitionChangedFits checks the limit of removed containers that have not stopped.
func TestDefinitionChangedFits(t *testing.T) {
	many := &spec.Pod{Name: "p", Containers: []spec.Container{{Name: "app"}}}
	past := history{up()}
	for i := range 64 {
		name := fmt.Sprintf("old-%d", i)
		many.Containers = append(many.Containers, spec.Container{Name: name})
		past = append(past, running(name, 1))
	}
	few := podOf(spec.RestartAlways, "app")
	facts := fold(past)
	e := lifecycle.DefinitionChanged{From: many, To: few, At: at(2)}
	if !e.Fits(facts) {
		t.Error("64 removed containers do not fit")
	}
	facts = facts.Apply(e)
	if again := (lifecycle.DefinitionChanged{From: podOf(spec.RestartAlways, "app", "more"), To: few, At: at(3)}); again.Fits(facts) {
		t.Error("a 65th removed container fits")
	}
	if same := (lifecycle.DefinitionChanged{From: few, To: few, At: at(3)}); !same.Fits(facts) {
		t.Error("a change that removes nothing does not fit")
	}
}

// TestRetireUnknown checks that containers that the engine has and the pod does not are stopped, and no others.
func TestRetireUnknown(t *testing.T) {
	added := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.EphemeralAdded{Container: spec.Container{Name: "debug"}, At: t}
	})
	facts := fold(history{up(), running("app", 1), running("extra", 1), added, running("debug", 1), running("other", 1)})
	pod := podOf(spec.RestartAlways, "app")
	found := lifecycle.Found{Pod: podOf(spec.RestartAlways, "app", "extra", "debug")}
	var stopped []string
	for _, a := range lifecycle.Decide(pod, facts.RetireUnknown(pod, found), at(2)).Actions {
		if s, ok := a.(lifecycle.StopContainer); ok && s.Reason == lifecycle.ReasonContainerRemoved {
			stopped = append(stopped, s.Container)
		}
	}
	if !slices.Equal(stopped, []string{"extra"}) {
		t.Errorf("stopped %v, want extra", stopped)
	}
	if got := facts.RetireUnknown(pod, lifecycle.Found{}); len(got.Outgoing) > 0 {
		t.Errorf("without a definition: %+v", got.Outgoing)
	}
}

// TestAbandonReplacedStart checks that the start of a run that is replaced, or of a removed container, is not repeated after a crash.
func TestAbandonReplacedStart(t *testing.T) {
	from, to := podOf(spec.RestartAlways, "app", "old"), podOf(spec.RestartAlways, "app")
	facts := fold(history{up(), issued("app", 1), issued("old", 1)}).Apply(
		lifecycle.DefinitionChanged{From: from, To: to, Restarted: []string{"app"}, At: at(2)})
	if n := len(facts.Unresolved()); n != 2 {
		t.Fatalf("%d starts without an outcome, want 2", n)
	}
	if got := facts.AbandonStarts(to, lifecycle.Found{}, at(3)).Unresolved(); len(got) > 0 {
		t.Errorf("repeated: %#v", got)
	}
	unchanged := fold(history{up(), issued("app", 1)})
	if got := unchanged.AbandonStarts(to, lifecycle.Found{}, at(3)).Unresolved(); len(got) != 1 {
		t.Errorf("repeated: %#v, want the start", got)
	}
}

// TestDefinitionChangedWithoutHook checks that a postStart hook that is removed while it runs counts as done, whatever its outcome.
func TestDefinitionChangedWithoutHook(t *testing.T) {
	to := podOf(spec.RestartAlways, "app", "other")
	from := with(podOf(spec.RestartAlways, "app", "other"), hook(lifecycle.PostStart))
	removed := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.DefinitionChanged{From: from, To: to, At: t}
	})
	hooked := history{up(), pulled("other", 1), running("app", 1), postStart("app", 1), removed}
	decisions{
		{name: "the next container starts", pod: to, past: hooked, now: 1, want: do{start("other", 1, 0, 0)}},
		{
			name: "its failure does not stop the container", pod: to,
			past: history{hooked, running("other", 1), failed(postStart("app", 1), oops)}, now: 1,
		},
		{name: "it is not retried", pod: to, past: history{hooked, running("other", 1), failed(postStart("app", 1), unavailable)}, now: 5},
		{
			name: "a hook of both definitions goes on", pod: from,
			past: history{
				up(), pulled("other", 1), running("app", 1), postStart("app", 1),
				happened(func(t lifecycle.Instant) lifecycle.Event {
					return lifecycle.DefinitionChanged{From: from, To: from, At: t}
				}),
			}, now: 1,
		},
		{
			name: "a hook that failed before stops the container", pod: to,
			past: history{up(), running("app", 1), running("other", 1), failing(postStart("app", 1), oops), removed}, now: 1,
			want: do{lifecycle.StopContainer{
				Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonFailedPostStartHook,
			}},
		},
		{
			name: "it does not run if it is added again", pod: from,
			past: history{hooked, running("other", 1), happened(func(t lifecycle.Instant) lifecycle.Event {
				return lifecycle.DefinitionChanged{From: to, To: from, At: t}
			})}, now: 5,
		},
	}.check(t)
}

// TestRetireUnknownIsBounded checks that the facts do not grow with the number of containers that the engine has.
func TestRetireUnknownIsBounded(t *testing.T) {
	const most = 128
	past, names := history{up()}, []string{"app"}
	for i := range most + 1 {
		name := fmt.Sprintf("extra-%03d", i)
		past, names = append(past, running(name, 1)), append(names, name)
	}
	facts := fold(past).RetireUnknown(podOf(spec.RestartAlways, "app"), lifecycle.Found{Pod: podOf(spec.RestartAlways, names...)})
	if n := len(facts.Outgoing); n != most {
		t.Errorf("%d containers are being removed, want %d", n, most)
	}
}

// TestAbandonedPull checks that a pull that is abandoned because the pod starts again has not failed: the next one is not delayed.
func TestAbandonedPull(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	facts := fold(history{up(), pull("app", 1, 1)}).Apply(lifecycle.RestartRequested{By: "test", At: at(1)})
	got := facts.AbandonStarts(pod, lifecycle.Found{}, at(2)).Containers["app"].Pull
	if !got.Failed.IsZero() || !got.Requested.IsZero() || got.Reason != "" {
		t.Errorf("pull %+v, want one that was neither requested nor failed", got)
	}
}

// TestStatusOfSkippedInitContainer checks that an init container that was added after its turn is shown as completed, as the kubelet shows
// it, and one whose turn is to come is not.
func TestStatusOfSkippedInitContainer(t *testing.T) {
	pod := &spec.Pod{
		Name: "p", RestartPolicy: spec.RestartAlways,
		InitContainers: []spec.Container{{Name: "late"}}, Containers: []spec.Container{{Name: "app"}},
	}
	for _, test := range []struct {
		name    string
		past    history
		skipped bool
	}{
		{"app container has started", history{up(), running("app", 1)}, true},
		{"nothing has started", history{up()}, false},
	} {
		s := lifecycle.StatusOf(pod, fold(test.past), at(3)).InitContainerStatuses[0]
		completed := s.State.Terminated != nil && s.State.Terminated.Reason == lifecycle.ReasonCompleted
		if completed != test.skipped || s.Ready != test.skipped {
			t.Errorf("%s: %+v, want completed and ready: %v", test.name, s, test.skipped)
		}
	}
}

// TestGeneration checks that changes of the spec count, those of metadata do not, and ephemeral containers do.
func TestGeneration(t *testing.T) {
	from, to := podOf(spec.RestartAlways, "app"), podOf(spec.RestartAlways, "app", "more")
	facts := fold(history{up(), running("app", 1)})
	for i, step := range []struct {
		event lifecycle.Event
		want  int64
	}{
		{lifecycle.DefinitionChanged{From: from, To: from, MetadataOnly: true, At: at(2)}, 1},
		{lifecycle.DefinitionChanged{From: from, To: to, At: at(3)}, 2},
		{lifecycle.EphemeralAdded{Container: spec.Container{Name: "debug"}, At: at(4)}, 3},
		{lifecycle.EphemeralAdded{Container: spec.Container{Name: "debug"}, At: at(5)}, 3}, // its name is taken
	} {
		facts = facts.Apply(step.event)
		if got := lifecycle.StatusOf(to, facts, at(6)).ObservedGeneration; got != step.want || facts.Generation() != step.want {
			t.Errorf("step %d: generation %d, observed %d, want %d", i, facts.Generation(), got, step.want)
		}
	}
}

// changes are the changes that [redefined] makes.
var changes = []string{"restart", "removeApp", "addApp", "removeInit", "addSidecar", "addInit", "inPlace", "resize", "all"}

// containerOf returns the name of a container of the pod.
func containerOf(pod *spec.Pod, number int) string {
	all := slices.Concat(pod.InitContainers, pod.Containers)
	return all[number%len(all)].Name
}

// redefined returns a changed copy of a pod, and the containers that the change restarts.
func redefined(pod *spec.Pod, change string, number int) (to *spec.Pod, restarted []string) {
	next := *pod
	next.InitContainers, next.Containers = slices.Clone(pod.InitContainers), slices.Clone(pod.Containers)
	app := spec.Container{Name: fmt.Sprintf("app-%d", number), Image: "i", RestartPolicy: spec.RestartAlways}
	switch change {
	case "restart":
		restarted = []string{containerOf(pod, number)}
		hook("preStop")(next.Container(restarted[0]))
	case "removeApp":
		if n := len(next.Containers); n > 1 {
			next.Containers = slices.Delete(next.Containers, number%n, number%n+1)
		}
	case "addApp":
		if next.Container(app.Name) == nil {
			next.Containers = append(next.Containers, app)
		}
	case "removeInit":
		if n := len(next.InitContainers); n > 0 {
			next.InitContainers = slices.Delete(next.InitContainers, number%n, number%n+1)
		}
	case "addInit", "addSidecar":
		c := spec.Container{Name: fmt.Sprintf("init-%d", number), Image: "i"}
		if change == "addSidecar" {
			c.RestartPolicy = spec.RestartAlways
		}
		if next.Container(c.Name) == nil {
			next.InitContainers = slices.Insert(next.InitContainers, number%(len(next.InitContainers)+1), c)
		}
	case "resize":
		limit := resource.NewMilliQuantity(int64(number+1)*100, resource.DecimalSI)
		next.Container(containerOf(pod, number)).Resources.Limits = spec.ResourceList{spec.ResourceCPU: *limit}
	case "inPlace":
		next.TerminationGracePeriodSeconds = spec.Seconds(number)
	case "all":
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			restarted = append(restarted, c.Name)
		}
		next.Containers = []spec.Container{app}
	}
	return &next, restarted
}

func TestRefOf(t *testing.T) {
	ref := run("app", 3)
	for _, a := range []lifecycle.Action{
		lifecycle.StartContainer{Ref: ref},
		lifecycle.StopContainer{Ref: ref},
		lifecycle.KillContainer{Ref: ref},
		lifecycle.RunPostStart{Ref: ref},
		lifecycle.RunPreStop{Ref: ref},
		lifecycle.RemoveContainer{Ref: ref},
	} {
		if got := lifecycle.RefOf(a); got != ref {
			t.Errorf("%T: %v", a, got)
		}
	}
	if got := lifecycle.RefOf(lifecycle.RemovePod{}); got != (lifecycle.Ref{}) {
		t.Errorf("RemovePod: %v", got)
	}
}

// TestStageNewPod checks that a pod for which nothing has been done starts with a staged image.
func TestStageNewPod(t *testing.T) {
	facts := lifecycle.Facts{UID: "uid", Accepted: at(1)}
	facts.Stage("app", lifecycle.Image{ID: "sha256:staged"}, at(1))
	facts = facts.Apply(lifecycle.Issued{Action: startSandbox(1), At: at(1)}).Apply(lifecycle.SandboxStarted{Sandbox: 1, At: at(1)})
	want := lifecycle.StartContainer{Ref: run("app", 1), Sandbox: 1, ImageID: "sha256:staged"}
	if got := lifecycle.Decide(podOf(spec.RestartAlways, "app"), facts, at(2)).Actions; !slices.Equal(got, []lifecycle.Action{want}) {
		t.Errorf("%#v, want %#v", got, want)
	}
}

// TestAddedAgain checks that a container that is added again while it stops runs again after it has stopped.
func TestAddedAgain(t *testing.T) {
	both, one := podOf(spec.RestartNever, "app", "old"), podOf(spec.RestartNever, "app")
	facts := fold(history{up(), running("app", 1), running("old", 1)}).
		Apply(lifecycle.DefinitionChanged{From: both, To: one, At: at(2)}).
		Apply(lifecycle.DefinitionChanged{From: one, To: both, Images: map[string]lifecycle.Image{"old": {ID: "new"}}, At: at(2)})
	if got := lifecycle.Decide(both, facts, at(3)).Actions; len(got) != 1 || lifecycle.RefOf(got[0]) != run("old", 1) {
		t.Errorf("while it runs: %#v, want its stop", got)
	}
	facts = facts.Apply(lifecycle.ContainerExited{Ref: run("old", 1), At: at(4)})
	want := lifecycle.StartContainer{Ref: run("old", 2), Sandbox: 1, Restarts: 1, ImageID: "new"}
	if got := lifecycle.Decide(both, facts, at(5)).Actions; !slices.Equal(got, []lifecycle.Action{want}) {
		t.Errorf("after its exit: %#v, want %#v", got, want)
	}
}

// TestForgetNeedsNoRecord checks that the record of the last run that has one is removed before a removed container is forgotten.
func TestForgetNeedsNoRecord(t *testing.T) {
	both, one := podOf(spec.RestartAlways, "app", "old"), podOf(spec.RestartAlways, "app")
	refused := failed(lifecycle.StartContainer{Ref: run("old", 2)}, lifecycle.Failure{Kind: lifecycle.FailureNotCreated})
	facts := fold(history{up(), running("app", 1), ran("old", 1, 1), pulled("old", 2), issued("old", 2), refused}).
		Apply(lifecycle.DefinitionChanged{From: both, To: one, At: at(2)})
	if got := lifecycle.Decide(one, facts, at(3)).Actions; !slices.Equal(got, []lifecycle.Action{removeContainer("old", 1)}) {
		t.Errorf("%#v, want the removal of the first run", got)
	}
	facts = facts.Apply(lifecycle.Issued{Action: removeContainer("old", 1), At: at(3)}).Apply(lifecycle.ContainerRemoved{
		Ref: run("old", 1), At: at(4),
	})
	if got := lifecycle.Decide(one, facts, at(5)).Actions; !slices.Equal(got,
		[]lifecycle.Action{lifecycle.ForgetContainer{Container: "old"}}) {
		t.Errorf("%#v, want ForgetContainer", got)
	}
}

const (
	always, onFailure, never = spec.RestartAlways, spec.RestartOnFailure, spec.RestartNever
	again, restartAll        = "Restart", "RestartAllContainers"
)

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
	again42 := history{up2("init"), done2, removeContainer("init", 1), up2("app"), happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: start2("app", 1).Ref, Exit: lifecycle.Exit{Code: 42}, At: t}
	}), removeContainer("app", 1)}
	initRule := within(podOf(always, "init", "app"), "init", own(never, rule(restartAll, "In", 0, 7)))
	sideEnds := within(podOf(never, "side", "init", "app"), "side", own(always, rule(restartAll, "In", 7)))
	sideRule := within(podOf(always, "side", "app"), "side", own(always, rule(restartAll, "In", 7)))
	decisions{
		{
			name: "4.2 all containers are stopped at once with 2 s and without hooks", pod: pod, past: asks, now: 10,
			want: do{end("other"), end("side")},
		},
		{name: "4.2 exit code without a matching rule does nothing", pod: pod, past: history{up1, tick(10), exited("app", 1, 41)}, now: 10},
		{
			name: "4.2 waits until all containers have terminated", pod: pod,
			past: history{asks, end("other"), end("side"), exited("other", 1, 0)}, now: 11, wake: 12,
		},
		{
			name: "4.2 containers that ignore the stop signal are killed", pod: pod,
			past: history{asks, end("other"), end("side"), exited("other", 1, 0)}, now: 12, want: do{kill("side", 1)},
		},
		{name: "4.2 new round starts when all containers have terminated", pod: pod, past: ended, now: 10, want: do{begin}},
		{name: "4.2 next round does not start within 1 s", pod: pod, past: history{round2, again42}, now: 10.999, wake: 11},
		{
			name: "4.2 next round starts after 1 s", pod: pod, past: history{round2, again42}, now: 11,
			want: do{lifecycle.StartRound{Round: 3, By: start2("app", 1).Ref}},
		},
		{
			name: "4.2 first init container is pulled at once in the same sandbox", pod: pod, past: round2, now: 10,
			want: do{pull("init", 2, 1)},
		},
		{
			name: "4.2 restart counts are raised and back-off levels are unchanged", pod: pod, past: history{round2, pulled("init", 2)},
			now: 10, want: do{start2("init", 1)},
		},
		{
			name: "4.2 sidecar follows the init container", pod: pod, past: history{round2, up2("init"), done2, removeContainer("init", 1)},
			now: 10, want: do{pull("side", 2, 1)},
		},
		{
			name: "4.2 app containers follow, including completed ones with Never", pod: pod,
			past: history{round2, up2("init"), done2, removeContainer("init", 1), up2("side"), pulled("app", 2), pulled("other", 2)},
			now:  10, want: do{start2("app", 1)},
		},
		{
			name: "4.2 container that is being restarted by its policy is stopped",
			pod:  with(podOf(always, "app", "other"), own(never, rule(restartAll, "In", 42))),
			past: history{
				up(), running("app", 1), ran("other", 1, 1), tick(10), exited("app", 1, 42), begin, pulled("app", 2), pulled("other", 2),
				up2("app"),
			}, now: 10, want: do{start2("other", 1)},
		},
		{name: "4.2 running preStop hook is cancelled", pod: pod, past: history{
			up1,
			lifecycle.RunPreStop{Ref: run("other", 1), Limit: time.Minute, Reason: lifecycle.ReasonLivenessProbe},
			tick(10),
			exited("app", 1, 42),
		}, now: 10, want: do{
			lifecycle.StopContainer{Ref: run("other", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonLivenessProbe}, end("side"),
		}},
		{
			name: "4.2 first round in place has no minimum age of the host",
			pod:  with(podOf(never, "app"), own(never, rule(restartAll, "In", 42))),
			past: history{tick(0.2), up(), ran("app", 1, 42)}, now: 0.5, want: do{lifecycle.StartRound{Round: 2, By: run("app", 1)}},
		},
		{
			name: "4.2 triggered by any app container",
			pod:  within(podOf(never, "app", "other"), "other", own(never, rule(restartAll, "In", 42))),
			past: history{up(), ran("app", 1, 0), ran("other", 1, 42)}, now: 1,
			want: do{lifecycle.StartRound{Round: 2, By: run("other", 1)}},
		},
		{
			name: "4.2 triggered by a failed init container", pod: initRule, past: history{up(), ran("init", 1, 7)}, now: 1,
			want: do{lifecycle.StartRound{Round: 2, By: run("init", 1)}},
		},
		{
			name: "4.2 triggered by a succeeded init container", pod: initRule, past: history{up(), ran("init", 1, 0)}, now: 1,
			want: do{lifecycle.StartRound{Round: 2, By: run("init", 1)}},
		},
		{
			name: "4.2 pod without a rule that finished before the boot is terminated", pod: podOf(never, "app"),
			past: history{tick(-5), up(), ran("app", 1, 0)}, now: 1, want: do{removeSandbox(1)},
		},
		{
			name: "4.2 not triggered by a sidecar that exits after the app containers completed", pod: sideEnds,
			past: history{up(), running("side", 1), ran("app", 1, 0), tick(5), exited("side", 1, 7)}, now: 5, want: do{removeSandbox(1)},
		},
		{
			name: "4.2 not triggered by a sidecar that exits after an init container failed", pod: sideEnds,
			past: history{up(), running("side", 1), ran("init", 1, 3), tick(5), exited("side", 1, 7)}, now: 5, want: do{removeSandbox(1)},
		},
		{
			name: "4.2 triggered by a sidecar that exited before the app containers completed", pod: sideEnds,
			past: history{up(), running("side", 1), running("app", 1), tick(3), exited("side", 1, 7), tick(5), exited("app", 1, 0)}, now: 5,
			want: do{lifecycle.StartRound{Round: 2, By: run("side", 1)}},
		},
		{
			name: "4.2 triggered by a sidecar", pod: sideRule, past: history{up(), ran("side", 1, 7)}, now: 1,
			want: do{lifecycle.StartRound{Round: 2, By: run("side", 1)}},
		},
		{
			name: "4.2 first exit is the trigger, not the exit of a container stopped by the restart",
			pod: within(with(podOf(never, "app", "other"), own(never, rule(restartAll, "NotIn", 0))), "other",
				own(never, rule(restartAll, "In", 42))),
			past: history{
				up(), running("app", 1), running("other", 1), tick(10), exited("other", 1, 42), end("app"), tick(11), exited("app", 1, 143),
			},
			now:  11,
			want: do{lifecycle.StartRound{Round: 2, By: run("other", 1)}},
		},
		{
			name: "4.2 first exit is the trigger, whatever the order in the pod file",
			pod: within(with(podOf(never, "app", "other"), own(never, rule(restartAll, "In", 42))), "other",
				own(never, rule(restartAll, "NotIn", 0))),
			past: history{
				up(), running("app", 1), running("other", 1), tick(10), exited("app", 1, 42), end("other"), tick(11),
				exited("other", 1, 143),
			},
			now:  11,
			want: do{lifecycle.StartRound{Round: 2, By: run("app", 1)}},
		},
		{
			name: "7.4 not triggered by a sidecar that is stopped with the pod",
			pod:  within(podOf(never, "side", "app"), "side", own(always, rule(restartAll, "NotIn", 0))),
			past: history{
				up(), running("side", 1), ran("app", 1, 0),
				lifecycle.StopContainer{Ref: run("side", 1), Reason: lifecycle.ReasonPodFinished},
				tick(2), exited("side", 1, 143),
			}, now: 2, want: do{removeSandbox(1)},
		},
		{
			name: "4.2 stopping pod terminates instead", pod: pod, past: history{asks, stopped(9 * time.Second), exited("side", 1, 0)},
			now:  10,
			want: do{preStop("other", 1, 9*time.Second, lifecycle.ReasonStopped)},
		},
		{
			name: "4.2 trigger is dropped if the sandbox is lost",
			pod:  with(podOf(always, "app", "other"), own(never, rule(restartAll, "In", 42))),
			past: history{up(), running("app", 1), ran("other", 1, 0), tick(10), exited("app", 1, 42), sandboxLost(1)}, now: 10,
			want: do{removeSandbox(1)},
		},
		{
			name: "4.2 reset runs do not prevent a new sandbox with Never", pod: podOf(never, "app", "other"),
			past: history{up(), ran("app", 1, 42), begin, tick(10), sandboxLost(1), sandboxRemoved(1)}, now: 11,
			want: do{lifecycle.StartSandbox{Sandbox: 2, Round: 3}},
		},
		{
			name: "7.5 deadline applies during the restart", pod: func() *spec.Pod {
				p := with(podOf(never, "app", "other"), own(never, rule(restartAll, "In", 42)))
				limit := spec.Seconds(9)
				p.ActiveDeadlineSeconds = &limit
				return p
			}(),
			past: history{up(), running("app", 1), running("other", 1), exited("app", 1, 42), end("other")}, now: 10,
			want: do{failPod(30 * time.Second)},
		},
	}.check(t)
}

func TestStatusRestartAll(t *testing.T) {
	pod := func(names ...string) *spec.Pod {
		return with(podOf(never, names...), own(never, rule(restartAll, "In", 42)))
	}
	two := pod("app", "other")
	three := pod("app", "init", "side")
	asks := history{up(), running("app", 1), running("other", 1), exited("app", 1, 42)}
	begin := lifecycle.StartRound{Round: 2, By: run("app", 1)}
	round2 := history{asks, exited("other", 1, 0), begin}
	all3 := history{up(), ran("init", 1, 0), running("side", 1), running("app", 1), exited("app", 1, 42), exited("side", 1, 0), begin}
	init2 := history{
		pulled("init", 2),
		lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "init", Round: 2, Attempt: 2}, Sandbox: 1, Restarts: 1},
		happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerStarted{Ref: lifecycle.Ref{Container: "init", Round: 2, Attempt: 2}, At: t}
		}),
	}
	statuses{
		{"4.2 trigger shows its exit code", two, asks, 1, "Running; app Error(42); other Running ready"},
		{
			"4.2 trigger shows its exit code after all containers terminated", two,
			history{asks, exited("other", 1, 0)},
			1,
			"Running; app Error(42); other Completed(0)",
		},
		{
			"4.2 trigger shows its exit code despite an earlier back-off",
			with(pod("app", "other"), own(never, rule(again, "In", 3), rule(restartAll, "In", 42))),
			history{up(), ran("app", 1, 3), running("app", 2), running("other", 1), exited("app", 2, 42)},
			1,
			"Running; app Error(42) after Error(3) +1; other Running ready",
		},
		{
			"4.2 all containers wait in the new round", two, round2, 1,
			"Running; app RestartingAllContainers after RestartingAllContainers(137) +1; other RestartingAllContainers after " +
				"RestartingAllContainers(137) +1",
		},
		{
			"4.2 container that never ran is ContainerCreating", two,
			history{up(), ran("app", 1, 42), begin},
			1,
			"Pending; app RestartingAllContainers after RestartingAllContainers(137) +1; other ContainerCreating",
		},
		{
			"4.2 container with a failed pull shows the pull error", two,
			history{round2, pullFailed("app", 2, 1, lifecycle.ReasonErrImagePull)},
			1,
			"Running; app ErrImagePull after RestartingAllContainers(137) +1; other RestartingAllContainers after " +
				"RestartingAllContainers(137) +1",
		},
		{
			"4.2 init containers and sidecars wait in the new round", three, all3, 1,
			"Running; init RestartingAllContainers after RestartingAllContainers(137) +1; side RestartingAllContainers after " +
				"RestartingAllContainers(137) +1; app RestartingAllContainers after RestartingAllContainers(137) +1",
		},
		{
			"4.2 pod is Pending while the init container runs again", three,
			history{all3, init2},
			1,
			"Pending; init Running after RestartingAllContainers(137) +1; side RestartingAllContainers after " +
				"RestartingAllContainers(137) +1; app RestartingAllContainers after RestartingAllContainers(137) +1",
		},
		{
			"4.2 pod that is stopped in the new round has failed", two,
			history{round2, stopped(time.Minute)},
			1,
			"Failed; app RestartingAllContainers(137) +1; other RestartingAllContainers(137) +1",
		},
	}.check(t)
}

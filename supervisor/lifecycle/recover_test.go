package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestUnresolved has rows for each kind of action, in progress and with each outcome.
func TestUnresolved(t *testing.T) {
	cancelled := lifecycle.CancelPull{Container: "app", For: 1}
	for _, row := range []struct {
		name string
		past history
		want []lifecycle.Action
	}{
		{"new pod", nil, nil},
		{"StartSandbox in progress", history{startSandbox(1)}, do{startSandbox(1)}},
		{"StartSandbox succeeded", up(), nil},
		{"StartSandbox failed", failing(startSandbox(1), oops), nil},
		{"ResizePod in progress", history{up(), resizeRequested, resizePod(1)}, nil},
		{"ResizePod succeeded", history{up(), resizeRequested, resizePod(1), resizedPod(1)}, nil},
		{"ResizePod failed", history{up(), resizeRequested, failing(resizePod(1), oops)}, nil},
		{"RemoveSandbox in progress", history{up(), removeSandbox(1)}, do{removeSandbox(1)}},
		{"RemoveSandbox succeeded", history{up(), sandboxRemoved(1)}, nil},
		{"RemoveSandbox failed", history{up(), failing(removeSandbox(1), oops)}, nil},
		{"PullImage in progress", history{pull("app", 1, 3)}, do{pull("app", 1, 3)}},
		{"PullImage succeeded", pulled("app", 1), nil},
		{"PullImage failed", pullFailed("app", 1, 1, "X"), nil},
		{"PullImage unanswered", failing(pull("app", 1, 3), unavailable), nil},
		{"PullImage cancelled", history{pull("app", 1, 3), cancelled}, do{pull("app", 1, 3), cancelled}},
		{"StartContainer in progress", history{start("app", 1, 4, 5)}, do{start("app", 1, 4, 0)}},
		{"StartContainer succeeded", history{issued("app", 1), started("app", 1)}, nil},
		{"StartContainer failed", failing(start("app", 1, 0, 0), oops), nil},
		{"StartContainer failed to create", failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}), nil},
		{"StartContainer unanswered", failing(start("app", 1, 0, 0), unavailable), nil},
		{"RunPostStart in progress", history{running("app", 1), postStart("app", 1)}, do{postStart("app", 1)}},
		{"RunPostStart succeeded", history{running("app", 1), postStart("app", 1), hookDone("app", 1, lifecycle.PostStart)}, nil},
		{"RunPostStart failed", history{running("app", 1), failing(postStart("app", 1), oops)}, nil},
		{"RunPostStart unanswered", history{running("app", 1), failing(postStart("app", 1), unavailable)}, nil},
		{"RunPostStart cancelled", history{running("app", 1), postStart("app", 1), cancel("app", 1, lifecycle.PostStart)}, nil},
		{"RunPostStart of a terminated run", history{running("app", 1), postStart("app", 1), exited("app", 1, 1)}, nil},
		{"RunPreStop in progress", history{running("app", 1), preStop("app", 1, 7, "X")}, do{preStop("app", 1, 7, "X")}},
		{"RunPreStop succeeded", history{running("app", 1), preStop("app", 1, 7, "X"), hookDone("app", 1, lifecycle.PreStop)}, nil},
		{"RunPreStop failed", history{running("app", 1), failing(preStop("app", 1, 7, "X"), oops)}, nil},
		{
			"RunPreStop cancelled and StopContainer in progress",
			history{running("app", 1), preStop("app", 1, 7, "X"), stop("app", 1, 7), cancel("app", 1, lifecycle.PreStop)},
			do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 7, Reason: "X"}},
		},
		{"RunPreStop of a terminated run", history{running("app", 1), preStop("app", 1, 7, "X"), exited("app", 1, 1)}, nil},
		{"StopContainer in progress", history{running("app", 1), stop("app", 1, 7)}, do{stop("app", 1, 7)}},
		{"StopContainer succeeded", history{running("app", 1), stop("app", 1, 7), sent("app", 1, false)}, nil},
		{"StopContainer failed", history{running("app", 1), failing(stop("app", 1, 7), oops)}, nil},
		{"StopContainer of a terminated run", history{running("app", 1), stop("app", 1, 7), exited("app", 1, 1)}, nil},
		{
			"KillContainer in progress after StopContainer",
			history{running("app", 1), stop("app", 1, 7), kill("app", 1)},
			do{kill("app", 1)},
		},
		{"KillContainer succeeded", history{running("app", 1), kill("app", 1), sent("app", 1, true)}, nil},
		{"RemoveContainer in progress", history{ran("app", 1, 1), removeContainer("app", 1)}, do{removeContainer("app", 1)}},
		{
			"RemoveContainer of the previous run in progress",
			history{ran("app", 1, 1), ran("app", 2, 1), removeContainer("app", 1)},
			do{removeContainer("app", 1)},
		},
		{"RemoveContainer succeeded", history{ran("app", 1, 1), removeContainer("app", 1), containerRemoved("app", 1)}, nil},
		{"RemoveContainer failed", history{ran("app", 1, 1), failing(removeContainer("app", 1), oops)}, nil},
		{"RemovePod in progress", history{lifecycle.RemovePod{}}, do{lifecycle.RemovePod{}}},
		{"RebootHost in progress", history{lifecycle.RebootHost{}}, do{lifecycle.RebootHost{}}},
		{"RebootHost failed", failing(lifecycle.RebootHost{}, oops), nil},
		{"CollectPod in progress", history{lifecycle.CollectPod{}}, do{lifecycle.CollectPod{}}},
		{
			"sorted by container",
			history{pull("b", 1, 1), pull("a", 1, 1), startSandbox(2)},
			do{startSandbox(2), pull("a", 1, 1), pull("b", 1, 1)},
		},
	} {
		if diff := cmp.Diff(row.want, fold(row.past).Unresolved()); diff != "" {
			t.Errorf("%s: unresolved (-want +got):\n%s", row.name, diff)
		}
	}
}

func withoutProcess(r lifecycle.Run) lifecycle.Run {
	r.NoProcess = true
	return r
}

// TestAbandonStarts expects that a pod that is being stopped repeats no start, and stops what a start has created.
func TestAbandonStarts(t *testing.T) {
	pod := podOf(always, "init", "app")
	now := at(50)
	twoPulls := history{up(), pull("app", 1, 1), pull("init", 1, 1), lifecycle.CancelPull{Container: "app", For: 1}, stopped(time.Minute)}
	for _, row := range []struct {
		name  string
		past  history
		found lifecycle.Found
		want  []lifecycle.Action // unresolved
		next  []lifecycle.Action // decided
	}{
		{name: "pod that is not being stopped", past: history{startSandbox(1)}, want: do{startSandbox(1)}},
		{name: "sandbox", past: history{startSandbox(1), stopped(time.Minute)}, next: do{removeSandbox(1)}},
		{
			name: "sandbox that exists", past: history{startSandbox(1), stopped(time.Minute)},
			found: lifecycle.Found{Sandbox: 1, Ready: true}, next: do{removeSandbox(1)},
		},
		{name: "pulls", past: twoPulls, next: do{removeSandbox(1)}},
		{name: "container that was not created", past: history{up(), issued("app", 1), stopped(time.Minute)}, next: do{removeSandbox(1)}},
		{
			name: "container that was created", past: history{up(), issued("app", 1), stopped(time.Minute)},
			found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("other", 1, 1, 1, 0), found("app", 1, 1, 1, 0)}},
			next:  do{stop("app", 1, 11*time.Second)},
		},
		{
			name: "container without a process", past: history{up(), issued("app", 1), stopped(time.Minute)},
			found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{withoutProcess(found("app", 1, 1, 1, 0))}},
			next:  do{removeSandbox(1)},
		},
		{
			name: "running container", past: history{up(), running("app", 1), stopped(time.Minute)},
			found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("app", 1, 1, 1, 0)}},
			next:  do{stop("app", 1, 11*time.Second)},
		},
	} {
		facts := fold(row.past).AbandonStarts(pod, row.found, now)
		if diff := cmp.Diff(row.want, facts.Unresolved()); diff != "" {
			t.Errorf("%s: unresolved (-want +got):\n%s", row.name, diff)
		}
		if row.next == nil {
			continue
		}
		if diff := cmp.Diff(row.next, lifecycle.Decide(pod, facts, now).Actions); diff != "" {
			t.Errorf("%s: decision (-want +got):\n%s", row.name, diff)
		}
	}
}

// TestAbandonStartsKeepsImages: a pull that has succeeded is not forgotten when the pod stops.
func TestAbandonStartsKeepsImages(t *testing.T) {
	before := fold(history{up(), pulled("app", 1), stopped(time.Minute)})
	after := before.AbandonStarts(podOf(always, "app"), lifecycle.Found{}, at(50))
	if diff := cmp.Diff(before.Container("app").Pull, after.Container("app").Pull); diff != "" {
		t.Errorf("the pull changed (-before +after):\n%s", diff)
	}
}

// TestAbandonedStartSaysWhy: a start that is not repeated says whether the pod stops or only the container is replaced.
func TestAbandonedStartSaysWhy(t *testing.T) {
	replace := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerRestartRequested{Container: "app", At: t}
	})
	for want, last := range map[string]any{
		"not started again after a restart of the daemon: the pod is being stopped":        stopped(time.Minute),
		"not started again after a restart of the daemon: the container is being replaced": replace,
	} {
		facts := fold(history{up(), issued("app", 1), last}).AbandonStarts(podOf(always, "app"), lifecycle.Found{}, at(50))
		if got := facts.Container("app").Newest.Exit.Message; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	}
}

func TestLive(t *testing.T) {
	facts := fold(history{up(), running("b", 1), running("a", 1), ran("c", 1, 0), issued("d", 1)})
	if diff := cmp.Diff([]lifecycle.Ref{run("a", 1), run("b", 1)}, facts.Live()); diff != "" {
		t.Errorf("live (-want +got):\n%s", diff)
	}
}

func TestSandboxReady(t *testing.T) {
	for _, row := range []struct {
		name string
		past history
		want int
	}{
		{"no sandbox", nil, 0},
		{"start in progress", history{startSandbox(1)}, 0},
		{"ready sandbox", up(), 1},
		{"lost sandbox", history{up(), sandboxLost(1)}, 0},
		{"removal in progress", history{up(), removeSandbox(1)}, 0},
	} {
		if got := fold(row.past).SandboxReady(); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestIdle(t *testing.T) {
	for _, row := range []struct {
		name string
		past history
		want bool
	}{
		{"new pod", nil, true},
		{"ready sandbox", up(), false},
		{"failed sandbox", failing(startSandbox(1), oops), true},
		{"unanswered start of a sandbox", failing(startSandbox(1), unavailable), false},
		{"removed sandbox", history{up(), sandboxRemoved(1)}, true},
		{"pull in progress", history{pull("app", 1, 1)}, false},
		{"pulled image", pulled("app", 1), true},
		{"start in progress", issued("app", 1), false},
		{"terminated run", ran("app", 1, 1), true},
	} {
		if got := fold(row.past).Idle(); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func found(name string, round, sandbox, n, restarts int) lifecycle.Run {
	return lifecycle.Run{
		StartContainer: lifecycle.StartContainer{
			Ref: lifecycle.Ref{Container: name, Round: round, Attempt: n}, Sandbox: sandbox, Restarts: restarts, ImageID: "digest",
		},
		ID: "id", Image: "image",
	}
}

func TestCatchUp(t *testing.T) {
	now := at(50)
	image := lifecycle.Image{ID: "digest"}
	live := func(r lifecycle.Run) lifecycle.Attempt {
		return lifecycle.Attempt{
			Ref: r.Ref, Sandbox: r.Sandbox, Restarts: r.Restarts, Requested: now, Started: now, ID: "id", Image: "image", ImageID: "digest",
		}
	}
	ended := func(a lifecycle.Attempt) lifecycle.Attempt {
		a.Exited, a.Exit = now, lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonStatusUnknown}
		return a
	}
	known := history{up(), issued("app", 1), started("app", 1)}
	knownRun := fold(known).Containers["app"].Newest
	sandbox := func(n int) lifecycle.Sandbox {
		return lifecycle.Sandbox{N: n, Requested: now, Lost: now, Message: "sandbox not found"}
	}
	for _, row := range []struct {
		name  string
		past  history
		found lifecycle.Found
		want  func(*lifecycle.Facts)
	}{
		{name: "nothing found"},
		{
			name: "known objects do not change", past: known,
			found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("app", 1, 1, 1, 9)}},
		},
		{
			name: "a sandbox of round 1, and the runs in it, in the order of their attempts",
			found: lifecycle.Found{
				Sandbox: 1, Ready: true, IPs: []string{"10.0.0.3"},
				Runs: []lifecycle.Run{found("app", 1, 1, 2, 1), found("app", 1, 1, 1, 0)},
			},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 1, lifecycle.Sandbox{N: 1, Requested: now, Ready: now, IPs: []string{"10.0.0.3"}}
				f.Wait.Ended = now
				f.Containers = map[string]*lifecycle.Container{"app": {
					Newest: live(found("app", 1, 1, 2, 1)), Previous: ended(live(found("app", 1, 1, 1, 0))), Image: image,
				}}
			},
		},
		{
			name:  "round is that of the newest run",
			found: lifecycle.Found{Sandbox: 4, Ready: true, Runs: []lifecycle.Run{found("a", 7, 4, 1, 0), found("b", 6, 3, 1, 0)}},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 7, lifecycle.Sandbox{N: 4, Requested: now, Ready: now}
				f.Wait.Ended = now
				f.Containers = map[string]*lifecycle.Container{
					"a": {Newest: live(found("a", 7, 4, 1, 0)), Image: image}, "b": {Newest: live(found("b", 6, 3, 1, 0)), Image: image},
				}
			},
		},
		{
			name: "runs of two rounds in one sandbox show a restart of all containers", found: lifecycle.Found{
				Sandbox: 2, Ready: true,
				Runs: []lifecycle.Run{found("b", 2, 1, 0, 0), found("a", 4, 2, 2, 1), found("a", 3, 2, 1, 0), found("b", 3, 2, 1, 0)},
			},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 4, lifecycle.Sandbox{N: 2, Requested: now, Ready: now}
				f.Wait.Ended = now
				f.Restarted, f.RestartedAt = 4, now
				f.Containers = map[string]*lifecycle.Container{
					"a": {Newest: live(found("a", 4, 2, 2, 1)), Previous: ended(live(found("a", 3, 2, 1, 0))), Image: image},
					"b": {Newest: live(found("b", 3, 2, 1, 0)), Image: image},
				}
			},
		},
		{
			name: "run of a newer round in the known sandbox shows a restart of all containers", past: known,
			found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("app", 2, 1, 2, 1)}},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Restarted, f.RestartedAt = 2, 2, now
				f.Containers = map[string]*lifecycle.Container{
					"app": {Newest: live(found("app", 2, 1, 2, 1)), Previous: ended(knownRun), Image: image},
				}
			},
		},
		{
			name: "sandbox known only from its runs is lost", found: lifecycle.Found{Runs: []lifecycle.Run{found("app", 3, 3, 1, 0)}},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 3, sandbox(3)
				f.Containers = map[string]*lifecycle.Container{"app": {Newest: live(found("app", 3, 3, 1, 0)), Image: image}}
			},
		},
		{
			name:  "sandbox known only from its runs is lost although an older sandbox exists",
			found: lifecycle.Found{Sandbox: 2, Ready: true, Runs: []lifecycle.Run{found("app", 3, 3, 1, 0)}},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 3, sandbox(3)
				f.Containers = map[string]*lifecycle.Container{"app": {Newest: live(found("app", 3, 3, 1, 0)), Image: image}}
			},
		},
		{
			name: "newer sandbox opens a round", past: known, found: lifecycle.Found{Sandbox: 2},
			want: func(f *lifecycle.Facts) { f.Round, f.Sandbox = 2, sandbox(2) },
		},
		{
			name: "newer run terminates the known run", past: known,
			found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("app", 1, 1, 2, 1)}},
			want: func(f *lifecycle.Facts) {
				f.Containers = map[string]*lifecycle.Container{"app": {
					Newest: live(found("app", 1, 1, 2, 1)), Previous: ended(knownRun), Image: image,
				}}
			},
		},
		{
			name: "newer run does not terminate a terminated run again", past: history{known, exited("app", 1, 5)},
			found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("app", 1, 1, 2, 1)}},
			want: func(f *lifecycle.Facts) {
				previous := knownRun
				previous.Exited, previous.Exit = at(1), lifecycle.Exit{Code: 5, Reason: lifecycle.ReasonError}
				f.Containers = map[string]*lifecycle.Container{
					"app": {Newest: live(found("app", 1, 1, 2, 1)), Previous: previous, Failures: 1, Exits: 1, Image: image},
				}
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			want := fold(row.past)
			got := want.CatchUp(row.found, now)
			if row.want != nil {
				row.want(&want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStopSignals checks which stop signals the supervisor keeps until the next boot.
func TestStopSignals(t *testing.T) {
	stopping := func(name string) history { return history{running(name, 1), stop(name, 1, 9*time.Second)} }
	before := history{
		up(), stopping("b"), stopping("a"), stopping("waits"), stopping("over"), running("killed", 1),
		lifecycle.KillContainer{Ref: run("killed", 1)},
	}
	facts := fold(history{
		before, tick(2), sent("b", 1, false), sent("a", 1, false), sent("over", 1, false), exited("over", 1, 0), sent("killed", 1, true),
	})
	got := facts.StopSignals()
	want := []lifecycle.SignalSent{{Ref: run("a", 1), At: at(2)}, {Ref: run("b", 1), At: at(2)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("signals (-want +got):\n%s", diff)
	}
	older := fold(before)
	for _, e := range got {
		older = older.Apply(e)
	}
	for _, a := range older.Unresolved() {
		if s, is := a.(lifecycle.StopContainer); is && s.Container != "waits" && s.Container != "over" {
			t.Errorf("stop signal of %v is sent again", s.Ref)
		}
	}
}

func TestDecideEngineUnavailable(t *testing.T) {
	pod := podOf(never, "app")
	decisions{
		{
			name: "deviation 20 wakes up when the phase becomes Unknown", pod: pod,
			past: history{up(), running("app", 1), tick(10), engineUnavailable}, now: 20, wake: 20 + 1e-9,
		},
		{
			name: "deviation 20 does nothing after the phase became Unknown", pod: pod,
			past: history{up(), running("app", 1), tick(10), engineUnavailable}, now: 20.1,
		},
		{
			name: "deviation 20 does nothing after the engine is available again", pod: pod,
			past: history{up(), running("app", 1), tick(10), engineUnavailable, engineAvailable}, now: 15,
		},
		{
			name: "deviation 20 does not wake up for a terminated pod", pod: pod,
			past: history{up(), ran("app", 1, 0), sandboxRemoved(1), tick(10), engineUnavailable}, now: 15,
		},
	}.check(t)
}

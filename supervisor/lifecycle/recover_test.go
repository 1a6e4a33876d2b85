package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestUnresolved has a row for each kind of action: without an outcome it is carried out again, with one it is not.
func TestUnresolved(t *testing.T) {
	cancelled := lifecycle.CancelPull{Container: "app", For: 1}
	for _, row := range []struct {
		name string
		past history
		want []lifecycle.Action
	}{
		{"nothing", nil, nil},
		{"a sandbox", history{startSandbox(1)}, do{startSandbox(1)}},
		{"a sandbox that is there", up(), nil},
		{"a sandbox that failed", failing(startSandbox(1), oops), nil},
		{"the removal of a sandbox", history{up(), removeSandbox(1)}, do{removeSandbox(1)}},
		{"one that is done", history{up(), sandboxRemoved(1)}, nil},
		{"one that failed", history{up(), failing(removeSandbox(1), oops)}, nil},
		{"a pull", history{pull("app", 1, 3)}, do{pull("app", 1, 3)}},
		{"one that is done", pulled("app", 1), nil},
		{"one that failed", pullFailed("app", 1, 1, "X"), nil},
		{"one that the engine did not answer", failing(pull("app", 1, 3), away), nil},
		{"one that was cancelled, with its cancellation", history{pull("app", 1, 3), cancelled}, do{pull("app", 1, 3), cancelled}},
		{"a start, which has its backoff", history{start("app", 1, 4, 5)}, do{start("app", 1, 4, 0)}},
		{"a run that has started", history{asked("app", 1), started("app", 1)}, nil},
		{"a start that failed", failing(start("app", 1, 0, 0), oops), nil},
		{"one that was refused", failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}), nil},
		{"one that the engine did not answer", failing(start("app", 1, 0, 0), away), nil},
		{"a postStart hook", history{running("app", 1), postStart("app", 1)}, do{postStart("app", 1)}},
		{"one that is done", history{running("app", 1), postStart("app", 1), hooked("app", 1, lifecycle.PostStart)}, nil},
		{"one that failed", history{running("app", 1), failing(postStart("app", 1), oops)}, nil},
		{"one that the engine did not answer", history{running("app", 1), failing(postStart("app", 1), away)}, nil},
		{"one that was cancelled", history{running("app", 1), postStart("app", 1), cancel("app", 1, lifecycle.PostStart)}, nil},
		{"one of a run that has ended", history{running("app", 1), postStart("app", 1), exited("app", 1, 1)}, nil},
		{"a preStop hook, with its limit", history{running("app", 1), preStop("app", 1, 7, "X")}, do{preStop("app", 1, 7, "X")}},
		{"one that is done", history{running("app", 1), preStop("app", 1, 7, "X"), hooked("app", 1, lifecycle.PreStop)}, nil},
		{"one that failed", history{running("app", 1), failing(preStop("app", 1, 7, "X"), oops)}, nil},
		{"one that was cancelled, and the signal that follows", history{running("app", 1), preStop("app", 1, 7, "X"), stop("app", 1, 7), cancel("app", 1, lifecycle.PreStop)}, do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 7, Reason: "X"}}},
		{"one of a run that has ended", history{running("app", 1), preStop("app", 1, 7, "X"), exited("app", 1, 1)}, nil},
		{"a stop signal", history{running("app", 1), stop("app", 1, 7)}, do{stop("app", 1, 7)}},
		{"one that was sent", history{running("app", 1), stop("app", 1, 7), sent("app", 1, false)}, nil},
		{"one that could not be sent", history{running("app", 1), failing(stop("app", 1, 7), oops)}, nil},
		{"one to a run that has ended", history{running("app", 1), stop("app", 1, 7), exited("app", 1, 1)}, nil},
		{"SIGKILL before a stop signal", history{running("app", 1), stop("app", 1, 7), kill("app", 1)}, do{kill("app", 1)}},
		{"SIGKILL that was sent", history{running("app", 1), kill("app", 1), sent("app", 1, true)}, nil},
		{"the removal of a run", history{ran("app", 1, 1), reap("app", 1)}, do{reap("app", 1)}},
		{"of the run before", history{ran("app", 1, 1), ran("app", 2, 1), reap("app", 1)}, do{reap("app", 1)}},
		{"one that is done", history{ran("app", 1, 1), reap("app", 1), reaped("app", 1)}, nil},
		{"one that failed", history{ran("app", 1, 1), failing(reap("app", 1), oops)}, nil},
		{"the removal of the pod", history{lifecycle.RemovePod{}}, do{lifecycle.RemovePod{}}},
		{"all at once, by name", history{pull("b", 1, 1), pull("a", 1, 1), startSandbox(2)}, do{startSandbox(2), pull("a", 1, 1), pull("b", 1, 1)}},
	} {
		if diff := cmp.Diff(row.want, fold(row.past).Unresolved()); diff != "" {
			t.Errorf("%s: unresolved (-want +got):\n%s", row.name, diff)
		}
	}
}

func TestLive(t *testing.T) {
	facts := fold(history{up(), running("b", 1), running("a", 1), ran("c", 1, 0), asked("d", 1)})
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
		{"none", nil, 0},
		{"on its way", history{startSandbox(1)}, 0},
		{"there", up(), 1},
		{"lost", history{up(), lost(1)}, 0},
		{"on its way out", history{up(), removeSandbox(1)}, 0},
	} {
		if got := fold(row.past).SandboxReady(); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestAtRest(t *testing.T) {
	for _, row := range []struct {
		name string
		past history
		want bool
	}{
		{"nothing", nil, true},
		{"a sandbox", up(), false},
		{"one that failed", failing(startSandbox(1), oops), true},
		{"one that may be there", failing(startSandbox(1), away), false},
		{"one that was taken away", history{up(), sandboxRemoved(1)}, true},
		{"a pull", history{pull("app", 1, 1)}, false},
		{"an image", pulled("app", 1), true},
		{"a start", asked("app", 1), false},
		{"an end", ran("app", 1, 1), true},
	} {
		if got := fold(row.past).Idle(); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func found(name string, round, sandbox, n, restarts int) lifecycle.Run {
	return lifecycle.Run{
		StartContainer: lifecycle.StartContainer{
			Ref: lifecycle.Ref{Container: name, Round: round, Attempt: n}, Sandbox: sandbox, Restarts: restarts,
		},
		ID: "id", Image: "image", ImageID: "digest",
	}
}

func TestCatchUp(t *testing.T) {
	now := at(50)
	live := func(r lifecycle.Run) lifecycle.Attempt {
		return lifecycle.Attempt{
			Ref: r.Ref, Sandbox: r.Sandbox, Restarts: r.Restarts, Requested: now, Started: now, ID: "id", Image: "image", ImageID: "digest",
		}
	}
	ended := func(a lifecycle.Attempt) lifecycle.Attempt {
		a.Exited, a.Exit = now, lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonStatusUnknown}
		return a
	}
	known := history{up(), asked("app", 1), started("app", 1)}
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
		{name: "nothing is nothing"},
		{name: "what is known stays", past: known, found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("app", 1, 1, 1, 9)}}},
		{
			name:  "a sandbox of round 1, and the runs in it, in the order of their attempts",
			found: lifecycle.Found{Sandbox: 1, Ready: true, IPs: []string{"10.0.0.3"}, Runs: []lifecycle.Run{found("app", 1, 1, 2, 1), found("app", 1, 1, 1, 0)}},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 1, lifecycle.Sandbox{N: 1, Requested: now, Ready: now, IPs: []string{"10.0.0.3"}}
				f.Containers = map[string]lifecycle.Container{"app": {
					Newest: live(found("app", 1, 1, 2, 1)), Previous: ended(live(found("app", 1, 1, 1, 0))),
				}}
			},
		},
		{
			name: "the round is that of the newest run", found: lifecycle.Found{Sandbox: 4, Ready: true, Runs: []lifecycle.Run{found("a", 7, 4, 1, 0), found("b", 6, 3, 1, 0)}},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 7, lifecycle.Sandbox{N: 4, Requested: now, Ready: now}
				f.Containers = map[string]lifecycle.Container{
					"a": {Newest: live(found("a", 7, 4, 1, 0))}, "b": {Newest: live(found("b", 6, 3, 1, 0))},
				}
			},
		},
		{
			name: "runs of two rounds in one sandbox tell of a restart of all containers", found: lifecycle.Found{
				Sandbox: 2, Ready: true, Runs: []lifecycle.Run{found("b", 2, 1, 0, 0), found("a", 4, 2, 2, 1), found("a", 3, 2, 1, 0), found("b", 3, 2, 1, 0)},
			},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 4, lifecycle.Sandbox{N: 2, Requested: now, Ready: now}
				f.Restarted, f.RestartedAt = 4, now
				f.Containers = map[string]lifecycle.Container{
					"a": {Newest: live(found("a", 4, 2, 2, 1)), Previous: ended(live(found("a", 3, 2, 1, 0)))}, "b": {Newest: live(found("b", 3, 2, 1, 0))},
				}
			},
		},
		{
			name: "also in a sandbox that is known", past: known, found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("app", 2, 1, 2, 1)}},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Restarted, f.RestartedAt = 2, 2, now
				f.Containers = map[string]lifecycle.Container{"app": {Newest: live(found("app", 2, 1, 2, 1)), Previous: ended(knownRun)}}
			},
		},
		{
			name: "a sandbox that only its runs tell of is lost", found: lifecycle.Found{Runs: []lifecycle.Run{found("app", 3, 3, 1, 0)}},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 3, sandbox(3)
				f.Containers = map[string]lifecycle.Container{"app": {Newest: live(found("app", 3, 3, 1, 0))}}
			},
		},
		{
			name: "and so is one of which an older one is there", found: lifecycle.Found{Sandbox: 2, Ready: true, Runs: []lifecycle.Run{found("app", 3, 3, 1, 0)}},
			want: func(f *lifecycle.Facts) {
				f.Round, f.Sandbox = 3, sandbox(3)
				f.Containers = map[string]lifecycle.Container{"app": {Newest: live(found("app", 3, 3, 1, 0))}}
			},
		},
		{
			name: "a newer sandbox opens a round", past: known, found: lifecycle.Found{Sandbox: 2},
			want: func(f *lifecycle.Facts) { f.Round, f.Sandbox = 2, sandbox(2) },
		},
		{
			name: "a newer run ends the one that is known", past: known, found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("app", 1, 1, 2, 1)}},
			want: func(f *lifecycle.Facts) {
				f.Containers = map[string]lifecycle.Container{"app": {
					Newest: live(found("app", 1, 1, 2, 1)), Previous: ended(knownRun),
				}}
			},
		},
		{
			name: "but does not end it twice", past: history{known, exited("app", 1, 5)},
			found: lifecycle.Found{Sandbox: 1, Ready: true, Runs: []lifecycle.Run{found("app", 1, 1, 2, 1)}},
			want: func(f *lifecycle.Facts) {
				previous := knownRun
				previous.Exited, previous.Exit = at(1), lifecycle.Exit{Code: 5, Reason: lifecycle.ReasonError}
				f.Containers = map[string]lifecycle.Container{"app": {Newest: live(found("app", 1, 1, 2, 1)), Previous: previous}}
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

// TestSignalled: which stop signals are kept until the next boot.
func TestSignalled(t *testing.T) {
	told := func(name string) history { return history{running(name, 1), stop(name, 1, 9*time.Second)} }
	before := history{up(), told("b"), told("a"), told("waits"), told("over"), running("killed", 1), lifecycle.KillContainer{Ref: run("killed", 1)}}
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
			t.Errorf("%v is told to stop again", s.Ref)
		}
	}
}

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// decisions is a table over [lifecycle.Decide]: each row says what is to be done, and when to look again, at a second
// after the boot.
type decisions []struct {
	name string
	pod  *spec.Pod
	past history
	now  float64
	want []lifecycle.Action
	wake float64 // 0: never
	gone bool
}

func (table decisions) check(t *testing.T) {
	t.Helper()
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			got := lifecycle.Decide(row.pod, fold(row.past), at(row.now))
			got.Probes = nil // see [TestDecideProbes]
			want := lifecycle.Decision{Actions: row.want, Removed: row.gone}
			if row.wake > 0 {
				want.Wake = at(row.wake)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

type do = []lifecycle.Action

var (
	startSandbox  = func(n int) lifecycle.Action { return lifecycle.StartSandbox{Sandbox: n, Round: n} }
	removeSandbox = func(n int) lifecycle.Action { return lifecycle.RemoveSandbox{Sandbox: n} }
	oops          = lifecycle.Failure{Message: "oops"}
)

func pull(name string, n, level int) lifecycle.Action {
	return lifecycle.PullImage{Container: name, For: n, Level: level}
}

func start(name string, n, restarts, backoff int) lifecycle.Action {
	return lifecycle.StartContainer{Ref: run(name, n), Sandbox: 1, Restarts: restarts, Backoff: backoff}
}

func TestDecideSandbox(t *testing.T) {
	app := podOf(spec.RestartAlways, "app")
	never := podOf(spec.RestartNever, "app")
	failing1 := history{tick(10), failing(startSandbox(1), oops)}
	decisions{
		{name: "a new pod gets a sandbox, however young the machine", pod: app, now: 0.5, want: do{startSandbox(1)}},
		{name: "one that is on its way is waited for", pod: app, past: history{startSandbox(1)}, now: 100},
		{name: "one that failed is not tried again before 10 s", pod: app, past: failing1, now: 19.999, wake: 20},
		{name: "and is then, as another attempt in another round", pod: app, past: failing1, now: 20, want: do{startSandbox(2)}},
		{
			name: "an absent engine is asked again after 1 s", pod: app,
			past: history{tick(10), failing(startSandbox(1), away)}, now: 10.999, wake: 11,
		},
		{
			name: "for the same sandbox, which it may have made", pod: app,
			past: history{tick(10), failing(startSandbox(1), away)}, now: 11, want: do{startSandbox(1)},
		},
		{
			name: "and such a sandbox is taken away if the pod is to end", pod: app,
			past: history{tick(10), failing(startSandbox(1), away), stopped(time.Second)}, now: 10, want: do{removeSandbox(1)},
		},
		{
			name: "one that failed has left nothing to be taken away", pod: app,
			past: history{failing1, stopped(time.Second)}, now: 10,
		},
		{
			name: "a stop waits for the outcome of a start", pod: app,
			past: history{startSandbox(1), stopped(time.Second)}, now: 100,
		},
		{
			name: "a lost sandbox is taken away", pod: app,
			past: history{tick(10), up(), tick(20), lost(1)}, now: 20, want: do{removeSandbox(1)},
		},
		{
			name: "before its containers were even ready", pod: app,
			past: history{tick(10), startSandbox(1), lost(1)}, now: 10, want: do{removeSandbox(1)},
		},
		{
			name: "once", pod: app,
			past: history{tick(10), up(), tick(20), lost(1), removeSandbox(1)}, now: 20,
		},
		{
			name: "again 10 s after that failed", pod: app,
			past: history{tick(10), up(), tick(20), lost(1), failing(removeSandbox(1), oops)}, now: 29.999, wake: 30,
		},
		{
			name: "and not earlier", pod: app,
			past: history{tick(10), up(), tick(20), lost(1), failing(removeSandbox(1), oops)}, now: 30, want: do{removeSandbox(1)},
		},
		{
			name: "then the next one is made", pod: app,
			past: history{tick(10), up(), tick(20), lost(1), sandboxRemoved(1)}, now: 20, want: do{startSandbox(2)},
		},
		{
			name: "but two are never less than 1 s apart", pod: app,
			past: history{tick(10), up(), lost(1), sandboxRemoved(1)}, now: 10.999, wake: 11,
		},
		{
			name: "and are when it is over", pod: app,
			past: history{tick(10), up(), lost(1), sandboxRemoved(1)}, now: 11, want: do{startSandbox(2)},
		},
		{
			name: "what runs in a lost sandbox is stopped with the pod's own grace", pod: app,
			past: history{up(), running("app", 1), lost(1)}, now: 20,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged}},
		},
		{
			name: "and has all of it", pod: app,
			past: history{
				up(), running("app", 1), lost(1),
				lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
			},
			now: 30.999, wake: 31,
		},
		{
			name: "a pull goes on without a sandbox", pod: app,
			past: history{up(), pull("app", 1, 1), lost(1)}, now: 20, want: do{removeSandbox(1)},
		},
		{
			name: "under Never the loss is the end if something ran", pod: never,
			past: history{up(), running("app", 1), lost(1)}, now: 20,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonPodFinished}},
		},
		{
			name: "and is not if nothing did", pod: never,
			past: history{up(), pulled("app", 1), lost(1), sandboxRemoved(1)}, now: 20, want: do{startSandbox(2)},
		},
		{
			name: "nor if a run was refused", pod: never,
			past: history{
				up(), pulled("app", 1), failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}), lost(1),
				sandboxRemoved(1),
			},
			now: 20, want: do{startSandbox(2)},
		},
	}.check(t)
}

func TestDecideInit(t *testing.T) {
	always := podOf(spec.RestartAlways, "init-a", "init-b", "app")
	never := podOf(spec.RestartNever, "init-a", "app")
	round2 := history{lost(1), sandboxRemoved(1), startSandbox(2), happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.SandboxStarted{Sandbox: 2, At: t}
	})}
	a2 := lifecycle.Ref{Container: "init-a", Round: 2, Attempt: 2}
	decisions{
		{name: "the first init container comes first", pod: always, past: up(), now: 1, want: do{pull("init-a", 1, 1)}},
		{
			name: "and starts when its image is here", pod: always,
			past: history{up(), pulled("init-a", 1)}, now: 1, want: do{start("init-a", 1, 0, 0)},
		},
		{name: "while it runs nothing else does", pod: always, past: history{up(), running("init-a", 1)}, now: 99},
		{
			name: "the next one follows its success", pod: always,
			past: history{up(), ran("init-a", 1, 0)}, now: 1, want: do{pull("init-b", 1, 1)},
		},
		{
			name: "a failure is tried again", pod: always,
			past: history{up(), ran("init-a", 1, 1)}, now: 1, want: do{pull("init-a", 2, 1)},
		},
		{
			name: "and so is one that says 0 and was out of memory", pod: always,
			past: history{up(), running("init-a", 1), exitedFor("init-a", 1, 0, lifecycle.ReasonOOMKilled)}, now: 1,
			want: do{pull("init-a", 2, 1)},
		},
		{
			name: "with backoff", pod: always,
			past: history{up(), tick(10), ran("init-a", 1, 1), ran("init-a", 2, 1), reap("init-a", 1)}, now: 10, wake: 20,
		},
		{
			name: "under Never a failure is the end", pod: never,
			past: history{up(), ran("init-a", 1, 1)}, now: 1, want: do{removeSandbox(1)},
		},
		{
			name: "app containers follow the last", pod: always,
			past: history{up(), ran("init-a", 1, 0), ran("init-b", 1, 0)}, now: 1, want: do{pull("app", 1, 1)},
		},
		{
			name: "in a new round the first one runs again, at once and with its restarts counted", pod: always,
			past: history{up(), tick(10), ran("init-a", 1, 1), ran("init-a", 2, 0), reap("init-a", 1), round2, pulled("init-a", 3)}, now: 11,
			want: do{lifecycle.StartContainer{
				Ref: lifecycle.Ref{Container: "init-a", Round: 2, Attempt: 3}, Sandbox: 2, Restarts: 2,
			}},
		},
		{
			name: "even if the earlier round refused it", pod: always,
			past: history{
				up(), tick(10), pulled("init-a", 1), failing(start("init-a", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}),
				round2, pulled("init-a", 2),
			},
			now: 11, want: do{lifecycle.StartContainer{Ref: a2, Sandbox: 2}},
		},
		{
			name: "an app container of this round proves that init is done", pod: always,
			past: history{up(), asked("app", 1), started("app", 1)}, now: 1,
		},
		{
			name: "one of an earlier round does not", pod: always,
			past: history{up(), asked("app", 1), started("app", 1), exited("app", 1, 1), tick(10), round2}, now: 11,
			want: do{pull("init-a", 1, 1)},
		},
	}.check(t)
}

func TestDecideOrder(t *testing.T) {
	pod := podOf(spec.RestartAlways, "b", "a")
	decisions{
		{name: "images are fetched side by side", pod: pod, past: up(), now: 1, want: do{pull("b", 1, 1), pull("a", 1, 1)}},
		{
			name: "but the second waits for the first one's image", pod: pod,
			past: history{up(), pull("b", 1, 1), pulled("a", 1)}, now: 1,
		},
		{
			name: "even if that is asked for only now", pod: pod,
			past: history{up(), pulled("a", 1)}, now: 1, want: do{pull("b", 1, 1)},
		},
		{
			name: "and for its start, asked for only now", pod: pod,
			past: history{up(), pulled("b", 1), pulled("a", 1)}, now: 1, want: do{start("b", 1, 0, 0)},
		},
		{
			name: "or without an outcome yet", pod: pod,
			past: history{up(), pulled("b", 1), pulled("a", 1), asked("b", 1)}, now: 1,
		},
		{
			name: "but not for the first one's end", pod: pod,
			past: history{up(), running("b", 1), pulled("a", 1)}, now: 1, want: do{start("a", 1, 0, 0)},
		},
		{
			name: "nor for a pull that has failed", pod: pod,
			past: history{up(), tick(10), pullFailed("b", 1, 1, lifecycle.ReasonErrImagePull), pulled("a", 1)}, now: 10,
			want: do{start("a", 1, 0, 0)}, wake: 20,
		},
		{
			name: "nor for a start that was refused", pod: pod,
			past: history{up(), tick(10), pulled("b", 1), failing(start("b", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}), pulled("a", 1)},
			now:  10, want: do{start("a", 1, 0, 0)}, wake: 20,
		},
		{
			name: "nor for a start that failed", pod: pod,
			past: history{up(), tick(10), pulled("b", 1), failing(start("b", 1, 0, 0), oops), pulled("b", 2), pulled("a", 1)},
			now:  10, want: do{start("b", 2, 1, 1), start("a", 1, 0, 0)},
		},
		{
			name: "nor does a restart wait for a first start", pod: podOf(spec.RestartAlways, "c", "b"),
			past: history{up(), pull("c", 1, 1), ran("b", 1, 1), pulled("b", 2)}, now: 1, want: do{start("b", 2, 1, 1)},
		},
		{
			name: "nor for a restart", pod: pod,
			past: history{up(), ran("b", 1, 1), pull("b", 2, 1), pulled("a", 1)}, now: 1, want: do{start("a", 1, 0, 0)},
		},
	}.check(t)
}

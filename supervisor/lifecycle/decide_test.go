package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// decisions is a table of tests of [lifecycle.Decide]. Each row gives the expected actions and wake-up time at a time in seconds
// after the boot.
type decisions []struct {
	name    string
	pod     *spec.Pod
	past    history
	now     float64
	want    []lifecycle.Action
	wake    float64 // 0: never
	removed bool
}

func (table decisions) check(t *testing.T) {
	t.Helper()
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			got := lifecycle.Decide(row.pod, fold(row.past), at(row.now))
			got.Probes = nil // see [TestDecideProbes]
			want := lifecycle.Decision{Actions: row.want, Removed: row.removed}
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
		{name: "sandbox is started for a new pod", pod: app, now: 0.5, want: do{startSandbox(1)}},
		{name: "waits for a sandbox start in progress", pod: app, past: history{startSandbox(1)}, now: 100},
		{name: "failed sandbox is not retried before 10 s", pod: app, past: failing1, now: 19.999, wake: 20},
		{name: "failed sandbox is retried after 10 s in a new round", pod: app, past: failing1, now: 20, want: do{startSandbox(2)}},
		{
			name: "unavailable engine is retried after 1 s", pod: app,
			past: history{tick(10), failing(startSandbox(1), unavailable)}, now: 10.999, wake: 11,
		},
		{
			name: "unavailable engine is retried with the same sandbox", pod: app,
			past: history{tick(10), failing(startSandbox(1), unavailable)}, now: 11, want: do{startSandbox(1)},
		},
		{
			name: "sandbox of an unanswered start is removed if the pod stops", pod: app,
			past: history{tick(10), failing(startSandbox(1), unavailable), stopped(time.Second)}, now: 10, want: do{removeSandbox(1)},
		},
		{
			name: "failed sandbox needs no removal", pod: app,
			past: history{failing1, stopped(time.Second)}, now: 10,
		},
		{
			name: "stop waits for a sandbox start in progress", pod: app,
			past: history{startSandbox(1), stopped(time.Second)}, now: 100,
		},
		{
			name: "lost sandbox is removed", pod: app,
			past: history{tick(10), up(), tick(20), sandboxLost(1)}, now: 20, want: do{removeSandbox(1)},
		},
		{
			name: "lost sandbox is removed before its containers were started", pod: app,
			past: history{tick(10), startSandbox(1), sandboxLost(1)}, now: 10, want: do{removeSandbox(1)},
		},
		{
			name: "removal of a lost sandbox is not issued again", pod: app,
			past: history{tick(10), up(), tick(20), sandboxLost(1), removeSandbox(1)}, now: 20,
		},
		{
			name: "failed removal is not retried before 10 s", pod: app,
			past: history{tick(10), up(), tick(20), sandboxLost(1), failing(removeSandbox(1), oops)}, now: 29.999, wake: 30,
		},
		{
			name: "failed removal is retried after 10 s", pod: app,
			past: history{tick(10), up(), tick(20), sandboxLost(1), failing(removeSandbox(1), oops)}, now: 30, want: do{removeSandbox(1)},
		},
		{
			name: "new sandbox is started after the removal", pod: app,
			past: history{tick(10), up(), tick(20), sandboxLost(1), sandboxRemoved(1)}, now: 20, want: do{startSandbox(2)},
		},
		{
			name: "sandbox is not started within 1 s of the previous start", pod: app,
			past: history{tick(10), up(), sandboxLost(1), sandboxRemoved(1)}, now: 10.999, wake: 11,
		},
		{
			name: "sandbox is started 1 s after the previous start", pod: app,
			past: history{tick(10), up(), sandboxLost(1), sandboxRemoved(1)}, now: 11, want: do{startSandbox(2)},
		},
		{
			name: "container in a lost sandbox is stopped with the pod's grace period", pod: app,
			past: history{up(), running("app", 1), sandboxLost(1)}, now: 20,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged}},
		},
		{
			name: "container in a lost sandbox is not killed before its grace period ends", pod: app,
			past: history{
				up(), running("app", 1), sandboxLost(1),
				lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
			},
			now: 30.999, wake: 31,
		},
		{
			name: "pull continues without a sandbox", pod: app,
			past: history{up(), pull("app", 1, 1), sandboxLost(1)}, now: 20, want: do{removeSandbox(1)},
		},
		{
			name: "with Never a lost sandbox terminates the pod if a container ran", pod: never,
			past: history{up(), running("app", 1), sandboxLost(1)}, now: 20,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonPodFinished}},
		},
		{
			name: "with Never a lost sandbox is replaced if no container ran", pod: never,
			past: history{up(), pulled("app", 1), sandboxLost(1), sandboxRemoved(1)}, now: 20, want: do{startSandbox(2)},
		},
		{
			name: "with Never a lost sandbox is replaced if a container could not be created", pod: never,
			past: history{
				up(), pulled("app", 1), failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}),
				sandboxLost(1),
				sandboxRemoved(1),
			},
			now: 20, want: do{startSandbox(2)},
		},
	}.check(t)
}

func TestDecideInit(t *testing.T) {
	always := podOf(spec.RestartAlways, "init-a", "init-b", "app")
	never := podOf(spec.RestartNever, "init-a", "app")
	round2 := history{sandboxLost(1), sandboxRemoved(1), startSandbox(2), happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.SandboxStarted{Sandbox: 2, At: t}
	})}
	a2 := lifecycle.Ref{Container: "init-a", Round: 2, Attempt: 2}
	decisions{
		{name: "first init container is pulled first", pod: always, past: up(), now: 1, want: do{pull("init-a", 1, 1)}},
		{
			name: "first init container starts when its image is present", pod: always,
			past: history{up(), pulled("init-a", 1)}, now: 1, want: do{start("init-a", 1, 0, 0)},
		},
		{name: "nothing else starts while an init container runs", pod: always, past: history{up(), running("init-a", 1)}, now: 99},
		{
			name: "next init container follows a success", pod: always,
			past: history{up(), ran("init-a", 1, 0)}, now: 1, want: do{pull("init-b", 1, 1)},
		},
		{
			name: "failed init container is restarted", pod: always,
			past: history{up(), ran("init-a", 1, 1)}, now: 1, want: do{pull("init-a", 2, 1)},
		},
		{
			name: "OOM-killed init container with exit code 0 is restarted", pod: always,
			past: history{up(), running("init-a", 1), exitedFor("init-a", 1, 0, lifecycle.ReasonOOMKilled)}, now: 1,
			want: do{pull("init-a", 2, 1)},
		},
		{
			name: "failed init container is restarted with back-off", pod: always,
			past: history{up(), tick(10), ran("init-a", 1, 1), ran("init-a", 2, 1), removeContainer("init-a", 1)}, now: 10, wake: 20,
		},
		{
			name: "with Never a failed init container terminates the pod", pod: never,
			past: history{up(), ran("init-a", 1, 1)}, now: 1, want: do{removeSandbox(1)},
		},
		{
			name: "app containers follow the last init container", pod: always,
			past: history{up(), ran("init-a", 1, 0), ran("init-b", 1, 0)}, now: 1, want: do{pull("app", 1, 1)},
		},
		{
			name: "first init container runs again in a new round, without delay and with its restart count", pod: always,
			past: history{
				up(), tick(10), ran("init-a", 1, 1), ran("init-a", 2, 0), removeContainer("init-a", 1), round2, pulled("init-a", 3),
			},
			now: 11,
			want: do{lifecycle.StartContainer{
				Ref: lifecycle.Ref{Container: "init-a", Round: 2, Attempt: 3}, Sandbox: 2, Restarts: 2,
			}},
		},
		{
			name: "init container runs in a new round although its creation failed in the previous one", pod: always,
			past: history{
				up(), tick(10), pulled("init-a", 1),
				failing(start("init-a", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}),
				round2, pulled("init-a", 2),
			},
			now: 11, want: do{lifecycle.StartContainer{Ref: a2, Sandbox: 2}},
		},
		{
			name: "app container of this round proves that init containers completed", pod: always,
			past: history{up(), issued("app", 1), started("app", 1)}, now: 1,
		},
		{
			name: "app container of an earlier round does not prove that init containers completed", pod: always,
			past: history{up(), issued("app", 1), started("app", 1), exited("app", 1, 1), tick(10), round2}, now: 11,
			want: do{pull("init-a", 1, 1)},
		},
	}.check(t)
}

func TestDecideOrder(t *testing.T) {
	pod := podOf(spec.RestartAlways, "b", "a")
	decisions{
		{name: "images are pulled in parallel", pod: pod, past: up(), now: 1, want: do{pull("b", 1, 1), pull("a", 1, 1)}},
		{
			name: "second container waits for the image of the first", pod: pod,
			past: history{up(), pull("b", 1, 1), pulled("a", 1)}, now: 1,
		},
		{
			name: "second container waits for a pull issued in the same decision", pod: pod,
			past: history{up(), pulled("a", 1)}, now: 1, want: do{pull("b", 1, 1)},
		},
		{
			name: "second container waits for a start issued in the same decision", pod: pod,
			past: history{up(), pulled("b", 1), pulled("a", 1)}, now: 1, want: do{start("b", 1, 0, 0)},
		},
		{
			name: "second container waits for a start in progress", pod: pod,
			past: history{up(), pulled("b", 1), pulled("a", 1), issued("b", 1)}, now: 1,
		},
		{
			name: "second container does not wait for the exit of the first", pod: pod,
			past: history{up(), running("b", 1), pulled("a", 1)}, now: 1, want: do{start("a", 1, 0, 0)},
		},
		{
			name: "second container does not wait for a failed pull", pod: pod,
			past: history{up(), tick(10), pullFailed("b", 1, 1, lifecycle.ReasonErrImagePull), pulled("a", 1)}, now: 10,
			want: do{start("a", 1, 0, 0)}, wake: 20,
		},
		{
			name: "second container does not wait for a failed creation", pod: pod,
			past: history{
				up(), tick(10), pulled("b", 1), failing(start("b", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated}),
				pulled("a", 1),
			},
			now: 10, want: do{start("a", 1, 0, 0)}, wake: 20,
		},
		{
			name: "second container does not wait for a failed start", pod: pod,
			past: history{up(), tick(10), pulled("b", 1), failing(start("b", 1, 0, 0), oops), pulled("b", 2), pulled("a", 1)},
			now:  10, want: do{start("b", 2, 1, 1), start("a", 1, 0, 0)},
		},
		{
			name: "restart does not wait for a first start", pod: podOf(spec.RestartAlways, "c", "b"),
			past: history{up(), pull("c", 1, 1), ran("b", 1, 1), pulled("b", 2)}, now: 1, want: do{start("b", 2, 1, 1)},
		},
		{
			name: "first start does not wait for a restart", pod: pod,
			past: history{up(), ran("b", 1, 1), pull("b", 2, 1), pulled("a", 1)}, now: 1, want: do{start("a", 1, 0, 0)},
		},
	}.check(t)
}

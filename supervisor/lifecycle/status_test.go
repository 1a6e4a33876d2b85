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

// describe is a status in one line: the phase, then each container with its state, the end before it and its restarts.
func describe(s lifecycle.Status) string {
	words := []string{string(s.Phase)}
	for _, list := range [][]lifecycle.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			c := &list[i]
			text := c.Name + " " + state(c.State)
			if c.LastState != (lifecycle.State{}) {
				text += " after " + state(c.LastState)
			}
			if c.RestartCount > 0 {
				text += fmt.Sprintf(" +%d", c.RestartCount)
			}
			if c.Ready {
				text += " ready"
			}
			if c.State.Running != nil && c.Started != nil && !*c.Started {
				text += " not started"
			}
			words = append(words, text)
		}
	}
	return strings.Join(words, "; ")
}

func state(s lifecycle.State) string {
	var words []string
	if s.Running != nil {
		words = append(words, "Running")
	}
	if s.Waiting != nil {
		words = append(words, string(s.Waiting.Reason))
	}
	if s.Terminated != nil {
		words = append(words, fmt.Sprintf("%s(%d)", s.Terminated.Reason, s.Terminated.ExitCode))
	}
	return strings.Join(words, " and ")
}

// hookFailed is a run that is being ended because its postStart hook failed.
func hookFailed(name string, n int) history {
	return history{
		running(name, n), failing(postStart(name, n), oops),
		lifecycle.StopContainer{Ref: run(name, n), Reason: lifecycle.ReasonFailedPostStartHook},
	}
}

func TestStatus(t *testing.T) {
	always, onFailure, never := spec.RestartAlways, spec.RestartOnFailure, spec.RestartNever
	refused := lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateConfigError}
	const broken, absent = lifecycle.ReasonErrImagePull, lifecycle.ReasonErrImageNeverPull
	round2 := history{lost(1), sandboxRemoved(1), startSandbox(2)}
	twice := history{up(), ran("app", 1, 1), running("app", 2)}
	even := podOf(always, "app")
	even.RestartBackoff = &spec.Backoff{InitialSeconds: 3, MaxSeconds: 3, Factor: 2, ResetAfterSeconds: 600}
	statuses{
		{"a new pod is Pending", podOf(always, "app"), nil, 1, "Pending; app ContainerCreating"},
		{"with init containers everything initializes", podOf(always, "init", "app"), nil, 1, "Pending; init PodInitializing; app PodInitializing"},
		{"a running init container keeps it Pending", podOf(always, "init", "app"), history{up(), running("init", 1)}, 1, "Pending; init Running; app PodInitializing"},
		{"so does one that has succeeded, until the app runs", podOf(always, "init", "app"), history{up(), ran("init", 1, 0)}, 1, "Pending; init Completed(0) ready; app PodInitializing"},
		{"or one that failed and is tried again", podOf(always, "init", "app"), history{up(), ran("init", 1, 2)}, 1, "Pending; init Error(2); app PodInitializing"},
		{"with backoff", podOf(always, "init", "app"), history{up(), ran("init", 1, 2), ran("init", 2, 3)}, 1, "Pending; init CrashLoopBackOff after Error(3) +1; app PodInitializing"},
		{"an init container that runs again shows how it ended before", podOf(always, "init", "app"), history{up(), ran("init", 1, 2), running("init", 2)}, 1, "Pending; init Running after Error(2) +1; app PodInitializing"},
		{"under Never its failure is the pod's", podOf(never, "init", "app"), history{up(), ran("init", 1, 2)}, 1, "Failed; init Error(2); app PodInitializing"},
		{"and stays so when the sandbox goes", podOf(never, "init", "app"), history{up(), ran("init", 1, 2), sandboxRemoved(1)}, 1, "Failed; init Error(2); app PodInitializing"},
		{"out of memory with 0 is a failure", podOf(never, "init", "app"), history{up(), running("init", 1), exitedFor("init", 1, 0, lifecycle.ReasonOOMKilled)}, 1, "Failed; init OOMKilled(0); app PodInitializing"},
		{"one app container that never ran keeps the pod Pending", podOf(always, "a", "b"), history{up(), running("a", 1)}, 1, "Pending; a Running ready; b ContainerCreating"},
		{"app containers are sorted by name", podOf(always, "b", "a"), history{up(), running("a", 1), running("b", 1)}, 1, "Running; a Running ready; b Running ready"},
		{"a crash at the first time shows its end", podOf(always, "app"), history{up(), ran("app", 1, 2)}, 1, "Running; app Error(2)"},
		{"a start on its way shows the end before", podOf(always, "app"), history{up(), ran("app", 1, 2), pulled("app", 2), asked("app", 2)}, 1, "Running; app Error(2)"},
		{"as that of an init container does", podOf(always, "init", "app"), history{up(), ran("init", 1, 2), pulled("init", 2), asked("init", 2)}, 1, "Pending; init Error(2); app PodInitializing"},
		{"or the delay that it has waited for", podOf(always, "app"), history{twice, exited("app", 2, 2), tick(11), start("app", 3, 2, 2)}, 11, "Running; app CrashLoopBackOff after Error(2) +1"},
		{"and not a wait of another kind", podOf(always, "app"), history{up(), ran("app", 1, 2), tick(50), start("app", 2, 1, 1)}, 50, "Running; app Error(2)"},
		{"a run shows the end before and counts", podOf(always, "app"), twice, 1, "Running; app Running after Error(1) +1 ready"},
		{"the second crash backs off", podOf(always, "app"), history{twice, exited("app", 2, 2)}, 10.999, "Running; app CrashLoopBackOff after Error(2) +1"},
		{"until the next run is asked for", podOf(always, "app"), history{twice, exited("app", 2, 2)}, 11, "Running; app CrashLoopBackOff after Error(2) +1"},
		{"success under Always too", podOf(always, "app"), history{twice, exited("app", 2, 0)}, 2, "Running; app CrashLoopBackOff after Completed(0) +1"},
		{"a pod with one waiting and one running is Running", podOf(always, "a", "b"), history{up(), ran("a", 1, 1), ran("a", 2, 1), running("b", 1)}, 1, "Running; a CrashLoopBackOff after Error(1) +1; b Running ready"},
		{"OnFailure: a success stays", podOf(onFailure, "a", "b"), history{up(), ran("a", 1, 0), running("b", 1)}, 1, "Running; a Completed(0); b Running ready"},
		{"OnFailure: a failure comes again", podOf(onFailure, "a", "b"), history{up(), ran("a", 1, 0), ran("b", 1, 1)}, 1, "Running; a Completed(0); b Error(1)"},
		{"OnFailure: all succeeded", podOf(onFailure, "a", "b"), history{up(), ran("a", 1, 0), ran("b", 1, 0)}, 1, "Succeeded; a Completed(0); b Completed(0)"},
		{"Never: one runs on", podOf(never, "a", "b"), history{up(), ran("a", 1, 7), running("b", 1)}, 1, "Running; a Error(7); b Running ready"},
		{"Never: all ended, one failed", podOf(never, "a", "b"), history{up(), ran("a", 1, 0), ran("b", 1, 7)}, 1, "Failed; a Completed(0); b Error(7)"},
		{"Never: all succeeded", podOf(never, "a"), history{up(), ran("a", 1, 0)}, 1, "Succeeded; a Completed(0)"},
		{"out of memory with 0 is success for an app container", podOf(never, "a"), history{up(), running("a", 1), exitedFor("a", 1, 0, lifecycle.ReasonOOMKilled)}, 1, "Succeeded; a OOMKilled(0)"},
		{"the first pull that fails", podOf(always, "app"), history{up(), pullFailed("app", 1, 1, broken)}, 1, "Pending; app ErrImagePull"},
		{"is shown while it is tried again", podOf(always, "app"), history{up(), pullFailed("app", 1, 1, broken), tick(11), pull("app", 1, 2)}, 11, "Pending; app ErrImagePull"},
		{"the second backs off", podOf(always, "app"), history{up(), pullFailed("app", 1, 2, broken)}, 1, "Pending; app ImagePullBackOff"},
		{"under Never it is no failure of the pod", podOf(never, "app"), history{up(), pullFailed("app", 1, 2, broken)}, 1, "Pending; app ImagePullBackOff"},
		{"what must not be pulled keeps its reason", podOf(always, "app"), history{up(), pullFailed("app", 1, 2, absent)}, 1, "Pending; app ErrImageNeverPull"},
		{"an init container's image too", podOf(always, "init", "app"), history{up(), pullFailed("init", 1, 1, broken)}, 1, "Pending; init ErrImagePull; app PodInitializing"},
		{"of a restart too", podOf(always, "app"), history{up(), ran("app", 1, 1), pullFailed("app", 2, 2, broken)}, 1, "Running; app ImagePullBackOff after Error(1)"},
		{"an image that came at last is no reason any more", podOf(always, "app"), history{up(), pullFailed("app", 1, 1, broken), tick(11), pulled("app", 1)}, 11, "Pending; app ContainerCreating"},
		{"nor is one of a run that was asked for", podOf(always, "app"), history{up(), pullFailed("app", 1, 1, broken), asked("app", 1)}, 1, "Pending; app ContainerCreating"},
		{"a refusal shows its reason", podOf(always, "app"), history{up(), failing(start("app", 1, 0, 0), refused)}, 1, "Pending; app CreateContainerConfigError"},
		{"also while it is tried again", podOf(always, "app"), history{up(), failing(start("app", 1, 0, 0), refused), tick(11), pulled("app", 2), start("app", 2, 0, 0)}, 11, "Pending; app CreateContainerConfigError"},
		{"until it runs", podOf(always, "app"), history{up(), failing(start("app", 1, 0, 0), refused), tick(11), pulled("app", 2), start("app", 2, 0, 0), started("app", 2)}, 11, "Running; app Running ready"},
		{"of a restart beside the end before", podOf(always, "app"), history{up(), ran("app", 1, 1), failing(start("app", 2, 1, 1), refused)}, 1, "Running; app CreateContainerConfigError after Error(1)"},
		{"but not in a new round", podOf(always, "app"), history{up(), ran("app", 1, 1), failing(start("app", 2, 1, 1), refused), lost(1), sandboxRemoved(1), startSandbox(2)}, 1, "Running; app Error(1)"},
		{"nor while it is tried again there", podOf(always, "app"), history{
			up(), failing(start("app", 1, 0, 0), refused), lost(1), sandboxRemoved(1), startSandbox(2), pulled("app", 2),
			lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 2}, Sandbox: 2},
		}, 1, "Pending; app ContainerCreating"},
		{"the first start that fails shows its end", podOf(always, "app"), history{up(), failing(start("app", 1, 0, 0), oops)}, 1, "Running; app StartError(128)"},
		{"the second what it waits for", podOf(always, "app"), history{up(), failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 1), oops)}, 1, "Running; app RunContainerError after StartError(128) +1"},
		{"the third backs off", podOf(always, "app"), history{up(), failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 2), oops)}, 1, "Running; app CrashLoopBackOff after StartError(128) +1"},
		{"also where the delay does not grow", even, history{up(), failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 1), oops), tick(4), failing(start("app", 3, 2, 1), oops)}, 4, "Running; app CrashLoopBackOff after StartError(128) +2"},
		{"after the first", even, history{up(), failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 1), oops)}, 1, "Running; app RunContainerError after StartError(128) +1"},
		{"and what is under way has waited for it", even, history{twice, exited("app", 2, 2), tick(4), start("app", 3, 2, 1)}, 4, "Running; app CrashLoopBackOff after Error(2) +1"},
		{"under Never a start that fails is the end", podOf(never, "app"), history{up(), failing(start("app", 1, 0, 0), oops)}, 1, "Failed; app StartError(128)"},
		{"5.2 a run is ready when its readiness probe says so", with(podOf(always, "app"), probe(readiness)), history{up(), running("app", 1), probed("app", 1, readiness, good)}, 1, "Running; app Running ready"},
		{"5.2 and not before", with(podOf(always, "app"), probe(readiness)), history{up(), running("app", 1)}, 1, "Running; app Running"},
		{"5.2 nor when it says otherwise", with(podOf(always, "app"), probe(readiness)), history{up(), running("app", 1), probed("app", 1, readiness, good), probed("app", 1, readiness, bad)}, 1, "Running; app Running"},
		{"5.4 nor when it ran before", with(podOf(always, "app"), probe(readiness)), history{up(), running("app", 1), probed("app", 1, readiness, good), exited("app", 1, 1), running("app", 2)}, 1, "Running; app Running after Error(1) +1"},
		{"5.4 nor when it has ended", with(podOf(always, "app"), probe(readiness)), history{up(), running("app", 1), probed("app", 1, readiness, good), exited("app", 1, 1)}, 1, "Running; app Error(1)"},
		{"5.4 without a startup verdict it is not", with(podOf(always, "app"), probe(startup), probe(readiness)), history{up(), running("app", 1), probed("app", 1, readiness, good)}, 1, "Running; app Running not started"},
		{"5.4 nor after a bad one", with(podOf(always, "app"), probe(startup)), history{up(), running("app", 1), probed("app", 1, startup, bad)}, 1, "Running; app Running not started"},
		{"5.4 a good one is enough without a readiness probe", with(podOf(always, "app"), probe(startup)), history{up(), running("app", 1), probed("app", 1, startup, good)}, 1, "Running; app Running ready"},
		{"5.4 a bad liveness probe does not make it unready", with(podOf(always, "app"), probe(liveness)), history{up(), running("app", 1), probed("app", 1, liveness, bad)}, 1, "Running; app Running ready"},
		{"5.6 it stays ready in a pod that is to end", podOf(always, "app"), history{up(), running("app", 1), stopped(time.Minute)}, 1, "Running; app Running ready"},
		{"5.6 unless its probe says otherwise", with(podOf(always, "app"), probe(readiness)), history{up(), running("app", 1), probed("app", 1, readiness, good), stopped(time.Minute), probed("app", 1, readiness, bad)}, 1, "Running; app Running"},
		{"6 while its postStart hook runs it is being created", with(podOf(always, "app"), hook(lifecycle.PostStart)), history{up(), running("app", 1), postStart("app", 1)}, 1, "Pending; app ContainerCreating"},
		{"6 or initialized", with(podOf(always, "init", "app"), hook(lifecycle.PostStart)), history{up(), ran("init", 1, 0), running("app", 1)}, 1, "Pending; init Completed(0) ready; app PodInitializing"},
		{"6 then it runs", with(podOf(always, "app"), hook(lifecycle.PostStart)), history{up(), running("app", 1), postStart("app", 1), hooked("app", 1, lifecycle.PostStart)}, 1, "Running; app Running ready"},
		{"6 of a restart too", with(podOf(always, "app"), hook(lifecycle.PostStart)), history{up(), ran("app", 1, 1), running("app", 2)}, 1, "Running; app ContainerCreating after Error(1) +1"},
		{"6 and in a pod that is to end", with(podOf(always, "app"), hook(lifecycle.PostStart)), history{up(), running("app", 1), stopped(time.Minute)}, 1, "Pending; app ContainerCreating"},
		{"6 a failed one does not let it run", with(podOf(always, "app"), hook(lifecycle.PostStart)), history{up(), running("app", 1), failing(postStart("app", 1), oops)}, 1, "Pending; app ContainerCreating"},
		{"6 and is what the next start waits for", with(podOf(always, "app"), hook(lifecycle.PostStart)), history{up(), ran("app", 1, 1), hookFailed("app", 2), exited("app", 2, 143)}, 2, "Running; app PostStartHookError after Error(143) +1"},
		{"6 later ones are backed off", with(podOf(always, "app"), hook(lifecycle.PostStart)), history{up(), ran("app", 1, 1), ran("app", 2, 1), hookFailed("app", 3), exited("app", 3, 143)}, 2, "Running; app CrashLoopBackOff after Error(143) +2"},
		{"6 under Never it is the end", with(podOf(never, "app"), hook(lifecycle.PostStart)), history{up(), hookFailed("app", 1), exited("app", 1, 143)}, 2, "Failed; app Error(143)"},
		{"a stopping pod is as it was", podOf(always, "app"), history{twice, stopped(time.Minute)}, 1, "Running; app Running after Error(1) +1 ready"},
		{"nor does what was about to be pulled forget that its turn had come", podOf(always, "side", "app"), history{up(), running("side", 1), pull("app", 1, 1), stopped(time.Minute), lifecycle.CancelPull{Container: "app", For: 1}, failed(pull("app", 1, 1), oops), exited("side", 1, 143)}, 1, "Failed; side Error(143); app ContainerStatusUnknown(137)"},
		{"one without anything to stop has ended", podOf(always, "app"), history{stopped(time.Minute)}, 1, "Failed; app ContainerStatusUnknown(137)"},
		{"so has one whose init containers did not run", podOf(always, "init", "app"), history{up(), stopped(time.Minute)}, 1, "Failed; init ContainerStatusUnknown(137); app PodInitializing"},
		{"or ran, but not the app", podOf(always, "init", "app"), history{up(), ran("init", 1, 0), stopped(time.Minute)}, 1, "Failed; init Completed(0) ready; app ContainerStatusUnknown(137)"},
		{"or pulled in vain", podOf(always, "init", "init2", "app"), history{up(), pullFailed("init", 1, 2, broken), stopped(time.Minute)}, 1, "Failed; init ContainerStatusUnknown(137); init2 PodInitializing; app PodInitializing"},
		{"or had its turn though a sidecar is gone", podOf(always, "side", "init", "app"), history{up(), running("side", 1), running("init", 1), stopped(time.Minute), exited("init", 1, 0), exited("side", 1, 143)}, 1, "Failed; side Error(143); init Completed(0) ready; app ContainerStatusUnknown(137)"},
		{"or not, if the init container ended badly", podOf(always, "side", "init", "app"), history{up(), running("side", 1), running("init", 1), stopped(time.Minute), exited("init", 1, 1), exited("side", 1, 143)}, 1, "Failed; side Error(143); init Error(1); app PodInitializing"},
		{"or only one of two", podOf(always, "a", "b"), history{up(), ran("a", 1, 0), stopped(time.Minute)}, 1, "Failed; a Completed(0); b ContainerStatusUnknown(137)"},
		{"not while one may run", podOf(always, "a", "b"), history{up(), asked("a", 1), stopped(time.Minute)}, 1, "Pending; a ContainerCreating; b ContainerCreating"},
		{"a stop in a backoff shows the end", podOf(always, "app"), history{twice, exited("app", 2, 2), stopped(time.Minute)}, 1, "Failed; app Error(2) after Error(1) +1"},
		{"a stopped pod whose containers all end with 0 has succeeded", podOf(always, "app"), history{up(), running("app", 1), stopped(time.Minute), exited("app", 1, 0)}, 1, "Succeeded; app Completed(0)"},
		{"a stopped init container is not ready", podOf(always, "init", "app"), history{up(), running("init", 1), stopped(time.Minute), exited("init", 1, 143)}, 1, "Failed; init Error(143); app PodInitializing"},
		{"a new round knows nothing of init but its restarts", podOf(always, "init", "app"), history{up(), ran("init", 1, 1), ran("init", 2, 0), ran("app", 1, 1), tick(5), round2}, 5, "Pending; init PodInitializing +1; app Error(1)"},
		{"also if it never ran anything else", podOf(always, "init", "app"), history{up(), ran("init", 1, 0), tick(5), round2}, 5, "Pending; init PodInitializing; app PodInitializing"},
		{"if it is to end it shows what was", podOf(always, "init", "app"), history{up(), ran("init", 1, 0), ran("app", 1, 1), tick(5), round2, stopped(time.Minute)}, 5, "Failed; init Completed(0) ready; app Error(1)"},
		{"and what had its turn before", podOf(always, "init", "app"), history{up(), ran("init", 1, 0), tick(5), round2, stopped(time.Minute)}, 5, "Failed; init Completed(0) ready; app ContainerStatusUnknown(137)"},
		{"under Never a lost sandbox is the end", podOf(never, "a", "b"), history{up(), ran("a", 1, 0), running("b", 1), lost(1), exited("b", 1, 143)}, 1, "Failed; a Completed(0); b Error(143)"},
		{"unless the next one is on its way already", podOf(never, "a", "b"), history{up(), ran("a", 1, 0), lost(1), sandboxRemoved(1), startSandbox(2)}, 1, "Pending; a Completed(0); b ContainerCreating"},
		{"and what did not run is missing", podOf(never, "a", "b"), history{up(), ran("a", 1, 0), lost(1)}, 1, "Failed; a Completed(0); b ContainerStatusUnknown(137)"},
		{"under OnFailure a lost sandbox is none if all succeeded", podOf(onFailure, "a"), history{up(), ran("a", 1, 0), lost(1)}, 1, "Succeeded; a Completed(0)"},
	}.check(t)
}

// statuses is a table over [lifecycle.StatusOf], at a second after the boot, in the words of [describe].
type statuses []struct {
	name string
	pod  *spec.Pod
	past history
	now  float64
	want string
}

func (table statuses) check(t *testing.T) {
	t.Helper()
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			if got := describe(lifecycle.StatusOf(row.pod, fold(row.past), at(row.now))); got != row.want {
				t.Errorf("status\n got %s\nwant %s", got, row.want)
			}
		})
	}
}

// TestStatusOfAShortRun: a run that had ended before its start was seen has not ended before it started.
func TestStatusOfAShortRun(t *testing.T) {
	pod := podOf(spec.RestartNever, "app")
	for _, row := range []struct {
		past history
		want time.Time
	}{
		{history{up(), tick(9), running("app", 1), tick(8), exited("app", 1, 0)}, at(8).Wall},
		{history{up(), tick(7), running("app", 1), tick(8), exited("app", 1, 0)}, at(7).Wall},
		{history{up(), tick(7), asked("app", 1), tick(8), exited("app", 1, 0)}, time.Time{}},
	} {
		s := lifecycle.StatusOf(pod, fold(row.past), at(9))
		if end := s.ContainerStatuses[0].State.Terminated; !end.StartedAt.Equal(row.want) || !end.FinishedAt.Equal(at(8).Wall) {
			t.Errorf("it is shown from %v to %v, want from %v", end.StartedAt, end.FinishedAt, row.want)
		}
	}
}

// TestStatusWhole holds every field of a status once.
func TestStatusWhole(t *testing.T) {
	pod := podOf(spec.RestartAlways, "init", "app", "bad")
	facts := fold(history{
		up(), tick(2), running("init", 1), tick(3), exited("init", 1, 0), tick(4), running("app", 1), tick(5.7),
		ran("bad", 1, 3), tick(7), ran("bad", 2, 4), pullFailed("app", 2, 2, lifecycle.ReasonErrImagePull),
	})
	yes, no := true, false
	ended := lifecycle.Terminated{
		ExitCode: 4, Reason: lifecycle.ReasonError, StartedAt: at(7).Wall, FinishedAt: at(7).Wall, ContainerID: "containerd://bad-id",
	}
	want := lifecycle.Status{
		Phase: lifecycle.PhaseRunning,
		Conditions: []lifecycle.Condition{
			{Type: "PodScheduled", Status: "True"},
			{Type: "PodReadyToStartContainers", Status: "True"},
			{Type: "Initialized", Status: "True"},
			{Type: "ContainersReady", Status: "False", Reason: "ContainersNotReady", Message: "containers with unready status: [bad]"},
			{Type: "Ready", Status: "False", Reason: "ContainersNotReady", Message: "containers with unready status: [bad]"},
		},
		PodIP: "10.0.0.2", PodIPs: []lifecycle.PodIP{{IP: "10.0.0.2"}, {IP: "fd00::2"}},
		StartTime: at(1).Wall, QOSClass: "BestEffort",
		InitContainerStatuses: []lifecycle.ContainerStatus{{
			Name: "init", Ready: true, Started: &no, Image: "init:1", ImageID: "sha256:init", ContainerID: "containerd://init-id",
			State: lifecycle.State{Terminated: &lifecycle.Terminated{
				Reason: lifecycle.ReasonCompleted, StartedAt: at(2).Wall, FinishedAt: at(3).Wall, ContainerID: "containerd://init-id",
			}},
		}},
		ContainerStatuses: []lifecycle.ContainerStatus{
			{
				Name: "app", Ready: true, Started: &yes, Image: "app:1", ImageID: "sha256:app", ContainerID: "containerd://app-id",
				State: lifecycle.State{Running: &lifecycle.Running{StartedAt: at(4).Wall}},
			},
			{
				Name: "bad", Started: &no, RestartCount: 1, Image: "bad:1", ImageID: "sha256:bad", ContainerID: "containerd://bad-id",
				State: lifecycle.State{Waiting: &lifecycle.Waiting{
					Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container=bad pod=p_default(uid)",
				}},
				LastState: lifecycle.State{Terminated: &ended},
			},
		},
	}
	if diff := cmp.Diff(want, lifecycle.StatusOf(pod, facts, at(8.9))); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestStatusMessages(t *testing.T) {
	for _, row := range []struct {
		name string
		past history
		want string
	}{
		{"first pull", pullFailed("app", 1, 1, lifecycle.ReasonErrImagePull), "no"},
		{"later pull", pullFailed("app", 1, 2, lifecycle.ReasonErrImagePull), `Back-off pulling image "localhost/app": ErrImagePull: no`},
		{"refusal", failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Message: "no"}), "no"},
		{"postStart", history{ran("app", 1, 1), hookFailed("app", 2), exited("app", 2, 143)}, "oops"},
		{"start", history{failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 1), oops)}, "oops"},
	} {
		s := lifecycle.StatusOf(podOf(spec.RestartAlways, "app"), fold(history{up(), row.past}), at(2))
		w := s.ContainerStatuses[0].State.Waiting
		if w == nil || w.Message != row.want {
			t.Errorf("%s: %+v, want %q", row.name, w, row.want)
		}
		resolved := w != nil && w.Reason == lifecycle.ReasonPostStartHookError // it ran
		if c := s.ContainerStatuses[0]; resolved != (c.Image != "localhost/app") || resolved != (c.ContainerID != "") {
			t.Errorf("%s: %+v has an image that nobody resolved", row.name, s.ContainerStatuses[0])
		}
	}
	again := lifecycle.StatusOf(podOf(spec.RestartAlways, "app"), fold(history{up(), ran("app", 1, 42), lifecycle.StartRound{Round: 2, By: run("app", 1)}}), at(2)).ContainerStatuses[0]
	const removed = "The container is removed because RestartAllContainers in place"
	if again.State.Waiting.Message != removed || again.LastState.Terminated.Message != removed {
		t.Errorf("a restart of all containers: %+v", again)
	}
	missing := lifecycle.StatusOf(podOf(spec.RestartAlways, "app"), fold(history{stopped(1)}), at(2)).ContainerStatuses[0].State.Terminated
	if missing.Message != "The container could not be located when the pod was terminated" || !missing.StartedAt.IsZero() {
		t.Errorf("a missing container: %+v", missing)
	}
}

func TestTerminal(t *testing.T) {
	for phase, want := range map[lifecycle.Phase]bool{
		lifecycle.PhasePending: false, lifecycle.PhaseRunning: false, lifecycle.PhaseSucceeded: true, lifecycle.PhaseFailed: true,
	} {
		if phase.Terminal() != want {
			t.Errorf("%s is terminal: %v", phase, !want)
		}
	}
}

// TestStatusOfALostSandbox: that one was lost is no reason why the next is not there; that it could not be made is.
func TestStatusOfALostSandbox(t *testing.T) {
	for want, past := range map[string]history{
		"":     {up(), lost(1)},
		"oops": {startSandbox(1), failed(startSandbox(1), oops)},
	} {
		s := lifecycle.StatusOf(podOf(always, "app"), fold(past), at(1))
		if w := s.ContainerStatuses[0].State.Waiting; w == nil || w.Message != want {
			t.Errorf("it waits for %+v, want the message %q", w, want)
		}
	}
}

func TestStatusEnds(t *testing.T) {
	live := history{up(), running("app", 1)}
	app := podOf(always, "app")
	for _, row := range []struct {
		name            string
		past            history
		now             float64
		phase           lifecycle.Phase
		reason, message string
	}{
		{"7.5 a pod that its deadline ends runs on till it has ended", history{live, endPod(time.Minute)}, 2, "Running", "", ""},
		{"7.5 and has failed then, whatever its containers say", history{live, endPod(time.Minute), exited("app", 1, 0)}, 2, "Failed", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"},
		{"7.5 a stop alone is no reason", history{live, stopped(time.Minute), exited("app", 1, 1)}, 2, "Failed", "", ""},
		{"DEVIATIONS 20 for 10 s an absent engine is nothing", history{live, tick(10), engineLost}, 20, "Running", "", ""},
		{"DEVIATIONS 20 after that nobody knows", history{live, tick(10), engineLost}, 20.001, "Unknown", "EngineUnavailable", "Container engine unavailable"},
		{"DEVIATIONS 20 until it is back", history{live, tick(10), engineLost, engineFound}, 30, "Running", "", ""},
		{"DEVIATIONS 20 a pod that has failed stays so", history{live, tick(5), stopped(1), exited("app", 1, 1), tick(10), engineLost}, 30, "Failed", "", ""},
		{"DEVIATIONS 20 and one that has succeeded", history{live, tick(5), stopped(1), exited("app", 1, 0), tick(10), engineLost}, 30, "Succeeded", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := lifecycle.StatusOf(app, fold(row.past), at(row.now))
			got := []string{string(s.Phase), string(s.Reason), s.Message}
			if diff := cmp.Diff([]string{string(row.phase), row.reason, row.message}, got); diff != "" {
				t.Errorf("phase, reason, message (-want +got):\n%s", diff)
			}
			if row.phase == lifecycle.PhaseUnknown && s.ContainerStatuses[0].State.Running == nil {
				t.Errorf("the last known state is not shown: %+v", s.ContainerStatuses[0].State)
			}
		})
	}
}

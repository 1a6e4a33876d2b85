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

// describe formats a status in one line: the phase, then each container with its state, last state and restart count.
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

// hookFailed is a run that is stopped because its postStart hook failed.
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
	round2 := history{sandboxLost(1), sandboxRemoved(1), startSandbox(2)}
	twice := history{up(), ran("app", 1, 1), running("app", 2)}
	even := podOf(always, "app")
	even.RestartBackoff = &spec.Backoff{InitialSeconds: 3, MaxSeconds: 3, Factor: 2, ResetAfterSeconds: 600}
	statuses{
		{"new pod is Pending", podOf(always, "app"), nil, 1, "Pending; app ContainerCreating"},
		{
			"new pod with init containers is PodInitializing", podOf(always, "init", "app"), nil, 1,
			"Pending; init PodInitializing; app PodInitializing",
		},
		{
			"Pending while an init container runs", podOf(always, "init", "app"),
			history{up(), running("init", 1)},
			1,
			"Pending; init Running; app PodInitializing",
		},
		{
			"Pending after the init container completed", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 0)},
			1,
			"Pending; init Completed(0) ready; app PodInitializing",
		},
		{
			"Pending after an init container failed", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 2)},
			1,
			"Pending; init Error(2); app PodInitializing",
		},
		{
			"init container backs off", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 2), ran("init", 2, 3)},
			1,
			"Pending; init CrashLoopBackOff after Error(3) +1; app PodInitializing",
		},
		{
			"restarted init container shows its last state", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 2), running("init", 2)},
			1, "Pending; init Running after Error(2) +1; app PodInitializing",
		},
		{
			"with Never a failed init container fails the pod", podOf(never, "init", "app"),
			history{up(), ran("init", 1, 2)},
			1,
			"Failed; init Error(2); app PodInitializing",
		},
		{
			"failed pod stays Failed when its sandbox is removed", podOf(never, "init", "app"),
			history{up(), ran("init", 1, 2), sandboxRemoved(1)},
			1, "Failed; init Error(2); app PodInitializing",
		},
		{
			"OOM-killed init container with exit code 0 fails the pod", podOf(never, "init", "app"),
			history{up(), running("init", 1), exitedFor("init", 1, 0, lifecycle.ReasonOOMKilled)},
			1,
			"Failed; init OOMKilled(0); app PodInitializing",
		},
		{
			"Pending while one app container never ran", podOf(always, "a", "b"),
			history{up(), running("a", 1)},
			1,
			"Pending; a Running ready; b ContainerCreating",
		},
		{
			"app containers are sorted by name", podOf(always, "b", "a"),
			history{up(), running("a", 1), running("b", 1)},
			1,
			"Running; a Running ready; b Running ready",
		},
		{"first crash shows Terminated", podOf(always, "app"), history{up(), ran("app", 1, 2)}, 1, "Running; app Error(2)"},
		{
			"restart in progress shows Terminated", podOf(always, "app"),
			history{up(), ran("app", 1, 2), pulled("app", 2), issued("app", 2)},
			1, "Running; app Error(2)",
		},
		{
			"restart of an init container in progress shows Terminated", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 2), pulled("init", 2), issued("init", 2)},
			1, "Pending; init Error(2); app PodInitializing",
		},
		{
			"restart in progress shows the delay that it waited for", podOf(always, "app"),
			history{twice, exited("app", 2, 2), tick(11), start("app", 3, 2, 2)},
			11, "Running; app CrashLoopBackOff after Error(2) +1",
		},
		{
			"restart in progress without a delay shows Terminated", podOf(always, "app"),
			history{up(), ran("app", 1, 2), tick(50), start("app", 2, 1, 1)},
			50, "Running; app Error(2)",
		},
		{
			"running container shows its last state and restart count", podOf(always, "app"), twice, 1,
			"Running; app Running after Error(1) +1 ready",
		},
		{
			"second crash shows CrashLoopBackOff", podOf(always, "app"),
			history{twice, exited("app", 2, 2)},
			10.999,
			"Running; app CrashLoopBackOff after Error(2) +1",
		},
		{
			"CrashLoopBackOff is shown until the restart is issued", podOf(always, "app"),
			history{twice, exited("app", 2, 2)},
			11,
			"Running; app CrashLoopBackOff after Error(2) +1",
		},
		{
			"exit code 0 with Always shows CrashLoopBackOff", podOf(always, "app"),
			history{twice, exited("app", 2, 0)},
			2,
			"Running; app CrashLoopBackOff after Completed(0) +1",
		},
		{
			"Running with one waiting and one running container", podOf(always, "a", "b"),
			history{up(), ran("a", 1, 1), ran("a", 2, 1), running("b", 1)},
			1,
			"Running; a CrashLoopBackOff after Error(1) +1; b Running ready",
		},
		{
			"OnFailure does not restart a succeeded container", podOf(onFailure, "a", "b"),
			history{up(), ran("a", 1, 0), running("b", 1)},
			1, "Running; a Completed(0); b Running ready",
		},
		{
			"OnFailure restarts a failed container", podOf(onFailure, "a", "b"),
			history{up(), ran("a", 1, 0), ran("b", 1, 1)},
			1,
			"Running; a Completed(0); b Error(1)",
		},
		{
			"OnFailure, all containers succeeded", podOf(onFailure, "a", "b"),
			history{up(), ran("a", 1, 0), ran("b", 1, 0)},
			1,
			"Succeeded; a Completed(0); b Completed(0)",
		},
		{
			"Never, one container runs", podOf(never, "a", "b"),
			history{up(), ran("a", 1, 7), running("b", 1)},
			1,
			"Running; a Error(7); b Running ready",
		},
		{
			"Never, one container failed", podOf(never, "a", "b"),
			history{up(), ran("a", 1, 0), ran("b", 1, 7)},
			1,
			"Failed; a Completed(0); b Error(7)",
		},
		{"Never, all containers succeeded", podOf(never, "a"), history{up(), ran("a", 1, 0)}, 1, "Succeeded; a Completed(0)"},
		{
			"OOM-killed app container with exit code 0 succeeds", podOf(never, "a"),
			history{up(), running("a", 1), exitedFor("a", 1, 0, lifecycle.ReasonOOMKilled)},
			1, "Succeeded; a OOMKilled(0)",
		},
		{
			"first failed pull shows ErrImagePull", podOf(always, "app"),
			history{up(), pullFailed("app", 1, 1, broken)},
			1,
			"Pending; app ErrImagePull",
		},
		{
			"ErrImagePull is shown while the pull is retried", podOf(always, "app"),
			history{up(), pullFailed("app", 1, 1, broken), tick(11), pull("app", 1, 2)},
			11, "Pending; app ErrImagePull",
		},
		{
			"second failed pull shows ImagePullBackOff", podOf(always, "app"),
			history{up(), pullFailed("app", 1, 2, broken)},
			1,
			"Pending; app ImagePullBackOff",
		},
		{
			"with Never a failed pull does not fail the pod", podOf(never, "app"),
			history{up(), pullFailed("app", 1, 2, broken)},
			1,
			"Pending; app ImagePullBackOff",
		},
		{
			"ErrImageNeverPull keeps its reason", podOf(always, "app"),
			history{up(), pullFailed("app", 1, 2, absent)},
			1,
			"Pending; app ErrImageNeverPull",
		},
		{
			"failed pull of an init container", podOf(always, "init", "app"),
			history{up(), pullFailed("init", 1, 1, broken)},
			1,
			"Pending; init ErrImagePull; app PodInitializing",
		},
		{
			"failed pull of a restart", podOf(always, "app"),
			history{up(), ran("app", 1, 1), pullFailed("app", 2, 2, broken)},
			1,
			"Running; app ImagePullBackOff after Error(1)",
		},
		{
			"successful pull clears ErrImagePull", podOf(always, "app"),
			history{up(), pullFailed("app", 1, 1, broken), tick(11), pulled("app", 1)},
			11, "Pending; app ContainerCreating",
		},
		{
			"issued start clears ErrImagePull", podOf(always, "app"),
			history{up(), pullFailed("app", 1, 1, broken), issued("app", 1)},
			1,
			"Pending; app ContainerCreating",
		},
		{
			"failed creation shows its reason", podOf(always, "app"),
			history{up(), failing(start("app", 1, 0, 0), refused)},
			1,
			"Pending; app CreateContainerConfigError",
		},
		{
			"failed creation shows its reason while it is retried", podOf(always, "app"),
			history{up(), failing(start("app", 1, 0, 0), refused), tick(11), pulled("app", 2), start("app", 2, 0, 0)},
			11,
			"Pending; app CreateContainerConfigError",
		},
		{
			"successful start clears the failed creation", podOf(always, "app"),
			history{up(), failing(start("app", 1, 0, 0), refused), tick(11), pulled("app", 2), start("app", 2, 0, 0), started("app", 2)},
			11, "Running; app Running ready",
		},
		{
			"failed creation of a restart shows the last state", podOf(always, "app"),
			history{up(), ran("app", 1, 1), failing(start("app", 2, 1, 1), refused)},
			1,
			"Running; app CreateContainerConfigError after Error(1)",
		},
		{
			"failed creation is not shown in a new round", podOf(always, "app"),
			history{up(), ran("app", 1, 1), failing(start("app", 2, 1, 1), refused), sandboxLost(1), sandboxRemoved(1), startSandbox(2)},
			1,
			"Running; app Error(1)",
		},
		{"failed creation is not shown while the start in a new round is in progress", podOf(always, "app"), history{
			up(), failing(start("app", 1, 0, 0), refused), sandboxLost(1), sandboxRemoved(1), startSandbox(2), pulled("app", 2),
			lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 2}, Sandbox: 2},
		}, 1, "Pending; app ContainerCreating"},
		{
			"first failed start shows Terminated", podOf(always, "app"),
			history{up(), failing(start("app", 1, 0, 0), oops)},
			1,
			"Running; app StartError(128)",
		},
		{
			"second failed start shows RunContainerError", podOf(always, "app"),
			history{up(), failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 1), oops)},
			1,
			"Running; app RunContainerError after StartError(128) +1",
		},
		{
			"third failed start shows CrashLoopBackOff", podOf(always, "app"),
			history{up(), failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 2), oops)},
			1,
			"Running; app CrashLoopBackOff after StartError(128) +1",
		},
		{
			"third failed start shows CrashLoopBackOff with a constant delay", even,
			history{
				up(), failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 1), oops), tick(4),
				failing(start("app", 3, 2, 1), oops),
			},
			4, "Running; app CrashLoopBackOff after StartError(128) +2",
		},
		{
			"second failed start shows RunContainerError with a constant delay", even,
			history{up(), failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 1), oops)},
			1,
			"Running; app RunContainerError after StartError(128) +1",
		},
		{
			"restart in progress shows a constant delay", even,
			history{twice, exited("app", 2, 2), tick(4), start("app", 3, 2, 1)},
			4,
			"Running; app CrashLoopBackOff after Error(2) +1",
		},
		{
			"with Never a failed start fails the pod", podOf(never, "app"),
			history{up(), failing(start("app", 1, 0, 0), oops)},
			1,
			"Failed; app StartError(128)",
		},
		{
			"5.2 ready after readiness succeeded", with(podOf(always, "app"), probe(readiness)),
			history{up(), running("app", 1), probed("app", 1, readiness, good)},
			1, "Running; app Running ready",
		},
		{
			"5.2 unready before readiness succeeded", with(podOf(always, "app"), probe(readiness)),
			history{up(), running("app", 1)},
			1,
			"Running; app Running",
		},
		{
			"5.2 unready after readiness failed", with(podOf(always, "app"), probe(readiness)),
			history{up(), running("app", 1), probed("app", 1, readiness, good), probed("app", 1, readiness, bad)},
			1,
			"Running; app Running",
		},
		{
			"5.4 unready after a restart", with(podOf(always, "app"), probe(readiness)),
			history{up(), running("app", 1), probed("app", 1, readiness, good), exited("app", 1, 1), running("app", 2)},
			1,
			"Running; app Running after Error(1) +1",
		},
		{
			"5.4 unready after the exit", with(podOf(always, "app"), probe(readiness)),
			history{up(), running("app", 1), probed("app", 1, readiness, good), exited("app", 1, 1)},
			1, "Running; app Error(1)",
		},
		{
			"5.4 not started and unready before startup succeeded", with(podOf(always, "app"), probe(startup), probe(readiness)),
			history{up(), running("app", 1), probed("app", 1, readiness, good)},
			1, "Running; app Running not started",
		},
		{
			"5.4 not started after startup failed", with(podOf(always, "app"), probe(startup)),
			history{up(), running("app", 1), probed("app", 1, startup, bad)},
			1, "Running; app Running not started",
		},
		{
			"5.4 ready after startup succeeded without a readiness probe", with(podOf(always, "app"), probe(startup)),
			history{up(), running("app", 1), probed("app", 1, startup, good)},
			1, "Running; app Running ready",
		},
		{
			"5.4 ready after liveness failed", with(podOf(always, "app"), probe(liveness)),
			history{up(), running("app", 1), probed("app", 1, liveness, bad)},
			1, "Running; app Running ready",
		},
		{
			"5.6 ready in a stopping pod", podOf(always, "app"),
			history{up(), running("app", 1), stopped(time.Minute)},
			1,
			"Running; app Running ready",
		},
		{
			"5.6 unready in a stopping pod after readiness failed", with(podOf(always, "app"), probe(readiness)),
			history{up(), running("app", 1), probed("app", 1, readiness, good), stopped(time.Minute), probed("app", 1, readiness, bad)},
			1,
			"Running; app Running",
		},
		{
			"6 ContainerCreating while the postStart hook runs", with(podOf(always, "app"), hook(lifecycle.PostStart)),
			history{up(), running("app", 1), postStart("app", 1)},
			1, "Pending; app ContainerCreating",
		},
		{
			"6 PodInitializing while the postStart hook runs in a pod with init containers",
			with(podOf(always, "init", "app"), hook(lifecycle.PostStart)),
			history{up(), ran("init", 1, 0), running("app", 1)},
			1,
			"Pending; init Completed(0) ready; app PodInitializing",
		},
		{
			"6 Running after the postStart hook succeeded", with(podOf(always, "app"), hook(lifecycle.PostStart)),
			history{up(), running("app", 1), postStart("app", 1), hookDone("app", 1, lifecycle.PostStart)},
			1, "Running; app Running ready",
		},
		{
			"6 ContainerCreating while the postStart hook of a restart runs", with(podOf(always, "app"), hook(lifecycle.PostStart)),
			history{up(), ran("app", 1, 1), running("app", 2)},
			1, "Running; app ContainerCreating after Error(1) +1",
		},
		{
			"6 ContainerCreating before the postStart hook in a stopping pod", with(podOf(always, "app"), hook(lifecycle.PostStart)),
			history{up(), running("app", 1), stopped(time.Minute)},
			1, "Pending; app ContainerCreating",
		},
		{
			"6 ContainerCreating after the postStart hook failed", with(podOf(always, "app"), hook(lifecycle.PostStart)),
			history{up(), running("app", 1), failing(postStart("app", 1), oops)},
			1, "Pending; app ContainerCreating",
		},
		{
			"6 first back-off after a failed postStart hook shows PostStartHookError",
			with(podOf(always, "app"), hook(lifecycle.PostStart)),
			history{up(), ran("app", 1, 1), hookFailed("app", 2), exited("app", 2, 143)},
			2,
			"Running; app PostStartHookError after Error(143) +1",
		},
		{
			"6 second back-off after a failed postStart hook shows CrashLoopBackOff", with(podOf(always, "app"), hook(lifecycle.PostStart)),
			history{up(), ran("app", 1, 1), ran("app", 2, 1), hookFailed("app", 3), exited("app", 3, 143)},
			2,
			"Running; app CrashLoopBackOff after Error(143) +2",
		},
		{
			"6 with Never a failed postStart hook fails the pod", with(podOf(never, "app"), hook(lifecycle.PostStart)),
			history{up(), hookFailed("app", 1), exited("app", 1, 143)},
			2, "Failed; app Error(143)",
		},
		{
			"stopping pod stays Running", podOf(always, "app"),
			history{twice, stopped(time.Minute)},
			1,
			"Running; app Running after Error(1) +1 ready",
		},
		{
			"cancelled pull of an app container keeps the pod initialized", podOf(always, "side", "app"),
			history{
				up(), running("side", 1), pull("app", 1, 1), stopped(time.Minute),
				lifecycle.CancelPull{Container: "app", For: 1},
				failed(pull("app", 1, 1), oops), exited("side", 1, 143),
			},
			1, "Failed; side Error(143); app ContainerStatusUnknown(137)",
		},
		{
			"pod stopped before it started has failed", podOf(always, "app"),
			history{stopped(time.Minute)},
			1,
			"Failed; app ContainerStatusUnknown(137)",
		},
		{
			"stopped pod whose init container never ran has failed", podOf(always, "init", "app"),
			history{up(), stopped(time.Minute)},
			1,
			"Failed; init ContainerStatusUnknown(137); app PodInitializing",
		},
		{
			"stopped pod whose app container never ran has failed", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 0), stopped(time.Minute)},
			1, "Failed; init Completed(0) ready; app ContainerStatusUnknown(137)",
		},
		{
			"stopped pod whose image was never pulled has failed", podOf(always, "init", "init2", "app"),
			history{up(), pullFailed("init", 1, 2, broken), stopped(time.Minute)},
			1,
			"Failed; init ContainerStatusUnknown(137); init2 PodInitializing; app PodInitializing",
		},
		{
			"stopped pod was initialized although a sidecar exited", podOf(always, "side", "init", "app"),
			history{up(), running("side", 1), running("init", 1), stopped(time.Minute), exited("init", 1, 0), exited("side", 1, 143)},
			1,
			"Failed; side Error(143); init Completed(0) ready; app ContainerStatusUnknown(137)",
		},
		{
			"stopped pod was not initialized if an init container failed", podOf(always, "side", "init", "app"),
			history{up(), running("side", 1), running("init", 1), stopped(time.Minute), exited("init", 1, 1), exited("side", 1, 143)},
			1,
			"Failed; side Error(143); init Error(1); app PodInitializing",
		},
		{
			"stopped pod was not initialized if the image of its app container was only staged", podOf(always, "init", "app"),
			history{
				happened(func(t lifecycle.Instant) lifecycle.Event {
					pod := podOf(always, "init", "app")
					return lifecycle.DefinitionChanged{From: pod, To: pod, Images: map[string]lifecycle.Image{"app": {ID: "staged"}}, At: t}
				}),
				up(), running("init", 1), stopped(time.Minute), exited("init", 1, 143),
			},
			1,
			"Failed; init Error(143); app PodInitializing",
		},
		{
			"stopped pod was initialized if the image of its app container was pulled", podOf(always, "side", "app"),
			history{up(), running("side", 1), pulled("app", 1), exited("side", 1, 1), stopped(time.Minute)},
			1,
			"Failed; side Error(1); app ContainerStatusUnknown(137)",
		},
		{
			"stopped pod with one of two containers never run has failed", podOf(always, "a", "b"),
			history{up(), ran("a", 1, 0), stopped(time.Minute)},
			1, "Failed; a Completed(0); b ContainerStatusUnknown(137)",
		},
		{
			"stopping pod is Pending while a start is in progress", podOf(always, "a", "b"),
			history{up(), issued("a", 1), stopped(time.Minute)},
			1, "Pending; a ContainerCreating; b ContainerCreating",
		},
		{
			"pod stopped during a back-off shows Terminated", podOf(always, "app"),
			history{twice, exited("app", 2, 2), stopped(time.Minute)},
			1, "Failed; app Error(2) after Error(1) +1",
		},
		{
			"stopped pod whose containers exit with 0 has succeeded", podOf(always, "app"),
			history{up(), running("app", 1), stopped(time.Minute), exited("app", 1, 0)},
			1, "Succeeded; app Completed(0)",
		},
		{
			"stopped init container is not ready", podOf(always, "init", "app"),
			history{up(), running("init", 1), stopped(time.Minute), exited("init", 1, 143)},
			1,
			"Failed; init Error(143); app PodInitializing",
		},
		{
			"new round keeps only the restart count of init containers", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 1), ran("init", 2, 0), ran("app", 1, 1), tick(5), round2},
			5,
			"Pending; init PodInitializing +1; app Error(1)",
		},
		{
			"new round does not show a completed init container", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 0), tick(5), round2},
			5, "Pending; init PodInitializing; app PodInitializing",
		},
		{
			"pod stopped in a new round shows the earlier round", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 0), ran("app", 1, 1), tick(5), round2, stopped(time.Minute)},
			5,
			"Failed; init Completed(0) ready; app Error(1)",
		},
		{
			"pod stopped in a new round shows app containers that never ran as missing", podOf(always, "init", "app"),
			history{up(), ran("init", 1, 0), tick(5), round2, stopped(time.Minute)},
			5,
			"Failed; init Completed(0) ready; app ContainerStatusUnknown(137)",
		},
		{
			"with Never a lost sandbox terminates the pod", podOf(never, "a", "b"),
			history{up(), ran("a", 1, 0), running("b", 1), sandboxLost(1), exited("b", 1, 143)},
			1, "Failed; a Completed(0); b Error(143)",
		},
		{
			"with Never a pod is Pending while the next sandbox starts", podOf(never, "a", "b"),
			history{up(), ran("a", 1, 0), sandboxLost(1), sandboxRemoved(1), startSandbox(2)},
			1,
			"Pending; a Completed(0); b ContainerCreating",
		},
		{
			"with Never containers that never ran are missing after the sandbox was lost", podOf(never, "a", "b"),
			history{up(), ran("a", 1, 0), sandboxLost(1)},
			1, "Failed; a Completed(0); b ContainerStatusUnknown(137)",
		},
		{
			"with OnFailure a lost sandbox does not matter if all containers succeeded", podOf(onFailure, "a"),
			history{up(), ran("a", 1, 0), sandboxLost(1)},
			1, "Succeeded; a Completed(0)",
		},
	}.check(t)
}

// statuses is a table of tests of [lifecycle.StatusOf] at a time in seconds after the boot, in the format of [describe].
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

// TestStatusShortRun checks that a run that exited before its start was observed does not finish before it started.
func TestStatusShortRun(t *testing.T) {
	pod := podOf(spec.RestartNever, "app")
	for _, row := range []struct {
		past history
		want time.Time
	}{
		{history{up(), tick(9), running("app", 1), tick(8), exited("app", 1, 0)}, at(8).Wall},
		{history{up(), tick(7), running("app", 1), tick(8), exited("app", 1, 0)}, at(7).Wall},
		{history{up(), tick(7), issued("app", 1), tick(8), exited("app", 1, 0)}, time.Time{}},
	} {
		s := lifecycle.StatusOf(pod, fold(row.past), at(9))
		if end := s.ContainerStatuses[0].State.Terminated; !end.StartedAt.Equal(row.want) || !end.FinishedAt.Equal(at(8).Wall) {
			t.Errorf("status shows %v to %v, want start %v", end.StartedAt, end.FinishedAt, row.want)
		}
	}
}

// TestStatusFields covers every field of a status.
func TestStatusFields(t *testing.T) {
	pod := podOf(spec.RestartAlways, "init", "app", "bad")
	facts := fold(history{
		up(), tick(2), running("init", 1), tick(3), exited("init", 1, 0), tick(4), running("app", 1), tick(5.7),
		ran("bad", 1, 3), tick(7), ran("bad", 2, 4), pullFailed("app", 2, 2, lifecycle.ReasonErrImagePull),
	})
	yes, no := true, false
	ended := lifecycle.Terminated{
		ExitCode: 4, Reason: lifecycle.ReasonError, StartedAt: at(7).Wall, FinishedAt: at(7).Wall, ContainerID: "containerd://bad-id",
	}
	none := &spec.Resources{}
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
		StartTime: at(1).Wall, QOSClass: "BestEffort", ObservedGeneration: 1,
		InitContainerStatuses: []lifecycle.ContainerStatus{{
			Name: "init", Resources: none, Ready: true, Started: &no,
			Image: "init:1", ImageID: "sha256:init", ContainerID: "containerd://init-id",
			State: lifecycle.State{Terminated: &lifecycle.Terminated{
				Reason: lifecycle.ReasonCompleted, StartedAt: at(2).Wall, FinishedAt: at(3).Wall, ContainerID: "containerd://init-id",
			}},
		}},
		ContainerStatuses: []lifecycle.ContainerStatus{
			{
				Name: "app", Resources: none, Ready: true, Started: &yes,
				Image: "app:1", ImageID: "sha256:app", ContainerID: "containerd://app-id",
				State: lifecycle.State{Running: &lifecycle.Running{StartedAt: at(4).Wall}},
			},
			{
				Name: "bad", Resources: none, Started: &no, RestartCount: 1,
				Image: "bad:1", ImageID: "sha256:bad", ContainerID: "containerd://bad-id",
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
		{"failed creation", failing(start("app", 1, 0, 0), lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Message: "no"}), "no"},
		{"postStart", history{ran("app", 1, 1), hookFailed("app", 2), exited("app", 2, 143)}, "oops"},
		{"failed start", history{failing(start("app", 1, 0, 0), oops), failing(start("app", 2, 1, 1), oops)}, "oops"},
	} {
		s := lifecycle.StatusOf(podOf(spec.RestartAlways, "app"), fold(history{up(), row.past}), at(2))
		w := s.ContainerStatuses[0].State.Waiting
		if w == nil || w.Message != row.want {
			t.Errorf("%s: %+v, want %q", row.name, w, row.want)
		}
		resolved := w != nil && w.Reason == lifecycle.ReasonPostStartHookError // the container ran
		if c := s.ContainerStatuses[0]; resolved != (c.Image != "localhost/app") || resolved != (c.ContainerID != "") {
			t.Errorf("%s: %+v has an unresolved image", row.name, s.ContainerStatuses[0])
		}
	}
	again := lifecycle.StatusOf(podOf(spec.RestartAlways, "app"),
		fold(history{up(), ran("app", 1, 42), lifecycle.StartRound{Round: 2, By: run("app", 1)}}), at(2)).ContainerStatuses[0]
	const removed = "The container is removed because RestartAllContainers in place"
	if again.State.Waiting.Message != removed || again.LastState.Terminated.Message != removed {
		t.Errorf("restart of all containers: %+v", again)
	}
	missing := lifecycle.StatusOf(podOf(spec.RestartAlways, "app"), fold(history{stopped(1)}), at(2)).ContainerStatuses[0].State.Terminated
	if missing.Message != "The container could not be located when the pod was terminated" || !missing.StartedAt.IsZero() {
		t.Errorf("missing container: %+v", missing)
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

// TestStatusLostSandbox checks that the waiting message shows the error of a failed sandbox, but not that of an earlier, lost
// one.
func TestStatusLostSandbox(t *testing.T) {
	for want, past := range map[string]history{
		"":     {up(), sandboxLost(1)},
		"oops": {startSandbox(1), failed(startSandbox(1), oops)},
	} {
		s := lifecycle.StatusOf(podOf(always, "app"), fold(past), at(1))
		if w := s.ContainerStatuses[0].State.Waiting; w == nil || w.Message != want {
			t.Errorf("waiting is %+v, want message %q", w, want)
		}
	}
}

func TestStatusTerminated(t *testing.T) {
	live := history{up(), running("app", 1)}
	app := podOf(always, "app")
	for _, row := range []struct {
		name            string
		past            history
		now             float64
		phase           lifecycle.Phase
		reason, message string
	}{
		{"7.5 pod that exceeded its deadline is Running while a container runs", history{live, failPod(time.Minute)}, 2, "Running", "", ""},
		{
			"7.5 pod that exceeded its deadline fails, whatever the exit codes",
			history{live, failPod(time.Minute), exited("app", 1, 0)},
			2, "Failed", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline",
		},
		{"7.5 stop request sets no reason", history{live, stopped(time.Minute), exited("app", 1, 1)}, 2, "Failed", "", ""},
		{"deviation 20 phase is unchanged for 10 s without the engine", history{live, tick(10), engineUnavailable}, 20, "Running", "", ""},
		{
			"deviation 20 Unknown after 10 s without the engine",
			history{live, tick(10), engineUnavailable},
			20.001, "Unknown",
			"EngineUnavailable", "Container engine unavailable",
		},
		{
			"deviation 20 phase is known when the engine is available again",
			history{live, tick(10), engineUnavailable, engineAvailable},
			30, "Running", "", "",
		},
		{
			"deviation 20 failed pod stays Failed",
			history{live, tick(5), stopped(1), exited("app", 1, 1), tick(10), engineUnavailable},
			30, "Failed", "", "",
		},
		{
			"deviation 20 succeeded pod stays Succeeded",
			history{live, tick(5), stopped(1), exited("app", 1, 0), tick(10), engineUnavailable},
			30, "Succeeded", "", "",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := lifecycle.StatusOf(app, fold(row.past), at(row.now))
			got := []string{string(s.Phase), string(s.Reason), s.Message}
			if diff := cmp.Diff([]string{string(row.phase), row.reason, row.message}, got); diff != "" {
				t.Errorf("phase, reason, message (-want +got):\n%s", diff)
			}
			if row.phase == lifecycle.PhaseUnknown && s.ContainerStatuses[0].State.Running == nil {
				t.Errorf("last known state is not shown: %+v", s.ContainerStatuses[0].State)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	pod := podOf(spec.RestartNever, "init-a", "init-b", "x", "y")
	inits := history{ran("init-a", 1, 0), ran("init-b", 1, 0)}
	for _, row := range []struct {
		name string
		past history
		want string // sandbox; initialized; containers ready
	}{
		{"nothing started", nil, "False; False ContainersNotInitialized [init-a init-b]; False ContainersNotReady [x y]"},
		{"sandbox is ready", up(), "True; False ContainersNotInitialized [init-a init-b]; False ContainersNotReady [x y]"},
		{
			"first init container completed",
			history{up(), ran("init-a", 1, 0)},
			"True; False ContainersNotInitialized [init-b]; False ContainersNotReady [x y]",
		},
		{"all init containers completed", history{up(), inits}, "True; True; False ContainersNotReady [x y]"},
		{"one app container ready", history{up(), inits, running("y", 1)}, "True; True; False ContainersNotReady [x]"},
		{"all app containers ready", history{up(), inits, running("x", 1), running("y", 1)}, "True; True; True"},
		{"sandbox lost", history{up(), inits, running("x", 1), running("y", 1), sandboxLost(1)}, "False; True; True"},
		{"pod succeeded", history{up(), inits, ran("x", 1, 0), ran("y", 1, 0)}, "True; True PodCompleted; False PodCompleted"},
		{"pod failed", history{up(), inits, ran("x", 1, 0), ran("y", 1, 1)}, "True; True; False PodFailed"},
		{
			"init container failed",
			history{up(), ran("init-a", 1, 1)},
			"True; False ContainersNotInitialized [init-a init-b]; False PodFailed",
		},
		{"app container is restarting", history{up(), ran("x", 1, 1), issued("x", 2)}, "True; True; False ContainersNotReady [x y]"},
		{"image of an app container is being pulled", history{up(), inits, pull("x", 1, 1)}, "True; True; False ContainersNotReady [x y]"},
	} {
		s := lifecycle.StatusOf(pod, fold(row.past), at(5))
		var got []string
		for _, c := range s.Conditions[1:4] {
			_, names, _ := strings.Cut(c.Message, ": ")
			got = append(got, strings.TrimSpace(strings.Join([]string{c.Status, string(c.Reason), names}, " ")))
		}
		if text := strings.ReplaceAll(strings.Join(got, "; "), "  ", " "); text != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, text, row.want)
		}
	}
}

func TestSince(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	first := lifecycle.StatusOf(pod, fold(nil), at(1)).Since(nil, at(1.9))
	second := lifecycle.StatusOf(pod, fold(up()), at(5)).Since(first.Conditions, at(5))
	want := map[lifecycle.ConditionType]time.Time{
		lifecycle.PodScheduled: at(1).Wall, lifecycle.PodReadyToStartContainers: at(5).Wall, lifecycle.PodInitialized: at(1).Wall,
		lifecycle.ContainersReady: at(1).Wall, lifecycle.PodReady: at(1).Wall,
	}
	for _, c := range second.Conditions {
		if !c.LastTransitionTime.Equal(want[c.Type]) {
			t.Errorf("%s changed at %v, want %v", c.Type, c.LastTransitionTime, want[c.Type])
		}
	}
	if first.Conditions[1].Status != "False" || second.Conditions[1].Status != "True" {
		t.Error("earlier conditions were changed")
	}
}

// TestOptionalConditions checks the conditions that not every pod has, and their order.
func TestOptionalConditions(t *testing.T) {
	gated := podOf(always, "app")
	gated.ReadinessGates = []spec.ReadinessGate{{ConditionType: "example.com/b"}, {ConditionType: "example.com/a"}}
	side := within(podOf(always, "side", "init", "y", "x"), "side", probe(startup), probe(readiness))
	rules := with(podOf(always, "app", "other"), own(never, rule(restartAll, "In", 42)))
	within(rules, "other", own(never, rule(again, "In", 42)))
	live := history{up(), running("app", 1)}
	sideUp := history{up(), running("side", 1), probed("side", 1, startup, good)}
	const noGate = `corresponding condition of pod readiness gate "example.com/%s" does not exist.`
	const closed = `the status of pod readiness gate "example.com/b" is not "True", but False`
	for _, row := range []struct {
		name string
		pod  *spec.Pod
		past history
		want string // starting with Initialized
	}{
		{
			"2.2 conditions of readiness gates do not exist", gated, live,
			"Initialized True; ContainersReady True; Ready False ReadinessGatesNotReady " + strings.ReplaceAll(noGate, "%s", "b") + ", " +
				strings.ReplaceAll(noGate, "%s", "a"),
		},
		{
			"2.2 condition of a readiness gate is False", gated,
			history{live, setCondition("example.com/a", "True"), setCondition("example.com/b", "False")},
			"Initialized True; ContainersReady True; Ready False ReadinessGatesNotReady " + closed +
				"; example.com/a True Why because; example.com/b False Why because",
		},
		{
			"2.2 conditions of readiness gates are True", gated,
			history{live, setCondition("example.com/a", "True"), setCondition("example.com/b", "True")},
			"Initialized True; ContainersReady True; Ready True; example.com/a True Why because; example.com/b True Why because",
		},
		{
			"2.2 unready containers take precedence over readiness gates", gated, up(),
			"Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app]; Ready False " +
				"ContainersNotReady containers with unready status: [app]",
		},
		{
			"2.2 sidecar is not started", side,
			history{up(), running("side", 1)},
			"Initialized False ContainersNotInitialized containers with incomplete status: [side init]; ContainersReady False " +
				"ContainersNotReady containers with unready status: [side y x]; Ready False ContainersNotReady containers with unready " +
				"status: [side y x]",
		},
		{
			"2.2 sidecar is started, init container is not completed", side, sideUp,
			"Initialized False ContainersNotInitialized containers with incomplete status: [init]; ContainersReady False " +
				"ContainersNotReady containers with unready status: [side y x]; Ready False ContainersNotReady containers with unready " +
				"status: [side y x]",
		},
		{
			"2.2 init containers completed, app containers not ready", side,
			history{sideUp, ran("init", 1, 0)},
			"Initialized True; ContainersReady False ContainersNotReady containers with unready status: [side y x]; Ready False " +
				"ContainersNotReady containers with unready status: [side y x]",
		},
		{
			"2.2 unready sidecar makes the pod unready", side,
			history{sideUp, ran("init", 1, 0), running("x", 1), running("y", 1)},
			"Initialized True; ContainersReady False ContainersNotReady containers with unready status: [side]; Ready False " +
				"ContainersNotReady containers with unready status: [side]",
		},
		{
			"2.2 sidecar and app containers ready", side,
			history{sideUp, ran("init", 1, 0), running("x", 1), running("y", 1), probed("side", 1, readiness, good)},
			"Initialized True; ContainersReady True; Ready True",
		},
		{
			"2.2 AllContainersRestarting is present with a RestartAllContainers rule", rules,
			history{live, running("other", 1)},
			"Initialized True; ContainersReady True; Ready True; AllContainersRestarting False",
		},
		{
			"4.2 AllContainersRestarting is true while all containers restart", rules,
			history{live, running("other", 1), exited("app", 1, 42)},
			"Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app]; Ready False " +
				"ContainersNotReady containers with unready status: [app]; AllContainersRestarting True RestartAllContainersStarted " +
				"container exited with restart policy rule",
		},
		{
			"2.2 AllContainersRestarting of a succeeded pod", rules,
			history{live, running("other", 1), exited("app", 1, 0), exited("other", 1, 0)},
			"Initialized True PodCompleted; ContainersReady False PodCompleted; Ready False PodCompleted; AllContainersRestarting False " +
				"PodCompleted",
		},
		{
			"2.2 AllContainersRestarting of a failed pod", rules,
			history{live, running("other", 1), exited("app", 1, 1), exited("other", 1, 0)},
			"Initialized True; ContainersReady False PodFailed; Ready False PodFailed; AllContainersRestarting False PodFailed",
		},
		{
			"4.2 AllContainersRestarting is false after an exit that matches no rule", rules,
			history{live, running("other", 1), exited("other", 1, 42)},
			"Initialized True; ContainersReady False ContainersNotReady containers with unready status: [other]; Ready False " +
				"ContainersNotReady containers with unready status: [other]; AllContainersRestarting False",
		},
		{
			"4.2 AllContainersRestarting is false in a stopping pod", rules,
			history{live, running("other", 1), exited("app", 1, 42), stopped(time.Minute)},
			"Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app]; Ready False " +
				"ContainersNotReady containers with unready status: [app]; AllContainersRestarting False",
		},
		{
			"4.2 Initialized stays true after a restart of all containers", within(rules, "other", own(never)),
			history{live, running("other", 1), exited("app", 1, 42), exited("other", 1, 0), lifecycle.StartRound{Round: 2}},
			"Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app other]; Ready False " +
				"ContainersNotReady containers with unready status: [app other]; AllContainersRestarting False",
		},
		{
			"deviation 20 unavailable engine does not change conditions", podOf(always, "app"),
			history{live, func() happened { return engineUnavailable }()},
			"Initialized True; ContainersReady True; Ready True",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, c := range lifecycle.StatusOf(row.pod, fold(row.past), at(60)).Conditions[2:] {
				words := []string{string(c.Type), c.Status, string(c.Reason), c.Message}
				got = append(got, strings.TrimSpace(strings.ReplaceAll(strings.Join(words, " "), "  ", " ")))
			}
			if text := strings.Join(got, "; "); text != row.want {
				t.Errorf("conditions\n got %s\nwant %s", text, row.want)
			}
		})
	}
}

// TestInitializedStaysTrue stops a pod between the start of its last sidecar and the start of its app container.
func TestInitializedStaysTrue(t *testing.T) {
	pod := podOf(spec.RestartNever, "side", "x")
	past := history{up(), stopped(10 * time.Second), running("side", 1)}
	first := lifecycle.StatusOf(pod, fold(past), at(2)).Since(nil, at(2))
	past = append(past, exited("side", 1, 0))
	want := first.Conditions[2]
	if want.Type != lifecycle.PodInitialized || want.Status != "True" {
		t.Fatalf("running sidecar: %+v", want)
	}
	if got := lifecycle.StatusOf(pod, fold(past), at(9)).Since(first.Conditions, at(9)).Conditions[2]; got != want {
		t.Errorf("terminated sidecar: %+v, want %+v", got, want)
	}
	never := lifecycle.StatusOf(pod, fold(up()), at(2)).Since(nil, at(2)).Conditions[2]
	if got := lifecycle.StatusOf(pod, fold(past), at(9)).Since([]lifecycle.Condition{never}, at(9)).Conditions[2]; got.Status != "False" {
		t.Errorf("pod that was not initialized before: %+v", got)
	}
}

// TestSidecarDiesBeforeFirstApp has a sidecar that dies while the last init container runs: an app container may start, but the pod is not
// initialized before it has.
func TestSidecarDiesBeforeFirstApp(t *testing.T) {
	pod := podOf(spec.RestartAlways, "side", "init", "x")
	past := history{up(), running("side", 1), issued("init", 1), started("init", 1), exited("side", 1, 1), exited("init", 1, 0)}
	for _, row := range []struct {
		name string
		past history
		want string
	}{
		{"init container completed", past, "False"},
		{"image of the app container is being pulled", history{past, pull("x", 1, 1)}, "False"},
		{"pull was cancelled", history{past, pull("x", 1, 1), lifecycle.CancelPull{Container: "x", For: 1}}, "False"},
		{"app container is starting", history{past, pulled("x", 1), issued("x", 1)}, "False"},
		{"app container started", history{past, pulled("x", 1), issued("x", 1), started("x", 1)}, "True"},
		{"sidecar started again", history{past, pull("x", 1, 1), running("side", 2)}, "True"},
	} {
		if got := lifecycle.StatusOf(pod, fold(row.past), at(5)).Conditions[2]; got.Type != lifecycle.PodInitialized ||
			got.Status != row.want {
			t.Errorf("%s: %+v, want %s", row.name, got, row.want)
		}
	}
}

// TestConditionsAreBounded sets more conditions than a pod can have.
func TestConditionsAreBounded(t *testing.T) {
	facts := fold(nil)
	for i := range 100 {
		kind := lifecycle.ConditionType("example.com/" + strings.Repeat("x", i))
		facts = facts.Apply(lifecycle.ConditionSet{Type: kind, Status: "True", At: at(2)})
	}
	if n := len(facts.Conditions); n != 64 {
		t.Fatalf("%d conditions, want 64", n)
	}
	before := text(facts)
	after := facts.Apply(lifecycle.ConditionSet{Type: "example.com/", Status: "False", At: at(3)})
	if after.Conditions["example.com/"].Status != "False" || len(after.Conditions) != 64 {
		t.Errorf("existing condition was not updated: %v", after.Conditions)
	}
	if text(facts) != before {
		t.Error("earlier facts were changed")
	}
}

// TestTerminationMessageShare checks that each container has an equal share of the limit, truncated to whole runes.
func TestTerminationMessageShare(t *testing.T) {
	const letters = 2000 // of three bytes
	addEphemeral := func(name string) happened {
		return func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.EphemeralAdded{Container: spec.Container{Name: name}, At: t}
		}
	}
	stopping := func(name string) history {
		return history{running(name, 1), happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerExited{Ref: run(name, 1), Exit: lifecycle.Exit{Code: 1, Message: strings.Repeat("€", letters)}, At: t}
		})}
	}
	for _, row := range []struct {
		pod  *spec.Pod
		past history
		want int // runes
	}{
		{podOf(never, "app"), nil, letters},
		{podOf(never, "init", "side", "app"), nil, 4096 / 3},
		{podOf(never, "app"), history{addEphemeral("a"), addEphemeral("b"), addEphemeral("c"), addEphemeral("d")}, 12288 / 5 / 3},
	} {
		s := lifecycle.StatusOf(row.pod, fold(history{up(), row.past, stopping("app")}), at(1))
		if got := s.ContainerStatuses[0].State.Terminated.Message; got != strings.Repeat("€", row.want) {
			t.Errorf("%d init containers, %d ephemeral ones: %d bytes, want %d letters", len(row.pod.InitContainers), len(row.past),
				len(got), row.want)
		}
	}
}

// TestTerminationMessageOfOneContainer checks that a single container has the whole limit.
func TestTerminationMessageOfOneContainer(t *testing.T) {
	exit := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: run("app", 1), Exit: lifecycle.Exit{Message: strings.Repeat("x", 13000)}, At: t}
	})
	s := lifecycle.StatusOf(podOf(never, "app"), fold(history{up(), running("app", 1), exit}), at(1))
	if got := len(s.ContainerStatuses[0].State.Terminated.Message); got != 12288 {
		t.Errorf("%d bytes, want 12288", got)
	}
}

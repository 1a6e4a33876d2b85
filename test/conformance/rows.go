package conformance

import "slices"

// Row is a case of the table: what the kubelet does, and what Podstead does.
type Row struct {
	// Number is the row's number in the list of lifecycle cases, or "" for one beyond that list.
	Number string
	// Setup is the pod and what happens to it.
	Setup string
	// Kubelet is what the kubelet of Kubernetes 1.36 does.
	Kubelet string
	// Differs is what Podstead does differently on purpose, and why; "" for nothing.
	Differs string
	// Test is the name of the test, here or in test/vm.
	Test string
}

const exactDelays = "delays are exact (the kubelet checks once a second and adds jitter of up to 50%) and configurable: `restartBackoff`"

// Rows returns the table. Sidecars are init containers with restartPolicy Always.
func Rows() []Row {
	return slices.Concat(initRows(), restartRows(), probeRows(), stopRows(), sidecarRows(), daemonRows())
}

func initRows() []Row {
	return []Row{
		{
			"01", "three init containers, Never",
			"they run one after the other, then the regular container; the pod succeeds; nothing restarts", "",
			"TestInitContainersRunInOrder",
		},
		{
			"02", "an init container fails, Never",
			"the regular container is never created and stays waiting (PodInitializing); the pod fails", "",
			"TestInitFailureFailsPodUnderNever",
		},
		{
			"03", "an init container fails, Always or OnFailure",
			"the pod is Pending; the init container restarts with back-off; Initialized is False (ContainersNotInitialized)", exactDelays,
			"TestInitFailureBacksOff",
		},
		{
			"04", "the image of an init container is missing, Never",
			"the pod stays Pending, does not fail, and continues when the image is present", "", "TestMissingInitImageKeepsPodPending",
		},
		{
			"", "conditions", "PodReadyToStartContainers, Initialized, ContainersReady, Ready become True in this order", "",
			"TestConditions",
		},
	}
}

func restartRows() []Row {
	return []Row{
		{
			"05", "a container always fails, Always",
			"it restarts immediately, then after delays that double; CrashLoopBackOff, with the last termination", exactDelays,
			"TestCrashLoopBackOff",
		},
		{
			"08", "a container fails many times, Always", "the delays double up to the cap", exactDelays, "TestCrashLoopBackOffReachesCap",
		},
		{
			"38", "restart policies and rules of containers",
			"a matching rule takes precedence over the container's policy, and that over the pod's", "", "TestRestartRulesPrecedence",
		},
		{
			"44", "out of memory: the main process, a child process, an init container",
			"OOMKilled; with cgroup v2 the whole container, with v1 (or v2 and singleProcessOOMKill) one process",
			"singleProcessOOMKill is not supported", "TestOOMKilled",
		},
		{
			"", "restart rule RestartAllContainers",
			"all containers stop without hooks and start again, init containers first, in the same sandbox; all restart counts rise",
			"at most one such restart per second", "TestRestartAllContainers",
		},
		{
			"", "a sidecar exits with a code of such a rule after the regular containers have completed",
			"the pod completes, and nothing restarts", "", "TestRestartAllContainersAfterCompletion",
		},
		{"", "a container fails often", "one dead container is kept for each container name", "", "TestDeadContainers"},
		{"", "activeDeadlineSeconds", "Failed, DeadlineExceeded, with hooks and grace period", "", "TestActiveDeadline"},
	}
}

func probeRows() []Row {
	return []Row{
		{
			"09", "exec liveness probe", "a failure restarts the container, success does not; the first probe runs after its initial delay",
			"", "TestLivenessProbeRestartsContainer",
		},
		{
			"10", "a liveness or startup probe fails, preStop hook, Never",
			"the hook runs beside the container, before the signal; the container does not restart and the pod fails", "",
			"TestFailedProbeRunsPreStopHook",
		},
		{
			"11", "readiness probes: with an initial delay, and one that fails",
			"ready after the delay, not before; never ready; no restarts", "", "TestReadinessProbe",
		},
		{
			"12", "startup and liveness probe fail",
			"no liveness probe before the startup probe has succeeded; then it restarts the container", "",
			"TestStartupProbeGatesLivenessProbe",
		},
		{
			"14", "exec probes: one exceeds its timeout, one leaves a process behind",
			"the first fails; the result of the second waits until the process closes the output",
			"the result comes when the probe's command exits; processes that it left are killed at its timeout (kubernetes#110070)",
			"TestExecProbeTimeout",
		},
		{
			"17", "gRPC and TCP liveness probes, on the right port and a wrong one",
			"no restart with SERVING and an open port; restarts on a wrong port", "", "TestGRPCAndTCPProbes",
		},
		{
			"18", "a probe with its own grace period, SIGTERM ignored",
			"the container is killed after the probe's grace period, not the pod's", "", "TestProbeGracePeriod",
		},
		{
			"", "all handlers of probes", "HTTP, HTTPS, TCP and gRPC, with host, path, headers and service; the response decides", "",
			"TestProbeHandlers",
		},
	}
}

func stopRows() []Row {
	return []Row{
		{
			"20", "slow postStart hook", "it runs beside its container, after the init containers; the next container waits for it",
			"it blocks nothing else of the pod, such as a stop or probes of other containers (kubernetes#116032)",
			"TestPostStartHookGatesNextContainer",
		},
		{
			"21", "preStop hooks: exec, HTTP, HTTPS, sleep", "each ends before the signal, and its container runs meanwhile", "",
			"TestPreStopHookRunsBeforeSignal",
		},
		{
			"23", "preStop hook longer than the grace period, SIGTERM ignored",
			"the signal at the end of the grace period, SIGKILL 2 s later", "", "TestPreStopHookExceedsGracePeriod",
		},
		{"24", "SIGTERM ignored", "SIGKILL at the end of the grace period: exit code 137, Error", "", "TestGracePeriodEndsWithSIGKILL"},
		{
			"26", "a pod is deleted: its container is killed, or its image is missing", "Failed, under every restart policy", "",
			"TestDeletedPodFails",
		},
		{
			"", "all handlers of hooks", "HTTP, HTTPS and sleep, after the start and before the stop",
			"the response to a hook without `host` on the host network counts (kubernetes#134285)", "TestHookHandlers",
		},
	}
}

func sidecarRows() []Row {
	return []Row{
		{
			"27", "sidecars with startup probes", "the next container waits until the probe has succeeded", "",
			"TestSidecarStartupProbeGatesNextContainer",
		},
		{
			"29", "a pod with sidecars stops", "the regular containers stop first, then the sidecars, the last one first", "",
			"TestSidecarsStopInReverseOrder",
		},
		{
			"31", "sidecars with preStop hooks", "all hooks start together; the order delays the signals only", "",
			"TestPreStopHooksStartTogether",
		},
		{
			"33", "a sidecar that runs forever, Never or OnFailure", "it is stopped when the regular containers are done; the pod succeeds",
			"", "TestSidecarDoesNotKeepPodRunning",
		},
		{
			"34", "a sidecar that exits repeatedly, Never",
			"it restarts, before the regular containers start and beside them; the pod succeeds", exactDelays,
			"TestSidecarRestartsUnderNever",
		},
		{
			"35", "the liveness probe of a sidecar fails", "its hook runs, it restarts, other containers are not affected",
			"the first restart is immediate, later ones back off as after a crash", "TestSidecarLivenessProbe",
		},
	}
}

func daemonRows() []Row {
	return []Row{
		{
			"40", "the kubelet (here the daemon) is killed or restarted while pods run",
			"the same containers; restart counts, started and ready are kept; completed init containers do not run again",
			"the back-off is kept, too", "TestDaemonRestartKeepsPods",
		},
		{
			"41", "the host loses power and boots again",
			"Pending; init containers, sidecars and regular containers start again in order; restart counts rise; what succeeded under " +
				"OnFailure and what ran under Never does not run again",
			"the back-off is kept, too", "TestPowerLossRestartsPods",
		},
		{
			"42", "a manifest is edited, renamed, removed, put back",
			"the old pod is stopped with its grace period, then the new one starts",
			"only what the edit requires is restarted, and an invalid edit changes nothing", "TestManifests",
		},
		{
			"", "the engine has containers of an unknown pod", "they are stopped without hooks",
			"they are stopped with the hooks and grace period that they were started with", "TestOrphan",
		},
		{
			"", "a container exits during its postStart hook while the daemon is not running",
			"it restarts by its restart policy; no failure of the hook is reported", "", "TestExitDuringPostStartHookWithoutDaemon",
		},
		{
			"", "pods are created and deleted concurrently", "no status reports a start or a success that did not happen", "", "TestStorm",
		},
	}
}

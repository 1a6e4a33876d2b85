package conformance

// Row is a case of the table: what the kubelet does, and what is done here.
type Row struct {
	// Number is the row's in the project's list of cases, or "" for one beyond it.
	Number string
	// Setup is the pod, in a few words.
	Setup string
	// Kubelet is what the kubelet of Kubernetes 1.36 does.
	Kubelet string
	// Differs is what is different here on purpose, and why; "" for nothing.
	Differs string
	// Test is the name of the test that holds it, here or in test/vm. It is "" for a row that is not tested yet, and then Comes says why.
	Test, Comes string
}

const exactDelays = "delays are exact (the kubelet looks once a second and adds up to half), and can be set: `restartBackoff`"

// Rows returns the table. Sidecars are init containers whose own restartPolicy is Always.
func Rows() []Row {
	return []Row{
		{"01", "three init containers, Never", "one after the other, then the regular container; the pod succeeds; nothing restarts", "", "TestRow01", ""},
		{"02", "an init container fails, Never", "the regular container is never made and keeps waiting (PodInitializing); the pod fails", "", "TestRow02", ""},
		{"03", "an init container fails, Always or OnFailure", "Pending; the init container is tried again with backoff; Initialized is False (ContainersNotInitialized)", exactDelays, "TestRow03", ""},
		{"04", "the image of an init container cannot be had, Never", "the pod stays Pending, does not fail, and goes on when the image is there", "", "TestRow04", ""},
		{"05", "a container fails for ever, Always", "restarts at once, then after delays that double; CrashLoopBackOff, with the last end beside it", exactDelays, "TestRow05", ""},
		{"08", "the same for long", "the delays grow to their bound and no further", exactDelays, "TestRow08", ""},
		{"09", "exec liveness probe", "a failure restarts the container once, no failure never; the first probe comes after its delay", "", "TestRow09", ""},
		{"10", "a liveness or startup probe fails, preStop hook, Never", "the hook runs beside the container, before the signal; it is not restarted and the pod ends", "", "TestRow10", ""},
		{"11", "readiness probe with a delay; one that fails", "not ready before the delay is over, then ready; never ready; no restart", "", "TestRow11", ""},
		{"12", "startup and liveness probe fail", "no liveness probe before the startup probe has succeeded, then it restarts the container", "", "TestRow12", ""},
		{
			"14", "exec probe that takes too long; one that leaves a process behind", "a failure; the answer of the second waits until the process lets go of the output",
			"the answer comes with the probe's own end, and what it started ends with its time-out (kubernetes#110070)", "TestRow14", "",
		},
		{"17", "gRPC and TCP liveness probes, right port and wrong", "no restart with SERVING and an open port; restarts at a wrong port", "", "TestRow17", ""},
		{"18", "a probe has a grace period of its own, SIGTERM ignored", "the container is killed after the probe's, not after the pod's", "", "TestRow18", ""},
		{
			"20", "slow postStart hook", "runs beside its container, after the init containers; the next container waits for it",
			"the wait keeps nothing else of the pod waiting: a stop, probes of others (kubernetes#116032)", "TestRow20", "",
		},
		{"21", "preStop hooks by exec, HTTP, HTTPS, sleep", "each is over before the signal, and its container lives meanwhile", "", "TestRow21", ""},
		{"23", "preStop hook longer than the grace period, SIGTERM ignored", "the signal when the grace period is over, SIGKILL 2 s later", "", "TestRow23", ""},
		{"24", "SIGTERM ignored", "SIGKILL at the end of the grace period: 137, Error", "", "TestRow24", ""},
		{"26", "a pod is deleted: killed, or while its image cannot be had", "Failed, under any policy", "", "TestRow26", ""},
		{"27", "sidecars with startup probes", "each next one waits until the probe has succeeded", "", "TestRow27", ""},
		{"29", "sidecars at the end of a pod", "the regular containers end first, then the sidecars from the last to the first", "", "TestRow29", ""},
		{"31", "sidecars with preStop hooks", "all hooks begin at once, before the order holds back the signals", "", "TestRow31", ""},
		{"33", "a sidecar that runs for ever, Never or OnFailure", "it is ended when the regular containers are done; the pod succeeds", "", "TestRow33", ""},
		{"34", "a sidecar that ends again and again, Never", "it restarts, before the regular containers start and beside them; the pod succeeds", exactDelays, "TestRow34", ""},
		{
			"35", "the liveness probe of a sidecar fails", "its hook runs, it restarts, nobody else is touched",
			"the first restart is at once, those after it back off like those of a crash", "TestRow35", "",
		},
		{"38", "restart rules and policies of containers", "a rule goes before the container's policy, and that before the pod's", "", "TestRow38", ""},
		{
			"40", "the supervisor is killed or restarted beside running pods", "the same containers; counts, started and ready stay; init containers that are done are not run again",
			"backoff is kept too", "TestRow40", "",
		},
		{
			"41", "the machine loses its power and is started again",
			"Pending; init containers, sidecars and regular containers start again in their order; restart counts rise; what has succeeded under OnFailure and what ran under Never does not run again",
			"backoff is kept too", "TestRow41", "",
		},
		{
			"42", "a manifest is edited, renamed, removed, put back", "the old pod gets its grace period, the new one starts after it",
			"the least is done, and an invalid edit changes nothing", "", "with the folder of pod files",
		},
		{
			"44", "out of memory: the main process, a child, an init container",
			"OOMKilled; with cgroup v2 the whole container, with v1 one process (or with v2 and singleProcessOOMKill)",
			"singleProcessOOMKill is not to be had", "TestRow44", "",
		},
		{"", "activeDeadlineSeconds", "Failed, DeadlineExceeded, with hooks and grace period", "", "TestActiveDeadline", ""},
		{"", "conditions", "PodReadyToStartContainers, Initialized, ContainersReady, Ready become True in this order", "", "TestConditions", ""},
		{
			"", "restart rule RestartAllContainers", "all end without hooks and begin again, init containers first, in the same sandbox; all counts rise",
			"no more than one such round a second", "TestRestartAllContainers", "",
		},
		{"", "a sidecar whose end such a rule names, when the work is done", "the pod ends, and nothing begins again", "", "TestRestartAllContainersAtTheEnd", ""},
		{"", "a container that fails often", "one dead container is kept for its name", "", "TestDeadContainers", ""},
		{"", "the engine has a pod that nobody knows", "it is ended without hooks", "with the hooks and the grace period that it was started with", "TestOrphan", ""},
		{"", "a container ends in its postStart hook while there is no supervisor", "it starts again by its policy; nothing is said of the hook", "", "TestUnseenEnd", ""},
		{"", "pods come and go in a storm", "no status says that a container started or succeeded that did not", "", "TestStorm", ""},
		{"", "all handlers of all probes", "HTTP, HTTPS, TCP, gRPC with host, path, headers and service: their answers decide", "", "TestProbeHandlers", ""},
		{"", "all handlers of hooks", "HTTP, HTTPS and sleep after the start and before the end", "the answer of a hook without `host` on the machine's network counts (kubernetes#134285)", "TestHookHandlers", ""},
	}
}

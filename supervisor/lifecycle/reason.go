package lifecycle

// Reason is a machine-readable cause in CamelCase: the kubelet's word where it has one.
type Reason string

// Reasons of a waiting container.
const (
	ReasonContainerCreating    Reason = "ContainerCreating"
	ReasonPodInitializing      Reason = "PodInitializing"
	ReasonCrashLoopBackOff     Reason = "CrashLoopBackOff"
	ReasonErrImagePull         Reason = "ErrImagePull"
	ReasonImagePullBackOff     Reason = "ImagePullBackOff"
	ReasonErrImageNeverPull    Reason = "ErrImageNeverPull"
	ReasonInvalidImageName     Reason = "InvalidImageName"
	ReasonImageInspectError    Reason = "ImageInspectError"
	ReasonCreateContainerError Reason = "CreateContainerError"
	ReasonCreateConfigError    Reason = "CreateContainerConfigError"
	ReasonRunContainerError    Reason = "RunContainerError"
	ReasonPostStartHookError   Reason = "PostStartHookError"
)

// Reasons of a sandbox that cannot be made.
const (
	// ReasonFailedMount is a volume that cannot be had yet: it is waited for.
	ReasonFailedMount Reason = "FailedMount"
)

// ofRegistry reports whether a pull failed because of the registry, so that it backs off.
func (r Reason) ofRegistry() bool { return r == ReasonErrImagePull }

// Reasons of a terminated container.
const (
	ReasonCompleted     Reason = "Completed"
	ReasonError         Reason = "Error"
	ReasonOOMKilled     Reason = "OOMKilled"
	ReasonStartError    Reason = "StartError"
	ReasonUnknown       Reason = "Unknown"                // exit code 255: the engine lost it
	ReasonStatusUnknown Reason = "ContainerStatusUnknown" // exit code 137: it ran, and is not there
)

// Reasons of conditions.
const (
	ReasonContainersNotInitialized Reason = "ContainersNotInitialized"
	ReasonContainersNotReady       Reason = "ContainersNotReady"
	ReasonPodCompleted             Reason = "PodCompleted"
	ReasonPodFailed                Reason = "PodFailed"
	ReasonTerminationByKubelet     Reason = "TerminationByKubelet"
	ReasonReadinessGatesNotReady   Reason = "ReadinessGatesNotReady"
	// ReasonAllContainersRestarting is that of AllContainersRestarting (KEP-5532).
	ReasonAllContainersRestarting Reason = "RestartAllContainersStarted"
)

// Reasons of the pod's phase.
const (
	ReasonDeadlineExceeded  Reason = "DeadlineExceeded"
	ReasonEngineUnavailable Reason = "EngineUnavailable"
	ReasonEvicted           Reason = "Evicted" // it has used more than it may
)

// ReasonRestartingAllContainers is that of a container which a restart of all containers has ended or begins again, and of
// the stop between the two.
const ReasonRestartingAllContainers Reason = "RestartingAllContainers"

// restartingAllMessage is what the kubelet says of such a container.
const restartingAllMessage = "The container is removed because RestartAllContainers in place"

// Reasons to stop a container.
const (
	// ReasonStopped is a stop that somebody asked for.
	ReasonStopped Reason = "Stopped"
	// ReasonPodFinished is the end of what is left of a pod whose containers are done.
	ReasonPodFinished Reason = "PodFinished"
	// ReasonSandboxChanged is the loss of the sandbox that the container ran in.
	ReasonSandboxChanged Reason = "SandboxChanged"
	// ReasonLivenessProbe is a liveness probe that failed for good.
	ReasonLivenessProbe Reason = "LivenessProbe"
	// ReasonStartupProbe is a startup probe that failed for good.
	ReasonStartupProbe Reason = "StartupProbe"
	// ReasonFailedPostStartHook is a postStart hook that failed.
	ReasonFailedPostStartHook Reason = "FailedPostStartHook"
)

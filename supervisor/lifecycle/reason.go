package lifecycle

// Reason is a machine-readable cause in CamelCase: the kubelet's reason where it has one.
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
	ReasonSignatureValidation  Reason = "SignatureValidationFailed"
	ReasonCreateContainerError Reason = "CreateContainerError"
	ReasonCreateConfigError    Reason = "CreateContainerConfigError"
	ReasonRunContainerError    Reason = "RunContainerError"
	ReasonPostStartHookError   Reason = "PostStartHookError"
)

// Reasons of a failed sandbox start.
const (
	// ReasonFailedMount means that a volume cannot be mounted yet. Mounting it is retried.
	ReasonFailedMount Reason = "FailedMount"
)

// ofRegistry reports whether a pull failed because of the registry, or of the signatures in it. Such pulls back off.
func (r Reason) ofRegistry() bool { return r == ReasonErrImagePull || r == ReasonSignatureValidation }

// Reasons of a terminated container.
const (
	ReasonCompleted     Reason = "Completed"
	ReasonError         Reason = "Error"
	ReasonOOMKilled     Reason = "OOMKilled"
	ReasonStartError    Reason = "StartError"
	ReasonUnknown       Reason = "Unknown"                // exit code 255: the engine lost the container
	ReasonStatusUnknown Reason = "ContainerStatusUnknown" // exit code 137: the container ran and no longer exists
)

// Reasons of conditions.
const (
	ReasonContainersNotInitialized Reason = "ContainersNotInitialized"
	ReasonContainersNotReady       Reason = "ContainersNotReady"
	ReasonPodCompleted             Reason = "PodCompleted"
	ReasonPodFailed                Reason = "PodFailed"
	ReasonTerminationByKubelet     Reason = "TerminationByKubelet"
	ReasonReadinessGatesNotReady   Reason = "ReadinessGatesNotReady"
	// ReasonAllContainersRestarting is the reason of the condition AllContainersRestarting (KEP-5532).
	ReasonAllContainersRestarting Reason = "RestartAllContainersStarted"
)

// Reasons of the condition Unhealthy.
const (
	ReasonContainersRestarted Reason = "ContainersRestarted"
	ReasonSandboxReplaced     Reason = "SandboxReplaced"
	ReasonHostRebootRequested Reason = "RebootRequested"
	// ReasonRebootHeldBack means that the limit of reboots holds back a reboot of the host.
	ReasonRebootHeldBack Reason = "RebootHeldBack"
	// ReasonRebootFailed means that the host could not be asked to reboot.
	ReasonRebootFailed Reason = "FailedReboot"
)

// Reasons of the pod's phase.
const (
	ReasonWaitingFor        Reason = "WaitingFor" // the pod waits for conditions before it starts
	ReasonDeadlineExceeded  Reason = "DeadlineExceeded"
	ReasonEngineUnavailable Reason = "EngineUnavailable"
	ReasonEvicted           Reason = "Evicted"     // it exceeded a limit
	ReasonTerminated        Reason = "Terminated"  // the host was shut down
	ReasonNewerState        Reason = "NewerState"  // a later version of Podstead has written its state file
	ReasonQuarantined       Reason = "Quarantined" // the daemon crashed while it handled the pod, and would again
	ReasonSuspected         Reason = "Suspected"   // the daemon crashed while it handled the pod and others
)

// ReasonRestartingAllContainers is the reason of a container that a restart of all containers stops or starts again.
const ReasonRestartingAllContainers Reason = "RestartingAllContainers"

// restartingAllMessage is the kubelet's message for such a container.
const restartingAllMessage = "The container is removed because RestartAllContainers in place"

// Reasons to stop a container.
const (
	// ReasonStopped means that the pod is stopping.
	ReasonStopped Reason = "Stopped"
	// ReasonPodFinished means that the pod has finished; the remaining containers are stopped.
	ReasonPodFinished Reason = "PodFinished"
	// ReasonSandboxChanged means that the sandbox of the container was lost.
	ReasonSandboxChanged Reason = "SandboxChanged"
	// ReasonLivenessProbe means that the liveness probe reached its failure threshold.
	ReasonLivenessProbe Reason = "LivenessProbe"
	// ReasonStartupProbe means that the startup probe reached its failure threshold.
	ReasonStartupProbe Reason = "StartupProbe"
	// ReasonFailedPostStartHook means that the postStart hook failed.
	ReasonFailedPostStartHook Reason = "FailedPostStartHook"
	// ReasonRestartRequested means that a restart of the container or of its pod was requested.
	ReasonRestartRequested Reason = "RestartRequested"
	// ReasonDefinitionChanged means that the definition of the container was changed.
	ReasonDefinitionChanged Reason = "DefinitionChanged"
	// ReasonContainerRemoved means that the container was removed from the pod's definition.
	ReasonContainerRemoved Reason = "ContainerRemoved"
)

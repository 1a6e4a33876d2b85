package lifecycle

import (
	"errors"
)

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
	// ReasonDeviceMissing means that a device of the host, which the container uses, does not exist.
	ReasonDeviceMissing Reason = "DeviceMissing"
)

// ReasonInfeasible means that the pod must restart to get the requests and limits of its definition.
const ReasonInfeasible Reason = "Infeasible"

// Reasons of a failed sandbox start.
const (
	// ReasonFailedMount means that a volume cannot be mounted yet. Mounting it is retried.
	ReasonFailedMount Reason = "FailedMount"
	// ReasonRuntimeClassUnavailable means that the runtime class of the pod is not defined, or that its OCI runtime is not installed. It is
	// also a reason of admission.
	ReasonRuntimeClassUnavailable Reason = "RuntimeClassUnavailable"
)

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
	ReasonBackoffLimit      Reason = "BackoffLimitExceeded"
	ReasonEngineUnavailable Reason = "EngineUnavailable"
	ReasonJobComplete       Reason = "JobComplete" // its Job has completed without it
	ReasonJobFailed         Reason = "JobFailed"   // its Job has failed
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
	// ReasonDeviceRemoved means that a device of the container was unplugged.
	ReasonDeviceRemoved Reason = "DeviceRemoved"
	// ReasonContainerRemoved means that the container was removed from the pod's definition.
	ReasonContainerRemoved Reason = "ContainerRemoved"
)

// Reasons for which the admission of a pod fails.
const (
	// ReasonPodSecurity means that a field violates the host's Pod Security level.
	ReasonPodSecurity Reason = "PodSecurity"
	// ReasonHostPathForbidden means that a hostPath volume is outside of the allowed directories.
	ReasonHostPathForbidden Reason = "HostPathForbidden"
	// ReasonDeviceForbidden means that a device is outside of the allowed paths.
	ReasonDeviceForbidden Reason = "DeviceForbidden"
	// ReasonSysctlForbidden means that a sysctl is neither safe nor allowed (the kubelet's reason).
	ReasonSysctlForbidden Reason = "SysctlForbidden"
	// ReasonAppArmor means that the pod sets an AppArmor profile and the host has no AppArmor (the kubelet's reason).
	ReasonAppArmor Reason = "AppArmor"
	// ReasonNodePorts means that a host port is in use (the kubelet's reason).
	ReasonNodePorts Reason = "NodePorts"
	// ReasonOutOfCPU means that the pod requests more CPU than the host has free (the kubelet's reason).
	ReasonOutOfCPU Reason = "OutOfcpu"
	// ReasonOutOfMemory means that the pod requests more memory than the host has free (the kubelet's reason).
	ReasonOutOfMemory Reason = "OutOfmemory"
	// ReasonOutOfEphemeralStorage means that the pod requests more local storage than the host has free (the kubelet's reason).
	ReasonOutOfEphemeralStorage Reason = "OutOfephemeral-storage"
	// ReasonOutOfHugePages begins the reason, such as OutOfhugepages-2Mi, that the pod requests more huge pages of a size than the host has
	// free (the kubelet's reason).
	ReasonOutOfHugePages Reason = "OutOfhugepages-"
	// ReasonVolumeTerminating means that a persistent volume is being deleted.
	ReasonVolumeTerminating Reason = "VolumeTerminating"
	// ReasonWaitForCycle means that the pod waits for pods that wait for it.
	ReasonWaitForCycle Reason = "WaitForCycle"
	// ReasonUnexpectedAdmissionError is any other error (the kubelet's reason).
	ReasonUnexpectedAdmissionError Reason = "UnexpectedAdmissionError"
)

// NodePortsMessage is the kubelet's message for [ReasonNodePorts]. It is the start of the message, the port and its holder follow.
const NodePortsMessage = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"

// Refusal is one reason why a pod may not run on this host. Admission returns all of them, joined.
type Refusal struct {
	Reason Reason `json:"reason"`
	// Field is the path of the field in the pod file, such as containers[0].securityContext.privileged. It may be empty.
	Field string `json:"field,omitempty"`
	// Message states the value, and what is allowed.
	Message string `json:"message"`
	// Hint is what the user can do about it, in the imperative. It may be empty.
	Hint string `json:"hint,omitempty"`
	// Cause is the underlying error for [errors.Is], if there is one.
	Cause error `json:"-"`
}

// ofHost reports whether a sandbox did not start because of something that only changes on the host. Such starts back off.
func (r Reason) ofHost() bool { return r == ReasonFailedMount || r == ReasonRuntimeClassUnavailable }

// ofRegistry reports whether a pull failed because of the registry, or of the signatures in it. Such pulls back off.
func (r Reason) ofRegistry() bool { return r == ReasonErrImagePull || r == ReasonSignatureValidation }

// Error returns the reason, the field and the message. It omits [ReasonUnexpectedAdmissionError].
func (r Refusal) Error() string {
	text := r.Message
	if r.Field != "" {
		text = r.Field + ": " + text
	}
	if r.Reason == ReasonUnexpectedAdmissionError {
		return text
	}
	return string(r.Reason) + ": " + text
}

// Unwrap returns the cause.
func (r Refusal) Unwrap() error { return r.Cause }

// Refusals returns the refusals in an error, which may be wrapped or joined. Any other error becomes a refusal with
// [ReasonUnexpectedAdmissionError]. nil has none.
func Refusals(err error) []Refusal {
	if err == nil {
		return nil
	}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		var list []Refusal
		for _, e := range joined.Unwrap() {
			list = append(list, Refusals(e)...)
		}
		return list
	}
	if r, is := errors.AsType[Refusal](err); is {
		return []Refusal{r}
	}
	return []Refusal{{Reason: ReasonUnexpectedAdmissionError, Message: err.Error(), Cause: err}}
}

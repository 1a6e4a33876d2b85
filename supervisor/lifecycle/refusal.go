package lifecycle

import "errors"

// Reasons for which the admission of a pod fails.
const (
	// ReasonPodSecurity means that a field violates the host's Pod Security level.
	ReasonPodSecurity Reason = "PodSecurity"
	// ReasonHostPathForbidden means that a hostPath volume is outside of the allowed directories.
	ReasonHostPathForbidden Reason = "HostPathForbidden"
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

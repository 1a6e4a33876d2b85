package lifecycle

import "errors"

// Reasons for which a pod is refused before anything of it starts.
const (
	// ReasonPodSecurity is a field that the machine's level of the Pod Security Standards does not allow.
	ReasonPodSecurity Reason = "PodSecurity"
	// ReasonHostPathForbidden is a hostPath volume outside of the folders that the machine's policy names.
	ReasonHostPathForbidden Reason = "HostPathForbidden"
	// ReasonSysctlForbidden is a kernel parameter that is neither safe nor allowed (the kubelet's word).
	ReasonSysctlForbidden Reason = "SysctlForbidden"
	// ReasonNodePorts is a host port that another has (the kubelet's word).
	ReasonNodePorts Reason = "NodePorts"
	// ReasonVolumeTerminating is a persistent volume that is being removed.
	ReasonVolumeTerminating Reason = "VolumeTerminating"
	// ReasonUnexpectedAdmissionError is any other (the kubelet's word).
	ReasonUnexpectedAdmissionError Reason = "UnexpectedAdmissionError"
)

// Refusal is one thing for which a pod may not run on this machine. Whoever refuses tells all of them, joined.
type Refusal struct {
	Reason Reason `json:"reason"`
	// Field is the path of the field as the pod file has it, such as containers[0].securityContext.privileged; it may be empty.
	Field string `json:"field,omitempty"`
	// Message is what is found, what is allowed, and who says so.
	Message string `json:"message"`
	// Hint is what a person can do about it; it may be empty.
	Hint string `json:"hint,omitempty"`
	// Cause is the error behind it, if there is one, for [errors.Is].
	Cause error `json:"-"`
}

// Error is reason, field and message, without a reason that says nothing.
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

// Unwrap is the cause.
func (r Refusal) Unwrap() error { return r.Cause }

// Refusals are the refusals that an error holds, alone, wrapped or joined. An error that is none becomes one, with
// [ReasonUnexpectedAdmissionError]; nil has none.
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

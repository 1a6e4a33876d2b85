package api

import (
	"errors"
	"net/http"
)

// ErrUnavailable is wrapped by the errors of a client if the daemon is not running or the connection was lost. A call whose connection
// was lost may have succeeded.
var ErrUnavailable = errors.New("daemon unavailable")

// Error is the response to a request that failed.
type Error struct {
	// Status is the HTTP status code: 400 the request or the pod file is invalid, 404 no such pod, container or image, 409 the name is
	// taken, the pod is rejected or the image is in use, 502 an image cannot be pulled or imported, 503 the daemon is stopping or, with a
	// reason, cannot serve the request now.
	Status  int    `json:"status"`
	Message string `json:"error"`
	// Reason is the kind of the error for programs; of an image that was not pulled, the reason of the kubelet, such as ErrImagePull. It is
	// empty if the daemon is stopping.
	Reason ErrorReason `json:"reason,omitempty"`
	// Field is the parameter or the field of the body that is invalid, if it is one.
	Field string `json:"field,omitempty"`
	// Hint is what the user can do about it, in the imperative. It may be empty.
	Hint     string    `json:"hint,omitempty"`
	Problems []Problem `json:"problems,omitempty"` // of a pod file
	// Pod is the name of the pod that exists already.
	Pod string `json:"pod,omitempty"`
	// Stopping is the UID of that pod, if it is of the same file, is being stopped and will be deleted. A client can wait
	// for that, and repeat the request.
	Stopping string `json:"stopping,omitempty"`
	// Terminated is the UID of that pod, if it has terminated, and was kept by an earlier run of a file in the same directory. A client can
	// delete it, and repeat the request.
	Terminated string `json:"terminated,omitempty"`
	// Refusals are all reasons for which a pod is rejected. The message contains the reason if there is only one.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Pruned are the pods that were deleted by a request to prune that failed for others.
	Pruned []Applied `json:"pruned,omitempty"`
	// Removed are the images that were removed by a request to prune that failed for others.
	Removed *RemovedImages `json:"removed,omitempty"`
}

// ErrorReason is the kind of an [Error]: a metav1.StatusReason where Kubernetes has one. Later versions add reasons.
type ErrorReason string

// The reasons of errors.
const (
	ReasonBadRequest ErrorReason = "BadRequest" // 400: a parameter or the body cannot be read, see the field
	ReasonInvalid    ErrorReason = "Invalid"    // 400: the pod file is invalid, see the problems
	ReasonForbidden  ErrorReason = "Forbidden"  // 403: the user may not do that, or not over this socket
	ReasonNotFound   ErrorReason = "NotFound"   // 404: no such pod, container, volume, session or endpoint
	ReasonConflict   ErrorReason = "Conflict"   // 409: the state of the pod or volume does not allow that
	// ReasonAlreadyExists means that another pod has the name (409).
	ReasonAlreadyExists ErrorReason = "AlreadyExists"
	// ReasonNotAdmitted means that the host rejects the pod (409), see the refusals.
	ReasonNotAdmitted     ErrorReason = "NotAdmitted"
	ReasonTooManyRequests ErrorReason = "TooManyRequests" // 429: a limit is reached, try again later
	ReasonInternalError   ErrorReason = "InternalError"   // 500: an error of the host or of the container engine
	ReasonNotImplemented  ErrorReason = "NotImplemented"  // 501: the daemon has no pods directory
	// ReasonUnresponsive means that a file system does not respond (503). The request can be repeated.
	ReasonUnresponsive ErrorReason = "FileSystemUnresponsive"
	// ReasonFileNotFound means that a file does not exist in a container, while the pod and the container do (404).
	ReasonFileNotFound ErrorReason = "FileNotFound"
	// ReasonBadGateway means that nothing accepts a connection to a port of a pod (502).
	ReasonBadGateway ErrorReason = "BadGateway"
)

// Reasons of an [Error] of a session.
const (
	// ReasonTooManySessions is the reason for [MaxSessions] sessions. The request can be repeated when one is closed.
	ReasonTooManySessions ErrorReason = "TooManySessions"
	// ReasonNotRunning is the reason for a container that is not running.
	ReasonNotRunning ErrorReason = "ContainerNotRunning"
	// ReasonDisconnected is the reason of a session that ended because the client did not read the output of a container in time, or the
	// container was deleted before it started.
	ReasonDisconnected ErrorReason = "Disconnected"
	// ReasonDaemonStopped is the reason of a session that ended because the daemon stopped.
	ReasonDaemonStopped ErrorReason = "DaemonStopped"
)

// reasonsByStatus are the reasons of errors that have no other one. That of a stopping daemon is empty: earlier clients depend on it.
var reasonsByStatus = map[int]ErrorReason{
	http.StatusBadRequest: ReasonBadRequest, http.StatusForbidden: ReasonForbidden, http.StatusNotFound: ReasonNotFound,
	http.StatusConflict: ReasonConflict, http.StatusTooManyRequests: ReasonTooManyRequests, http.StatusNotImplemented: ReasonNotImplemented,
	http.StatusInternalServerError: ReasonInternalError, http.StatusBadGateway: ReasonBadGateway,
}

// WithReason returns the error with its reason.
func (e *Error) WithReason() *Error {
	if e.Reason != "" {
		return e
	}
	with := *e // the error may be a shared one
	switch {
	case len(e.Problems) > 0:
		with.Reason = ReasonInvalid
	case len(e.Refusals) > 0:
		with.Reason = ReasonNotAdmitted
	case e.Pod != "":
		with.Reason = ReasonAlreadyExists
	default:
		with.Reason = reasonsByStatus[e.Status]
	}
	return &with
}

// Error returns the message, without the hint.
func (e *Error) Error() string { return e.Message }

// Is reports whether the target is [ErrUnavailable] and the daemon is stopping.
func (e *Error) Is(target error) bool {
	return target == ErrUnavailable && e.Status == http.StatusServiceUnavailable && (e.Reason == "" || e.Reason == ReasonDaemonStopped)
}

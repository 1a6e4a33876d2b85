package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// ErrUnavailable is wrapped by the errors of a [Client] if the daemon is not running or the connection was lost. A call whose connection
// was lost may have succeeded.
var ErrUnavailable = errors.New("daemon unavailable")

// Error is the response to a request that failed.
type Error struct {
	// Status is the HTTP status code: 400 the request or the pod file is invalid, 404 no such pod, container or image, 409 the name is taken,
	// the pod is rejected or the image is in use, 502 an image cannot be pulled or imported, 503 the daemon is stopping or, with a reason, cannot serve the request now.
	Status  int    `json:"status"`
	Message string `json:"error"`
	// Reason is [ReasonUnresponsive], the reason why an image was not pulled, such as ErrImagePull, or empty.
	Reason   string    `json:"reason,omitempty"`
	Hint     string    `json:"hint,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
	// Pod is the name of the pod that exists already.
	Pod string `json:"pod,omitempty"`
	// Stopping is the UID of that pod, if it is of the same file, is being stopped and will be deleted. A client can wait
	// for that, and repeat the request.
	Stopping string `json:"stopping,omitempty"`
	// Refusals are all reasons for which a pod is rejected. The message contains the reason if there is only one.
	Refusals []lifecycle.Refusal `json:"refusals,omitempty"`
	// Pruned are the pods that were deleted by a request to prune that failed for others.
	Pruned []Applied `json:"pruned,omitempty"`
}

// ReasonUnresponsive is the reason of an [Error] for a file system that does not respond. The request can be repeated.
const ReasonUnresponsive = "FileSystemUnresponsive"

// retryAfter is the value of the Retry-After header of these responses, in seconds.
const retryAfter = "10"

// Error returns the message, without the hint.
func (e *Error) Error() string { return e.Message }

// Is reports whether the target is [ErrUnavailable] and the daemon is stopping.
func (e *Error) Is(target error) bool {
	return target == ErrUnavailable && e.Status == http.StatusServiceUnavailable && e.Reason == ""
}

func failure(status int, format string, args ...any) *Error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// rejection is the response for a pod that is rejected.
func rejection(rejected *supervisor.RefusedError) *Error {
	e := failure(http.StatusConflict, "%v", rejected)
	if n := len(rejected.Refusals); n > 1 {
		e.Message = fmt.Sprintf("pod %q rejected for %d reasons", rejected.Pod, n)
	}
	e.Refusals = rejected.Refusals
	return e
}

// unresponsive is the response for a file system that does not respond.
func unresponsive(err error) *Error {
	return &Error{
		Status: http.StatusServiceUnavailable, Message: err.Error(), Reason: ReasonUnresponsive,
		Hint: "check the file systems of the pods directory and of the env files, then try again",
	}
}

// readError returns the error of a response that is not a success.
func readError(r *http.Response) error {
	e := &Error{}
	if err := json.NewDecoder(r.Body).Decode(e); err != nil || e.Message == "" {
		e.Message = "unexpected response from the daemon: " + r.Status
	}
	e.Status = r.StatusCode
	return e
}

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// ErrUnavailable is wrapped by the errors of a [Client] whose daemon cannot be reached, or went away during the call: what
// was asked for may have happened.
var ErrUnavailable = errors.New("the daemon cannot be reached")

// Error is what the daemon answers where it cannot do what was asked.
type Error struct {
	// Status is HTTP's: 400 the request or the pod file is wrong, 404 no such pod or container, 409 the name is taken, or the
	// pod is refused, 503 the daemon is about to leave.
	Status   int       `json:"status"`
	Message  string    `json:"error"`
	Hint     string    `json:"hint,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
	// Refusals are all the reasons for which a pod is refused. The message tells one of them only if there is no other.
	Refusals []lifecycle.Refusal `json:"refusals,omitempty"`
}

// Error is the message, without the hint.
func (e *Error) Error() string { return e.Message }

// Is makes an answer of a daemon that is about to leave an [ErrUnavailable].
func (e *Error) Is(target error) bool {
	return target == ErrUnavailable && e.Status == http.StatusServiceUnavailable
}

func failure(status int, format string, args ...any) *Error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// refusal is the answer for a pod that is refused.
func refusal(refused *supervisor.RefusedError) *Error {
	e := failure(http.StatusConflict, "%v", refused)
	if n := len(refused.Refusals); n > 1 {
		e.Message = fmt.Sprintf("pod %q is refused for %d reasons", refused.Pod, n)
	}
	e.Refusals = refused.Refusals
	return e
}

// readError makes an error of an answer that is none of success.
func readError(r *http.Response) error {
	e := &Error{}
	if err := json.NewDecoder(r.Body).Decode(e); err != nil || e.Message == "" {
		e.Message = "the daemon answered " + r.Status
	}
	e.Status = r.StatusCode
	return e
}

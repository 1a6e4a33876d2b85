package server

import (
	"fmt"
	"net/http"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
)

// invalidField is the response for a parameter or a field of the body that is invalid.
func invalidField(field, format string, args ...any) *api.Error {
	e := failure(http.StatusBadRequest, format, args...)
	e.Field = field
	return e
}

// retryAfter is the value of the Retry-After header of these responses, in seconds.
const retryAfter = "10"

func failure(status int, format string, args ...any) *api.Error {
	return &api.Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// rejection is the response for a pod that is rejected.
func rejection(rejected *supervisor.RefusedError) *api.Error {
	e := failure(http.StatusConflict, "%v", rejected)
	if n := len(rejected.Refusals); n > 1 {
		e.Message = fmt.Sprintf("pod %q rejected for %d reasons", rejected.Pod, n)
	}
	e.Refusals = convert(rejected.Refusals, refusalOf)
	return e
}

// unresponsive is the response for a file system that does not respond.
func unresponsive(err error) *api.Error {
	return &api.Error{
		Status: http.StatusServiceUnavailable, Message: err.Error(), Reason: api.ReasonUnresponsive,
		Hint: "check the file systems of the pods directory and of the env files, then try again",
	}
}

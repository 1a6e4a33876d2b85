package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/podstead/podstead/api/channel"
)

// The reasons and causes in a status. The first two are those of Kubernetes (remotecommand.NonZeroExitCodeReason and ExitCodeCauseType).
const (
	reasonExitCode = "NonZeroExitCode"
	causeExitCode  = "ExitCode"
	causeStart     = "StartError" // the command could not be executed
	causeAdvice    = "Hint"
)

// MaxSessions is the maximum number of commands that clients run in containers at the same time. Each holds up to 1 MiB of memory. A
// further request fails with [ReasonTooManySessions].
const MaxSessions = 64

// CommandError reports that a command could not be executed. Code is the exit code that a shell would have: 127 not found, 126 not
// executable.
type CommandError struct {
	Code    int
	Message string
}

// Error returns the message of the OCI runtime.
func (e *CommandError) Error() string { return e.Message }

// SessionStatus returns the status of a finished session. Err is a [*CommandError], an [*Error], or another error without a reason.
func SessionStatus(code int, err error) channel.Status {
	start, failed := errors.AsType[*CommandError](err)
	e, refused := errors.AsType[*Error](err)
	switch {
	case failed:
		s := exitStatus(start.Code, start.Message)
		s.Details.Causes = append(s.Details.Causes, channel.StatusCause{Type: causeStart})
		return s
	case refused:
		e = e.WithReason()
		s := channel.Status{Status: channel.StatusFailure, Code: int32(e.Status), Reason: string(e.Reason), Message: e.Message}
		if e.Hint != "" {
			s.Details = &channel.StatusDetails{Causes: []channel.StatusCause{{Type: causeAdvice, Message: e.Hint}}}
		}
		return s
	case err != nil:
		return channel.Status{Status: channel.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	case code != 0:
		return exitStatus(code, fmt.Sprintf("command terminated with non-zero exit code: %d", code))
	}
	return channel.Status{Status: channel.StatusSuccess}
}

func exitStatus(code int, message string) channel.Status {
	return channel.Status{
		Status: channel.StatusFailure, Reason: reasonExitCode, Message: message,
		Details: &channel.StatusDetails{Causes: []channel.StatusCause{{Type: causeExitCode, Message: strconv.Itoa(code)}}},
	}
}

// ReadSessionStatus is the reverse of [SessionStatus]: it returns the exit code or the error of a finished session.
func ReadSessionStatus(s *channel.Status) (code int, err error) {
	if s.Status == channel.StatusSuccess {
		return 0, nil
	}
	causes := map[string]string{}
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			causes[c.Type] = c.Message
		}
	}
	if s.Reason == reasonExitCode {
		code, err := strconv.Atoi(causes[causeExitCode])
		if err != nil {
			return 0, fmt.Errorf("read status of the session: exit code %q", causes[causeExitCode])
		}
		if _, failed := causes[causeStart]; failed {
			return code, &CommandError{Code: code, Message: s.Message}
		}
		return code, nil
	}
	return 0, &Error{Status: int(s.Code), Reason: ErrorReason(s.Reason), Message: s.Message, Hint: causes[causeAdvice]}
}

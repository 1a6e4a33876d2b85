package runtime

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestExecNotStarted: a probe's command that cannot even be started in time has timed out (contract 5.3); a hook's, which has no
// time of its own, could not be run.
func TestExecNotStarted(t *testing.T) {
	stuck := fmt.Errorf("start: %w", context.DeadlineExceeded)
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		err     error
		over    bool
		late    bool
		kind    lifecycle.FailureKind
	}{
		{name: "a command with a timeout", timeout: time.Second, err: stuck, late: true},
		{name: "for another reason", timeout: time.Second, err: errors.New("no such file"), kind: lifecycle.FailureRetry},
		{name: "without a timeout", err: stuck, kind: lifecycle.FailureRetry},
		{name: "in a container that has ended", timeout: time.Second, err: stuck, over: true, kind: lifecycle.FailureNotFound},
	} {
		got := execQuery{timeout: tt.timeout}.notStarted(t.Context(), tt.err, tt.over)
		failure, classified := errors.AsType[lifecycle.Failure](got)
		if errors.Is(got, context.DeadlineExceeded) != tt.late || classified == tt.late || failure.Kind != tt.kind {
			t.Errorf("%s: %v (%v)", tt.name, got, failure.Kind)
		}
	}
}

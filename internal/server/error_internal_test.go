package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// TestStatusOfErrors: errors of changes are not errors of the server.
func TestStatusOfErrors(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{&supervisor.NotPossibleError{Verb: "restart", Pod: "web", Why: "the pod is being deleted"}, http.StatusConflict},
		{&supervisor.ContainerNotFoundError{Pod: "web", Container: "app"}, http.StatusNotFound},
		{&podfiles.ConflictError{Message: `file web.toml defines pod "api"`}, http.StatusConflict},
		{fmt.Errorf("apply: %w", disk.UnresponsiveError{}), http.StatusServiceUnavailable},
	} {
		if got := asError(test.err); got.Status != test.want || got.Message != test.err.Error() {
			t.Errorf("%v: %d %q, want %d", test.err, got.Status, got.Message, test.want)
		}
	}
}

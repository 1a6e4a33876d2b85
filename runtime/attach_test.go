package runtime

import (
	"errors"
	"fmt"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Only a container that was removed is not found.
func TestLoadFailure(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want lifecycle.FailureKind
	}{
		{fmt.Errorf("container x: %w", errdefs.ErrNotFound), lifecycle.FailureNotFound},
		{errors.New("the database is damaged"), lifecycle.FailureUnavailable},
	} {
		if f, _ := errors.AsType[lifecycle.Failure](loadFailure(t.Context(), tt.err)); f.Kind != tt.want {
			t.Errorf("%v: failure of kind %q, want %q", tt.err, f.Kind, tt.want)
		}
	}
}

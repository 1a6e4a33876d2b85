package container

import (
	"context"
	"errors"
	"testing"

	"github.com/podstead/podstead/runtime/namespace"
)

// TestKeepOwnersCanceled tests that the change of the owners of an image with many files ends with its request.
func TestKeepOwnersCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := keepOwners(ctx, t.TempDir(), namespace.IDRange{Kept: 1000, Last: 65535}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it is canceled", err)
	}
}

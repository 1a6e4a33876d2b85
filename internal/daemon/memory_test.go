package daemon_test

import (
	"context"
	"runtime/debug"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestMemoryLimit checks the soft memory limit of a running daemon: half of the configured limit, unless GOMEMLIMIT is set.
func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, test := range []struct {
		configured, variable string
		want                 int64
	}{
		{"256Mi", "", 128 << 20},
		{"1Gi", "", 512 << 20},
		{"256Mi", "1GiB", before}, // the Go runtime has read it at the start of the program
	} {
		debug.SetMemoryLimit(before)
		t.Setenv("GOMEMLIMIT", test.variable)
		h := newHost(t)
		h.config.Engine.MemoryLimit = resource.MustParse(test.configured)
		ctx, cancel := context.WithCancel(t.Context())
		result := h.run(ctx, t, false, "")
		if got := debug.SetMemoryLimit(-1); got != test.want {
			t.Errorf("memoryLimit %s, GOMEMLIMIT %q: the soft limit is %d, want %d", test.configured, test.variable, got, test.want)
		}
		cancel()
		await(t, result)
	}
}

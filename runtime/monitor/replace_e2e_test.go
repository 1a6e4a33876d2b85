//go:build e2e

package monitor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplaceBesideSweeps asks programs for their version, which are children of the monitor, while it reaps others.
func TestReplaceBesideSweeps(t *testing.T) {
	w := newWorld(t)
	c := w.run(testContainer{hostPID: true}, "while :; do (true &); done")
	newer := filepath.Join(w.base, "newer")
	w.must(os.WriteFile(newer, []byte("#!/bin/sh\necho '{\"version\":\"9\",\"format\":9,\"reads\":[9]}'\n"), 0o755))
	for range 200 {
		if err := w.client.Replace(w.ctx, newer); err == nil || !strings.Contains(err.Error(), "reads records of the formats [9]") {
			t.Fatalf("replaced by a program with another format: %v", err)
		}
	}
	w.killAndDelete(c.ID)
	w.wantNothing()
}

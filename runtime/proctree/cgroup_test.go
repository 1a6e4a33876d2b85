package proctree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKillCgroup: all processes of a cgroup are killed, and frozen cgroups of v1 are thawed, also those below. The process that kills is
// not killed or frozen.
func TestKillCgroup(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := startSleep(t, "any")
	cgroup := fakeCgroup(t, cmd.Process.Pid)
	states := []string{filepath.Join(cgroup, "freezer.state"), filepath.Join(cgroup, "child", "freezer.state")}
	for _, state := range states {
		if err := os.WriteFile(state, []byte("FROZEN"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := KillCgroup(ctx, []string{cgroup, cgroup + "-none"}); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended with %v, want signal: killed", err)
	}
	for _, state := range states {
		if text, err := os.ReadFile(state); string(text) != "THAWED" {
			t.Errorf("%s: %s, %v", state, text, err)
		}
	}
	own := fakeCgroup(t, os.Getpid())
	if err := os.WriteFile(filepath.Join(own, "freezer.state"), []byte("-"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := KillCgroup(ctx, []string{own}); err == nil || !strings.Contains(err.Error(), "the daemon itself is in cgroup") {
		t.Errorf("own cgroup: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(own, "freezer.state")); string(text) != "-" {
		t.Errorf("own cgroup: %s, %v", text, err)
	}
}

//go:build e2e

package conformance

import (
	"os"
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestRow44: who takes more memory than its limit is killed, and it is said why; an init container has failed then.
//
// fields: containers[].resources.limits
func TestRow44(t *testing.T) {
	t.Parallel()
	const limit = "resources = { limits = { memory = \"48Mi\" } }\n"
	t.Run("main", func(t *testing.T) {
		t.Parallel()
		s := play(t, shared, "restartPolicy = \"Never\"\n[[containers]]\n@app eat=self\n"+limit)
		s.ended(lifecycle.PhaseFailed)
		s.died("app", 137, lifecycle.ReasonOOMKilled)
		s.counts(0, "app")
	})
	t.Run("again", func(t *testing.T) {
		t.Parallel()
		s := play(t, shared, "restartPolicy = \"OnFailure\"\n[[containers]]\n@app eat=self\n"+limit)
		s.until(s.restarted("app", 1))
		if d := s.container("app").LastState.Terminated; d == nil || d.ExitCode != 137 || d.Reason != lifecycle.ReasonOOMKilled {
			t.Errorf("before: %s", text(s.container("app").LastState))
		}
	})
	t.Run("init", func(t *testing.T) {
		t.Parallel()
		s := play(t, shared, "restartPolicy = \"Never\"\n[[initContainers]]\n@init eat=self\n"+limit+"[[containers]]\n@app run=0s\n")
		s.ended(lifecycle.PhaseFailed)
		s.died("init", 137, lifecycle.ReasonOOMKilled)
		s.check(s.tale().DoesNotStart("app"))
	})
	t.Run("child", func(t *testing.T) {
		t.Parallel()
		s := play(t, shared, "restartPolicy = \"Never\"\n[[containers]]\n@app eat=child run=0s exit=3\n"+limit)
		s.ended(lifecycle.PhaseFailed)
		code := 3
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // pure cgroup v2
			code = 137
		}
		s.died("app", code, lifecycle.ReasonOOMKilled)
	})
}

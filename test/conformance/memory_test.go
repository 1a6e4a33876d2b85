//go:build e2e

package conformance

import (
	"os"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestOOMKilled: a container that exceeds its memory limit is killed with reason OOMKilled; an init container has failed then.
//
// fields: containers[].resources.limits
func TestOOMKilled(t *testing.T) {
	t.Parallel()
	const limit = "resources = { limits = { memory = \"48Mi\" } }\n"
	t.Run("main process", func(t *testing.T) {
		t.Parallel()
		s := runPod(t, shared, "restartPolicy = \"Never\"\n[[containers]]\n@app eat=self\n"+limit)
		s.awaitPhase(api.PhaseFailed)
		s.checkTerminated("app", 137, api.ReasonOOMKilled)
		s.checkRestarts(0, "app")
	})
	t.Run("restart after OOM kill", func(t *testing.T) {
		t.Parallel()
		s := runPod(t, shared, "restartPolicy = \"OnFailure\"\n[[containers]]\n@app eat=self\n"+limit)
		s.await(s.restarted("app", 1))
		if d := s.container("app").LastState.Terminated; d == nil || d.ExitCode != 137 || d.Reason != api.ReasonOOMKilled {
			t.Errorf("last state: %s", text(s.container("app").LastState))
		}
	})
	t.Run("init container", func(t *testing.T) {
		t.Parallel()
		s := runPod(t, shared, "restartPolicy = \"Never\"\n[[initContainers]]\n@init eat=self\n"+limit+"[[containers]]\n@app run=0s\n")
		s.awaitPhase(api.PhaseFailed)
		s.checkTerminated("init", 137, api.ReasonOOMKilled)
		s.check(s.timeline().DoesNotStart("app"))
	})
	t.Run("child process", func(t *testing.T) {
		t.Parallel()
		s := runPod(t, shared, "restartPolicy = \"Never\"\n[[containers]]\n@app eat=child run=0s exit=3\n"+limit)
		s.awaitPhase(api.PhaseFailed)
		code := 3
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // cgroup v2 only
			code = 137
		}
		s.checkTerminated("app", code, api.ReasonOOMKilled)
	})
}

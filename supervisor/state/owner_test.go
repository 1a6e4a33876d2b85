package state_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/podstead/podstead/supervisor/state"
)

func TestOwnerNamesRunningProcessesOnly(t *testing.T) {
	exited := exec.Command("sleep", "1000")
	if err := exited.Start(); err != nil {
		t.Fatal(err)
	}
	killed := state.ProcessOf(exited.Process.Pid)
	if !killed.Running() {
		t.Errorf("process %+v does not run", killed)
	}
	_ = exited.Process.Kill()
	_ = exited.Wait()
	self := state.ProcessOf(os.Getpid())
	for name, test := range map[string]struct {
		process state.Process
		want    string
	}{
		"running":          {self, "podstead run, pid 7, uid 0"},
		"not known":        {state.Process{}, "podstead run, pid 7, uid 0"},
		"killed":           {killed, "podstead run (exited)"},
		"PID used again":   {state.Process{PID: self.PID, Started: "1"}, "podstead run (exited)"},
		"PID out of range": {state.Process{PID: -1, Started: "1"}, "podstead run (exited)"},
	} {
		if got := (state.Owner{By: "podstead run, pid 7, uid 0", Process: test.process}).String(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

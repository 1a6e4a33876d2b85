package applet

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

func TestIsHolder(t *testing.T) {
	for _, test := range []struct {
		args []string
		want bool
	}{
		{[]string{HolderName}, true},
		{[]string{"/usr/libexec/podstead/" + HolderName, HolderMapped}, true},
		{[]string{HolderName, "other"}, false},
		{[]string{HolderName, HolderMapped, HolderMapped}, false},
		{[]string{"podstead-monitor", HolderMapped}, false},
		{nil, false},
	} {
		if got := isHolder(test.args); got != test.want {
			t.Errorf("%q: %v", test.args, got)
		}
	}
}

// TestStarterExits tests that a holder does not stay if its starter exits before it has mapped the IDs.
func TestStarterExits(t *testing.T) {
	wait, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reports, report, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reports.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{HolderName}
	cmd.ExtraFiles = []*os.File{wait, report}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{wait, report, release} {
		_ = f.Close()
	}
	text, err := io.ReadAll(reports)
	if err != nil || string(text) != "the starter has exited" {
		t.Errorf("report %q, %v", text, err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit: %v", err)
	}
}

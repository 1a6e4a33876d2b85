package holder

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// TestMain runs this program as a holder if it is one.
func TestMain(m *testing.M) {
	if Invoked(os.Args) {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

func TestInvoked(t *testing.T) {
	for _, test := range []struct {
		args []string
		want bool
	}{
		{[]string{Name}, true},
		{[]string{"/usr/libexec/podstead/" + Name, Mapped}, true},
		{[]string{Name, "other"}, false},
		{[]string{Name, Mapped, Mapped}, false},
		{[]string{"podstead-monitor", Mapped}, false},
		{nil, false},
	} {
		if got := len(test.args) > 0 && Invoked(test.args); got != test.want {
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
	cmd.Args = []string{Name}
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

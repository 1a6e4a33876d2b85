package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWorkDir: the directory and the virtual machines of a process that was killed are removed by the next one, those of a running one are
// kept.
func TestWorkDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	mine, remove, err := WorkDir()
	if err != nil {
		t.Fatal(err)
	}
	abandoned := filepath.Join(os.TempDir(), workPrefix+"1")
	if err := os.MkdirAll(filepath.Join(abandoned, "2"), 0o700); err != nil {
		t.Fatal(err)
	}
	machine := func(dir string) *exec.Cmd { // a program with the name and an argument of a virtual machine
		cmd := exec.Command("sh", "-c", "read line", "x", "file="+filepath.Join(dir, "disk"))
		cmd.Args[0] = qemu
		if _, err := cmd.StdinPipe(); err != nil { // open until Wait
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	left, other := machine(abandoned), machine(mine)
	_, removeSecond, err := WorkDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("virtual machine of the killed process: %v, want that it is killed", err)
	}
	if _, err := os.Stat(abandoned); !os.IsNotExist(err) {
		t.Errorf("directory of the killed process: %v, want that it does not exist", err)
	}
	if err := other.Process.Signal(os.Kill); err != nil {
		t.Errorf("virtual machine of this process: %v", err)
	}
	_ = other.Wait()
	for _, f := range []func() error{remove, removeSecond} {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(os.TempDir()); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

package proctree

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFamily: the family of a process is found by its arguments, with what it has started, whether it is stopped, and killed as a whole.
func TestFamily(t *testing.T) {
	const mark = "family-test-7d1c"
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $!; wait", mark)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line := make([]byte, 16)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	var child int
	for _, digit := range strings.TrimSpace(string(line[:n])) {
		child = child*10 + int(digit-'0')
	}
	f := Family{Leads: func(_ int, args []string) bool { return slices.Contains(args, mark) }}
	found := f.processes()
	if _, has := found[child]; !has || len(found) != 2 {
		t.Errorf("family %v, want %d and %d", found, cmd.Process.Pid, child)
	}
	if runs, stopped := f.State(); !runs || stopped {
		t.Errorf("it runs: %v, is stopped: %v", runs, stopped)
	}
	if err := unix.Kill(child, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for stopped := false; !stopped; _, stopped = f.State() {
		if ctx.Err() != nil {
			t.Fatal("it is not stopped")
		}
	}
	f.Kill()
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the leader exited with %v, want signal: killed", err)
	}
	for {
		if _, running := readStat(child); !running {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the child runs")
		}
	}
	if runs, _ := f.State(); runs {
		t.Error("it runs after it was killed")
	}
}

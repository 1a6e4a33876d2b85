package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOnlyUIDsMark: only valid UIDs identify processes of the rig, because it kills those.
func TestOnlyUIDsMark(t *testing.T) {
	r := &Rig{Dir: t.TempDir(), uids: map[string]bool{}}
	for _, uid := range []string{"", "-", "a", "podstead"} {
		r.Saw(uid)
	}
	if marks := r.podMarks(); len(marks) > 0 {
		t.Errorf("marks %q", marks)
	}
	if processes, err := r.Processes(); err != nil || len(processes) > 0 {
		t.Errorf("processes %v, %v of a rig that has none", processes, err)
	}
	r.Saw("0c5e4b1e-0000-4000-8000-000000000001")
	if marks := r.podMarks(); len(marks) != 2 {
		t.Errorf("marks %q", marks)
	}
}

// headlessVariable makes this program exit its first thread and run until the end of its input.
const headlessVariable = "RIG_TEST_HEADLESS"

func init() { // runs on the first thread
	if os.Getenv(headlessVariable) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

// TestIsAlive: a process is shown as a zombie when its first thread has exited. Its locks are released when all threads have.
func TestIsAlive(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test timed out"))
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), headlessVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if err := Await(ctx, func() error {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); !strings.Contains(string(stat), ") Z ") {
			return fmt.Errorf("not a zombie: %s, %w", stat, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if !IsAlive(pid) {
		t.Error("a process with a running thread is reported as dead")
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := Await(ctx, func() error {
		if IsAlive(pid) {
			return errors.New("a process without threads is reported as alive")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if IsAlive(pid) {
		t.Error("a reaped process is reported as alive")
	}
}

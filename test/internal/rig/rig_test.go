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

// What is the rig's is killed in the end, so nothing else may be taken for it.
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

// headlessVariable has this program end its first thread, and go on until its input ends.
const headlessVariable = "RIG_TEST_HEADLESS"

func init() { // which runs on the first thread
	if os.Getenv(headlessVariable) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

// A process shows as a zombie as soon as its first thread has ended. What it has locked is free when all have.
func TestIsAlive(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test waited too long"))
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
			return fmt.Errorf("no zombie: %s, %w", stat, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if !IsAlive(pid) {
		t.Error("a process with a thread is said to be dead")
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := Await(ctx, func() error {
		if IsAlive(pid) {
			return errors.New("a process without threads is said to be alive")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if IsAlive(pid) {
		t.Error("a process that was reaped is said to be alive")
	}
}

package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// A probe's command that cannot be started in time has timed out. A hook's command, which has no timeout, could not be run.
func TestStartError(t *testing.T) {
	stuck := fmt.Errorf("start: %w", context.DeadlineExceeded)
	for _, tt := range []struct {
		name     string
		timeout  time.Duration
		err      error
		exited   bool
		timedOut bool
		kind     lifecycle.FailureKind
	}{
		{name: "command with a timeout", timeout: time.Second, err: stuck, timedOut: true},
		{name: "other error", timeout: time.Second, err: errors.New("no such file"), kind: lifecycle.FailureRetry},
		{name: "command without a timeout", err: stuck, kind: lifecycle.FailureRetry},
		{name: "exited container", timeout: time.Second, err: stuck, exited: true, kind: lifecycle.FailureNotFound},
	} {
		got := request{timeout: tt.timeout}.startError(t.Context(), tt.err, tt.exited)
		failure, classified := errors.AsType[lifecycle.Failure](got)
		if !strings.Contains(got.Error(), tt.err.Error()) {
			t.Errorf("%s: %v, want the cause %v", tt.name, got, tt.err)
		}
		if errors.Is(got, context.DeadlineExceeded) != tt.timedOut || classified == tt.timedOut || failure.Kind != tt.kind {
			t.Errorf("%s: %v (%v)", tt.name, got, failure.Kind)
		}
	}
}

// fakeCgroup returns a directory that lists processes like a cgroup.
func fakeCgroup(t *testing.T, pids ...int) string {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for _, pid := range pids {
		fmt.Fprintln(&text, pid)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startSleep starts a process with this mark, which may lead a session, and kills it at the end of the test.
func startSleep(t *testing.T, mark string, leads bool) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: leads}
	cmd.Env = append(os.Environ(), proctree.MarkVariable+"="+mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// Between fork and exec, the process has the environment of the test.
	cgroup := fakeCgroup(t, cmd.Process.Pid)
	for end := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		processes, err := proctree.List(cgroup)
		if err == nil && len(processes) == 1 && processes[0].Mark == mark {
			return cmd.Process.Pid
		}
		if time.Now().After(end) {
			t.Fatalf("process %s: %v, %v; want the mark %q", strconv.Itoa(cmd.Process.Pid), processes, err, mark)
		}
	}
}

func TestMarksLeft(t *testing.T) {
	var pids []int
	for _, m := range []string{
		"0123abcd-1-probe", "0123abcd-1-probe", "89abcdef-2-probe", "0123abcd-3-hook", "0123abcd-4-session", "0123abcd-5-other",
		"x-y-probe", "probe", "",
	} {
		pids = append(pids, startSleep(t, m, false))
	}
	for _, m := range []string{"0123abcd-6-session", "0123abcd-6-session", "0123abcd-7-session", "0123abcd-8-hook"} {
		pids = append(pids, startSleep(t, m, true))
	}
	pids = append(pids, startSleep(t, "0123abcd-9-session", false)) // as with crun
	var asked []uint64
	got, err := marks{instance: "89abcdef"}.left(fakeCgroup(t, pids...), func(m mark) (bool, error) {
		asked = append(asked, m.number)
		return !slices.Contains([]uint64{3, 4, 7}, m.number), nil
	})
	// The first processes of 3, 4 and 7 have exited: what has their marks is what commands have left. It may lead a session or not.
	want := []mark{{"0123abcd", 1, probe}, {"0123abcd", 6, attached}, {"0123abcd", 8, hook}, {"0123abcd", 9, attached}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mark{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]uint64{3, 4, 6, 7, 8, 9}, asked); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
	failed := errors.New("failed")
	got, err = marks{instance: "89abcdef"}.left(fakeCgroup(t, pids...), func(mark) (bool, error) { return false, failed })
	if diff := cmp.Diff(want[:1], got, cmp.AllowUnexported(mark{})); diff != "" || !errors.Is(err, failed) {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestClose(t *testing.T) {
	r := New(Config{})
	if !r.begin(func() { <-r.closing }) {
		t.Error("an open runner refused a command")
	}
	r.Close()
	r.Close()
	if r.begin(func() {}) {
		t.Error("a closed runner accepted a command")
	}
}

package shim

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/pkg/sys/reaper"
	runc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
)

// reaperEnv makes the test binary a subreaper: reaping all children would disturb other tests.
const reaperEnv = "PODSTEAD_TEST_REAPER"

// asSubreaper runs the test in a process of its own, in which it returns the reaper and the exits that the task service receives. In the
// parent it returns nil when that process has succeeded.
func asSubreaper(t *testing.T) (*exitReaper, <-chan runc.Exit) {
	t.Helper()
	if os.Getenv(reaperEnv) == "" {
		self := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		self.Env = append(os.Environ(), reaperEnv+"=1")
		if out, err := self.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return nil, nil
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGCHLD)
	if err := reaper.SetSubreaper(1); err != nil {
		t.Fatal(err)
	}
	exits := reaper.Default.Subscribe()
	r, err := reapFor(t.Context(), reaper.Default)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range signals {
			if err := r.reap(); err != nil {
				t.Error(err)
			}
		}
	}()
	return r, exits
}

// TestReaperDoesNotBlock has 1,000 orphans exit while the consumer of exits waits for a lock, whose holder waits for a command, as
// containerd's task service does.
func TestReaperDoesNotBlock(t *testing.T) {
	_, exits := asSubreaper(t)
	if exits == nil {
		return
	}
	const orphans = 1000
	start := time.Now()
	var service sync.Mutex
	service.Lock()
	received := make(chan int)
	go func() {
		codes := 0
		for range orphans {
			e := <-exits
			service.Lock()
			codes += e.Status
			service.Unlock()
		}
		received <- codes
	}()
	// The orphans exit at once when the pipe is closed.
	hold, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := func(script string, want int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
		cmd.ExtraFiles = []*os.File{hold}
		exit, err := runc.Monitor.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := runc.Monitor.Wait(cmd, exit); err != nil || got != want {
			t.Errorf("exit code of the command %d, %v, want %d", got, err, want)
		}
	}
	command(fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); (read x <&3; exit 7) & done; exit 3", orphans), 3)
	if err := release.Close(); err != nil {
		t.Fatal(err)
	}
	command("sleep 0.5; exit 5", 5) // its exit comes after those of the orphans
	service.Unlock()
	if codes := <-received; codes != 7*orphans {
		t.Errorf("sum of exit codes %d, want %d", codes, 7*orphans)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestServiceExits(t *testing.T) {
	if _, err := serviceExits(&reaper.Monitor{}); err == nil {
		t.Error("a reaper without subscribers was accepted")
	}
}

func TestExitCode(t *testing.T) {
	for status, want := range map[unix.WaitStatus]int{0: 0, 3 << 8: 3, 9: 137} {
		if got := exitCode(status); got != want {
			t.Errorf("status %#x: got %d, want %d", uint32(status), got, want)
		}
	}
}

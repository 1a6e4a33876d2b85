package shim

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	runc "github.com/containerd/go-runc"
)

// pipe returns a pipe for a process and a function that closes it, at which the process reads EOF.
func pipe(t *testing.T) (hold *os.File, release func()) {
	t.Helper()
	hold, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return hold, func() { _ = w.Close() }
}

// run runs a command through the reaper and returns its exit code.
func run(t *testing.T, script string, files ...*os.File) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	cmd.ExtraFiles = files
	exit, err := runc.Monitor.Start(cmd)
	if err != nil {
		t.Error(err)
		return -1
	}
	code, err := runc.Monitor.Wait(cmd, exit)
	if err != nil {
		t.Error(err)
	}
	return code
}

// TestStartDelaysNoExit has children exit while the start of a command hangs: one that is older than the start, and one that is younger and
// might be the command. The latter is reported after the start.
func TestStartDelaysNoExit(t *testing.T) {
	r, exits := asSubreaper(t)
	if r == nil {
		return
	}
	old, endOld := pipe(t)
	parent, endParent := pipe(t)
	young, endYoung := pipe(t)
	if code := run(t, "(read x <&3; exit 7) & (read x <&4; (read x <&5; exit 9) & exit 8) & exit 3", old, parent, young); code != 3 {
		t.Fatalf("exit code %d, want 3", code)
	}
	for begun := now(t); now(t) == begun; { // the clock of process start times is coarse
		runtime.Gosched()
	}
	syscall.ForkLock.RLock() // the start waits for it, as it would for the disk
	started := make(chan int)
	go func() { started <- run(t, "exit 5") }()
	for starting := 0; starting == 0; runtime.Gosched() {
		r.mu.Lock()
		starting = len(r.starts)
		r.mu.Unlock()
	}
	endOld()
	if e := <-exits; e.Status != 7 {
		t.Errorf("exit %+v of the old process, want exit code 7", e)
	}
	endParent()
	if e := <-exits; e.Status != 8 {
		t.Errorf("exit %+v of the parent, want exit code 8", e)
	}
	var pid int
	for pid == 0 { // the young process is a child of this process now
		for _, child := range children() {
			pid = child
		}
	}
	endYoung()
	for parked := false; !parked; runtime.Gosched() {
		r.mu.Lock()
		parked = r.parked
		r.mu.Unlock()
	}
	select {
	case e := <-exits:
		t.Errorf("exit %+v was reported, though it may be that of the command", e)
	default:
	}
	syscall.ForkLock.RUnlock()
	if e := <-exits; e.Status != 9 || e.Pid != pid {
		t.Errorf("exit %+v of the young process, want process %d and exit code 9", e, pid)
	}
	if code := <-started; code != 5 {
		t.Errorf("exit code %d of the command, want 5", code)
	}
}

// now returns the time since boot in ticks.
func now(t *testing.T) int64 {
	t.Helper()
	ticks, err := bootTime()
	if err != nil {
		t.Fatal(err)
	}
	return ticks
}

// TestExitsReachTheirOwners starts commands side by side that exit at once, and leave a process that exits at the same time.
func TestExitsReachTheirOwners(t *testing.T) {
	r, exits := asSubreaper(t)
	if r == nil {
		return
	}
	const workers, each = 8, 40
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := range each {
				want := (worker*each + i) % 200
				if code := run(t, fmt.Sprintf("(exit 211) & exit %d", want)); code != want {
					t.Errorf("exit code %d of a command, want %d", code, want)
				}
				// A command that cannot be executed leaves nothing.
				if _, err := runc.Monitor.Start(exec.CommandContext(t.Context(), "/proc/self/stat")); err == nil {
					t.Error("a file that is no program was executed")
				}
			}
		})
	}
	orphans := 0
	for range workers * each {
		if e := <-exits; e.Status == 211 {
			orphans++
		}
	}
	all.Wait()
	if orphans != workers*each {
		t.Errorf("%d exits of orphans, want %d", orphans, workers*each)
	}
	select {
	case e := <-exits:
		t.Errorf("exit %+v of no process of the service", e)
	default:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.commands)+len(r.starts)+len(r.queue) > 0 || len(children()) > 0 {
		t.Errorf("left: commands %v, starts %v, queue %v, children %v", r.commands, r.starts, r.queue, children())
	}
}

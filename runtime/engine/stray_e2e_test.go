//go:build e2e

package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
)

// TestStrayShimDoesNotBlockRemoval: the start of a shim that was given up may finish at any time later. A process of it in the cgroup of
// the sandbox is killed when the sandbox is removed.
func TestStrayShimDoesNotBlockRemoval(t *testing.T) {
	w := newEnv(t)
	e := w.start()
	defer w.stop(e)
	w.sandbox(e, "pod")
	stray := exec.Command(shimPath, "-namespace", Namespace, "-address", e.grpcAddress(), "-id", "pod", "start")
	input, err := stray.StdinPipe() // it waits for its parameters
	if err == nil {
		err = stray.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = stray.Wait() // it is killed
	}()
	dirs, err := cgroup.Dirs(w.shimCgroup("pod"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("cgroups of the shim: %v, %v", dirs, err)
	}
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(stray.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	w.remove(e, "pod")
	_ = stray.Process.Kill() // in case it was not
	<-exited
	if err := cgroup.Remove(w.cgroup + "/pod"); err != nil { // of a removal that failed
		t.Error(err)
	}
}

// TestStoppedShim: the engine starts beside a shim that is stopped, and has its tasks when it continues. Until then they are neither
// found nor lost.
func TestStoppedShim(t *testing.T) {
	w := newEnv(t)
	d := w.startDaemon(map[string]string{"c": counting})
	w.kill(d)
	shims := w.shims()
	if len(shims) != 1 {
		t.Fatalf("shims: %v, want one", shims)
	}
	if err := unix.Kill(shims[0], unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(shims[0], unix.SIGCONT) }()
	e := w.start()
	defer w.stop(e)
	if !e.Unresponsive("pod") || len(e.MissedExits()) != 0 {
		t.Errorf("unresponsive: %v, missed exits: %v; want only the first", e.Unresponsive("pod"), e.MissedExits())
	}
	if err := unix.Kill(shims[0], unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := e.AwaitLoaded(ctxOf(t), "pod"); err != nil {
		t.Fatal(err)
	}
	task := w.load(e, "c")
	if err := task.Kill(ctxOf(t), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := w.exited(task); got != 137 {
		t.Errorf("exit code %d", got)
	}
	w.delete(task)
	w.remove(e, "pod")
	for _, dir := range []string{asideDir, filepath.Join(taskPlugin, Namespace, "c"), filepath.Join(sandboxPlugin, Namespace, "pod")} {
		if _, err := os.Lstat(filepath.Join(w.options().State, dir)); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

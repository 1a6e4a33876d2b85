//go:build e2e

package runtime_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// wait waits for the exit of a container.
func (p *pod) wait(ref lifecycle.Ref) lifecycle.Exit {
	p.Helper()
	exit, _, err := p.WaitContainer(p.ctx(), uid, ref)
	if err != nil {
		p.Fatal(err)
	}
	return exit
}

func TestStartErrors(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{Volumes: []spec.Volume{{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}}})
	for _, test := range []struct{ command, message string }{
		{"none", `exec: "none": executable file not found in $PATH`},
		{"/no/such/file", "no such file or directory"},
		{"/etc/passwd", "permission denied"},
		{"/tmp", "is a directory"},
	} {
		ref, err := p.start(spec.Container{Command: []string{test.command}})
		f, _ := errors.AsType[lifecycle.Failure](err)
		if f.Kind != lifecycle.FailureRetry || f.Reason != lifecycle.ReasonStartError || !strings.Contains(f.Message, test.message) {
			// runc 1.1 reports a directory as a file without permission
			if test.command != "/tmp" || !strings.Contains(f.Message, "permission denied") {
				t.Errorf("%s: %#v, want a start error with %q", test.command, err, test.message)
			}
		}
		if f.Run.ID == "" || f.Run.Image == "" || f.Run.ImageID == "" {
			t.Errorf("%s: the failure has not what was created: %+v", test.command, f.Run)
		}
		if logs, _ := os.ReadDir(filepath.Join(p.opts.LogDir, p.Name+"_"+uid, ref.Container)); len(logs) > 0 {
			t.Errorf("%s: a log was left: %v", test.command, logs)
		}
	}
	// The kernel detects an invalid program after the start.
	c := sh("echo text > /data/f; chmod +x /data/f; exec /data/f")
	c.VolumeMounts = []spec.VolumeMount{{Name: "data", MountPath: "/data"}}
	ref, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	p.wait(ref)
	ref, err = p.start(spec.Container{Command: []string{"/data/f"}, VolumeMounts: c.VolumeMounts})
	if err == nil {
		if exit := p.wait(ref); exit.Code == 0 || !strings.Contains(p.log(ref), "exec format error") {
			t.Errorf("invalid program: %+v with log %q", exit, p.log(ref))
		}
	} else if !strings.Contains(err.Error(), "exec format error") {
		t.Errorf("invalid program: %v", err)
	}
	found, err := p.Inventory(p.ctx())
	if err != nil || len(found) != 1 || len(found[0].Runs) > 2 {
		t.Errorf("containers that could not be started are left: %+v, %v", found, err)
	}
}

func TestUnknownVolume(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	ref, err := p.start(spec.Container{Command: []string{"true"}, VolumeMounts: []spec.VolumeMount{{Name: "none", MountPath: "/x"}}})
	f, _ := errors.AsType[lifecycle.Failure](err)
	if f.Kind != lifecycle.FailureNotCreated || f.Reason != lifecycle.ReasonCreateConfigError {
		t.Errorf("unknown volume: %#v", err)
	}
	if err := p.RemoveContainer(p.ctx(), uid, p.Pod, ref); err != nil {
		t.Error(err)
	}
}

func TestStartWithoutRuntime(t *testing.T) {
	dir := t.TempDir()
	_, err := runtime.Start(t.Context(), runtime.Options{StateDir: dir, RunDir: dir, RuntimeBinary: "no-such-runtime"})
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "no-such-runtime") {
		t.Errorf("got %v, want an error with the name of the program", err)
	}
}

// losesSandbox kills a process that a sandbox needs. The exit of its container is reported, nothing of the container is left, and a new
// sandbox can be started.
func (p *pod) losesSandbox(ref lifecycle.Ref, pid int) {
	p.Helper()
	lost := make(chan error, 1)
	ctx := p.ctx()
	go func() { _, err := p.WaitSandbox(ctx, uid, p.Pod, 1); lost <- err }()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		p.Fatal(err)
	}
	if err := <-lost; err != nil {
		p.Errorf("wait for the sandbox: %v", err)
	}
	if exit := p.wait(ref); exit.Code != 137 || exit.Reason != lifecycle.ReasonError {
		p.Errorf("exit: %+v, want 137 Error", exit)
	}
	if err := p.RemoveSandbox(p.ctx(), uid, 1); err != nil {
		p.Fatal(err)
	}
	p.eventually("no process of the pod is left", func() (string, bool) {
		left := p.running()
		return fmt.Sprint(left), len(left) == 0
	})
	p.sandbox(2)
	second := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: ref.Container, Round: 2, Attempt: 2}, Sandbox: 2, Restarts: 1}
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, second); err != nil {
		p.Error(err)
	}
}

// Containers keep running when the daemon is killed. The test starts a daemon in another process.
func TestDaemonKilled(t *testing.T) {
	m := newTestHost(t)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.Runtime = nil
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "PODSTEAD_TEST_DAEMON="+m.dir, "PODSTEAD_TEST_PROGRAMS="+programs)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("the daemon wrote %q, %v", line, err)
	}
	p := &pod{testHost: m, Pod: daemonPod(m.archives...)}
	wantCommands := func(running, left bool) {
		t.Helper()
		m.eventually(fmt.Sprintf("a running command %v, a daemon that a command has left %v", running, left), func() (string, bool) {
			l := p.running()
			return fmt.Sprintf("%q", l), slices.Contains(l, "sleep 9991") == running && slices.Contains(l, "sleep 9992") == left
		})
	}
	wantCommands(true, true)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	m.eventually("the exit of a container without a daemon", func() (string, bool) {
		log := p.log(lifecycle.Ref{Container: "ends"})
		return log, strings.Contains(log, "bye")
	})
	m.start()
	wantCommands(false, true)
	if exit := p.wait(lifecycle.Ref{Container: "ends", Round: 1, Attempt: 1}); exit.Code != 7 {
		t.Errorf("exit: %+v, want 7", exit)
	}
	lines := func() int { return strings.Count(p.log(lifecycle.Ref{Container: "counts"}), "\n") }
	before := lines()
	m.eventually("the other container keeps running", func() (string, bool) { return fmt.Sprint(lines()), lines() > before+5 })
	for i, n := range strings.Fields(p.log(lifecycle.Ref{Container: "counts"})) {
		if n != strconv.Itoa(i) {
			t.Fatalf("line %d of the log is %s", i, n)
		}
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
}

func daemonPod(archives ...string) *spec.Pod {
	return &spec.Pod{Name: "p", ImageArchives: archives, Containers: []spec.Container{
		{Name: "ends", Image: busybox, Command: []string{"sh", "-c", "sleep 1; echo bye; exit 7"}},
		{Name: "counts", Image: busybox, Command: []string{"sh", "-c", "i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done"}},
	}}
}

// daemon is the process that TestDaemonKilled kills. It always returns an error.
func daemon(dir string) error {
	ctx := context.Background()
	o := options(dir, os.Getenv(programsVariable))
	r, err := runtime.Start(ctx, o)
	if err != nil {
		return err
	}
	pod := daemonPod(filepath.Join(dir, "busybox.tar"))
	if _, err := r.StartSandbox(ctx, uid, pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1}); err != nil {
		return err
	}
	for _, c := range pod.Containers {
		a := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: c.Name, Round: 1, Attempt: 1}, Sandbox: 1}
		if _, err := r.StartContainer(ctx, uid, pod, a); err != nil {
			return err
		}
	}
	counts := lifecycle.Ref{Container: "counts", Round: 1, Attempt: 1}
	if _, _, err := r.Exec(ctx, uid, counts, []string{"sh", "-c", "setsid sleep 9992 >/dev/null 2>&1 &"}, 0, 100); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _, err = r.Exec(ctx, uid, counts, []string{"sleep", "9991"}, 0, 100)
	return errors.Join(errors.New("the command of the daemon ended"), err)
}

func TestDiskFull(t *testing.T) {
	m := newTestHost(t)
	fill, free := m.onSmallDisk()
	p := newPod(m, &spec.Pod{})
	fill()
	ref, err := p.start(sh("sleep 1000"))
	f, _ := errors.AsType[lifecycle.Failure](err)
	if f.Kind != lifecycle.FailureNotCreated || !strings.Contains(f.Message, "the disk is full") {
		t.Errorf("start on a full disk: %#v", err)
	}
	free()
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, lifecycle.StartContainer{Ref: ref, Sandbox: 1}); err != nil {
		t.Errorf("start with free disk space: %v", err)
	}
}

// A daemon that is killed after it has recorded an exit leaves the task.
func TestExitWithTask(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	ref, err := p.start(sh("exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(monitor.ContainersDir(filepath.Join(p.opts.RunDir, "engine/monitor")), p.idOf(ref))
	p.eventually("the exit of the container", func() (string, bool) {
		text, err := os.ReadFile(filepath.Join(dir, "exit.json"))
		return fmt.Sprint(string(text), err), err == nil
	})
	if err := p.WriteExit(p.ctx(), uid, ref, 3); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.testHost.start()
	if exit := p.wait(ref); exit.Code != 3 {
		t.Errorf("exit: %+v, want 3", exit)
	}
	if err := p.RemoveSandbox(p.ctx(), uid, 1); err != nil {
		t.Errorf("remove the sandbox: %v", err)
	}
}

// A daemon that is killed while it removes a container that could not be started leaves the exit of a process that was never started.
// The next one starts the container again.
func TestUndoneContainer(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	ref, err := p.start(sh("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	start := lifecycle.StartContainer{Ref: ref, Sandbox: 1}
	for _, after := range []func() error{
		func() error { return nil }, // before the container was killed
		func() error { return p.KillContainer(p.ctx(), uid, ref) },
	} {
		if err := errors.Join(p.Undo(p.ctx(), uid, ref), after()); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		p.testHost.start()
		if _, err := p.StartContainer(p.ctx(), uid, p.Pod, start); err != nil {
			t.Fatal(err)
		}
		if code, _, err := p.exec(ref, time.Minute, "true"); code != 0 || err != nil {
			t.Errorf("a command in the container that was started again: %d, %v", code, err)
		}
	}
	p.Pod.Containers[0].Command = []string{"/no/such/program"}
	if err := p.Undo(p.ctx(), uid, ref); err != nil {
		t.Fatal(err)
	}
	found, err := p.Inventory(p.ctx())
	if err != nil || len(found) != 1 || len(found[0].Runs) > 0 {
		t.Errorf("inventory: %+v, %v, want a pod without runs", found, err)
	}
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, start); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("start: %v, want the error of the program", err)
	}
	if exit := p.wait(ref); exit.Reason != lifecycle.ReasonStatusUnknown {
		t.Errorf("exit: %+v, want none", exit)
	}
	p.Pod.Containers[0].Command = []string{"sleep", "1000"}
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, start); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Undo(p.ctx(), uid, ref), p.RemoveContainer(p.ctx(), uid, p.Pod, ref)); err != nil {
		t.Errorf("remove the container, although its process runs: %v", err)
	}
}

// A daemon that is killed while it creates a container leaves a record without a process. The next one does not take it for a container
// that was started, and starts it.
func TestContainerWithoutProcess(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	ref, err := p.start(sh("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	wantRun := func(noProcess bool) {
		t.Helper()
		found, err := p.Inventory(p.ctx())
		if err != nil || len(found) != 1 || len(found[0].Runs) != 1 || found[0].Runs[0].NoProcess != noProcess {
			t.Errorf("inventory: %+v, %v, want a run, without a process: %t", found, err, noProcess)
		}
	}
	wantRun(false)
	if err := errors.Join(p.Uncreate(p.ctx(), uid, ref), p.Close()); err != nil {
		t.Fatal(err)
	}
	p.testHost.start()
	wantRun(true)
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, lifecycle.StartContainer{Ref: ref, Sandbox: 1}); err != nil {
		t.Fatal(err)
	}
	wantRun(false)
	if err := p.KillContainer(p.ctx(), uid, ref); err != nil {
		t.Fatal(err)
	}
	p.wait(ref)
	wantRun(false)
}

// An invalid record does not hide its pod.
func TestDamagedRecord(t *testing.T) {
	for _, label := range []string{"podstead.io/attempt", "podstead.io/other"} {
		t.Run(label, func(t *testing.T) {
			p := newPod(newTestHost(t), &spec.Pod{})
			ref, err := p.start(sh("sleep 1000"))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Damage(p.ctx(), uid, ref, label); err != nil {
				t.Fatal(err)
			}
			found, err := p.Inventory(p.ctx())
			if err != nil || len(found) != 1 || found[0].UID != uid || found[0].Pod != nil {
				t.Errorf("inventory: %+v, %v; want the pod without its definition", found, err)
			}
		})
	}
}

// A pod can be stopped and removed while the disk is full, to free disk space.
func TestDiskFullUnderContainer(t *testing.T) {
	m := newTestHost(t)
	fill, free := m.onSmallDisk()
	p := newPod(m, &spec.Pod{Volumes: []spec.Volume{{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}}})
	c := sh("dd if=/dev/zero of=/data/f bs=1M count=1 && touch /data/ready; trap 'exit 4' TERM; while :; do sleep 0.05; done")
	c.VolumeMounts = []spec.VolumeMount{{Name: "data", MountPath: "/data"}}
	stopped, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.start(sh("sleep 1000")); err != nil {
		t.Fatal(err)
	}
	p.eventually("the volume has data", func() (string, bool) {
		_, err := os.Stat(filepath.Join(p.opts.StateDir, "pods", uid, "volumes/data/ready"))
		return fmt.Sprint(err), err == nil
	})
	fill()
	defer free()
	if err := p.StopContainer(p.ctx(), uid, p.Pod, stopped); err != nil {
		t.Errorf("stop a container: %v", err)
	}
	if exit := p.wait(stopped); exit.Code != 4 {
		t.Errorf("exit: %+v, want 4", exit)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.testHost.start()
	if err := p.RemovePod(p.ctx(), uid, p.Pod); err != nil {
		t.Errorf("remove the pod: %v", err)
	}
}

// onSmallDisk restarts the runtime with its state on a small disk. The functions fill the disk and free it.
func (m *testHost) onSmallDisk() (fill, free func()) {
	m.Helper()
	if err := m.Close(); err != nil {
		m.Fatal(err)
	}
	small := filepath.Join(m.dir, "small")
	if err := os.MkdirAll(small, 0o700); err != nil {
		m.Fatal(err)
	}
	if err := unix.Mount("small", small, "tmpfs", 0, "size=24m"); err != nil {
		m.Fatal(err)
	}
	m.beforeCheck = func() {
		if err := unix.Unmount(small, unix.MNT_DETACH); err != nil {
			m.Error(err)
		}
	}
	m.opts.StateDir = filepath.Join(small, "lib")
	m.start()
	m.pull(m.archive("busybox"), busybox)
	filler := filepath.Join(small, "fill")
	fill = func() {
		f, err := os.Create(filler)
		if err != nil {
			m.Fatal(err)
		}
		defer f.Close()
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
	}
	free = func() {
		if err := os.Remove(filler); err != nil {
			m.Fatal(err)
		}
	}
	return fill, free
}

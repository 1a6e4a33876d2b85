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
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// wait returns how a container ended.
func (p *pod) wait(ref lifecycle.Ref) lifecycle.Exit {
	p.Helper()
	exit, _, err := p.WaitContainer(p.ctx(), uid, ref)
	if err != nil {
		p.Fatal(err)
	}
	return exit
}

func TestStartErrors(t *testing.T) {
	p := newPod(newMachine(t), &spec.Pod{Volumes: []spec.Volume{{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}}})
	for _, test := range []struct{ command, message string }{
		{"none", `exec: "none": executable file not found in $PATH`},
		{"/no/such/file", "no such file or directory"},
		{"/etc/passwd", "permission denied"},
		{"/tmp", "is a directory"},
	} {
		ref, err := p.start(spec.Container{Command: []string{test.command}})
		f, _ := errors.AsType[lifecycle.Failure](err)
		if f.Kind != lifecycle.FailureRetry || f.Reason != lifecycle.ReasonStartError || !strings.Contains(f.Message, test.message) {
			// runc 1.1 tells of a folder as of a file without permission
			if test.command != "/tmp" || !strings.Contains(f.Message, "permission denied") {
				t.Errorf("%s: %#v, want a start error with %q", test.command, err, test.message)
			}
		}
		if logs, _ := os.ReadDir(filepath.Join(p.opts.LogDir, p.Name+"_"+uid, ref.Container)); len(logs) > 0 {
			t.Errorf("%s: a log is left: %v", test.command, logs)
		}
	}
	// What is no program is found out by the kernel, after the start.
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
			t.Errorf("a file that is no program: %+v with log %q", exit, p.log(ref))
		}
	} else if !strings.Contains(err.Error(), "exec format error") {
		t.Errorf("a file that is no program: %v", err)
	}
	found, err := p.Inventory(p.ctx())
	if err != nil || len(found) != 1 || len(found[0].Runs) > 2 {
		t.Errorf("left of containers that could not be started: %+v, %v", found, err)
	}
}

func TestUnknownVolume(t *testing.T) {
	p := newPod(newMachine(t), &spec.Pod{})
	ref, err := p.start(spec.Container{Command: []string{"true"}, VolumeMounts: []spec.VolumeMount{{Name: "none", MountPath: "/x"}}})
	f, _ := errors.AsType[lifecycle.Failure](err)
	if f.Kind != lifecycle.FailureNotCreated || f.Reason != lifecycle.ReasonCreateConfigError {
		t.Errorf("a volume that the pod has not: %#v", err)
	}
	if err := p.RemoveContainer(p.ctx(), uid, p.Pod, ref); err != nil {
		t.Error(err)
	}
}

func TestStartWithoutRuntime(t *testing.T) {
	dir := t.TempDir()
	_, err := runtime.Start(t.Context(), runtime.Options{StateDir: dir, RunDir: dir, RuntimeBinary: "no-such-runtime"})
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "no-such-runtime") {
		t.Errorf("got %v, want an error that names the missing program", err)
	}
}

// A killed shim takes its containers along, and a new sandbox can follow.
func TestShimKilled(t *testing.T) {
	p := newPod(newMachine(t), &spec.Pod{})
	ref, err := p.start(sh("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	p.losesSandbox(ref, p.shimPid())
}

// losesSandbox kills a process that a sandbox does not live without: the container is told, nothing of it is left, and another
// sandbox can follow.
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
	p.checkProcesses()
	p.sandbox(2)
	second := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: ref.Container, Round: 2, Attempt: 2}, Sandbox: 2, Restarts: 1}
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, second); err != nil {
		p.Error(err)
	}
}

// shimPid finds the one shim of this machine.
func (m *machine) shimPid() int {
	m.Helper()
	for pid, cmdline := range m.processes() {
		if strings.HasPrefix(cmdline, m.opts.ShimPath) && strings.Contains(cmdline, m.dir) {
			return pid
		}
	}
	m.Fatal("there is no shim")
	return 0
}

// TestDaemonKilled has another process start containers, and kills it.
func TestDaemonKilled(t *testing.T) {
	m := newMachine(t)
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
		t.Fatalf("the daemon says %q, %v", line, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	p := &pod{machine: m, Pod: daemonPod()}
	m.eventually("a container ends while nobody is there", func() (string, bool) {
		log := p.log(lifecycle.Ref{Container: "ends"})
		return log, strings.Contains(log, "bye")
	})
	m.start()
	if exit := p.wait(lifecycle.Ref{Container: "ends", Round: 1, Attempt: 1}); exit.Code != 7 {
		t.Errorf("exit: %+v, want 7", exit)
	}
	lines := func() int { return strings.Count(p.log(lifecycle.Ref{Container: "counts"}), "\n") }
	before := lines()
	m.eventually("the other one goes on", func() (string, bool) { return fmt.Sprint(lines()), lines() > before+5 })
	for i, n := range strings.Fields(p.log(lifecycle.Ref{Container: "counts"})) {
		if n != strconv.Itoa(i) {
			t.Fatalf("line %d of the log is %s", i, n)
		}
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
}

func daemonPod() *spec.Pod {
	return &spec.Pod{Name: "p", Containers: []spec.Container{
		{Name: "ends", Image: busybox, Command: []string{"sh", "-c", "sleep 1; echo bye; exit 7"}},
		{Name: "counts", Image: busybox, Command: []string{"sh", "-c", "i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done"}},
	}}
}

// daemon is the process that TestDaemonKilled kills. It returns only with an error.
func daemon(dir string) error {
	ctx := context.Background()
	r, err := runtime.Start(ctx, options(dir, os.Getenv("PODSTEAD_TEST_PROGRAMS")))
	if err != nil {
		return err
	}
	pod := daemonPod()
	if _, err := r.StartSandbox(ctx, uid, pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1}); err != nil {
		return err
	}
	for _, c := range pod.Containers {
		a := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: c.Name, Round: 1, Attempt: 1}, Sandbox: 1}
		if _, err := r.StartContainer(ctx, uid, pod, a); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	<-time.After(10 * deadline)
	return errors.New("nobody killed the daemon")
}

func TestDiskFull(t *testing.T) {
	m := newMachine(t)
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
		t.Errorf("start when there is space again: %v", err)
	}
}

// A daemon that is killed after it has written an exit down, and before it has deleted the task, leaves both.
func TestExitWithTask(t *testing.T) {
	p := newPod(newMachine(t), &spec.Pod{})
	ref, err := p.start(sh("exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(p.opts.RunDir, "engine/io.containerd.runtime.v2.task/podstead", p.idOf(ref))
	p.eventually("the container ends", func() (string, bool) {
		text, err := os.ReadFile(filepath.Join(bundle, "exit.json"))
		return fmt.Sprint(string(text), err), err == nil
	})
	if err := p.WriteExit(p.ctx(), uid, ref, 3); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.machine.start()
	if exit := p.wait(ref); exit.Code != 3 {
		t.Errorf("exit: %+v, want 3", exit)
	}
	if err := p.RemoveSandbox(p.ctx(), uid, 1); err != nil {
		t.Errorf("remove the sandbox: %v", err)
	}
}

// A record that cannot be read takes its own pod along, and no other.
func TestDamagedRecord(t *testing.T) {
	for _, label := range []string{"podstead.io/attempt", "podstead.io/other"} {
		t.Run(label, func(t *testing.T) {
			p := newPod(newMachine(t), &spec.Pod{})
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

// A pod can be watched, stopped and removed while the disk is full: that is how a person makes space.
func TestDiskFullUnderContainer(t *testing.T) {
	m := newMachine(t)
	fill, free := m.onSmallDisk()
	p := newPod(m, &spec.Pod{Volumes: []spec.Volume{{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}}})
	c := sh("dd if=/dev/zero of=/data/f bs=1M count=1 && touch /data/ready; trap 'exit 4' TERM; while :; do sleep 0.05; done")
	c.VolumeMounts = []spec.VolumeMount{{Name: "data", MountPath: "/data"}}
	ends, err := p.start(c)
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
	if err := p.StopContainer(p.ctx(), uid, p.Pod, ends); err != nil {
		t.Errorf("stop a container: %v", err)
	}
	if exit := p.wait(ends); exit.Code != 4 {
		t.Errorf("exit: %+v, want 4", exit)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.machine.start()
	if err := p.RemovePod(p.ctx(), uid, p.Pod); err != nil {
		t.Errorf("remove the pod: %v", err)
	}
}

// onSmallDisk restarts the runtime with its state on a small disk, which can be filled and freed again.
func (m *machine) onSmallDisk() (fill, free func()) {
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
	m.pull(filepath.Join(programs, "busybox.tar"), busybox)
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

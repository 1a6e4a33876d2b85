//go:build e2e

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/runtime/shim"
)

// deadline is for conditions that come within a second on an idle machine.
const deadline = 60 * time.Second

// shimPath is the small shim, built once for all tests.
var shimPath string

func TestMain(m *testing.M) {
	if shim.Invoked(os.Args) {
		os.Exit(shim.Main(context.Background()))
	}
	if dir := os.Getenv("PODSTEAD_TEST_DAEMON"); dir != "" {
		daemon(dir)
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests need root")
		return 1
	}
	dir, err := os.MkdirTemp("", "shim")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	shimPath = filepath.Join(dir, shim.Name)
	build := exec.Command("go", "build", "-o", shimPath, "github.com/podstead/podstead/cmd/"+shim.Name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build shim: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// daemon is a process that runs an engine and is there to be killed.
func daemon(dir string) {
	if _, err := Start(context.Background(), engineOptions(dir, os.Getenv("PODSTEAD_TEST_SHIM"))); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

func engineOptions(dir, shimPath string) Options {
	return Options{Root: filepath.Join(dir, "root"), State: filepath.Join(dir, "run"), ShimPath: shimPath}
}

// world is a folder for an engine, and a root file system for its containers.
type world struct {
	t      testing.TB
	dir    string
	rootfs string
	cgroup string // the parent of all cgroups of this test
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "eng")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, rootfs: filepath.Join(dir, "rootfs"), cgroup: "/podstead-test-" + filepath.Base(dir)}
	for _, d := range []string{"bin", "proc", "dev", "sys", "tmp", "run", "etc"} {
		if err := os.MkdirAll(filepath.Join(w.rootfs, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	busybox, err := os.ReadFile("/usr/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.rootfs, "bin/busybox"), busybox, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "sleep", "cat", "echo", "true", "seq", "usleep", "kill"} {
		if err := os.Symlink("busybox", filepath.Join(w.rootfs, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(w.checkClean)
	return w
}

// start starts an engine in this process.
func (w *world) start() *Engine {
	w.t.Helper()
	e, err := Start(w.t.Context(), engineOptions(w.dir, shimPath))
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// checkClean removes the world's folder, and fails where something of it is left on the machine.
func (w *world) checkClean() {
	t := w.t
	for _, pid := range w.processes() {
		t.Errorf("process %d is left: %s", pid, cmdline(pid))
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, w.dir) {
			t.Errorf("mount is left: %s", line)
			_ = unix.Unmount(strings.Fields(line)[4], unix.MNT_DETACH)
		}
	}
	if err := shim.RemoveCgroup(w.cgroup); err != nil {
		t.Errorf("cgroups are left: %v", err)
	}
	if err := os.RemoveAll(w.dir); err != nil {
		t.Error(err)
	}
}

// processes lists the processes that belong to this world: shims, and what runs in its containers.
func (w *world) processes() []int {
	var pids []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cgroup, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cgroup"))
		root, _ := os.Readlink(filepath.Join("/proc", e.Name(), "root"))
		if strings.Contains(cmdline(pid), w.dir) || strings.Contains(string(cgroup), w.cgroup) || strings.HasPrefix(root, w.dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func cmdline(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(b), "\x00", " ")
}

// eventually waits for a condition, and says at last what it saw.
func eventually(t testing.TB, what string, cond func() (string, bool)) {
	t.Helper()
	end := time.Now().Add(deadline)
	for {
		last, ok := cond()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: did not come; last seen: %s", what, last)
		}
		wait(10 * time.Millisecond)
	}
}

func wait(d time.Duration) { <-time.After(d) }

func ctxOf(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(context.Background(), Namespace), 2*deadline)
	t.Cleanup(cancel)
	return ctx
}

func (w *world) sandbox(e *Engine, id string) *Sandbox {
	w.t.Helper()
	s, err := e.StartSandbox(ctxOf(w.t), id, SandboxOptions{Cgroup: w.cgroup + "/" + id + "/shim"})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// container is a task that runs in a sandbox, with its log.
type container struct {
	client.Task
	record client.Container
	log    string
	exit   <-chan client.ExitStatus
}

// run starts a container that runs a shell script.
func (w *world) run(s *Sandbox, id, script string, opts ...oci.SpecOpts) *container {
	w.t.Helper()
	ctx := ctxOf(w.t)
	spec := append([]oci.SpecOpts{
		oci.WithRootFSPath(w.rootfs), oci.WithProcessArgs("/bin/sh", "-c", script), oci.WithCgroup(w.cgroup + "/" + s.ID() + "/" + id),
	}, opts...)
	record, err := s.NewContainer(ctx, id, client.WithNewSpec(spec...))
	if err != nil {
		w.t.Fatal(err)
	}
	c := &container{record: record, log: filepath.Join(w.dir, "log", id, "0.log")}
	c.Task, err = record.NewTask(ctx, LogTo(c.log, crilog.Options{}))
	if err != nil {
		w.t.Fatal(err)
	}
	if c.exit, err = c.Wait(ctx); err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(ctx); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// load finds a container that an earlier engine started.
func (w *world) load(e *Engine, id string) *container {
	w.t.Helper()
	ctx := ctxOf(w.t)
	record, err := e.Client().LoadContainer(ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &container{record: record, log: filepath.Join(w.dir, "log", id, "0.log")}
	if c.Task, err = record.Task(ctx, nil); err != nil {
		w.t.Fatal(err)
	}
	if c.exit, err = c.Wait(ctx); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) exited(c *container) uint32 {
	w.t.Helper()
	select {
	case s := <-c.exit:
		if s.Error() != nil {
			w.t.Fatalf("wait for %s: %v", c.ID(), s.Error())
		}
		return s.ExitCode()
	case <-time.After(deadline):
		w.t.Fatalf("container %s did not exit", c.ID())
		return 0
	}
}

// remove kills a container and deletes all of it.
func (w *world) remove(c *container) {
	w.t.Helper()
	ctx := ctxOf(w.t)
	if _, err := c.Delete(ctx, client.WithProcessKill); err != nil {
		w.t.Errorf("delete task %s: %v", c.ID(), err)
	}
	if err := c.record.Delete(ctx); err != nil {
		w.t.Errorf("delete container %s: %v", c.ID(), err)
	}
}

func (w *world) shutdown(s *Sandbox) {
	w.t.Helper()
	if err := s.Shutdown(ctxOf(w.t)); err != nil {
		w.t.Error(err)
	}
	if err := shim.RemoveCgroup(w.cgroup + "/" + s.ID()); err != nil {
		w.t.Error(err)
	}
}

func TestTwoContainersOneShim(t *testing.T) {
	w := newWorld(t)
	e := w.start()
	s := w.sandbox(e, "pod1")
	a := w.run(s, "a", "echo out of a; echo err of a >&2; exit 3")
	b := w.run(s, "b", "echo out of b; sleep 1000")
	if got := w.exited(a); got != 3 {
		t.Errorf("exit of a: got %d, want 3", got)
	}
	if got := w.shims(); len(got) != 1 || got[0] != s.Pid() {
		t.Errorf("shims: got %v, want only the sandbox's, %d", got, s.Pid())
	}
	w.remove(a)
	w.remove(b)
	log, err := os.ReadFile(a.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", log)
	w.shutdown(s)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// shims lists the processes of this world that are shims.
func (w *world) shims() []int {
	var pids []int
	for _, pid := range w.processes() {
		if strings.Contains(cmdline(pid), "-namespace") {
			pids = append(pids, pid)
		}
	}
	return pids
}

var _ = errors.Is
var _ = io.EOF
var _ = syscall.SIGKILL

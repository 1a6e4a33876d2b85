//go:build e2e

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/test/suite"
)

// deadline bounds the wait for conditions that take under a second on an idle host.
const deadline = 90 * time.Second

// shimPath and monitorPath are the programs of the engine, built once for all tests.
var shimPath, monitorPath string

func TestMain(m *testing.M) {
	if plan := os.Getenv("PODSTEAD_TEST_DAEMON"); plan != "" {
		if err := daemon(plan); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	os.Exit(suite.Main(func() int { return withPrograms(m.Run) }, suite.Options{Together: true}))
}

func withPrograms(run func() int) int {
	dir, err := os.MkdirTemp("", "programs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	const commands = "github.com/podstead/podstead/cmd/"
	shimPath, monitorPath = filepath.Join(dir, shim.Name), filepath.Join(dir, monitor.Name)
	build := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", dir+"/",
		commands+shim.Name, commands+monitor.Name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build programs: %v\n%s", err, out)
		return 1
	}
	return run()
}

// env is a directory for an engine, a root file system for its containers, and a cgroup for all of them.
type env struct {
	t      testing.TB
	dir    string
	rootfs string
	cgroup string
}

func newEnv(t testing.TB) *env {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test needs root")
	}
	dir, err := os.MkdirTemp("", "eng")
	if err != nil {
		t.Fatal(err)
	}
	w := envIn(dir)
	w.t = t
	for _, d := range []string{"bin", "proc", "dev", "sys", "tmp"} {
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
	for _, name := range []string{"sh", "sleep", "cat", "usleep", "dd"} {
		if err := os.Symlink("busybox", filepath.Join(w.rootfs, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(w.checkClean)
	return w
}

func envIn(dir string) *env {
	return &env{dir: dir, rootfs: filepath.Join(dir, "rootfs"), cgroup: "/podstead-test-" + filepath.Base(dir)}
}

func (w *env) options() Options {
	return Options{
		Root: filepath.Join(w.dir, "root"), State: filepath.Join(w.dir, "run"), ShimPath: shimPath, MonitorPath: monitorPath,
	}
}

// start starts an engine in this process and closes it at the end of the test at the latest.
func (w *env) start() *Engine {
	w.t.Helper()
	e, err := Start(w.t.Context(), w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *env) stop(e *Engine) {
	w.t.Helper()
	if err := e.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *env) sandbox(e *Engine, id string) *Sandbox {
	w.t.Helper()
	s, err := e.StartSandbox(ctxOf(w.t), id, SandboxOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *env) remove(e *Engine, id string) {
	w.t.Helper()
	if err := e.RemoveSandbox(ctxOf(w.t), id); err != nil {
		w.t.Error(err)
	}
	w.eventually("removal of the cgroup, which a process that was killed may still be in", func() (string, bool) {
		err := cgroup.Remove(w.cgroup + "/" + id)
		return fmt.Sprint(err), err == nil
	})
}

// sandboxRecords counts the sandboxes that were started and not removed, including those with a dead shim.
func (w *env) sandboxRecords(e *Engine) int {
	w.t.Helper()
	records, err := e.client.SandboxStore().List(namespaces.WithNamespace(ctxOf(w.t), Namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(records)
}

// container is a task that runs in a sandbox.
type container struct {
	client.Task
	record client.Container
	exit   <-chan client.ExitStatus
}

func (w *env) logOf(id string) string { return filepath.Join(w.dir, "log", id, "0.log") }

// runContainer starts a container that runs a shell script.
func (w *env) runContainer(ctx context.Context, s *Sandbox, id, script string, opts ...oci.SpecOpts) (*container, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	spec := append([]oci.SpecOpts{
		oci.WithRootFSPath(w.rootfs),
		oci.WithProcessArgs("/bin/sh", "-c", script),
		oci.WithCgroup(w.cgroup + "/" + s.ID() + "/" + id),
	}, opts...)
	record, err := s.NewContainer(ctx, id, client.WithNewSpec(spec...))
	if err != nil {
		return nil, err
	}
	c := &container{record: record}
	if c.Task, err = record.NewTask(ctx, Streams{Output: ocibundle.Output{Log: w.logOf(id)}}.Creator()); err != nil {
		return nil, errors.Join(err, record.Delete(ctx))
	}
	if c.exit, err = c.Wait(ctx); err != nil {
		return nil, err
	}
	return c, c.Start(ctx)
}

func (w *env) run(s *Sandbox, id, script string, opts ...oci.SpecOpts) *container {
	w.t.Helper()
	c, err := w.runContainer(ctxOf(w.t), s, id, script, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// load returns a container that an earlier engine started.
func (w *env) load(e *Engine, id string) *container {
	w.t.Helper()
	ctx := ctxOf(w.t)
	record, err := e.Client().LoadContainer(ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &container{record: record}
	if c.Task, err = record.Task(ctx, nil); err != nil {
		w.t.Fatal(err)
	}
	if c.exit, err = c.Wait(ctx); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *env) exited(c *container) uint32 {
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

// delete kills a container and deletes its task and record.
func (w *env) delete(c *container) {
	w.t.Helper()
	ctx := ctxOf(w.t)
	if _, err := c.Delete(ctx, client.WithProcessKill); err != nil {
		w.t.Errorf("delete task %s: %v", c.ID(), err)
	}
	if err := c.record.Delete(ctx); err != nil {
		w.t.Errorf("delete container %s: %v", c.ID(), err)
	}
}

// lines reads a container's log.
func (w *env) lines(id string) []crilog.Entry {
	w.t.Helper()
	var all []crilog.Entry
	for e, err := range crilog.Read(w.t.Context(), w.logOf(id), crilog.ReadOptions{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		e.Text = append([]byte(nil), e.Text...)
		all = append(all, e)
	}
	return all
}

// eventually waits for a condition. On a timeout it reports the last state.
func (w *env) eventually(what string, cond func() (string, bool)) {
	w.t.Helper()
	end := time.Now().Add(deadline)
	for {
		last, ok := cond()
		if ok {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("timed out waiting for %s; last state: %s", what, last)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// ctxOf returns a context that outlives the test's own, for cleanup, and has a deadline.
func ctxOf(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(context.Background(), Namespace), 2*deadline)
	t.Cleanup(cancel)
	return ctx
}

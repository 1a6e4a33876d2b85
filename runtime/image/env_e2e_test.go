//go:build e2e

package image_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/test/suite"
)

const overlay = "overlayfs"

// daemonEnv turns the test binary into a daemon that ensures an image and is killed by the test. Its value is the engine's
// directory. refEnv is the image or its archive.
const (
	daemonEnv = "PODSTEAD_IMAGE_TEST_DAEMON"
	refEnv    = "PODSTEAD_IMAGE_TEST_REF"
	// monitorEnv is the path of the monitor, which is built once for all tests.
	monitorEnv = "PODSTEAD_IMAGE_TEST_MONITOR"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(daemonEnv); dir != "" {
		if err := daemon(dir, os.Getenv(refEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(suite.Main(func() int { return withMonitor(m.Run) }, suite.Options{Together: true}))
}

func withMonitor(run func() int) int {
	dir, err := os.MkdirTemp("", "programs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, monitor.Name)
	build := exec.Command("go", "build", "-o", path, "github.com/podstead/podstead/cmd/"+monitor.Name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the monitor: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv(monitorEnv, path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

func daemon(dir, ref string) error {
	ctx := namespaces.WithNamespace(context.Background(), engine.Namespace)
	e, err := startEngine(ctx, dir)
	if err != nil {
		return err
	}
	store := image.New(e.Client(), image.Options{Collect: e.CollectGarbage})
	scope := store.In()
	if strings.HasSuffix(ref, ".tar") {
		scope = store.In(ref)
		list, err := store.ImportFile(ctx, ref, nil)
		if err != nil {
			return err
		}
		ref = list[0].Name
	}
	_, err = scope.Ensure(ctx, ref, "", nil)
	return err
}

func startEngine(ctx context.Context, dir string) (*engine.Engine, error) {
	return engine.Start(ctx, engine.Options{
		Root: filepath.Join(dir, "root"), State: filepath.Join(dir, "run"), MonitorPath: os.Getenv(monitorEnv),
	})
}

// hostEnv is a directory for an engine, and an engine in it after start.
type hostEnv struct {
	dir    string
	engine *engine.Engine
	store  *image.Store
}

func newHostEnv(t *testing.T) (context.Context, *hostEnv) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test needs root")
	}
	dir, err := os.MkdirTemp("", "img")
	if err != nil {
		t.Fatal(err)
	}
	r := &hostEnv{dir: dir}
	t.Cleanup(func() {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, dir) {
				t.Errorf("mount remains: %s", line)
				if err := mount.UnmountAll(strings.Fields(line)[4], 0); err != nil {
					t.Error(err)
				}
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return namespaces.WithNamespace(t.Context(), engine.Namespace), r
}

func (r *hostEnv) start(ctx context.Context, t *testing.T) {
	t.Helper()
	e, err := startEngine(ctx, r.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.engine, r.store = e, image.New(e.Client(), image.Options{Collect: e.CollectGarbage})
	t.Cleanup(func() {
		r.store.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// runUntil starts a daemon that ensures the image, kills it when reached returns true, and starts an engine on the same
// directory.
func (r *hostEnv) runUntil(ctx context.Context, t *testing.T, ref string, reached func() bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), daemonEnv+"="+r.dir, refEnv+"="+ref)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(timeout)
	for !reached() {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("the daemon exited before it was killed: %v", err)
		case <-deadline:
			_ = cmd.Process.Kill()
			t.Fatal("the daemon did not get that far in time")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Fatal("the daemon had finished when it was killed")
	}
	r.start(ctx, t)
}

// collect runs containerd's garbage collector.
func (r *hostEnv) collect(ctx context.Context, t *testing.T) {
	t.Helper()
	lm := r.engine.Client().LeasesService()
	l, err := lm.Create(ctx, leases.WithRandomID())
	if err == nil {
		err = lm.Delete(ctx, l, leases.SynchronousDelete)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *hostEnv) snapshots(ctx context.Context, t *testing.T) (keys []string) {
	t.Helper()
	err := r.engine.Client().SnapshotService(overlay).Walk(ctx, func(_ context.Context, i snapshots.Info) error {
		keys = append(keys, i.Name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// read returns a file of a snapshot through a mount. Without a lease the next garbage collection, which any removal starts, would
// delete the view.
func (r *hostEnv) read(ctx context.Context, t *testing.T, key, name string) (data []byte) {
	t.Helper()
	ctx, done, err := r.engine.Client().WithLease(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sn := r.engine.Client().SnapshotService(overlay)
	mounts, err := sn.View(ctx, "read", key)
	if err != nil {
		t.Fatal(err)
	}
	err = mount.WithReadonlyTempMount(ctx, mounts, func(root string) (err error) {
		data, err = os.ReadFile(filepath.Join(root, name))
		return err
	})
	if err = errors.Join(err, sn.Remove(ctx, "read"), done(ctx)); err != nil {
		t.Fatal(err)
	}
	return data
}

func (r *hostEnv) wantNoLeases(ctx context.Context, t *testing.T) {
	t.Helper()
	list, err := r.engine.Client().LeasesService().List(ctx)
	if err != nil || len(list) > 0 {
		t.Errorf("leases remain: %v, %v", list, err)
	}
}

// dockerRegistry starts Debian's docker-registry on a loopback address.
func dockerRegistry(t *testing.T) (host string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", dir, host)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("docker-registry", "serve", config)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start docker-registry: %v (Debian: apt-get install docker-registry)", err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- s.Text():
			default: // no reader left
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	deadline := time.After(timeout)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatal("docker-registry exited")
			}
			if strings.Contains(line, "listening on") {
				return host
			}
		case <-deadline:
			t.Fatal("docker-registry is not listening in time")
		}
	}
}

package shim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	eventsapi "github.com/containerd/containerd/api/events"
	sandboxapi "github.com/containerd/containerd/api/runtime/sandbox/v1"
	api "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/events"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/podstead/podstead/internal/crilog"
)

// fakeRunc is a task service whose containers write a line at once and exit on request.
type fakeRunc struct {
	api.TTRPCTaskService
	creating  chan struct{} // if not nil, Create blocks until it is closed
	createErr error
	output    string
	exit      chan struct{}
	events    containerdshim.Publisher
	shutdowns int
}

func (f *fakeRunc) Create(ctx context.Context, r *api.CreateTaskRequest) (*api.CreateTaskResponse, error) {
	if f.creating != nil {
		select {
		case <-f.creating:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if f.createErr != nil {
		return nil, f.createErr
	}
	if f.output == "" {
		return &api.CreateTaskResponse{Pid: 7}, nil
	}
	for i, path := range []string{r.Stdout, r.Stderr} {
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		go func() {
			defer w.Close()
			<-f.exit
			_, _ = w.WriteString(strings.Repeat(f.output, i+1))
		}()
	}
	return &api.CreateTaskResponse{Pid: 7}, nil
}

// exitAll makes the container exit, if there is one. There is at most one.
func (f *fakeRunc) exitAll(t *testing.T) {
	t.Helper()
	close(f.exit)
	for _, id := range []string{"an exec", "a"} {
		if err := f.events.Publish(t.Context(), "/tasks/exit", &eventsapi.TaskExit{ContainerID: "a", ID: id}); err == nil {
			t.Error("the event was published")
		}
	}
}

func (*fakeRunc) Wait(context.Context, *api.WaitRequest) (*api.WaitResponse, error) {
	return &api.WaitResponse{ExitStatus: 137}, nil
}

func (*fakeRunc) Kill(context.Context, *api.KillRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (*fakeRunc) Delete(context.Context, *api.DeleteRequest) (*api.DeleteResponse, error) {
	return &api.DeleteResponse{}, nil
}

func (f *fakeRunc) Pids(context.Context, *api.PidsRequest) (*api.PidsResponse, error) {
	select {
	case <-f.exit:
		return &api.PidsResponse{}, nil
	default:
		return &api.PidsResponse{Processes: []*task.ProcessInfo{{Pid: 7}, {Pid: 8}}}, nil
	}
}

func (f *fakeRunc) State(_ context.Context, r *api.StateRequest) (*api.StateResponse, error) {
	if r.ID != "a" {
		return nil, errgrpc.ToGRPC(errdefs.ErrNotFound)
	}
	return &api.StateResponse{Pid: 7}, nil
}

func (f *fakeRunc) Shutdown(context.Context, *api.ShutdownRequest) (*emptypb.Empty, error) {
	f.shutdowns++
	return &emptypb.Empty{}, nil
}

func newTest(t *testing.T) (*tasks, *fakeRunc, shutdown.Service) {
	t.Helper()
	_, end := shutdown.WithShutdown(t.Context())
	f := &fakeRunc{exit: make(chan struct{})}
	svc := newTasks(end)
	svc.TTRPCTaskService = f
	f.events = svc.watch(noEvents{})
	return svc, f, end
}

// noEvents is a publisher without a daemon.
type noEvents struct{ containerdshim.Publisher }

func (noEvents) Publish(context.Context, string, events.Event) error { return errdefs.ErrUnavailable }

func (t *tasks) mustCreate(tb testing.TB, r *api.CreateTaskRequest) {
	tb.Helper()
	if _, err := t.Create(tb.Context(), r); err != nil {
		tb.Fatal(err)
	}
}

func (t *tasks) mustBeSandbox(tb testing.TB, id string) {
	tb.Helper()
	if _, err := t.sandbox.CreateSandbox(tb.Context(), &sandboxapi.CreateSandboxRequest{SandboxID: id}); err != nil {
		tb.Fatal(err)
	}
}

func ended(end shutdown.Service) bool {
	select {
	case <-end.Done():
		return true
	default:
		return false
	}
}

func TestDeleteCompletesLogAndClosesPipes(t *testing.T) {
	svc, runc, _ := newTest(t)
	runc.output = "some line\n"
	path := filepath.Join(t.TempDir(), "app/0.log")
	svc.mustCreate(t, &api.CreateTaskRequest{ID: "a", Bundle: t.TempDir(), Stdout: Output{Log: path}.URI().String()})
	runc.exitAll(t)
	if _, err := svc.Delete(t.Context(), &api.DeleteRequest{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	lines := map[crilog.Stream]int{}
	for e, err := range crilog.Read(t.Context(), path, crilog.ReadOptions{}) {
		if err != nil || string(e.Text) != "some line" {
			t.Fatalf("got %q, %v", e.Text, err)
		}
		lines[e.Stream]++
	}
	if lines[crilog.Stdout] != 1 || lines[crilog.Stderr] != 2 {
		t.Errorf("got %v", lines)
	}
	if len(svc.containers) != 0 {
		t.Errorf("containers remain: %v", svc.containers)
	}
}

func TestCreateFails(t *testing.T) {
	svc, runc, _ := newTest(t)
	runc.createErr = errgrpc.ToGRPC(errdefs.ErrInvalidArgument)
	for name, uri := range map[string]string{
		"in runc":       Output{Log: filepath.Join(t.TempDir(), "0.log")}.URI().String(),
		"relative path": "podstead-log:0.log",
		"bad option":    "podstead-log:///a?max=x",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := svc.Create(t.Context(), &api.CreateTaskRequest{ID: "a", Bundle: t.TempDir(), Stdout: uri})
			if !errdefs.IsInvalidArgument(errgrpc.ToNative(err)) {
				t.Errorf("got %v", err)
			}
			if len(svc.containers) != 0 {
				t.Errorf("containers remain: %v", svc.containers)
			}
		})
	}
}

// A request that is cancelled, because its daemon was killed, does not interrupt the creation. A later request for the container
// waits for it.
func TestCreateIsNotInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, runc, _ := newTest(t)
		runc.creating = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		created := make(chan error, 1)
		go func() {
			_, err := svc.Create(ctx, &api.CreateTaskRequest{ID: "a"})
			created <- err
		}()
		synctest.Wait()
		cancel()
		listed := make(chan int, 1)
		go func() {
			r, err := svc.Pids(t.Context(), &api.PidsRequest{ID: "a"})
			if err != nil {
				t.Error(err)
			}
			listed <- len(r.GetProcesses())
		}()
		synctest.Wait()
		select {
		case err := <-created:
			t.Fatalf("creation was cancelled with its request: %v", err)
		case n := <-listed:
			t.Fatalf("listed %d processes before the creation finished", n)
		default:
		}
		close(runc.creating)
		if err := <-created; err != nil {
			t.Error(err)
		}
		if n := <-listed; n != 2 {
			t.Errorf("listed %d processes", n)
		}
	})
}

// containerd lists processes when it restarts, and deletes a container that has none.
func TestPidsOfExitedContainer(t *testing.T) {
	svc, runc, _ := newTest(t)
	svc.mustCreate(t, &api.CreateTaskRequest{ID: "a"})
	pids := func(id string) int {
		r, err := svc.Pids(t.Context(), &api.PidsRequest{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return len(r.Processes)
	}
	if got := pids("a"); got != 2 {
		t.Errorf("running: got %d", got)
	}
	runc.exitAll(t)
	if got := pids("a"); got != 1 {
		t.Errorf("exited: got %d", got)
	}
	if got := pids("b"); got != 0 {
		t.Errorf("unknown: got %d", got)
	}
}

func TestShutdownIsLeftToSandbox(t *testing.T) {
	svc, runc, end := newTest(t)
	if _, err := svc.Shutdown(t.Context(), &api.ShutdownRequest{}); err != nil || runc.shutdowns != 1 {
		t.Errorf("without sandbox: %v, %d", err, runc.shutdowns)
	}
	svc.mustBeSandbox(t, "s")
	if _, err := svc.Shutdown(t.Context(), &api.ShutdownRequest{}); err != nil || runc.shutdowns != 1 {
		t.Errorf("with sandbox: %v, %d", err, runc.shutdowns)
	}
	svc.mustCreate(t, &api.CreateTaskRequest{ID: "a", Bundle: t.TempDir()})
	_, err := svc.sandbox.ShutdownSandbox(t.Context(), &sandboxapi.ShutdownSandboxRequest{SandboxID: "s"})
	if !errdefs.IsFailedPrecondition(errgrpc.ToNative(err)) || ended(end) {
		t.Errorf("with a container: %v", err)
	}
	runc.exitAll(t)
	if _, err := svc.Delete(t.Context(), &api.DeleteRequest{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	_, err = svc.sandbox.ShutdownSandbox(t.Context(), &sandboxapi.ShutdownSandboxRequest{SandboxID: "other"})
	if !errdefs.IsNotFound(errgrpc.ToNative(err)) {
		t.Errorf("another sandbox: %v", err)
	}
	if _, err := svc.sandbox.ShutdownSandbox(t.Context(), &sandboxapi.ShutdownSandboxRequest{SandboxID: "s"}); err != nil {
		t.Error(err)
	}
	<-end.Done()
}

func TestTerminate(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		svc, _, end := newTest(t)
		svc.mustBeSandbox(t, "s")
		svc.terminate()
		<-end.Done()
	})
	t.Run("waits for the last container", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			svc, runc, end := newTest(t)
			svc.mustCreate(t, &api.CreateTaskRequest{ID: "a"})
			svc.terminate()
			synctest.Wait()
			if ended(end) {
				t.Error("shut down under a running container")
			}
			runc.exitAll(t)
			<-end.Done()
		})
	})
}

func TestOrphaned(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		svc, runc, _ := newTest(t)
		check := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := svc.orphaned(); got != want {
				t.Errorf("%s: got %v", when, got)
			}
		}
		check("just born", false)
		time.Sleep(2 * orphanCheck)
		check("never used", true)
		svc.mustBeSandbox(t, "s")
		check("sandbox without bundle", true)
		if err := os.WriteFile("bootstrap.json", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		check("sandbox", false)
		if err := os.Mkdir("a", 0o700); err != nil {
			t.Fatal(err)
		}
		svc.mustCreate(t, &api.CreateTaskRequest{ID: "a", Bundle: "a"})
		if err := os.Remove("bootstrap.json"); err != nil {
			t.Fatal(err)
		}
		check("bundle removed, a container left", false)
		runc.exitAll(t)
		if err := os.Remove("a"); err != nil {
			t.Fatal(err)
		}
		check("both bundles removed", true)
	})
}

func TestSandboxAPI(t *testing.T) {
	svc, _, _ := newTest(t)
	s := svc.sandbox
	status := func() (*sandboxapi.SandboxStatusResponse, error) {
		return s.SandboxStatus(t.Context(), &sandboxapi.SandboxStatusRequest{SandboxID: "s"})
	}
	if _, err := status(); !errdefs.IsNotFound(errgrpc.ToNative(err)) {
		t.Errorf("before creation: %v", err)
	}
	svc.mustBeSandbox(t, "s")
	if _, err := s.CreateSandbox(t.Context(),
		&sandboxapi.CreateSandboxRequest{SandboxID: "t"}); !errdefs.IsAlreadyExists(errgrpc.ToNative(err)) {
		t.Errorf("second creation: %v", err)
	}
	if r, err := s.StartSandbox(t.Context(), &sandboxapi.StartSandboxRequest{SandboxID: "s"}); err != nil || int(r.Pid) != os.Getpid() {
		t.Errorf("start: %v, %v", r, err)
	}
	if r, err := status(); err != nil || r.State != sandboxReady {
		t.Errorf("ready: %v, %v", r, err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := s.WaitSandbox(t.Context(), &sandboxapi.WaitSandboxRequest{SandboxID: "s"})
		waited <- err
	}()
	for range 2 {
		if _, err := s.StopSandbox(t.Context(), &sandboxapi.StopSandboxRequest{SandboxID: "s"}); err != nil {
			t.Error(err)
		}
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if r, err := status(); err != nil || r.State != sandboxNotReady || r.ExitedAt == nil {
		t.Errorf("stopped: %v, %v", r, err)
	}
}

// failingEvents is a publisher that fails.
type failingEvents struct {
	containerdshim.Publisher
	err error
}

func (p failingEvents) Publish(context.Context, string, events.Event) error { return p.err }

// TestEventWithoutEngine checks that the inner service logs no error for an event while no engine is running.
func TestEventWithoutEngine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, refused := net.Dial("unix", path)
	svc, _, _ := newTest(t)
	for _, test := range []struct{ err, want error }{
		{nil, nil},
		{fmt.Errorf("failed to connect: %w", refused), nil},
		{errdefs.ErrUnavailable, errdefs.ErrUnavailable},
	} {
		got := svc.watch(failingEvents{err: test.err}).Publish(t.Context(), "/tasks/start", &eventsapi.TaskStart{ContainerID: "a"})
		if !errors.Is(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("publisher returns %v: got %v, want %v", test.err, got, test.want)
		}
	}
}

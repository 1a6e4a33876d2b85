package daemon_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/stats"
)

// testTimeout is far longer than anything takes here, even on a loaded host.
const testTimeout = time.Minute

// host has a fake engine that one daemon at a time can use.
type host struct {
	config *config.Config
	fake   *fakeruntime.Runtime
	locked atomic.Bool
	// networkRemovals counts the calls of RemoveNetwork.
	networkRemovals atomic.Int32
	client          *client.Client
	values          configsource.Source
	// onReady is called when a daemon accepts requests, before it can become idle; nil: no call.
	onReady func()
}

// lockedEngine is the engine while a daemon uses it.
type lockedEngine struct {
	*fakeruntime.Runtime
	server.ContainerFiles // not possible in memory
	server.VolumeFiles    // as well
	server.PodPorts
	host *host
}

func (e *lockedEngine) Close() error {
	e.host.locked.Store(false)
	return nil
}

func (e *lockedEngine) RemoveNetwork(context.Context) error {
	e.host.networkRemovals.Add(1)
	return nil
}

// Stats measures nothing.
func (*lockedEngine) Stats(_ context.Context, targets []stats.Target) []stats.Pod {
	return make([]stats.Pod, len(targets))
}

// Values are those of the host.
func (e *lockedEngine) Values() configsource.Source { return e.host.values }

// OCIRuntime returns nothing: there is no OCI runtime.
func (*lockedEngine) OCIRuntime() ociruntime.Choice { return ociruntime.Choice{} }

// NativeReason returns nothing: there are no files.
func (*lockedEngine) NativeReason() string { return "" }

func newHost(t *testing.T) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &config.Config{
		Socket: filepath.Join(dir, "s"), StateDir: filepath.Join(dir, "lib"), RunDir: dir, LogDir: filepath.Join(dir, "log"),
	}
	c.Pods.Dir = filepath.Join(dir, "pods.d")
	h := &host{config: c, fake: fakeruntime.New(fakeruntime.Options{LogDir: c.LogDir}), client: client.New(c.Socket, "podstead run")}
	t.Cleanup(h.client.Close)
	return h
}

func (h *host) start(context.Context, *config.Config, *slog.Logger) (daemon.Runtime, error) {
	if !h.locked.CompareAndSwap(false, true) {
		return nil, &engine.ErrInUse{Path: h.config.StateDir, Pid: 4711}
	}
	return &lockedEngine{Runtime: h.fake, host: h}, nil
}

// run starts a daemon and waits until it is ready. The channel gets the result of the daemon.
func (h *host) run(ctx context.Context, t *testing.T, onDemand bool, idle config.Duration) <-chan error {
	t.Helper()
	ready, result := h.launch(ctx, onDemand, idle, h.start)
	awaitReady(t, ready, result)
	return result
}

type start func(context.Context, *config.Config, *slog.Logger) (daemon.Runtime, error)

// launch starts a daemon. The channels report that it is ready, and its result.
func (h *host) launch(ctx context.Context, onDemand bool, idle config.Duration, s start) (<-chan struct{}, <-chan error) {
	c := *h.config
	c.Engine.IdleTimeout = idle
	ready, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- daemon.Run(ctx, daemon.Options{
			Config: &c, Start: s, Version: api.Version{OnDemand: onDemand},
			Log: slog.New(slog.DiscardHandler), Ready: func() {
				if h.onReady != nil {
					h.onReady()
				}
				close(ready)
			},
		})
	}()
	return ready, result
}

func awaitReady(t *testing.T, ready <-chan struct{}, result <-chan error) {
	t.Helper()
	select {
	case <-ready:
	case err := <-result:
		t.Fatalf("the daemon did not start: %v", err)
	case <-time.After(testTimeout):
		t.Fatal("the daemon is not ready")
	}
}

func await(t *testing.T, result <-chan error) {
	t.Helper()
	select {
	case err := <-result:
		if err != nil {
			t.Errorf("daemon: %v", err)
		}
	case <-time.After(testTimeout):
		t.Fatal("the daemon does not exit")
	}
}

// web requests a pod that runs until it is stopped.
func web() api.CreateRequest {
	text := "imageArchives = [\"i\"]\n[[containers]]\nname = \"c\"\nimage = \"i\"\ncommand = [\"sleep\", \"1000\"]\n"
	return api.CreateRequest{File: "/pods/web.toml", Text: "terminationGracePeriodSeconds = 1\n" + text}
}

func (h *host) create(t *testing.T) api.Pod {
	t.Helper()
	created, err := h.client.Create(t.Context(), web())
	if err != nil {
		t.Fatal(err)
	}
	return created.Pod
}

// awaitRunning waits until the container of the pod is ready.
func (h *host) awaitRunning(t *testing.T, uid string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for c, err := range h.client.Watch(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if s := c.Object.Status.ContainerStatuses; c.Object.Metadata.UID == uid && len(s) > 0 && s[0].Ready {
			return
		}
	}
}

func TestOnDemandDaemonExitsWhenIdle(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	var created api.Created
	var err error
	h.onReady = func() { created, err = h.client.Create(t.Context(), web()) }
	result := h.run(t.Context(), t, true, "300ms")
	if err != nil {
		t.Fatal(err)
	}
	h.awaitRunning(t, created.Pod.Metadata.UID)
	select {
	case err := <-result:
		t.Fatalf("the daemon exited while a pod runs: %v", err)
	case <-time.After(time.Second):
	}
	now := time.Duration(0)
	if err := h.client.Stop(t.Context(), "web", client.StopOptions{Grace: &now, Delete: true}); err != nil {
		t.Fatal(err)
	}
	await(t, result)
	if _, err := os.Stat(h.config.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket still exists: %v", err)
	}
}

func TestDaemonIsNotIdleDuringWatch(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	h.onReady = func() {
		watching := make(chan struct{})
		go func() {
			started := sync.OnceFunc(func() { close(watching) })
			defer started()
			for _, err := range h.client.Watch(ctx) {
				if err != nil {
					failed <- err
					return
				}
				started()
			}
			failed <- errors.New("end of stream")
		}()
		<-watching
	}
	result := h.run(t.Context(), t, true, "200ms")
	select {
	case err := <-failed:
		t.Errorf("watch: %v", err)
	case <-time.After(time.Second):
	}
	cancel()
	await(t, result)
}

func TestPodsKeepRunningWhenServiceStops(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	result := h.run(ctx, t, false, "1ms")
	uid := h.create(t).Metadata.UID
	h.awaitRunning(t, uid)
	stop()
	await(t, result)
	if len(h.fake.Running(uid)) != 1 {
		t.Error("the container no longer runs")
	}
	if h.networkRemovals.Load() != 0 {
		t.Error("the network of a running pod was removed")
	}

	// The next daemon recovers the pod, and a client can stop the daemon.
	result = h.run(t.Context(), t, false, "1ms")
	if pod, err := h.client.Pod(t.Context(), "web"); err != nil || pod.Metadata.UID != uid {
		t.Errorf("pod %s, %v, want %s", pod.Metadata.UID, err, uid)
	}
	if err := h.client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, result)
}

// TestStopWaitsForClientsOfDeletedPods checks that a client gets the final state of its pod, which was deleted before the daemon was
// stopped, and that the client is informed that the daemon was stopped on request.
func TestStopWaitsForClientsOfDeletedPods(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	result := h.run(t.Context(), t, false, "1h")
	q := web()
	q.Session = "s"
	created, err := h.client.Create(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	uid := created.Pod.Metadata.UID
	if err := h.client.Stop(t.Context(), "web", client.StopOptions{Delete: true, Grace: new(time.Duration)}); err != nil {
		t.Fatal(err)
	}
	for c, err := range h.client.Watch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Type == api.Deleted {
			break
		}
		if list, err := h.client.Pods(t.Context()); err == nil && len(list.Items) == 0 {
			break
		}
	}
	if err := h.client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pod, err := h.client.PodWithUID(t.Context(), "web", uid); err != nil || pod.Status.Phase != api.PhaseFailed {
		t.Errorf("pod %+v, %v, want its final state", pod.Status, err)
	}
	if err := h.client.EndSession(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	await(t, result)
	if e, ok := errors.AsType[*api.StoppedError](h.client.Stopped()); !ok || e.Pods != 0 {
		t.Errorf("stop of the daemon: %+v, want recorded, without pods", e)
	}
}

func TestServiceWithoutPodsRemovesTheNetwork(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	result := h.run(t.Context(), t, false, "1h")
	if err := h.client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, result)
	if n := h.networkRemovals.Load(); n != 1 {
		t.Errorf("the network was removed %d times, want once", n)
	}
}

func TestServiceTakesOverFromOnDemandDaemon(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	first := h.run(t.Context(), t, true, "1h")
	uid := h.create(t).Metadata.UID
	h.awaitRunning(t, uid)
	second := h.run(t.Context(), t, false, "1h")
	await(t, first)
	if pod, err := h.client.Pod(t.Context(), "web"); err != nil || pod.Metadata.UID != uid {
		t.Errorf("pod %s, %v, want %s", pod.Metadata.UID, err, uid)
	}
	if err := h.client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, second)
}

// The on-demand daemon holds the lock before it accepts requests, as when a command starts it while the service restarts.
func TestServiceTakesOverFromStartingDaemon(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.locked.Store(true)
	tried := make(chan struct{}, 1000)
	ready, second := h.launch(t.Context(), false, "1h",
		func(ctx context.Context, c *config.Config, l *slog.Logger) (daemon.Runtime, error) {
			tried <- struct{}{}
			return h.start(ctx, c, l)
		})
	for range 2 {
		select {
		case <-tried:
		case err := <-second:
			t.Fatalf("the service gave up: %v", err)
		case <-time.After(testTimeout):
			t.Fatal("the service does not retry")
		}
	}
	_, first := h.launch(t.Context(), true, "1h", func(context.Context, *config.Config, *slog.Logger) (daemon.Runtime, error) {
		return &lockedEngine{Runtime: h.fake, host: h}, nil
	})
	await(t, first)
	awaitReady(t, ready, second)
	if v, err := h.client.Version(t.Context()); err != nil || v.OnDemand {
		t.Errorf("version %+v, %v, want the version of the service", v, err)
	}
	if err := h.client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, second)
}

func TestDaemonDoesNotStopService(t *testing.T) {
	t.Parallel()
	for _, onDemand := range []bool{true, false} {
		h := newHost(t)
		first := h.run(t.Context(), t, false, "1h")
		err := daemon.Run(t.Context(), daemon.Options{
			Config: h.config, Start: h.start, Version: api.Version{OnDemand: onDemand}, Log: slog.New(slog.DiscardHandler),
		})
		if e, inUse := errors.AsType[*engine.ErrInUse](err); !inUse || e.Pid != 4711 {
			t.Errorf("error %v, want the process that holds the lock", err)
		}
		if err := h.client.StopDaemon(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, first)
	}
}

func TestDaemonRejectsSocketPathThatIsTooLong(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.config.Socket = filepath.Join(h.config.Socket, string(make([]byte, 200)))
	if err := daemon.Run(t.Context(), daemon.Options{Config: h.config, Start: h.start, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("no error")
	}
	if h.locked.Load() {
		t.Error("the engine was started")
	}
}

// TestCrashEvent: a daemon after one that has crashed emits an event with the cause, and the next one none.
func TestCrashEvent(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if err := os.WriteFile(filepath.Join(h.config.RunDir, "crash"), []byte("panic: a bug\n\ngoroutine 1 [running]:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "Daemon restarted after a crash, pods kept running: panic: a bug"
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		result := h.run(ctx, t, false, "")
		var messages []string
		for e, err := range h.client.Events(t.Context(), &client.EventQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == api.EventDaemonCrashed {
				messages = append(messages, e.Message)
			}
		}
		if !slices.Equal(messages, []string{want}) { // it is in the journal of events
			t.Errorf("events %q, want one", messages)
		}
		cancel()
		await(t, result)
	}
}

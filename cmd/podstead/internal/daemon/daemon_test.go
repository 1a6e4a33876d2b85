package daemon_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/cmd/podstead/internal/daemon"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

// patience is far above what anything takes here, on a machine that is busy with other things.
const patience = time.Minute

// world is an engine in memory, which one daemon at a time can have.
type world struct {
	config *config.Config
	fake   *fakeruntime.Runtime
	taken  atomic.Bool
	// networks counts how often the network was taken away.
	networks atomic.Int32
	client   *api.Client
	// first is done when a daemon answers, before it may find that nobody needs it; nil: nothing.
	first func()
}

type held struct {
	*fakeruntime.Runtime
	world *world
}

func (h *held) Close() error {
	h.world.taken.Store(false)
	return nil
}

func (h *held) RemoveNetwork(context.Context) error {
	h.world.networks.Add(1)
	return nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &config.Config{Socket: filepath.Join(dir, "s"), StateDir: filepath.Join(dir, "lib"), RunDir: dir, LogDir: filepath.Join(dir, "log")}
	w := &world{config: c, fake: fakeruntime.New(fakeruntime.Options{LogDir: c.LogDir}), client: api.NewClient(c.Socket, "podstead run")}
	t.Cleanup(w.client.Close)
	return w
}

func (w *world) start(context.Context, *config.Config, *slog.Logger) (daemon.Runtime, error) {
	if !w.taken.CompareAndSwap(false, true) {
		return nil, &engine.ErrInUse{Path: w.config.StateDir, Pid: 4711}
	}
	return &held{w.fake, w}, nil
}

// run runs a daemon that is ready when run returns, and tells its end.
func (w *world) run(ctx context.Context, t *testing.T, onDemand bool, idle config.Duration) <-chan error {
	t.Helper()
	ready, ended := w.launch(ctx, onDemand, idle, w.start)
	awaitReady(t, ready, ended)
	return ended
}

type start func(context.Context, *config.Config, *slog.Logger) (daemon.Runtime, error)

// launch runs a daemon, and tells when it is ready and how it ends.
func (w *world) launch(ctx context.Context, onDemand bool, idle config.Duration, s start) (<-chan struct{}, <-chan error) {
	c := *w.config
	c.Engine.IdleTimeout = idle
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, daemon.Options{
			Config: &c, Start: s, Version: api.Version{OnDemand: onDemand},
			Log: slog.New(slog.DiscardHandler), Ready: func() {
				if w.first != nil {
					w.first()
				}
				close(ready)
			},
		})
	}()
	return ready, ended
}

func awaitReady(t *testing.T, ready <-chan struct{}, ended <-chan error) {
	t.Helper()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("the daemon did not start: %v", err)
	case <-time.After(patience):
		t.Fatal("the daemon does not start")
	}
}

func await(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the daemon does not end")
	}
}

// web is a pod that runs until it is ended.
func web() api.CreateRequest {
	text := "imageArchives = [\"i\"]\n[[containers]]\nname = \"c\"\nimage = \"i\"\ncommand = [\"sleep\", \"1000\"]\n"
	return api.CreateRequest{File: "/pods/web.toml", Text: text}
}

func (w *world) create(t *testing.T) api.Pod {
	t.Helper()
	made, err := w.client.Create(t.Context(), web())
	if err != nil {
		t.Fatal(err)
	}
	return made.Pod
}

// awaitRunning follows the pod until its container runs.
func (w *world) awaitRunning(t *testing.T, uid string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for c, err := range w.client.Watch(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if s := c.Object.Status.ContainerStatuses; c.Object.Metadata.UID == uid && len(s) > 0 && s[0].Ready {
			return
		}
	}
}

func TestDaemonOnDemandEndsWhenNobodyNeedsIt(t *testing.T) {
	w := newWorld(t)
	var made api.Created
	var err error
	w.first = func() { made, err = w.client.Create(t.Context(), web()) }
	ended := w.run(t.Context(), t, true, "300ms")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRunning(t, made.Pod.Metadata.UID)
	select {
	case err := <-ended:
		t.Fatalf("the daemon has left its pod: %v", err)
	case <-time.After(time.Second):
	}
	now := time.Duration(0)
	if err := w.client.Stop(t.Context(), "web", api.StopOptions{Grace: &now, Delete: true}); err != nil {
		t.Fatal(err)
	}
	await(t, ended)
	if _, err := os.Stat(w.config.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestDaemonIsNotIdleWhileSomebodyWatches(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	broke := make(chan error, 1)
	w.first = func() {
		watches := make(chan struct{})
		go func() {
			begun := sync.OnceFunc(func() { close(watches) })
			defer begun()
			for _, err := range w.client.Watch(ctx) {
				if err != nil {
					broke <- err
					return
				}
				begun()
			}
			broke <- errors.New("it ended")
		}()
		<-watches
	}
	ended := w.run(t.Context(), t, true, "200ms")
	select {
	case err := <-broke:
		t.Errorf("the watch broke: %v", err)
	case <-time.After(time.Second):
	}
	cancel()
	await(t, ended)
}

func TestServiceStaysAndLeavesPods(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := w.run(ctx, t, false, "1ms")
	uid := w.create(t).Metadata.UID
	w.awaitRunning(t, uid)
	stop()
	await(t, ended)
	if len(w.fake.Running(uid)) != 1 {
		t.Error("the container does not run any more")
	}
	if w.networks.Load() != 0 {
		t.Error("the network of a pod that runs was taken away")
	}

	// The next one takes the pod up, and leaves when it is asked to.
	ended = w.run(t.Context(), t, false, "1ms")
	if pod, err := w.client.Pod(t.Context(), "web"); err != nil || pod.Metadata.UID != uid {
		t.Errorf("pod %s, %v, want %s", pod.Metadata.UID, err, uid)
	}
	if err := w.client.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, ended)
}

// A daemon that leaves no pod behind leaves no network either, whoever ended it.
func TestServiceWithoutPodsTakesTheNetworkAway(t *testing.T) {
	w := newWorld(t)
	ended := w.run(t.Context(), t, false, "1h")
	if err := w.client.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, ended)
	if n := w.networks.Load(); n != 1 {
		t.Errorf("the network was taken away %d times, want once", n)
	}
}

func TestServiceTakesOverFromADaemonOnDemand(t *testing.T) {
	w := newWorld(t)
	first := w.run(t.Context(), t, true, "1h")
	uid := w.create(t).Metadata.UID
	w.awaitRunning(t, uid)
	second := w.run(t.Context(), t, false, "1h")
	await(t, first)
	if pod, err := w.client.Pod(t.Context(), "web"); err != nil || pod.Metadata.UID != uid {
		t.Errorf("pod %s, %v, want %s", pod.Metadata.UID, err, uid)
	}
	if err := w.client.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, second)
}

// A service that is started again finds the engine taken by a daemon that its client has started meanwhile, and that does not
// answer yet.
func TestServiceTakesOverFromADaemonThatIsStarting(t *testing.T) {
	w := newWorld(t)
	w.taken.Store(true)
	tried := make(chan struct{}, 1000)
	ready, second := w.launch(t.Context(), false, "1h", func(ctx context.Context, c *config.Config, l *slog.Logger) (daemon.Runtime, error) {
		tried <- struct{}{}
		return w.start(ctx, c, l)
	})
	for range 2 {
		select {
		case <-tried:
		case err := <-second:
			t.Fatalf("the service gave up: %v", err)
		case <-time.After(patience):
			t.Fatal("the service does not try again")
		}
	}
	_, first := w.launch(t.Context(), true, "1h", func(context.Context, *config.Config, *slog.Logger) (daemon.Runtime, error) {
		return &held{w.fake, w}, nil
	})
	await(t, first)
	awaitReady(t, ready, second)
	if v, err := w.client.Version(t.Context()); err != nil || v.OnDemand {
		t.Errorf("%+v, %v answers, want the service", v, err)
	}
	if err := w.client.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, second)
}

func TestDaemonLeavesAServiceAlone(t *testing.T) {
	for _, onDemand := range []bool{true, false} {
		w := newWorld(t)
		first := w.run(t.Context(), t, false, "1h")
		err := daemon.Run(t.Context(), daemon.Options{
			Config: w.config, Start: w.start, Version: api.Version{OnDemand: onDemand}, Log: slog.New(slog.DiscardHandler),
		})
		if e, inUse := errors.AsType[*engine.ErrInUse](err); !inUse || e.Pid != 4711 {
			t.Errorf("error %v, want who has the state", err)
		}
		if err := w.client.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, first)
	}
}

func TestDaemonWithASocketThatIsTooLongStartsNothing(t *testing.T) {
	w := newWorld(t)
	w.config.Socket = filepath.Join(w.config.Socket, string(make([]byte, 200)))
	if err := daemon.Run(t.Context(), daemon.Options{Config: w.config, Start: w.start, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("no error")
	}
	if w.taken.Load() {
		t.Error("the engine was started")
	}
}

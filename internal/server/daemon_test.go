package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/state"
	"github.com/podstead/podstead/test/fakefiles"
)

// testTimeout is far longer than anything takes here, even on a loaded host.
const testTimeout = time.Minute

// testDaemon is a daemon in this process, with a fake engine.
type testDaemon struct {
	dir, logs, socket string
	fake              *fakeruntime.Runtime
	supervisor        *supervisor.Supervisor
	client            *client.Client
	stops             chan string // requesters of StopDaemon
	secrets           server.SecretSource
	stats             server.StatsSource
	probes            func(uid string) []api.ContainerProbeAnswer
	metrics           http.Handler
	files             *fakefiles.Set
	schedules         server.Schedules
	restarts          *restarts
	streams           *streams
	containerFiles    server.ContainerFiles
	volumeFiles       server.VolumeFiles
	ports             server.PodPorts
	images            server.Images
	closeServer       func()
	server            *server.Server
	log               *slog.Logger // nil: discarded
}

func newTestDaemon(t *testing.T, o fakeruntime.Options) *testDaemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &testDaemon{dir: dir, logs: filepath.Join(dir, "logs"), socket: filepath.Join(dir, "s"), stops: make(chan string, 8)}
	if o.LogDir == "" {
		o.LogDir = d.logs
	}
	d.fake = fakeruntime.New(o)
	store, err := state.NewDir(filepath.Join(dir, "pods"))
	if err != nil {
		t.Fatal(err)
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		t.Fatal(err)
	}
	journal, err := event.NewDirJournal(filepath.Join(dir, "events"))
	if err != nil {
		t.Fatal(err)
	}
	d.supervisor = supervisor.New(t.Context(),
		supervisor.Options{Runtime: d.fake, Store: store, Journal: journal, Clock: clock, Events: 64, MinReady: new(time.Duration)})
	if err := d.supervisor.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.streams = newStreams(t)
	d.metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) })
	d.files, d.restarts = fakefiles.New("/pods.d", d.supervisor), &restarts{}
	d.serve(t, "first")
	t.Cleanup(func() {
		if err := d.supervisor.Leave(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// serve starts a server on the socket with an instance.
func (d *testDaemon) serve(t *testing.T, instance string) {
	t.Helper()
	if d.secrets == nil {
		d.secrets = configsource.Source{Dir: filepath.Join(d.dir, "config")}
	}
	srv := server.New(t.Context(), server.Options{
		Supervisor: d.supervisor, Sessions: d.fake, Attacher: d.streams, Files: d.files, Restarter: d.restarts, LogDir: d.logs,
		Schedules:  d.schedules,
		Version:    api.Version{Version: "v0", Instance: instance},
		StopDaemon: func(by string, shutdown bool) { d.stops <- fmt.Sprintf("%s, shutdown %v", by, shutdown) }, Secrets: d.secrets,
		Stats: d.stats, Metrics: d.metrics, Images: d.images, ContainerFiles: d.containerFiles, VolumeFiles: d.volumeFiles, Ports: d.ports,
		Log: d.log, Socket: d.socket, Probes: d.probes,
		HostIPs: func() []api.PodIP { return []api.PodIP{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}} },
	})
	l, err := server.Listen(t.Context(), d.socket)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := server.ListenReadOnly(t.Context(), d.socket+"-ro")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 2)
	go func() { served <- srv.Serve(l) }()
	go func() { served <- srv.ServeReadOnly(reader) }()
	d.server = srv
	closed := false
	d.closeServer = func() {
		if closed {
			return
		}
		closed = true
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := srv.Close(ctx); err != nil {
			t.Errorf("close server: %v", err)
		}
		for range 2 {
			if err := <-served; err != nil {
				t.Errorf("serve: %v", err)
			}
		}
	}
	t.Cleanup(d.closeServer)
	d.client = client.New(d.socket, "podstead run")
	t.Cleanup(d.client.Close)
}

// file requests a pod with a name, and with more lines in its file.
func file(name, more string) api.CreateRequest {
	text := fmt.Sprintf("name = %q\nimageArchives = [\"i.tar\"]\n%s", name, more)
	return api.CreateRequest{File: "/pods/" + name + ".toml", Text: text}
}

// app returns the lines of a container that runs a script.
func app(name, script string) string {
	return fmt.Sprintf("[[containers]]\nname = %q\nimage = \"i\"\ncommand = [\"sh\", \"-c\", %q]\n", name, script)
}

func (d *testDaemon) create(t *testing.T, q api.CreateRequest) api.Pod {
	t.Helper()
	created, err := d.client.Create(t.Context(), q)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return created.Pod
}

// await waits until cond is met and returns the pod. A pod that was deleted before the watch started counts as [api.Deleted].
func (d *testDaemon) await(t *testing.T, uid string, what string, cond func(api.PodChange) bool) api.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var last api.PodChange
	for c, err := range d.client.Watch(ctx) {
		if err != nil {
			t.Fatalf("no %s: %v; the last change was %+v", what, err, last)
		}
		if c.Type == api.Listed && last.Type == "" {
			c.Type, c.Object.Metadata.UID = api.Deleted, uid
		}
		if c.Object.Metadata.UID != uid {
			continue
		}
		if last = c; cond(c) {
			return c.Object
		}
	}
	t.Fatalf("no %s: end of the watch", what)
	return api.Pod{}
}

func atRest(c api.PodChange) bool  { return c.Object.Status.AtRest }
func deleted(c api.PodChange) bool { return c.Type == api.Deleted }
func ready(c api.PodChange) bool {
	list := c.Object.Status.ContainerStatuses
	return len(list) > 0 && !slices.ContainsFunc(list, func(s api.ContainerStatus) bool { return !s.Ready })
}

package api_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// patience is far above what anything takes here, on a machine that is busy with other things.
const patience = time.Minute

// world is a daemon in this process, on a fake engine.
type world struct {
	dir, logs, socket string
	fake              *fakeruntime.Runtime
	supervisor        *supervisor.Supervisor
	client            *api.Client
	left              chan string // who asked the daemon to leave
	closeServer       func()
}

func newWorld(t *testing.T, o fakeruntime.Options) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{dir: dir, logs: filepath.Join(dir, "logs"), socket: filepath.Join(dir, "s"), left: make(chan string, 8)}
	if o.LogDir == "" {
		o.LogDir = w.logs
	}
	w.fake = fakeruntime.New(o)
	store, err := state.NewDir(filepath.Join(dir, "pods"))
	if err != nil {
		t.Fatal(err)
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		t.Fatal(err)
	}
	journal, err := supervisor.NewDirJournal(filepath.Join(dir, "events"))
	if err != nil {
		t.Fatal(err)
	}
	w.supervisor = supervisor.New(t.Context(), supervisor.Options{Runtime: w.fake, Store: store, Journal: journal, Clock: clock, Events: 64})
	if err := w.supervisor.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.serve(t, "first")
	t.Cleanup(func() {
		if err := w.supervisor.Leave(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// serve begins to answer at the socket, as the named instance of the daemon.
func (w *world) serve(t *testing.T, instance string) {
	t.Helper()
	server := api.NewServer(t.Context(), api.Options{
		Supervisor: w.supervisor, LogDir: w.logs, Version: api.Version{Version: "v0", Instance: instance},
		Secrets: configsource.Source{Dir: filepath.Join(w.dir, "config")},
		Leave:   func(by string) { w.left <- by },
	})
	l, err := api.Listen(t.Context(), w.socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	closed := false
	w.closeServer = func() {
		if closed {
			return
		}
		closed = true
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Errorf("close server: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(w.closeServer)
	w.client = api.NewClient(w.socket, "podstead run")
	t.Cleanup(w.client.Close)
}

// file is a pod file of the given name, with more lines after it.
func file(name, more string) api.CreateRequest {
	text := fmt.Sprintf("name = %q\nimageArchives = [\"i.tar\"]\n%s", name, more)
	return api.CreateRequest{File: "/pods/" + name + ".toml", Text: text}
}

// app is a container that runs a script.
func app(name, script string) string {
	return fmt.Sprintf("[[containers]]\nname = %q\nimage = \"i\"\ncommand = [\"sh\", \"-c\", %q]\n", name, script)
}

func (w *world) create(t *testing.T, q api.CreateRequest) api.Pod {
	t.Helper()
	made, err := w.client.Create(t.Context(), q)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return made.Pod
}

// await follows the pod until cond is met, and returns it. One that was gone before it looked is [api.Deleted].
func (w *world) await(t *testing.T, uid string, what string, cond func(api.PodChange) bool) api.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last api.PodChange
	for c, err := range w.client.Watch(ctx) {
		if err != nil {
			t.Fatalf("%s: never came: %v; the last change was %+v", what, err, last)
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
	t.Fatalf("%s: the watch ended", what)
	return api.Pod{}
}

func atRest(c api.PodChange) bool  { return c.Object.Status.AtRest }
func deleted(c api.PodChange) bool { return c.Type == api.Deleted }
func ready(c api.PodChange) bool {
	return len(c.Object.Status.ContainerStatuses) > 0 && c.Object.Status.ContainerStatuses[0].Ready
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
	"github.com/podstead/podstead/test/fakefiles"
)

// exampleDaemon is the daemon of an example: a server on a socket, with a supervisor and a fake engine. An error of it fails the example,
// because the output differs.
type exampleDaemon struct {
	socket     string
	options    server.Options
	supervisor *supervisor.Supervisor
	server     *server.Server
	served     chan error
}

// startDaemon starts a daemon with the pod web of a script; empty: without a pod.
func startDaemon(script string) *exampleDaemon {
	dir, err := os.MkdirTemp("", "example")
	check(err)
	logs := filepath.Join(dir, "logs")
	fake := fakeruntime.New(fakeruntime.Options{LogDir: logs, Session: exampleCommand})
	store, err := state.NewDir(filepath.Join(dir, "pods"))
	check(err)
	clock, err := supervisor.SystemClock()
	check(err)
	pods := supervisor.New(context.Background(), supervisor.Options{Runtime: fake, Store: store, Clock: clock, Events: 64})
	check(pods.Recover(context.Background()))
	d := &exampleDaemon{socket: filepath.Join(dir, "s"), supervisor: pods, options: server.Options{
		Supervisor: pods, Sessions: fake, Files: fakefiles.New("/etc/podstead/pods.d", pods), LogDir: logs,
		Version: api.Version{Version: "v0", Instance: "example"}, StopDaemon: func(string, bool) {},
	}}
	d.serve(context.Background())
	if script != "" {
		c := client.New(d.socket, "podstead run")
		defer c.Close()
		_, err = c.Create(context.Background(), api.CreateRequest{
			File: "/pods/web.toml",
			Text: "name = \"web\"\nrestartPolicy = \"Never\"\n" +
				fmt.Sprintf("[[containers]]\nname = \"main\"\nimage = \"app\"\ncommand = [\"sh\", \"-c\", %q]\n", script),
		})
		check(err)
	}
	return d
}

// exampleCommand runs the commands of the examples.
func exampleCommand(_ context.Context, _ lifecycle.Ref, c session.Command) (int, error) {
	if c.Args[0] != "grep" {
		return 0, &session.StartError{Code: 127, Message: c.Args[0] + ": not found"}
	}
	_, err := io.WriteString(c.Stderr, "grep: /etc/none: No such file or directory\n")
	return 2, err
}

func (d *exampleDaemon) serve(ctx context.Context) {
	l, err := server.Listen(ctx, d.socket)
	check(err)
	d.server, d.served = server.New(ctx, d.options), make(chan error, 1)
	go func(s *server.Server) { d.served <- s.Serve(l) }(d.server)
}

func (d *exampleDaemon) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	check(errors.Join(d.server.Close(ctx), <-d.served))
}

// restart closes all connections, as a restart of the daemon does.
func (d *exampleDaemon) restart(ctx context.Context) {
	d.close(ctx)
	d.serve(ctx)
}

// await waits until the pod web is at rest or, otherwise, its container is ready.
func (d *exampleDaemon) await(rest bool) {
	timeout := time.After(time.Minute)
	for {
		changed := d.supervisor.Changed()
		s, _ := d.supervisor.Pod("web")
		if list := s.Status.ContainerStatuses; rest && s.AtRest || !rest && len(list) > 0 && list[0].Ready {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			check(errors.New("the pod has not changed in time"))
			return
		}
	}
}

// stop stops the daemon and its pods, and removes its files.
func (d *exampleDaemon) stop() {
	d.close(context.Background())
	check(d.supervisor.Leave(context.Background()))
	check(os.RemoveAll(filepath.Dir(d.socket)))
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
	}
}

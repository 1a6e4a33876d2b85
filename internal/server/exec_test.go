package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// commands are the commands of tests, by their first argument.
type commands map[string]func(ctx context.Context, ref lifecycle.Ref, c session.Command) (int, error)

func (m commands) run(ctx context.Context, ref lifecycle.Ref, c session.Command) (int, error) {
	command, ok := m[c.Args[0]]
	if !ok {
		return 0, &session.StartError{Code: 127, Message: "exec: " + c.Args[0] + ": not found"}
	}
	return command(ctx, ref, c)
}

// newExec returns a daemon that runs these commands, and has the pod web with the containers init (terminated), main and side.
func newExec(t *testing.T, m commands, more string) *testDaemon {
	t.Helper()
	d := newTestDaemon(t, fakeruntime.Options{Session: m.run})
	init := strings.ReplaceAll(app("init", "exit 0"), "[[containers]]", "[[initContainers]]")
	uid := d.create(t, file("web", more+"\n"+init+app("main", "sleep 1000")+app("side", "sleep 1000"))).Metadata.UID
	d.await(t, uid, "containers ready", func(c api.PodChange) bool {
		list := c.Object.Status.ContainerStatuses
		return len(list) == 2 && list[0].Ready && list[1].Ready
	})
	return d
}

// echo writes what it reads to stdout, and its arguments and container to stderr. The exit code is the number of arguments.
func echo(_ context.Context, ref lifecycle.Ref, c session.Command) (int, error) {
	if c.Stdin != nil {
		if _, err := io.Copy(c.Stdout, c.Stdin); err != nil {
			return 0, err
		}
	}
	if c.Stderr != nil {
		fmt.Fprintf(c.Stderr, "%s in %s", strings.Join(c.Args, " "), ref.Container)
	}
	return len(c.Args) - 1, nil
}

// hang runs until the end of its context.
func hang(ctx context.Context, _ lifecycle.Ref, _ session.Command) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func TestExec(t *testing.T) {
	t.Parallel()
	d := newExec(t, commands{"echo": echo}, "")
	data := bytes.Repeat([]byte("\x00\xff\n binary"), 1<<17)
	for _, tt := range []struct {
		name   string
		o      client.ExecOptions
		stderr string
		code   int
	}{
		{"first container", client.ExecOptions{Command: []string{"echo"}}, "echo in main", 0},
		{"named container", client.ExecOptions{Command: []string{"echo", "a b", "", "-c"}, Container: "side"}, "echo a b  -c in side", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			tt.o.Streams = client.Streams{Stdin: bytes.NewReader(data), Stdout: &stdout, Stderr: &stderr}
			code, err := d.client.Exec(t.Context(), "web", tt.o)
			if code != tt.code || err != nil || stderr.String() != tt.stderr || !bytes.Equal(stdout.Bytes(), data) {
				t.Errorf("exit code %d, %v, stderr %q, %d bytes of output; want %d, %q, %d bytes",
					code, err, stderr.String(), stdout.Len(), tt.code, tt.stderr, len(data))
			}
		})
	}
}

func TestExecInDefaultContainer(t *testing.T) {
	t.Parallel()
	d := newExec(t, commands{"echo": echo}, `annotations = { "kubectl.kubernetes.io/default-container" = "side" }`)
	var stderr bytes.Buffer
	o := client.ExecOptions{Command: []string{"echo"}, Streams: client.Streams{Stderr: &stderr}}
	if _, err := d.client.Exec(t.Context(), "web", o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("echo in side", stderr.String()); diff != "" {
		t.Error(diff)
	}
}

func TestExecInTerminal(t *testing.T) {
	t.Parallel()
	d := newExec(t, commands{"stty": func(ctx context.Context, _ lifecycle.Ref, c session.Command) (int, error) {
		fmt.Fprintln(c.Stdout, c.TTY, c.Size, c.Stderr == nil)
		select {
		case size := <-c.Resize:
			fmt.Fprintln(c.Stdout, size)
		case <-ctx.Done():
		}
		return 0, nil
	}}, "")
	resize := make(chan channel.Size, 1)
	resize <- channel.Size{Width: 132, Height: 50}
	var stdout bytes.Buffer
	_, err := d.client.Exec(t.Context(), "web", client.ExecOptions{Command: []string{"stty"}, Streams: client.Streams{
		Stdin: strings.NewReader(""), Stdout: &stdout, TTY: true, Size: channel.Size{Width: 80, Height: 25}, Resize: resize,
	}})
	if diff := cmp.Diff("true {80 25} true\n{132 50}\n", stdout.String()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestExecErrors(t *testing.T) {
	t.Parallel()
	d := newExec(t, commands{
		"echo": echo,
		"broken": func(context.Context, lifecycle.Ref, session.Command) (int, error) {
			return 0, errors.New("the engine is broken")
		},
		"late": func(context.Context, lifecycle.Ref, session.Command) (int, error) {
			return 0, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "cannot exec in a stopped container"}
		},
	}, "")
	for _, tt := range []struct {
		name, pod string
		o         client.ExecOptions
		want      any
	}{
		{
			"unknown pod", "none",
			client.ExecOptions{Command: []string{"echo"}},
			&api.Error{Status: 404, Reason: api.ReasonNotFound, Message: `no such pod "none"`},
		},
		{
			"other UID", "web",
			client.ExecOptions{Command: []string{"echo"}, UID: "x"},
			&api.Error{Status: 404, Reason: api.ReasonNotFound, Message: `no such pod "web"`},
		},
		{
			"unknown container", "web",
			client.ExecOptions{Command: []string{"echo"}, Container: "x"},
			&api.Error{
				Status: 404, Reason: api.ReasonNotFound, Message: `pod "web" has no container "x"`, Hint: "use one of main, side, init",
			},
		},
		{
			"terminated container", "web",
			client.ExecOptions{Command: []string{"echo"}, Container: "init"},
			&api.Error{
				Status: 409, Reason: api.ReasonNotRunning, Message: `container "init" of pod "web" is not running: Completed (exit code 0)`,
				Hint: "run podstead why web",
			},
		},
		{
			"container that has just exited", "web",
			client.ExecOptions{Command: []string{"late"}},
			&api.Error{
				Status: 409, Reason: api.ReasonNotRunning,
				Message: `container "main" of pod "web" is not running: cannot exec in a stopped container`,
				Hint:    "run podstead why web",
			},
		},
		{
			"no command", "web",
			client.ExecOptions{},
			&api.Error{Status: 400, Reason: api.ReasonBadRequest, Field: "command", Message: "command: required value"},
		},
		{
			"command not found", "web",
			client.ExecOptions{Command: []string{"x"}},
			&api.CommandError{Code: 127, Message: "exec: x: not found"},
		},
		{
			"failure of the engine", "web",
			client.ExecOptions{Command: []string{"broken"}},
			&api.Error{Status: 500, Reason: api.ReasonInternalError, Message: "the engine is broken"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := d.client.Exec(t.Context(), tt.pod, tt.o)
			if diff := cmp.Diff(tt.want, any(err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Errors before the upgrade have the form of all errors of the API.
func TestExecRefused(t *testing.T) {
	t.Parallel()
	d := newExec(t, commands{"echo": echo}, "")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
	}}}
	defer client.CloseIdleConnections()
	for query, want := range map[string]string{
		"command=echo&stdout=1": `{"status":426,"error":"the request must be upgraded to a WebSocket"}`,
		"command=echo": `{"status":400,"error":"at least one of stdin, stdout and stderr must be ` +
			`true","reason":"BadRequest"}`,
		"command=echo&stderr=1&tty=1": `{"status":400,"error":"tty and stderr cannot both be true: a terminal has one ` +
			`output","reason":"BadRequest","field":"tty"}`,
		"command=echo&stdout=maybe": `{"status":400,"error":"stdout=\"maybe\": must be true or ` +
			`false","reason":"BadRequest","field":"stdout"}`,
		"command=echo&stdout=1&tty&width=1e3": `{"status":400,"error":"width=\"1e3\": must be a number up to ` +
			`65535","reason":"BadRequest","field":"width"}`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://podstead/v1/pods/web/exec?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if diff := cmp.Diff(want, strings.TrimSpace(string(got))); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", query, err, diff)
		}
	}
}

// A command ends with its client.
func TestExecLostClient(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan error, 1)
	d := newExec(t, commands{"hang": func(ctx context.Context, ref lifecycle.Ref, c session.Command) (int, error) {
		close(started)
		code, err := hang(ctx, ref, c)
		ended <- err
		return code, err
	}}, "")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if _, err := d.client.Exec(ctx, "web", client.ExecOptions{Command: []string{"hang"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the command ended with %v", err)
		}
	case <-time.After(testTimeout):
		t.Error("the command did not end with its client")
	}
}

// A session is activity, which keeps an on-demand daemon running.
func TestExecIsActivity(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	d := newExec(t, commands{"hang": func(ctx context.Context, ref lifecycle.Ref, c session.Command) (int, error) {
		close(started)
		return hang(ctx, ref, c)
	}}, "")
	idle := func() bool {
		busy, _ := d.server.Busy()
		return !busy
	}
	until(t, "no request is in progress before the session", idle)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := d.client.Exec(ctx, "web", client.ExecOptions{Command: []string{"hang"}})
		ended <- err
	}()
	<-started
	if idle() {
		t.Error("the daemon is idle while a command runs")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	until(t, "the daemon is idle after the session", idle)
}

// failingWriter is an output that cannot be written.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestExecOutputFails(t *testing.T) {
	t.Parallel()
	d := newExec(t, commands{"yes": func(ctx context.Context, _ lifecycle.Ref, c session.Command) (int, error) {
		fmt.Fprintln(c.Stdout, "y")
		<-ctx.Done()
		return 0, ctx.Err()
	}}, "")
	_, err := d.client.Exec(t.Context(), "web",
		client.ExecOptions{Command: []string{"yes"}, Streams: client.Streams{Stdout: failingWriter{}}})
	if err == nil || err.Error() != "copy output: disk full" {
		t.Errorf("the client got %v", err)
	}
}

// A session ends with its context, even if its output cannot be written.
func TestExecEndsWhileOutputBlocks(t *testing.T) {
	t.Parallel()
	d := newExec(t, commands{"yes": func(ctx context.Context, _ lifecycle.Ref, c session.Command) (int, error) {
		fmt.Fprintln(c.Stdout, "y")
		return hang(ctx, lifecycle.Ref{}, c)
	}}, "")
	ctx, cancel := context.WithCancel(t.Context())
	released := make(chan struct{})
	defer close(released)
	ended := make(chan error, 1)
	go func() {
		_, err := d.client.Exec(ctx, "web",
			client.ExecOptions{Command: []string{"yes"}, Streams: client.Streams{Stdout: writerFunc(func(p []byte) (int, error) {
				cancel()
				<-released
				return len(p), nil
			})}})
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the client got %v", err)
		}
	case <-time.After(testTimeout):
		t.Error("the session did not end with its context")
	}
}

// A daemon that stops ends its sessions, also one whose output is not received, and tells their clients.
func TestExecDaemonStops(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	end := func() { ended <- struct{}{} }
	d := newExec(t, commands{
		"hang": func(ctx context.Context, ref lifecycle.Ref, c session.Command) (int, error) {
			defer end()
			started <- struct{}{}
			return hang(ctx, ref, c)
		},
		"flood": func(_ context.Context, _ lifecycle.Ref, c session.Command) (int, error) {
			defer end()
			started <- struct{}{}
			_, err := c.Stdout.Write(make([]byte, 4*channel.Window))
			return 0, err
		},
	}, "")
	released := make(chan struct{})
	results := make(chan error, 2)
	for _, o := range []client.ExecOptions{
		{Command: []string{"hang"}},
		{Command: []string{"flood"}, Streams: client.Streams{Stdout: writerFunc(func(p []byte) (int, error) {
			<-released
			return len(p), nil
		})}},
	} {
		go func() {
			_, err := d.client.Exec(t.Context(), "web", o)
			results <- err
		}()
	}
	for range 2 {
		<-started
	}
	d.closeServer()
	if len(ended) != 2 {
		t.Errorf("%d of 2 commands have ended after the stop", len(ended))
	}
	close(released)
	for range 2 {
		err := <-results
		e, ok := errors.AsType[*api.Error](err)
		if !ok || e.Reason != api.ReasonDaemonStopped || !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("the client got %v", err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// The number of sessions is limited. The end of one makes room for the next.
func TestTooManySessions(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, api.MaxSessions)
	d := newExec(t, commands{"echo": echo, "hang": func(ctx context.Context, ref lifecycle.Ref, c session.Command) (int, error) {
		started <- struct{}{}
		return hang(ctx, ref, c)
	}}, "")
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range api.MaxSessions {
		clients.Go(func() { _, _ = d.client.Exec(ctx, "web", client.ExecOptions{Command: []string{"hang"}}) })
	}
	for range api.MaxSessions {
		<-started
	}
	_, err := d.client.Exec(t.Context(), "web", client.ExecOptions{Command: []string{"echo"}})
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Reason != api.ReasonTooManySessions || e.Status != http.StatusTooManyRequests {
		t.Errorf("session %d: %v", api.MaxSessions+1, err)
	}
	cancel()
	clients.Wait()
	for end := time.Now().Add(testTimeout); err != nil && time.Now().Before(end); {
		_, err = d.client.Exec(t.Context(), "web", client.ExecOptions{Command: []string{"echo"}})
	}
	if err != nil {
		t.Error("after the end of the others:", err)
	}
}

func TestExecWithoutDaemon(t *testing.T) {
	t.Parallel()
	d := newExec(t, nil, "")
	d.closeServer()
	if _, err := d.client.Exec(t.Context(), "web", client.ExecOptions{Command: []string{"x"}}); !errors.Is(err, api.ErrUnavailable) {
		t.Error(err)
	}
}

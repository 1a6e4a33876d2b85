package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/containerd/console"
	api "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/podstead/podstead/runtime/monitor"
)

// fakeMonitor answers requests with texts, by their operation. An operation without a text is not answered; with an empty one, the
// connection is closed.
type fakeMonitor struct {
	mu      sync.Mutex
	answers map[string]string
	asked   []string
	sockets []string // of terminals, in requests while they exist
	conns   []*net.UnixConn
	wrote   chan struct{} // receives a value after each request
}

func newFakeMonitor(answers map[string]string) *fakeMonitor {
	m := &fakeMonitor{wrote: make(chan struct{}, 100), answers: map[string]string{
		"hello": fmt.Sprintf(`"body":{"pid":%d,"keeper":%d}`, os.Getpid(), os.Getpid()), "subscribe": `"body":{}`,
		"shutdown": `"error":{"class":"FailedPrecondition","message":"in use"}`,
	}}
	maps.Copy(m.answers, answers)
	return m
}

// newFakeLink returns a link to a fake monitor, which is this process.
func newFakeLink(t *testing.T, answers map[string]string) (*link, *fakeMonitor) {
	t.Helper()
	m := newFakeMonitor(answers)
	dir := t.TempDir()
	m.listen(t, dir)
	l, err := openLink(t.Context(), linkOptions{Dir: dir, Program: "/nonexistent", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	return l, m
}

// listen serves clients until the end of the test.
func (m *fakeMonitor) listen(t *testing.T, dir string) {
	t.Helper()
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, monitor.Socket), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			go m.serve(c)
		}
	}()
}

func (m *fakeMonitor) serve(c *net.UnixConn) {
	defer c.Close()
	m.mu.Lock()
	m.conns = append(m.conns, c)
	m.mu.Unlock()
	buf := make([]byte, 1<<20)
	for {
		n, err := c.Read(buf)
		if err != nil || n == 0 {
			return
		}
		var q struct {
			ID   uint64       `json:"id"`
			Op   string       `json:"op"`
			Body monitor.Exec `json:"body"` // of an exec; other bodies have other fields
		}
		if json.Unmarshal(buf[:n], &q) != nil {
			return
		}
		m.mu.Lock()
		m.asked = append(m.asked, q.Op)
		if _, err := os.Stat(q.Body.ConsoleSocket); err == nil {
			m.sockets = append(m.sockets, q.Body.ConsoleSocket)
		}
		text, has := m.answers[q.Op]
		m.mu.Unlock()
		if has && text == "" {
			return
		}
		if has {
			_, _ = fmt.Fprintf(c, `{"id":%d,%s}`, q.ID, text)
		}
		m.wrote <- struct{}{}
	}
}

// answer changes the answer of an operation.
func (m *fakeMonitor) answer(op, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[op] = text
}

// event sends an event on the first connection.
func (m *fakeMonitor) event(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = fmt.Fprintf(m.conns[0], `{"event":%s}`, text)
}

func (m *fakeMonitor) was(op string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.asked, op)
}

// A request that waits for a monitor which was lost returns when the link is closed, and so does a wait for an exit.
func TestLinkClosedWithoutMonitor(t *testing.T) {
	l, m := newFakeLink(t, map[string]string{"subscribe": `"body":{"containers":[{"id":"c","phase":"Running"}]}`})
	m.answer("hello", "") // it cannot be connected to again
	m.mu.Lock()
	_ = m.conns[0].Close()
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := l.until(ctx, func() bool { return l.client == nil }); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 2)
	go func() { errs <- l.ask(ctx, true, func(*monitor.Client) error { return nil }) }()
	go func() { errs <- l.until(ctx, func() bool { return l.containers["c"].Exit != nil }) }()
	if err := l.close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-errs; !errdefs.IsUnavailable(err) {
			t.Errorf("error %v, want %v", err, errdefs.ErrUnavailable)
		}
	}
}

// A container that may have been created by a request without an answer is deleted.
func TestCreateWithoutAnswer(t *testing.T) {
	for _, name := range []string{"timeout", "lost"} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{"delete": `"error":{"class":"NotFound","message":"no container"}`}
			if name == "lost" {
				answers["create"] = ""
			}
			l, m := newFakeLink(t, answers)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := l.creating(ctx, "c", func(c *monitor.Client) (monitor.Container, error) {
				return c.Create(ctx, monitor.Create{ID: "c"})
			})
			if err == nil || !m.was("delete") {
				t.Errorf("error %v, deleted: %v", err, m.was("delete"))
			}
			if _, known := l.get("c"); known {
				t.Error("the container is known")
			}
		})
	}
}

// The monitor has said that a container was not created: it is not deleted.
func TestCreateRejected(t *testing.T) {
	l, m := newFakeLink(t, map[string]string{"create": `"error":{"class":"AlreadyExists","message":"exists"}`})
	_, err := l.creating(t.Context(), "c", func(c *monitor.Client) (monitor.Container, error) {
		return c.Create(t.Context(), monitor.Create{ID: "c"})
	})
	if !errdefs.IsAlreadyExists(err) || m.was("delete") {
		t.Errorf("error %v, deleted: %v", err, m.was("delete"))
	}
}

// A start that was completed without an answer is none that failed: the container runs, or has exited. One that was not made is repeated.
func TestStartWithoutAnswer(t *testing.T) {
	const rejected = `"error":{"class":"FailedPrecondition","message":"not created"}`
	for _, c := range []struct {
		name, start, state string
		phase              monitor.Phase // empty: an error
	}{
		{"started", rejected, `"body":{"id":"c","phase":"running"}`, monitor.Running},
		{"exited", rejected, `"body":{"id":"c","phase":"exited"}`, monitor.Exited},
		{"repeated", `"body":{"id":"c","phase":"running"}`, `"body":{"id":"c","phase":"created"}`, monitor.Running},
		{"rejected", rejected, `"body":{"id":"c","phase":"created"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, m := newFakeLink(t, map[string]string{
				"start": "", "state": c.state, "subscribe": `"body":{"containers":[{"id":"c","phase":"created"}]}`,
			})
			tasks := &monitoredTasks{link: l, commands: newCommands()}
			done := make(chan error, 1)
			go func() {
				_, err := tasks.Start(t.Context(), &api.StartRequest{ContainerID: "c"})
				done <- errgrpc.ToNative(err)
			}()
			for !m.was("start") {
				<-m.wrote
			}
			m.answer("start", c.start)
			err := <-done
			if c.phase == "" {
				if !errdefs.IsFailedPrecondition(err) {
					t.Errorf("error %v, want that of the monitor", err)
				}
				return
			}
			if got, _ := l.get("c"); err != nil || got.Phase != c.phase {
				t.Errorf("phase %s, want %s; error %v", got.Phase, c.phase, err)
			}
		})
	}
}

// A deletion without an answer is repeated.
func TestDeleteWithoutAnswer(t *testing.T) {
	l, m := newFakeLink(t, map[string]string{"delete": "", "subscribe": `"body":{"containers":[{"id":"c","phase":"exited"}]}`})
	tasks := &monitoredTasks{link: l, commands: newCommands()}
	done := make(chan error, 1)
	go func() {
		_, err := tasks.Delete(t.Context(), &api.DeleteTaskRequest{ContainerID: "c"})
		done <- errgrpc.ToNative(err)
	}()
	for !m.was("delete") {
		<-m.wrote
	}
	m.answer("delete", `"body":{"id":"c","phase":"exited"}`)
	if err := <-done; err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, known := l.get("c"); known {
		t.Error("the container is known")
	}
}

// A container that was started cannot be started again.
func TestStartRejected(t *testing.T) {
	l, _ := newFakeLink(t, map[string]string{
		"start": `"error":{"class":"FailedPrecondition","message":"c is running"}`, "state": `"body":{"id":"c","phase":"running"}`,
		"subscribe": `"body":{"containers":[{"id":"c","phase":"running"}]}`,
	})
	tasks := &monitoredTasks{link: l, commands: newCommands()}
	_, err := tasks.Start(t.Context(), &api.StartRequest{ContainerID: "c"})
	if err = errgrpc.ToNative(err); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("error %v, want that of the monitor", err)
	}
}

// A sandbox of which the process has exited is none, whether its exit is reported or listed.
func TestSandboxExited(t *testing.T) {
	l, m := newFakeLink(t, map[string]string{"subscribe": `"body":{"sandboxes":["a","b","c"],"containers":[
		{"id":"a","phase":"Running"},{"id":"b","phase":"Exited","exit":{"code":137}}]}`})
	if !l.hasSandbox("a") || l.hasSandbox("b") || !l.hasSandbox("c") {
		t.Errorf("sandboxes %v, want a and c", l.allSandboxes())
	}
	m.event(`{"kind":"Exited","container":"a","exit":{"code":137}}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := l.until(ctx, func() bool { return !l.sandboxes["a"] && l.containers["a"].Exit != nil }); err != nil {
		t.Errorf("%v; sandboxes %v", err, l.allSandboxes())
	}
}

// The answer to the start of a command may come after its exit: neither is lost.
func TestCommandExitedBeforeAnswer(t *testing.T) {
	l := &link{containers: map[string]monitor.Container{"c": {ID: "c"}}}
	l.putCommand("c", monitor.Process{ID: "x"})
	l.exited(monitor.Event{Container: "c", Exec: "x", Exit: &monitor.Exit{Code: 3}})
	l.putCommand("c", monitor.Process{ID: "x", PID: 7, Session: 8, Exit: &monitor.Exit{Code: 3}})
	if p := l.containers["c"].Processes[0]; p.PID != 7 || p.Session != 8 || p.Exit == nil {
		t.Errorf("command %+v", p)
	}
}

// A client that was cancelled before it has opened its end of a FIFO does not block the start of its command.
func TestOpenStreamCancelled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range []int{os.O_RDONLY, os.O_WRONLY} {
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := openStream(ctx, path, flags)
			result <- err
		}()
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("flags %#x: error %v", flags, err)
		}
	}
}

// A command's terminal is closed although a process in the background has it: that process gets SIGHUP.
func TestTerminalClosed(t *testing.T) {
	received, path, err := console.NewPty()
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	terminal, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	master, err := pollable(received)
	if err != nil {
		t.Fatal(err)
	}
	commands := newCommands()
	commands.known[commandKey{"c", "x"}] = &command{started: true, terminal: master}
	if err := commands.resize("c", "x", monitor.Size{Width: 81, Height: 25}); err != nil {
		t.Error(err)
	}
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col != 81 || size.Row != 25 {
		t.Errorf("size %+v, %v", size, err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := master.Read(make([]byte, 1))
		read <- err
	}()
	commands.forget("c", "x")
	if err := <-read; err == nil {
		t.Error("read without an error")
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}}, -1); err != nil {
		t.Error(err) // it would not return without a hangup
	}
}

// A monitor that cannot be reached is reported once, and requests fail with the reason. It is connected to as soon as that is possible.
func TestMonitorUnavailable(t *testing.T) {
	dir := t.TempDir()
	reports := make(chan MonitorReport, 10)
	l, err := openLink(t.Context(), linkOptions{
		Dir: dir, Program: "/nonexistent", Log: slog.New(slog.DiscardHandler), UnavailableAfter: time.Millisecond,
		Report: func(r MonitorReport) { reports <- r },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := <-reports; r.Unavailable == nil || l.isListed() {
		t.Errorf("report %+v, listed: %v", r, l.isListed())
	}
	err = l.ask(t.Context(), true, func(*monitor.Client) error { return nil })
	if !errdefs.IsUnavailable(err) || !errors.Is(err, unix.ENOENT) || !Unavailable(err) {
		t.Errorf("request: %v", err)
	}
	l.unreached(t.Context(), errors.New("again"))
	newFakeMonitor(nil).listen(t, dir)
	if r := <-reports; !r.Available {
		t.Errorf("report %+v, want that it is available", r)
	}
	if err := l.ask(t.Context(), true, func(*monitor.Client) error { return nil }); err != nil || !l.isListed() {
		t.Errorf("request: %v, listed: %v", err, l.isListed())
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if len(reports) > 0 {
		t.Errorf("another report: %+v", <-reports)
	}
}

// The restart of a monitor is reported with its cause.
func TestMonitorRestartReported(t *testing.T) {
	var got []string
	l := &link{linkOptions: linkOptions{
		Log: slog.New(slog.DiscardHandler), Report: func(r MonitorReport) { got = append(got, r.Restarted) },
	}}
	l.cause = monitorHung
	l.apply(t.Context(), monitor.Event{Kind: monitor.EventRestarted})
	l.apply(t.Context(), monitor.Event{Kind: monitor.EventRestarted})
	if want := []string{monitorHung, monitorExited}; !slices.Equal(got, want) {
		t.Errorf("causes %q, want %q", got, want)
	}
}

// The cgroup of the monitor is set beside the connection: a systemd that does not respond delays nothing.
func TestPlaceHangs(t *testing.T) {
	dir := t.TempDir()
	m := newFakeMonitor(nil)
	m.listen(t, dir)
	placed := make(chan []int, 10)
	l, err := openLink(t.Context(), linkOptions{
		Dir: dir, Program: "/nonexistent", Log: slog.New(slog.DiscardHandler),
		Place: func(ctx context.Context, pids ...int) error {
			placed <- pids
			<-ctx.Done()
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if pids := <-placed; !slices.Equal(pids, []int{os.Getpid(), os.Getpid()}) {
		t.Errorf("placed %v", pids)
	}
	if err := l.ask(t.Context(), true, func(*monitor.Client) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

// A command whose start has no answer is killed and deleted.
func TestExecWithoutAnswer(t *testing.T) {
	l, m := newFakeLink(t, map[string]string{
		"exec": "", "signal": `"body":{}`, "delete": `"error":{"class":"NotFound","message":"no command"}`,
		"subscribe": `"body":{"containers":[{"id":"c","phase":"Running"}]}`,
	})
	s := newCommands()
	if err := s.prepare(&api.ExecProcessRequest{ContainerID: "c", ExecID: "x", Spec: &anypb.Any{Value: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.start(t.Context(), l, "c", "x"); !errors.Is(err, monitor.ErrClosed) || !m.was("signal") || !m.was("delete") {
		t.Errorf("error %v, killed: %v, deleted: %v", err, m.was("signal"), m.was("delete"))
	}
	if unstarted := s.forget("c", "x"); !unstarted {
		t.Error("the command cannot be deleted")
	}
}

// The socket for the terminal of a command is where the next engine sweeps it, and is removed after the start.
func TestTerminalSocket(t *testing.T) {
	l, m := newFakeLink(t, map[string]string{
		"exec":      `"error":{"class":"NotFound","message":"no sh"}`,
		"subscribe": `"body":{"containers":[{"id":"c","phase":"Running"}]}`,
	})
	s := newCommands()
	request := &api.ExecProcessRequest{ContainerID: "c", ExecID: "x", Terminal: true, Spec: &anypb.Any{Value: []byte("{}")}}
	if err := s.prepare(request); err != nil {
		t.Fatal(err)
	}
	if _, err := s.start(t.Context(), l, "c", "x"); !errdefs.IsNotFound(err) {
		t.Errorf("start: %v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sockets) != 1 || filepath.Dir(filepath.Dir(m.sockets[0])) != l.Dir {
		t.Errorf("sockets %q, want one below %s", m.sockets, l.Dir)
	}
	if left, err := filepath.Glob(filepath.Join(l.Dir, terminalPrefix+"*")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// A command that the monitor does not know any more is none: those who wait for it return.
func TestCommandLost(t *testing.T) {
	l, m := newFakeLink(t, map[string]string{
		"subscribe": `"body":{"containers":[{"id":"c","phase":"Running","processes":[{"id":"x"}]}]}`,
	})
	s := newCommands()
	l.commands = s
	s.known[commandKey{"c", "x"}] = &command{started: true, listed: true}
	s.known[commandKey{"c", "y"}] = &command{}
	tasks := &monitoredTasks{link: l, commands: s}
	exited := make(chan error, 1)
	go func() {
		_, err := tasks.Wait(t.Context(), &api.WaitRequest{ContainerID: "c", ExecID: "x"})
		exited <- errgrpc.ToNative(err)
	}()
	m.answer("subscribe", `"body":{"containers":[{"id":"c","phase":"Running"}]}`)
	m.mu.Lock()
	_ = m.conns[0].Close()
	m.mu.Unlock()
	if err := <-exited; !errdefs.IsNotFound(err) {
		t.Errorf("wait: %v", err)
	}
	r, err := tasks.Get(t.Context(), &api.GetRequest{ContainerID: "c", ExecID: "y"})
	if err != nil || r.Process.Status != task.Status_CREATED {
		t.Errorf("a command that was prepared: %v, %v", r, err)
	}
	if s.has("c", "x") || !s.has("c", "y") {
		t.Errorf("commands %v, want y", s.known)
	}
}

// The monitor ends a run of the OCI runtime before the request for it has timed out, so that the error has the cause.
func TestRuntimeTimeout(t *testing.T) {
	if monitor.RuntimeTimeout > CreateTimeout-CreateTimeout/5 {
		t.Errorf("the monitor's timeout %v is too long for requests with %v", monitor.RuntimeTimeout, CreateTimeout)
	}
}

// A keeper that is stopped before it has started a monitor is continued.
func TestKeeperStopped(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "keeper"), []byte("read line"), 0o600); err != nil {
		t.Fatal(err)
	}
	keeper := exec.Command("/bin/sh")
	keeper.Dir, keeper.Args = dir, []string{monitor.Name, "keeper", "-state", dir}
	if _, err := keeper.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = keeper.Process.Kill()
		_ = keeper.Wait() // killed
	})
	await := func(option int) {
		t.Helper()
		info := unix.Siginfo{}
		if err := unix.Waitid(unix.P_PID, keeper.Process.Pid, &info, option|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := keeper.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(unix.WSTOPPED)
	l, err := openLink(t.Context(), linkOptions{
		Dir: dir, Program: "/nonexistent", Log: slog.New(slog.DiscardHandler), UnavailableAfter: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	await(unix.WCONTINUED)
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if l.cause != "" {
		t.Errorf("cause %q, although no monitor was killed", l.cause)
	}
}

// A link that is closed starts no keeper.
func TestClosedLinkStartsNothing(t *testing.T) {
	l, _ := newFakeLink(t, nil)
	if err := l.close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.connect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("connect: %v", err)
	}
	if !l.begun.IsZero() {
		t.Error("a keeper was started")
	}
}

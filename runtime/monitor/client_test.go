package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// fakeMonitor accepts one client. serve is called with its connection.
func fakeMonitor(t *testing.T, serve func(c *net.UnixConn)) *Client {
	t.Helper()
	dir := t.TempDir()
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, Socket), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := l.AcceptUnix()
		_ = l.Close()
		if err == nil {
			defer c.Close()
			serve(c)
		}
	}()
	client, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func readRequest(c *net.UnixConn) (q request, err error) {
	buf := make([]byte, maxPacket)
	n, err := c.Read(buf)
	if err == nil {
		err = json.Unmarshal(buf[:n], &q)
	}
	return q, err
}

func reply(c *net.UnixConn, text string, args ...any) { _, _ = fmt.Fprintf(c, text, args...) }

// TestAnswers receives answers in another order, in parts, and errors of all classes.
func TestAnswers(t *testing.T) {
	client := fakeMonitor(t, func(c *net.UnixConn) {
		first, _ := readRequest(c)
		second, _ := readRequest(c)
		for _, q := range []request{second, first} {
			if q.Op == opList {
				reply(c, `{"id":%d,"more":true,"body":{"containers":[{"id":"a"}],"sequence":3}}`, q.ID)
				reply(c, `{"id":77,"body":{}}`) // of a request that was given up
				reply(c, `{"id":%d,"body":{"containers":[{"id":"b"}],"sandboxes":["s"],"sequence":4}}`, q.ID)
				continue
			}
			reply(c, `{"id":%d,"error":{"class":"NotFound","message":"no such container"}}`, q.ID)
		}
		_, _ = readRequest(c)
	})
	failed := make(chan error, 1)
	go func() {
		_, err := client.State(t.Context(), "x")
		failed <- err
	}()
	containers, sandboxes, sequence, err := func() ([]Container, []string, uint64, error) {
		l, err := client.list(t.Context(), opList)
		return l.Containers, l.Sandboxes, l.Sequence, err
	}()
	if err != nil || len(containers) != 2 || containers[1].ID != "b" || len(sandboxes) != 1 || sequence != 4 {
		t.Errorf("list: %v, %v, %d, %v", containers, sandboxes, sequence, err)
	}
	if err := <-failed; !errdefs.IsNotFound(err) || !strings.Contains(err.Error(), "no such container") {
		t.Errorf("state: %v", err)
	}
	for class, is := range map[Class]func(error) bool{
		ClassInvalid: errdefs.IsInvalidArgument, ClassNotFound: errdefs.IsNotFound, ClassExists: errdefs.IsAlreadyExists,
		ClassPrecondition: errdefs.IsFailedPrecondition, ClassDeadline: errdefs.IsDeadlineExceeded, ClassUnavailable: errdefs.IsUnavailable,
		ClassRuntime: errdefs.IsUnknown, ClassInternal: errdefs.IsInternal, "of a later version": errdefs.IsUnknown,
	} {
		if err := fmt.Errorf("x: %w", errorf(class, "y")); !is(err) {
			t.Errorf("class %s is not recognized", class)
		}
	}
}

// TestLostConnection ends requests in progress, and events.
func TestLostConnection(t *testing.T) {
	client := fakeMonitor(t, func(c *net.UnixConn) { _, _ = readRequest(c) })
	if _, err := client.Hello(t.Context()); !errors.Is(err, ErrClosed) || !errdefs.IsUnavailable(err) {
		t.Errorf("request in progress: %v", err)
	}
	<-client.Done()
	if _, open := <-client.Events(); open {
		t.Error("an event after the connection was lost")
	}
	if _, err := client.Hello(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("next request: %v", err)
	}
	if _, err := Dial(t.Context(), t.TempDir()); !errdefs.IsUnavailable(err) {
		t.Errorf("no monitor: %v", err)
	}
}

// TestDeadlines gives up requests. A command that was given up is cancelled.
func TestDeadlines(t *testing.T) {
	cancelledRun := make(chan error, 1)
	ctx, expire := context.WithCancelCause(t.Context())
	client := fakeMonitor(t, func(c *net.UnixConn) {
		run, _ := readRequest(c)
		expire(context.DeadlineExceeded) // not before it is sent
		q, err := readRequest(c)
		var r cancelled
		if err == nil {
			err = json.Unmarshal(q.Body, &r)
		}
		if err == nil && (q.Op != opCancel || r.Request != run.ID) {
			err = fmt.Errorf("request %+v after %+v", q, run)
		}
		cancelledRun <- err
		reply(c, `{"id":%d,"body":{}}`, run.ID) // late
		q, _ = readRequest(c)
		reply(c, `{"id":%d,"body":{"pid":5}}`, q.ID)
		_, _ = readRequest(c)
	})
	if _, err := client.Run(ctx, Run{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run: %v", err)
	}
	if err := <-cancelledRun; err != nil {
		t.Error(err)
	}
	if h, err := client.Hello(t.Context()); err != nil || h.PID != 5 {
		t.Errorf("next request: %+v, %v", h, err)
	}
	large := Exec{Process: json.RawMessage(`"` + strings.Repeat("x", maxPacket) + `"`)}
	if _, err := client.Exec(t.Context(), large, nil); !errdefs.IsInvalidArgument(err) {
		t.Errorf("request that is too large: %v", err)
	}
}

// TestEventQueue loses the connection if events are not received.
func TestEventQueue(t *testing.T) {
	client := fakeMonitor(t, func(c *net.UnixConn) {
		for i := range eventQueue + 1 {
			reply(c, `{"event":{"sequence":%d,"kind":"OOM"}}`, i)
		}
		_, _ = readRequest(c)
	})
	<-client.Done()
	n := 0
	for e := range client.Events() {
		if e.Sequence != uint64(n) {
			t.Fatalf("event %d is %+v", n, e)
		}
		n++
	}
	if n != eventQueue {
		t.Errorf("%d events, want %d", n, eventQueue)
	}
}

// TestConnectionQueue has clients that do not read: answers wait up to a limit, and nothing is sent to a closed connection.
func TestConnectionQueue(t *testing.T) {
	l, _ := startLoop(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(pair[1])
	m := &Monitor{loop: l, connections: map[*connection]struct{}{}}
	var c *connection
	cancels := 0
	l.do(func() {
		if err := m.admit(pair[0]); err != nil {
			t.Error(err)
		}
		for c = range m.connections {
			c.subscribed = true
			c.runs[1] = func() { cancels++ }
		}
	})
	// Events wait for a reader, in order.
	const events = 5000
	l.do(func() {
		for range events {
			m.emit(Event{Kind: EventOOM, Message: strings.Repeat("x", 100)})
		}
		if c.queued == 0 || c.closed {
			t.Errorf("%d bytes wait, closed: %v", c.queued, c.closed)
		}
	})
	buf := make([]byte, maxPacket)
	for i := 1; i <= events; i++ {
		poll := []unix.PollFd{{Fd: int32(pair[1]), Events: unix.POLLIN}}
		if _, err := retry(func() (int, error) { return unix.Poll(poll, -1) }); err != nil {
			t.Fatal(err)
		}
		n, err := unix.Read(pair[1], buf)
		var r response
		if err == nil {
			err = json.Unmarshal(buf[:n], &r)
		}
		if err != nil || r.Event.Sequence != uint64(i) {
			t.Fatalf("event %d: %+v, %v", i, r, err)
		}
	}
	l.do(func() {
		for i := 0; i < 2*maxQueue/1000 && !c.closed; i++ {
			m.emit(Event{Kind: EventOOM, Message: strings.Repeat("x", 1000)})
		}
		if !c.closed || len(m.connections) != 0 || cancels != 1 {
			t.Errorf("closed: %v, %d connections, %d commands cancelled", c.closed, len(m.connections), cancels)
		}
		c.requests = 1
		c.answer(1, struct{}{}, nil)
		c.close()
	})
}

// TestLargeAnswers bounds what is sent in a packet.
func TestLargeAnswers(t *testing.T) {
	l, _ := startLoop(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(pair[1])
	m := &Monitor{loop: l, connections: map[*connection]struct{}{}, containers: map[string]*container{}}
	var want int
	l.do(func() {
		if err := m.admit(pair[0]); err != nil {
			t.Error(err)
		}
		for c := range m.connections {
			c.answer(1, strings.Repeat("x", maxPacket), nil)
			c.answer(2, nil, errors.New(strings.Repeat("\x01", maxPacket)))
			for i := range 1000 {
				o := m.newContainer(record{Create: Create{ID: fmt.Sprint(i), Bundle: "/" + strings.Repeat("b", 200)}})
				o.settled = i%2 == 0
				m.containers[o.id] = o
			}
			want = 500
			m.sendList(c, 3)
		}
	})
	buf := make([]byte, 2*maxPacket)
	var got int
	for last := false; !last; {
		poll := []unix.PollFd{{Fd: int32(pair[1]), Events: unix.POLLIN}}
		if _, err := retry(func() (int, error) { return unix.Poll(poll, -1) }); err != nil {
			t.Fatal(err)
		}
		n, err := unix.Read(pair[1], buf)
		if err != nil || n > maxPacket {
			t.Fatalf("packet of %d bytes, %v", n, err)
		}
		var r response
		if err := json.Unmarshal(buf[:n], &r); err != nil {
			t.Fatal(err)
		}
		if r.ID < 3 {
			if r.Error == nil {
				t.Errorf("answer %d has no error", r.ID)
			}
			continue
		}
		var part list
		if err := json.Unmarshal(r.Body, &part); err != nil {
			t.Fatal(err)
		}
		got += len(part.Containers)
		last = !r.More
	}
	if got != want {
		t.Errorf("%d containers, want %d", got, want)
	}
}

//go:build e2e

package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/runtime/ocibundle"
)

// TestCommands runs commands in a container.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	c := w.run(testContainer{}, "sleep 1000")
	w.subscribe()

	in, inWrite := w.pipe()
	outRead, out := w.pipe()
	r := Exec{Container: c.ID, ID: "e1", Process: w.processJSON("cat; echo err >&2; exit 5", "")}
	p, err := w.client.Exec(w.ctx, r, &[3]*os.File{in, out, out})
	w.must(err)
	if _, err := w.client.Exec(w.ctx, r, &[3]*os.File{in, out, out}); !errdefs.IsAlreadyExists(err) {
		t.Errorf("start a command twice: %v", err)
	}
	w.must(errors.Join(in.Close(), out.Close()))
	if _, err := w.client.Exec(w.ctx, r, &[3]*os.File{in, out, out}); err == nil {
		t.Error("started a command with files that are closed")
	}
	_, err = inWrite.WriteString("hello\n")
	w.must(errors.Join(err, inWrite.Close()))
	text, err := io.ReadAll(outRead)
	w.must(err)
	if string(text) != "hello\nerr\n" {
		t.Errorf("output %q", text)
	}
	e := w.event(func(e Event) bool { return e.Kind == EventExited && e.Exec == "e1" })
	if e.Exit.Code != 5 || e.PID != p.PID {
		t.Errorf("exit of the command: %+v", e)
	}
	s, err := w.client.State(w.ctx, c.ID)
	w.must(err)
	if len(s.Processes) != 1 || s.Processes[0].Exit == nil {
		t.Errorf("state with a command: %+v", s)
	}
	if _, err := w.client.DeleteExec(w.ctx, c.ID, "e1"); err != nil {
		t.Error(err)
	}

	// A terminal belongs to the client.
	socket := filepath.Join(w.state, "console.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	w.must(err)
	defer l.Close()
	process := w.process("stty size; exit 6")
	process.Terminal = true
	r = Exec{Container: c.ID, ID: "e2", Process: marshal(w, process), ConsoleSocket: socket}
	if _, err := w.client.Exec(w.ctx, r, nil); err != nil {
		t.Error(err)
	}
	if e := w.event(func(e Event) bool { return e.Exec == "e2" }); e.Exit.Code != 6 {
		t.Errorf("exit of the command with a terminal: %+v", e)
	}

	result, err := w.client.Run(w.ctx, Run{
		Container: c.ID, Mark: "m-1-probe", Process: w.processJSON("echo out; echo err >&2; exit 4", "m-1-probe"),
		Timeout: patience, MaxOutput: 100,
	})
	if err != nil || result.Code != 4 || string(result.Output) != "out\nerr\n" {
		t.Errorf("run: %+v, %v", result, err)
	}
	result, err = w.client.Run(w.ctx, Run{
		Container: c.ID, Mark: "m-2-probe", Process: w.processJSON("seq 1 100000", "m-2-probe"), Timeout: patience, MaxOutput: 10,
	})
	if err != nil || string(result.Output) != "1\n2\n3\n4\n5\n" {
		t.Errorf("run with much output: %+v, %v", result, err)
	}
	_, err = w.client.Run(w.ctx, Run{
		Container: c.ID, Mark: "m-3-probe", Process: w.processJSON("sleep 1000 & sleep 1000", "m-3-probe"), Timeout: time.Second,
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run with a timeout: %v", err)
	}
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	if _, err = w.client.Run(ctx, Run{Container: c.ID, Mark: "m-4-probe", Process: w.processJSON("sleep 1000", "m-4-probe")}); err == nil {
		t.Error("run that is cancelled succeeded")
	}
	// A process that the command has left keeps neither the request nor its output open, and is killed at the timeout.
	result, err = w.client.Run(w.ctx, Run{
		Container: c.ID, Mark: "m-5-probe", Process: w.processJSON("sleep 1000 & echo left", "m-5-probe"),
		Timeout: 10 * time.Second, MaxOutput: 10,
	})
	if err != nil || string(result.Output) != "left\n" {
		t.Errorf("run that leaves a process: %+v, %v", result, err)
	}
	if _, err := w.client.Run(w.ctx, Run{Container: c.ID, Mark: "m", Process: []byte(`{"args":["/nope"],"cwd":"/"}`)}); err == nil ||
		!strings.Contains(err.Error(), "OCI runtime exec failed") {
		t.Errorf("run of a missing program: %v", err)
	}
	w.onlyFirst(c)
	if _, err := w.client.Run(w.ctx, Run{Container: "no", Mark: "m", Process: w.processJSON("true", "m")}); !errdefs.IsNotFound(err) {
		t.Errorf("run in no container: %v", err)
	}
	w.killAndDelete(c.ID)
	w.wantNothing()
}

// onlyFirst waits until a container has only its first process.
func (w *world) onlyFirst(c Container) {
	w.Helper()
	w.eventually("commands are gone", func() error {
		pids, err := w.client.PIDs(w.ctx, c.ID)
		if err == nil && len(pids) > 1 {
			err = errors.New("processes are left")
			for _, p := range pids {
				text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p), "cmdline"))
				err = errors.Join(err, errors.New(strconv.Itoa(p)+" "+string(text)))
			}
		}
		return err
	})
}

// TestAttach attaches to containers, also with a terminal, and over the death of the monitor.
func TestAttach(t *testing.T) {
	w := newWorld(t)
	c := w.run(testContainer{stdin: ocibundle.OpenStdin}, `while read line; do echo "got $line"; done; exit 9`)
	s := w.attach(c.ID)
	w.talk(s, "one\n", "got one\n")
	_, monitor := w.pids()
	w.kill(monitor)
	if _, _, err := s.Next(); err == nil {
		t.Error("the session has survived the monitor")
	}
	w.connect()
	s = w.attach(c.ID)
	w.talk(s, "two\n", "got two\n")
	w.must(s.Close())
	w.must(w.client.CloseInput(w.ctx, c.ID))
	if e := w.awaitExit(c.ID); e.Code != 9 {
		t.Errorf("exit after the input was closed: %+v", e)
	}
	w.delete(c.ID)
	w.wantLog(c.ID, "got one", "got two")

	once := w.run(testContainer{stdin: ocibundle.OnceStdin}, `cat; exit 8`)
	s = w.attach(once.ID)
	w.talk(s, "x\n", "x\n")
	w.must(s.CloseStdin())
	exited := w.ends(s)
	if exited.Code != 8 {
		t.Errorf("exit in the session: %+v", exited)
	}
	w.delete(once.ID)

	tty := w.run(testContainer{terminal: true, stdin: ocibundle.OpenStdin},
		`stty size; while read line; do echo "got $line"; stty size; done`)
	s = w.attach(tty.ID)
	w.must(s.Resize(attach.Size{Width: 77, Height: 33}))
	w.eventually("the size changes", func() error {
		_, err := s.Write([]byte("a\n"))
		w.must(err)
		for _, line := range w.log(tty.ID, "") {
			if strings.Contains(line, "33 77") {
				return nil
			}
		}
		return errors.New("another size")
	})
	for range 5 {
		keeper, monitor := w.pids()
		if keeper%2 == 0 {
			w.kill(keeper)
		} else {
			w.kill(monitor)
		}
		w.connect()
	}
	s = w.attach(tty.ID)
	w.talk(s, "after\n", "got after")
	w.must(w.client.Signal(w.ctx, Signal{Container: tty.ID, Signal: int(unix.SIGKILL)}))
	if e := w.awaitExit(tty.ID); e.Code != 137 {
		t.Errorf("exit of the container with a terminal: %+v", e)
	}
	w.delete(tty.ID)
	w.wantNothing()
}

// TestSlowClient has a client that does not read what a container writes: it is disconnected, and the log is complete.
func TestSlowClient(t *testing.T) {
	w := newWorld(t)
	c := w.run(testContainer{stdin: ocibundle.OpenStdin, log: crilog.Options{MaxBytes: 1 << 30}}, `read go; seq 1 400000; exit 3`)
	s := w.attach(c.ID)
	_, err := s.Write([]byte("go\n"))
	w.must(err)
	if e := w.awaitExit(c.ID); e.Code != 3 {
		t.Errorf("exit %+v", e)
	}
	w.must(s.Close())
	w.delete(c.ID)
	if got := w.log(c.ID, ""); len(got) != 400000 || got[399999] != "400000" {
		t.Errorf("the log has %d lines", len(got))
	}

	// A client of the monitor that does not read its answers is disconnected, and others are served.
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: filepath.Join(w.dir(), Socket), Net: "unixpacket"})
	w.must(err)
	defer conn.Close()
	w.must(conn.SetWriteDeadline(time.Now().Add(patience)))
	w.eventually("the client is disconnected", func() error {
		for range 1000 {
			if _, err := conn.Write([]byte(`{"id":1,"op":"hello"}`)); err != nil {
				return nil // that is awaited
			}
		}
		if _, err := w.client.Hello(w.ctx); err != nil {
			t.Fatal(err)
		}
		return errors.New("it is connected")
	})
	// Packets that are no requests.
	for _, packet := range []string{"", "{", "[]", `{"id":1,"op":"x"}`, `{"id":1,"op":"create","body":[]}`, strings.Repeat("x", 100<<10)} {
		bad, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: filepath.Join(w.dir(), Socket), Net: "unixpacket"})
		w.must(err)
		_, err = bad.Write([]byte(packet))
		w.must(err)
		w.must(bad.Close())
	}
	_, err = w.client.Hello(w.ctx)
	w.must(err)
	w.wantNothing()
}

// attach opens a session with the streams of a container.
func (w *world) attach(id string) *attach.Session {
	w.Helper()
	var s *attach.Session
	w.eventually("attach", func() (err error) {
		s, err = attach.Open(w.ctx, w.dir(), attach.Request{Container: id, Stdin: true, Stdout: true, Stderr: true})
		return err
	})
	w.Cleanup(func() { _ = s.Close() })
	return s
}

// talk writes to a session and waits for an answer.
func (w *world) talk(s *attach.Session, say, want string) {
	w.Helper()
	_, err := s.Write([]byte(say))
	w.must(err)
	got := ""
	for !strings.Contains(got, want) {
		_, data, err := s.Next()
		if err != nil {
			w.Fatalf("waiting for %q: got %q, %v", want, got, err)
		}
		got += string(data)
	}
}

// ends reads a session until the container has exited.
func (w *world) ends(s *attach.Session) *attach.ExitedError {
	w.Helper()
	for {
		_, _, err := s.Next()
		if exited, ok := errors.AsType[*attach.ExitedError](err); ok {
			return exited
		}
		w.must(err)
	}
}

func (w *world) pipe() (read, write *os.File) {
	w.Helper()
	read, write, err := os.Pipe()
	w.must(err)
	w.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return read, write
}

// subscribe starts events.
func (w *world) subscribe() {
	w.Helper()
	_, _, _, err := w.client.Subscribe(w.ctx)
	w.must(err)
}

// event waits for an event.
func (w *world) event(is func(Event) bool) Event {
	w.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case e, open := <-w.client.Events():
			if !open {
				w.Fatal("the connection is lost")
			}
			if is(*e) {
				return *e
			}
		case <-late.C:
			w.Fatal("the event does not come")
		}
	}
}

// killAndDelete kills a container and deletes it.
func (w *world) killAndDelete(id string) {
	w.Helper()
	w.retry("kill", func(c *Client) error {
		err := c.Signal(w.ctx, Signal{Container: id, Signal: int(unix.SIGKILL)})
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
	w.awaitExit(id)
	w.delete(id)
}

func marshal(w *world, v any) []byte {
	text, err := json.Marshal(v)
	w.must(err)
	return text
}

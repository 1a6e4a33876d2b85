package journald

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"golang.org/x/sys/unix"
)

// TestAppend checks the framing of values with any bytes.
func TestAppend(t *testing.T) {
	entry := AppendPriority(nil, journal.PriErr)
	entry = AppendString(entry, "EMPTY", "")
	entry = Append(entry, "MESSAGE", []byte("a=b\x00\xff"))
	entry = Append(entry, "MESSAGE", []byte("two\nlines"))
	const want = "PRIORITY=3\nMESSAGE=a=b\x00\xff\nMESSAGE\n\x09\x00\x00\x00\x00\x00\x00\x00two\nlines\n"
	if string(entry) != want {
		t.Errorf("got %q, want %q", entry, want)
	}
}

// server is a journald that reads when it is asked to.
type server struct {
	*net.UnixConn
	t *testing.T
}

func listen(t *testing.T, path string) server {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return server{c, t}
}

func (s server) read() string {
	s.t.Helper()
	var buf [64 << 10]byte
	if err := s.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	n, err := s.Read(buf[:])
	if err != nil {
		s.t.Fatal(err)
	}
	return string(buf[:n])
}

func newQueue(t *testing.T, limit int) (*Queue, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	return NewQueue(Options{Socket: path, Limit: limit, Notice: func(n int64) []byte { return fmt.Appendf(nil, "DROPPED=%d\n", n) }}), path
}

// TestSocketLate checks that entries wait for a journald that starts later, and for one that was started again.
func TestSocketLate(t *testing.T) {
	q, path := newQueue(t, 0)
	q.Add(nil, []byte("A=1\n"))
	q.Add([]byte("SHARED=x\n"), []byte("A=2\n"))
	s := listen(t, path)
	for _, want := range []string{"A=1\n", "SHARED=x\nA=2\n"} {
		if got := s.read(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := errors.Join(s.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	q.Add(nil, []byte("A=3\n"))
	s = listen(t, path)
	if got := s.read(); got != "A=3\n" {
		t.Errorf("got %q after a restart", got)
	}
	if lost := q.Close(time.Minute); lost != 0 {
		t.Errorf("%d entries lost", lost)
	}
}

// TestStopped checks that a journald that does not read blocks no sender, and that all entries are received or counted.
func TestStopped(t *testing.T) {
	const n, size = 5000, 1000
	q, path := newQueue(t, 100*size)
	s := listen(t, path)
	begun := time.Now()
	for i := range n {
		q.Add(nil, fmt.Appendf(nil, "A=%d%s\n", i, strings.Repeat("x", size)))
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("%d entries took %v", n, took)
	}
	lost := make(chan int64)
	go func() { lost <- q.Close(time.Minute) }()
	received, reported := int64(0), int64(0)
	for received+reported < n {
		if text := s.read(); strings.HasPrefix(text, "DROPPED=") {
			var dropped int64
			if _, err := fmt.Sscanf(text, "DROPPED=%d\n", &dropped); err != nil {
				t.Fatal(err)
			}
			reported += dropped
		} else {
			received++
		}
	}
	if reported == 0 || received < 50 || <-lost != 0 {
		t.Errorf("%d received, %d reported", received, reported)
	}
}

// TestCloseTimeout checks that a queue whose journald does not come ends in time, and counts what it has lost.
func TestCloseTimeout(t *testing.T) {
	q, _ := newQueue(t, 0)
	for range 3 {
		q.Add(nil, []byte("A=1\n"))
	}
	begun := time.Now()
	if lost := q.Close(100 * time.Millisecond); lost != 3 || time.Since(begun) > 20*time.Second {
		t.Errorf("%d lost after %v", lost, time.Since(begun))
	}
	q.Add(nil, []byte("A=1\n"))
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending.list) > 0 || q.size != 0 || q.dropped != 4 {
		t.Errorf("%d entries and %d bytes pending, %d dropped after the end", len(q.pending.list), q.size, q.dropped)
	}
}

// TestTooLarge checks that an entry that fits into no datagram is counted, and does not hold up others.
func TestTooLarge(t *testing.T) {
	q, path := newQueue(t, 64<<20)
	s := listen(t, path)
	q.Add(nil, bytes.Repeat([]byte("x"), 32<<20))
	q.Add(nil, []byte("A=1\n"))
	if got := s.read(); got != "A=1\n" {
		t.Errorf("got %q", got)
	}
	if lost := q.Close(time.Minute); lost != 0 {
		t.Errorf("%d lost", lost)
	}
	if got := s.read(); got != "DROPPED=1\n" {
		t.Errorf("got %q", got)
	}
}

// armed reports whether a timer runs, when the queue has done all that it can.
func (q *Queue) armed() bool {
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.notice != nil
}

// TestIdle checks that a queue has a timer only while dropped entries were not reported.
func TestIdle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	s := listen(t, path)
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Options{
			Socket: path, Limit: itemSize + 4, Notice: func(n int64) []byte { return fmt.Appendf(nil, "DROPPED=%d\n", n) },
		})
		q.Add(nil, []byte("A=1\n"))
		if got := s.read(); got != "A=1\n" {
			t.Errorf("got %q", got)
		}
		if q.armed() {
			t.Error("a timer runs although no entries were dropped")
		}
		q.Add(nil, []byte("A=too long\n"))
		if !q.armed() {
			t.Error("no timer runs although an entry was dropped")
		}
		time.Sleep(noticeInterval)
		if got := s.read(); got != "DROPPED=1\n" {
			t.Errorf("got %q", got)
		}
		if q.armed() {
			t.Error("a timer runs although all dropped entries were reported")
		}
		if lost := q.Close(time.Minute); lost != 0 {
			t.Errorf("%d lost", lost)
		}
	})
}

// crowded is a connection to a kernel that has no memory for the first attempts to send.
type crowded struct {
	net.Conn
	failures, sent int
}

func (*crowded) SetWriteDeadline(time.Time) error { return nil }

func (c *crowded) Write(b []byte) (int, error) {
	if c.failures > 0 {
		c.failures--
		return 0, &net.OpError{Op: "write", Err: os.NewSyscallError("write", unix.ENOBUFS)}
	}
	c.sent++
	return len(b), nil
}

// TestNoMemory checks that an entry is sent again if the kernel had no memory for it.
func TestNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowded{failures: 3}
		q := &Queue{stop: make(chan struct{})}
		begun := time.Now()
		if sent := q.send(&conn{conn: c}, []byte("A=1\n")); !sent || c.sent != 1 {
			t.Errorf("sent %v, %d entries received", sent, c.sent)
		}
		if took := time.Since(begun); took != 3*retryPause {
			t.Errorf("sent after %v, want a pause of %v before each of 3 attempts", took, retryPause)
		}
	})
}

// TestCheck compares with the directory of the socket.
func TestCheck(t *testing.T) {
	_, missing := os.Stat(filepath.Dir(Socket))
	if err := Check(); (err == nil) != (missing == nil) {
		t.Errorf("got %v, the directory: %v", err, missing)
	}
}

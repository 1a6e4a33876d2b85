//go:build e2e

package runtime_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// attach opens a session with a container, whose output the test gets.
func (p *pod) attach(ref lifecycle.Ref, r attach.Request) *attach.Session {
	p.Helper()
	r.Stdout, r.Stderr = true, true
	s, err := p.Attach(p.ctx(), uid, ref, r)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = s.Close() })
	return s
}

// until reads from a session until the output contains a text.
func (p *pod) until(s *attach.Session, want string) {
	p.Helper()
	stop := time.AfterFunc(deadline, func() { _ = s.Close() })
	defer stop.Stop()
	var got strings.Builder
	for !strings.Contains(got.String(), want) {
		_, data, err := s.Next()
		if err != nil {
			p.Fatalf("%v after %q, want %q", err, got.String(), want)
		}
		got.Write(data)
	}
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Error(err)
	}
}

// exit reads from a session until the container has exited.
func (p *pod) exit(s *attach.Session, write io.Writer) uint32 {
	p.Helper()
	stop := time.AfterFunc(deadline, func() { _ = s.Close() })
	defer stop.Stop()
	for {
		_, data, err := s.Next()
		if exit, ok := errors.AsType[*attach.ExitedError](err); ok {
			return exit.Code
		}
		if err != nil {
			p.Fatal(err)
		}
		_, _ = write.Write(data)
	}
}

// finish waits for the exit of a container, and removes the pod.
func (p *pod) finish(ref lifecycle.Ref) {
	p.Helper()
	if _, _, err := p.WaitContainer(p.ctx(), uid, ref); err != nil {
		p.Error(err)
	}
	if err := p.RemovePod(p.ctx(), uid, p.Pod); err != nil {
		p.Error(err)
	}
}

// TestFieldsStdin: input reaches the container, and stays open over clients and restarts of the daemon unless stdinOnce is set.
//
// fields: containers[].{stdin,stdinOnce}
func TestFieldsStdin(t *testing.T) {
	m := newTestHost(t)
	t.Run("stays open over clients", func(t *testing.T) {
		p := newPod(m, &spec.Pod{})
		c := sh(`printf 'ready> '; while read line; do echo "got $line"; [ "$line" = end ] && exit 5; done; exit 6`)
		c.Stdin = true
		ref, err := p.start(c)
		if err != nil {
			t.Fatal(err)
		}
		s := p.attach(ref, attach.Request{Stdin: true, FromStart: true})
		p.until(s, "ready> ")
		write(t, s, "one\n")
		p.until(s, "got one\n")
		_ = s.Close()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		m.start()
		s = p.attach(ref, attach.Request{Stdin: true})
		write(t, s, "two\n")
		p.until(s, "got two\n")
		if err := s.CloseStdin(); err != nil {
			t.Fatal(err)
		}
		other := p.attach(ref, attach.Request{Stdin: true})
		write(t, other, "end\n")
		if code := p.exit(s, io.Discard); code != 5 {
			t.Errorf("exit code %d", code)
		}
		p.finish(ref)
	})
	t.Run("closed after the first client", func(t *testing.T) {
		p := newPod(m, &spec.Pod{})
		c := sh("sha256sum; exit 3")
		c.Stdin, c.StdinOnce = true, true
		ref, err := p.start(c)
		if err != nil {
			t.Fatal(err)
		}
		s := p.attach(ref, attach.Request{Stdin: true})
		sum, block := sha256.New(), make([]byte, 1<<20)
		for i := range 100 {
			for j := range block {
				block[j] = byte(i * j)
			}
			_, _ = sum.Write(block)
			if _, err := s.Write(block); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.CloseStdin(); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if code := p.exit(s, &out); code != 3 || !strings.HasPrefix(out.String(), hex.EncodeToString(sum.Sum(nil))) {
			t.Errorf("exit code %d, output %q", code, out.String())
		}
		p.finish(ref)
	})
	t.Run("no standard input", func(t *testing.T) {
		p := newPod(m, &spec.Pod{})
		ref, err := p.start(sh("cat; sleep 10000"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Attach(p.ctx(), uid, ref, attach.Request{Stdin: true})
		if e, ok := errors.AsType[*attach.Error](err); !ok || e.Reason != attach.NoStdin {
			t.Errorf("attach to a container without standard input: %v", err)
		}
		if err := m.KillContainer(p.ctx(), uid, ref); err != nil {
			t.Error(err)
		}
		p.finish(ref)
	})
}

// TestFieldsTTY: a terminal has a size, signals, and one output stream. The input can end and the container can be deleted without leaving
// a shim or a FIFO.
//
// fields: containers[].tty
func TestFieldsTTY(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, &spec.Pod{})
	c := sh(`trap 'echo interrupted' INT; trap 'stty size' WINCH; tty; echo $TERM; echo error >&2; while :; do read line && echo "got ` +
		`$line"; done`)
	c.Stdin, c.StdinOnce, c.TTY = true, true, true
	ref, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	s := p.attach(ref, attach.Request{Stdin: true, FromStart: true})
	p.until(s, "/dev/pts/0\r\nxterm\r\nerror\r\n")
	if err := s.Resize(attach.Size{Width: 132, Height: 43}); err != nil {
		t.Fatal(err)
	}
	write(t, s, "a\n")
	p.until(s, "43 132")
	write(t, s, "\x03")
	p.until(s, "interrupted")
	_ = s.Close()
	s = p.attach(ref, attach.Request{Stdin: true}) // stdinOnce has no effect on a terminal
	write(t, s, "again\n")
	p.until(s, "got again")
	if log := p.log(ref); strings.Contains(log, "stderr") || !strings.Contains(log, "xterm") {
		t.Errorf("log:\n%s", log)
	}
	shims := m.shimFiles()
	if len(shims) == 0 {
		t.Error("no shim was found")
	}
	if err := m.KillContainer(p.ctx(), uid, ref); err != nil {
		t.Error(err)
	}
	if code := p.exit(s, io.Discard); code != 137 {
		t.Errorf("exit code %d", code)
	}
	if _, _, err := p.WaitContainer(p.ctx(), uid, ref); err != nil {
		t.Error(err)
	}
	// The shim of the pod is still running.
	m.eventually("closed FIFOs", func() (string, bool) {
		files := strings.Join(m.shimFiles(), "\n")
		return files, !strings.Contains(files, "/stdin") && !strings.Contains(files, "/stdout") && !strings.Contains(files, "ptmx")
	})
	p.finish(ref)
}

// shimFiles returns the files that the shims of this host have open.
func (m *testHost) shimFiles() []string {
	m.Helper()
	var open []string
	for pid, cmdline := range m.processes() {
		if !strings.Contains(cmdline, "-namespace") && !strings.HasPrefix(cmdline, monitor.Name+"\x00monitor") {
			continue
		}
		fds, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd/*"))
		for _, fd := range fds {
			target, _ := os.Readlink(fd) // it may have been closed
			open = append(open, target)
		}
	}
	return open
}

//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal is a podstead command in a pseudo-terminal.
type terminal struct {
	f    *fixture
	cmd  *exec.Cmd
	file *os.File

	mu   sync.Mutex
	text string
	read chan struct{} // closed at the end of the output
}

func (f *fixture) terminal(args ...string) *terminal {
	f.Helper()
	cmd := f.Command(f.Ctx(), args...)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
	f.Check(err)
	x := &terminal{f: f, cmd: cmd, file: file, read: make(chan struct{})}
	go func() {
		defer close(x.read)
		buffer := make([]byte, 4096)
		for failures := 0; failures < 2; { // twice: the kernel can report the end before the last text
			n, err := file.Read(buffer)
			x.mu.Lock()
			x.text += string(buffer[:n])
			x.mu.Unlock()
			if err != nil { // EIO after the exit
				failures++
			}
		}
	}()
	return x
}

// shows waits until the output contains a text, and drops it up to there.
func (x *terminal) shows(want string) {
	x.f.Helper()
	x.f.Await(func() error {
		x.mu.Lock()
		defer x.mu.Unlock()
		_, rest, found := strings.Cut(x.text, want)
		if !found {
			return fmt.Errorf("the terminal shows %q, want %q", x.text, want)
		}
		x.text = rest
		return nil
	})
}

func (x *terminal) types(keys string) {
	x.f.Helper()
	_, err := x.file.WriteString(keys)
	x.f.Check(err)
}

// typesUntil types keys until the output contains a text, and drops it up to there. What is typed while a connection is lost can be lost
// with it.
func (x *terminal) typesUntil(keys, want string) {
	x.f.Helper()
	var typed time.Time
	x.f.Await(func() error {
		if time.Since(typed) > 2*time.Second {
			typed = time.Now()
			x.types(keys)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		_, rest, found := strings.Cut(x.text, want)
		if !found {
			return fmt.Errorf("the terminal shows %q, want %q", x.text, want)
		}
		x.text = rest
		return nil
	})
}

// exitCode waits for the exit of the command.
func (x *terminal) exitCode() int {
	x.f.Helper()
	err := x.cmd.Wait()
	x.file.Close()
	<-x.read
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	x.f.Check(err)
	return 0
}

// TestExecTerminal drives a shell in a container from a terminal.
func TestExecTerminal(t *testing.T) {
	f := newFixture(t)
	r := f.execPod()
	x := f.terminal("exec", "-it", "web", "--", "sh")
	x.types("stty size; echo $TERM; tty\n")
	x.shows("30 100\r\nxterm\r\n/dev/pts/0")
	f.Check(pty.Setsize(x.file, &pty.Winsize{Rows: 50, Cols: 132}))
	x.types("while [ \"$(stty size)\" != '50 132' ]; do sleep 0.1; done; echo resi''zed\n")
	x.shows("resized")
	x.types("sleep 7201\n")
	f.awaitSleeping("7201", 1)
	x.types("\x03") // Ctrl-C
	f.awaitSleeping("7201", 0)
	x.types("echo code $?; cat\n")
	x.shows("code 130")
	x.types("typed\n\x04") // Ctrl-D ends cat
	x.shows("typed\r\ntyped")
	x.types("head -c 20 /dev/zero | tr '\\0' 'a'; ex''it 3\n")
	x.shows("aaaaaaaaaaaaaaaaaaaa")
	x.shows("podstead: command terminated with exit code 3")
	if code := x.exitCode(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	f.end(r)
}

// TestExecDetach: the detach keys end the session with all processes. Part of them is passed on.
func TestExecDetach(t *testing.T) {
	f := newFixture(t)
	r := f.execPod()
	x := f.terminal("exec", "-it", "web", "--", "sh", "-c", "stty raw -echo; echo ready; head -c 2 | od -c; sleep 7202 & sleep 7202")
	x.shows("ready")
	x.types("\x10x")
	x.shows("020   x")
	f.awaitSleeping("7202", 2)
	x.types("\x10\x11")
	x.shows("podstead: detached, the command was killed")
	if code := x.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	f.awaitSleeping("7202", 0)
	f.end(r)
}

// TestExecTerminalEnds: in a terminal too, a client or a daemon that is killed ends the command with all its processes.
func TestExecTerminalEnds(t *testing.T) {
	f := newFixture(t)
	r := f.execPod()
	run := func(seconds string) *terminal {
		t.Helper()
		x := f.terminal("exec", "-it", "web", "--", "sh", "-c", "echo rea''dy; setsid sleep "+seconds+" & sleep "+seconds)
		x.shows("ready")
		f.awaitSleeping(seconds, 2)
		return x
	}
	x := run("7203")
	f.Check(x.cmd.Process.Kill())
	if code := x.exitCode(); code != -1 {
		t.Errorf("exit code %d of a client that was killed", code)
	}
	f.awaitSleeping("7203", 0)
	x = run("7204")
	f.MustKillDaemon()
	f.MustRun("get") // starts the daemon, which ends the command
	x.shows("connection lost")
	if code := x.exitCode(); code != 4 {
		t.Errorf("exit code %d after the daemon was killed, want 4", code)
	}
	f.awaitSleeping("7204", 0)
	f.awaitReady("web", "c other")
	f.end(r)
}

//go:build e2e

package faults

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// interactivePod writes a pod file with one container that runs a script.
func (f *fixture) interactivePod(script, more string) string {
	f.Helper()
	return f.PodFile("web", "terminationGracePeriodSeconds = 1\n"+container("c", script)+more)
}

// deleted checks that a run has deleted its pod.
func (f *fixture) deleted() {
	f.Helper()
	if pods := f.MustRun("get", "-o", "name"); pods != "" {
		f.Errorf("pods remain: %s", pods)
	}
}

// TestRunTerminal drives the shell of a pod from a terminal, over a daemon that was killed.
func TestRunTerminal(t *testing.T) {
	f := newFixture(t)
	x := f.terminal("run", "-it", f.interactivePod("echo fi''rst; stty size; exec sh", ""))
	x.shows("first\r\n")
	x.types("echo $TERM; tty\n")
	x.shows("xterm\r\n/dev/")
	f.Saw(f.get("web").Metadata.UID)
	f.Check(pty.Setsize(x.file, &pty.Winsize{Rows: 50, Cols: 132}))
	x.types("while [ \"$(stty size)\" != '50 132' ]; do sleep 0.1; done; echo resi''zed\n")
	x.shows("resized")
	x.types("sleep 7501\n")
	f.awaitSleeping("7501", 1)
	x.types("\x03") // Ctrl-C
	f.awaitSleeping("7501", 0)
	x.types("echo code $?\n")
	x.shows("code 130")
	f.MustKillDaemon()
	x.shows(`podstead: connection to the daemon lost, container "c" keeps running; attaching again` + "\r\n")
	x.typesUntil("echo aga''in; stty size\n", "again\r\n50 132")
	x.types("ex''it 7\n")
	x.shows(`podstead: container "c" of pod "web" exited with code 7`)
	if code := x.exitCode(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	f.deleted()
}

// TestRunTerminalEnds: the detach keys and SIGTERM stop the pod. The command shows the output until the exit, and returns the exit code.
func TestRunTerminalEnds(t *testing.T) {
	f := newFixture(t)
	other := container("other", "echo aside; trap 'exit 0' TERM; sleep 7502 & wait")
	file := f.interactivePod("trap 'echo by''e; exit 5' TERM; echo up; while :; do sleep 0.1; done", other)
	x := f.terminal("run", "-it", "-c", "c", file)
	x.shows("up\r\n")
	f.Saw(f.get("web").Metadata.UID)
	f.Check(x.cmd.Process.Signal(syscall.SIGTERM))
	x.shows("bye\r\n")
	if code := x.exitCode(); code != 5 || strings.Contains(x.text, "aside") {
		t.Errorf("exit code %d, want 5; the terminal shows %q", code, x.text)
	}
	f.deleted()
	x = f.terminal("run", "-it", "-c", "c", file)
	x.shows("up\r\n")
	f.Saw(f.get("web").Metadata.UID)
	x.types("\x10\x11")
	x.shows("podstead: detached, stopping the pod")
	if code := x.exitCode(); code != 5 {
		t.Errorf("exit code %d, want 5", code)
	}
	f.deleted()
	x = f.terminal("run", "-it",
		f.PodFile("none", "[[containers]]\nname = \"c\"\nimage = \"localhost/none:1\"\nimagePullPolicy = \"Never\"\n"))
	x.shows(`Container image "localhost/none:1" is not present`)
	f.Saw(f.get("none").Metadata.UID)
	x.types("\x03") // is a signal until the container runs
	if code := x.exitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	f.deleted()
}

// TestRunInput: the input and the output of a container are complete, and the output of others is not mixed with it.
func TestRunInput(t *testing.T) {
	f := newFixture(t)
	data := bytes.Repeat([]byte("0123456789abcde\x00"), 20<<20/16)
	cmd := f.Command(f.Ctx(), "run", "-i", "-c", "c",
		f.interactivePod("cat; exit 3", container("other", "echo aside; trap 'exit 0' TERM; sleep 7503 & wait")))
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), &stdout, &stderr
	_ = cmd.Run() // the exit code is checked
	if code := cmd.ProcessState.ExitCode(); code != 3 || sha256.Sum256(stdout.Bytes()) != sha256.Sum256(data) {
		t.Errorf("exit code %d, %d bytes of %d; stderr:\n%s", code, stdout.Len(), len(data), stderr.String())
	}
	if !strings.Contains(stderr.String(), "other | aside\n") || !strings.Contains(stderr.String(), "web/c Container started") {
		t.Errorf("stderr:\n%s", stderr.String())
	}
	f.deleted()
}

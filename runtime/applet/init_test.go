package applet

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
)

// command returns an init process with a command.
func command(args ...string) *exec.Cmd {
	return &exec.Cmd{Path: os.Args[0], Args: append([]string{"/dev/" + initName}, args...)}
}

func TestIsInit(t *testing.T) {
	if !isInit([]string{spec.InitPath, "true"}) {
		t.Errorf("%s is not this program", spec.InitPath)
	}
	for _, test := range []struct {
		args []string
		want bool
	}{
		{[]string{"/dev/podstead-init"}, false},
		{[]string{"pause"}, false},
		{[]string{"podstead-monitor", "monitor"}, false},
		{nil, false},
	} {
		if got := isInit(test.args); got != test.want {
			t.Errorf("%q: %v", test.args, got)
		}
	}
}

// TestInitExitCodes: the exit code is that of the command, or that of a shell if it cannot be started. The output, which is logged, has the
// cause but not the name of the program, which may be a secret.
func TestInitExitCodes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   []string
		code   int
		output string
	}{
		{[]string{"sh", "-c", "echo out; exit 0"}, 0, "out\n"},
		{[]string{"sh", "-c", "exit 3"}, 3, ""},
		{[]string{"sh", "-c", "kill -TERM $$"}, 143, ""},
		{[]string{"no-such-program"}, 127, "podstead-init: executable file not found in $PATH\n"},
		{[]string{"/no/such/program"}, 127, "podstead-init: no such file or directory\n"},
		{[]string{file}, 126, "podstead-init: permission denied\n"},
		{[]string{"/"}, 126, "podstead-init: is a directory\n"},
		{[]string{script}, 126, "podstead-init: exec format error\n"}, // the kernel reports it, not the search
	} {
		c := command(test.args...)
		output, err := c.CombinedOutput()
		if _, isExit := errors.AsType[*exec.ExitError](err); err != nil && !isExit {
			t.Fatal(err)
		}
		if code := c.ProcessState.ExitCode(); code != test.code || string(output) != test.output {
			t.Errorf("%q: exit code %d, output %q; want %d, %q", test.args, code, output, test.code, test.output)
		}
	}
}

// TestInitSignals: signals reach the command, and an orphaned process is reaped.
func TestInitSignals(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0])
	c.Args = []string{initName, "sh", "-c", `trap 'echo USR1' USR1; trap 'echo TERM; exit 5' TERM; (sh -c 'echo $$' &); echo ready
		while :; do sleep 0.1; done`}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	line := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("the command has exited")
		}
		return lines.Text()
	}
	orphan, ready := line(), line() // in any order
	if orphan == "ready" {
		orphan, ready = ready, orphan
	}
	if ready != "ready" {
		t.Fatalf("output %q, %q", orphan, ready)
	}
	for { // a zombie has a directory
		if _, err := os.Stat("/proc/" + orphan); errors.Is(err, fs.ErrNotExist) {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("process %s was not reaped", orphan)
		}
	}
	for _, signal := range []struct {
		number syscall.Signal
		want   string
	}{{syscall.SIGUSR1, "USR1"}, {syscall.SIGUSR1, "USR1"}, {syscall.SIGTERM, "TERM"}} {
		if err := c.Process.Signal(signal.number); err != nil {
			t.Fatal(err)
		}
		if got := line(); got != signal.want {
			t.Fatalf("%q, want %q", got, signal.want)
		}
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 5 {
		t.Errorf("exit code %d", code)
	}
}

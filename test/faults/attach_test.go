//go:build e2e

package faults

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// attachPod starts a pod with one container that runs a script, with more lines in its definition.
func (f *fixture) attachPod(script, more string) *run {
	f.Helper()
	r := f.start(f.PodFile("web", "terminationGracePeriodSeconds = 1\nrestartPolicy = \"Never\"\n"+container("c", "echo up; "+script)+more))
	r.line("c", 1)
	f.awaitReady("web", "c")
	return r
}

// attach starts podstead attach with an input.
func (f *fixture) attach(stdin io.Reader, stdout io.Writer, args ...string) *exec.Cmd {
	f.Helper()
	cmd := f.Command(f.Ctx(), append([]string{"attach"}, args...)...)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	f.Check(cmd.Start())
	return cmd
}

// TestAttachTerminal drives the shell of a container from a terminal, over detached clients and a daemon that was killed.
func TestAttachTerminal(t *testing.T) {
	f := newFixture(t)
	r := f.attachPod("exec sh", "stdin = true\ntty = true\n")
	x := f.terminal("attach", "-it", "web")
	x.types("stty size; echo $TERM\n")
	x.shows("30 100\r\nxterm")
	f.useShell(x)
	x.types("\x10\x11")
	x.shows(`podstead: detached, container "c" of pod "web" keeps running`)
	if code := x.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	f.MustKillDaemon()
	x = f.terminal("attach", "-it", "web")
	x.types("echo aga''in\n")
	x.shows("again")
	f.Check(x.cmd.Process.Signal(syscall.SIGKILL))
	if code := x.exitCode(); code != -1 {
		t.Errorf("exit code %d of a client that was killed", code)
	}
	x = f.terminal("attach", "-it", "web")
	x.types("ex''it 4\n")
	x.shows(`podstead: container "c" of pod "web" exited with code 4`)
	if code := x.exitCode(); code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
	if code := r.exitCode(); code != 1 {
		t.Errorf("podstead run exited with %d, want 1", code)
	}
}

// useShell resizes the terminal of a shell, and ends programs in it with Ctrl-C and Ctrl-D.
func (f *fixture) useShell(x *terminal) {
	f.Helper()
	f.Check(pty.Setsize(x.file, &pty.Winsize{Rows: 50, Cols: 132}))
	x.types("while [ \"$(stty size)\" != '50 132' ]; do sleep 0.1; done; echo resi''zed\n")
	x.shows("resized")
	x.types("sleep 7301\n")
	f.awaitSleeping("7301", 1)
	x.types("\x03") // Ctrl-C
	f.awaitSleeping("7301", 0)
	x.types("echo st''arted; cat\n")
	x.shows("started")
	x.types("typed\n")
	x.shows("typed\r\ntyped")
	x.types("\x04") // Ctrl-D ends cat
}

// TestAttachData: 100 MB reach a container and come back complete, also if another client stops reading. That one is disconnected.
func TestAttachData(t *testing.T) {
	f := newFixture(t)
	r := f.attachPod("cat; exit 3", "stdin = true\nstdinOnce = true\n")
	stopped, pipe := io.Pipe() // is never read
	defer stopped.Close()
	slow := f.terminalless(pipe, "web")
	data := bytes.Repeat([]byte("0123456789abcde\x00"), 100<<20/16)
	var out bytes.Buffer
	cmd := f.attach(bytes.NewReader(data), &out, "-i", "web")
	_ = cmd.Wait() // the exit code is checked
	if code := cmd.ProcessState.ExitCode(); code != 3 || sha256.Sum256(out.Bytes()) != sha256.Sum256(data) {
		t.Errorf("exit code %d, %d bytes of %d", code, out.Len(), len(data))
	}
	r.exitCode()
	stopped.Close()
	_ = slow.Wait()
	if slow.ProcessState.ExitCode() == 0 {
		t.Error("the client that stopped reading succeeded")
	}
}

// terminalless starts an attach client without input that has been attached when it returns.
func (f *fixture) terminalless(stdout io.Writer, args ...string) *exec.Cmd {
	f.Helper()
	before := f.attached()
	cmd := f.attach(nil, stdout, args...)
	f.Await(func() error {
		if n := f.attached(); n <= before {
			return fmt.Errorf("%d clients are attached", n)
		}
		return nil
	})
	return cmd
}

// attached returns the number of connections to the attach sockets of shims, or of the monitor.
func (f *fixture) attached() (n int) {
	f.Helper()
	out, err := exec.Command("ss", "-xH").Output()
	f.Check(err)
	return strings.Count(string(out), "attach.sock")
}

// debug adds a debug container to the pod web.
func (f *fixture) debug(stdin string, args ...string) result {
	f.Helper()
	cmd := f.Command(f.Ctx(), append([]string{"debug", "web", "-q"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		f.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// TestDebug: a debug container sees the processes and the files of its target, and those of no other container.
func TestDebug(t *testing.T) {
	f := newFixture(t)
	file := f.PodFile("web",
		"terminationGracePeriodSeconds = 1\n"+container("c", "echo up; exec sleep 7401")+container("other", "exec sleep 7402"))
	r := f.start(file)
	r.line("c", 1)
	f.awaitReady("web", "c other")
	debug := func(stdin string, args ...string) result {
		t.Helper()
		return f.debug(stdin, append([]string{"--image", busybox}, args...)...)
	}
	got := debug("", "--target", "c", "--", "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline; echo; ls /proc/1/root/bin/sh; exit 5")
	if got.Code != 5 || got.Stdout != "sleep 7401 \n/proc/1/root/bin/sh\n" {
		t.Errorf("with a target: %+v", got)
	}
	if got := debug("some input", "-i", "--env", "A=1 2", "--", "sh", "-c",
		"cat; echo; echo $A; tr '\\0' ' ' </proc/1/cmdline"); got.Code != 0 ||
		!strings.HasPrefix(got.Stdout, "some input\n1 2\n") || strings.Contains(got.Stdout, "sleep") {
		t.Errorf("with input: %+v", got)
	}
	if got := debug("", "--image", "localhost/none:1", "--", "true"); got.Code != 1 ||
		!strings.Contains(got.Stderr, "hint: name another image") {
		t.Errorf("without an image: %+v", got)
	}
	x := f.terminal("debug", "-it", "web", "--image", busybox, "--name", "look", "--target", "other", "--", "sh")
	x.shows("/ #")
	x.types("tr '\\0' ' ' </proc/1/cmdline; stty size\n")
	x.shows("sleep 7402 30 100")
	f.useShell(x)
	x.types("\x10\x11")
	x.shows(`container "look" of pod "web" keeps running`)
	if code := x.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x = f.terminal("attach", "-it", "web", "-c", "look")
	x.types("echo st''ill here\n")
	x.shows("still here")
	f.Check(x.cmd.Process.Signal(syscall.SIGKILL))
	if code := x.exitCode(); code != -1 {
		t.Errorf("exit code %d of a client that was killed", code)
	}
	f.MustKillDaemon()
	x = f.terminal("attach", "-it", "web", "-c", "look")
	x.types("ex''it 6\n")
	x.shows("exited with code 6")
	if code := x.exitCode(); code != 6 {
		t.Errorf("exit code %d", code)
	}
	f.end(r)
}

// TestDebugData: 100 MB reach a debug container and come back complete.
func TestDebugData(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("web", "terminationGracePeriodSeconds = 1\n"+container("c", "echo up; exec sleep 100000")))
	r.line("c", 1)
	f.awaitReady("web", "c")
	data := bytes.Repeat([]byte("0123456789abcde\x00"), 100<<20/16)
	cmd := f.Command(f.Ctx(), "debug", "web", "-q", "-i", "--image", busybox, "--", "cat")
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), &out, &stderr
	_ = cmd.Run() // the exit code is checked
	if code := cmd.ProcessState.ExitCode(); code != 0 || sha256.Sum256(out.Bytes()) != sha256.Sum256(data) {
		t.Errorf("exit code %d, %d bytes of %d; stderr: %s", code, out.Len(), len(data), &stderr)
	}
	f.end(r)
}

// TestDebugArchive: on a host without a registry, an archive provides the image of a debug container. It sees the process and the files of
// a container that has another user and whose image has no shell.
func TestDebugArchive(t *testing.T) {
	f := &fixture{rig.NewFixture(t, deadline, "testserver")}
	f.CheckLeftovers(deadline/4, "daemon", "stop")
	r := f.start(f.PodFile("web",
		"terminationGracePeriodSeconds = 1\n[[containers]]\nname = \"c\"\nimage = \"localhost/podstead/testserver:1\"\n"))
	r.event(api.EventContainerStarted)
	f.awaitReady("web", "c")
	if got := f.debug("", "--image", busybox, "--", "true"); got.Code != 1 || !strings.Contains(got.Stderr, "--image-archive FILE") {
		t.Errorf("without the archive: %+v", got)
	}
	archive := f.Archive("busybox")
	got := f.debug("", "--image-archive", archive, "--image", busybox, "--target", "c", "--", "sh", "-c",
		"tr '\\0' ' ' </proc/1/cmdline; echo; ls /proc/1/root/bin; stat -c %u /proc/1; echo from debug >/proc/1/root/srv/file; exit 5")
	if want := (result{Code: 5, Stdout: "/bin/testserver -dir /srv \ntestserver\n65534\n"}); got != want {
		t.Errorf("with a target: %+v, want %+v", got, want)
	}
	if got := f.MustRun("cp", "web:/srv/file", "-"); !strings.Contains(got, "from debug") {
		t.Errorf("the target does not have the file: %q", got)
	}
	if got := f.debug("", "--image-archive", archive, "--image", "localhost/none:1", "--", "true"); got.Code == 0 ||
		!strings.Contains(got.Stderr, "localhost/none:1") {
		t.Errorf("an image that is not in the archive: %+v", got)
	}
	f.end(r)
}

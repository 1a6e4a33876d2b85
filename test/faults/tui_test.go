//go:build e2e

package faults

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/podstead/podstead/api"
)

// tmux is a terminal without a user.
type tmux struct {
	f      *fixture
	socket string
}

// tmux starts a terminal that ends with the test.
func (f *fixture) tmux() *tmux {
	f.Helper()
	x := &tmux{f, filepath.Join(f.Dir, "tmux")}
	server := exec.Command("tmux", "-D", "-u", "-S", x.socket, "-f", "/dev/null")
	server.Env = append(f.Command(f.Ctx()).Env, "LC_ALL=C.UTF-8", "NO_COLOR=", "TMUX=")
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := server.Start(); err != nil {
		f.Fatalf("%v: run .ci/deps faults first", err)
	}
	f.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	return x
}

// run runs a command of tmux. It starts no server.
func (x *tmux) run(args ...string) (string, error) {
	out, err := exec.CommandContext(x.f.Ctx(), "tmux", append([]string{"-N", "-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("tmux %q: %w: %s", args, err, out)
	}
	return string(out), err
}

// open runs podstead with arguments in a new window of a size. When it exits, the window shows its exit code, and whether the modes of the
// terminal are as before.
func (x *tmux) open(width, height int, args ...string) {
	x.f.Helper()
	const script = `modes=$(stty -g); "$@"; echo "exit $?"; [ "$modes" = "$(stty -g)" ] && echo restored; exec sleep 1000000`
	command := append([]string{
		"new-session", "-d", "-s", "test", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "--",
		"sh", "-c", script, "sh", x.f.Program,
	}, args...)
	x.f.Await(func() error { // until the server listens
		_, err := x.run(command...)
		return err
	})
}

func (x *tmux) close() {
	x.f.Helper()
	_, err := x.run("kill-session", "-t", "test")
	x.f.Check(err)
}

// keys presses keys, as tmux names them.
func (x *tmux) keys(keys ...string) {
	x.f.Helper()
	_, err := x.run(append([]string{"send-keys", "-t", "test"}, keys...)...)
	x.f.Check(err)
}

// shows waits until the screen matches patterns, in their order.
func (x *tmux) shows(patterns ...string) {
	x.f.Helper()
	want := regexp.MustCompile("(?s)" + strings.Join(patterns, ".*"))
	x.f.Await(func() error {
		screen, err := x.run("capture-pane", "-p", "-t", "test")
		if err == nil && !want.MatchString(screen) {
			err = fmt.Errorf("the screen does not match %q:\n%s", patterns, screen)
		}
		return err
	})
}

// typesUntil presses a key until the screen matches a pattern: the program reads no keys while it changes the mode of the terminal.
func (x *tmux) typesUntil(key, pattern string) {
	x.f.Helper()
	want := regexp.MustCompile(pattern)
	x.f.Await(func() error {
		screen, err := x.run("capture-pane", "-p", "-t", "test")
		if err == nil && !want.MatchString(screen) {
			x.keys(key)
			err = fmt.Errorf("the screen does not match %q:\n%s", pattern, screen)
		}
		return err
	})
}

// TestScreen drives podstead tui in a terminal.
func TestScreen(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	for name, text := range uiPods {
		f.MustCreate(name, text)
	}
	x := f.tmux()
	for _, size := range [][2]int{{80, 24}, {200, 60}} {
		x.open(size[0], size[1], "tui")
		driveScreen(f, x, size[0] >= 120)
		x.close()
	}
	// The daemon rejects actions over the read-only socket.
	x.open(100, 30, "tui", "--socket", filepath.Join(f.RunDir(), "podstead-ro.sock"))
	x.shows(`crash +CrashLoopBackOff`, `job +Completed`)
	x.keys("Enter")
	x.shows("exited with code 3")
	x.keys("r", "y")
	x.shows("not allowed over the read-only socket")
	x.keys("C-c")
	x.shows("exit 0", "restored")
	x.close()
	for name := range uiPods {
		f.MustRun("delete", name, "--force")
	}
}

func driveScreen(f *fixture, x *tmux, wide bool) {
	f.Helper()
	// The pods that need a person come first.
	x.shows(`4 pods, 2 need attention`, `live\n`, `crash +CrashLoopBackOff +0/1`, `probed +Running +0/1`, `web +Running +2/2`,
		`job +Completed`)
	x.shows(`web +Running +2/2 +\d+( \([^)]+ ago\))? +\d+m +[\d.]+[KM]i`)
	x.shows(`crash restarted .* exited with code 3`) // of the pod at the cursor, or in its line
	if wide {
		x.shows(`WHY`, `probed .* readiness probe`)
	}
	// The list is live.
	f.MustRun("stop", "web")
	x.shows(`web +Stopped`)
	f.MustRun("start", "web")
	x.shows(`web +Running +2/2`)

	// Details.
	x.keys("Enter")
	x.shows("crash: NotReady", "exited with code 3", "because .*Container exited with code 3")
	x.keys("t")
	x.shows("Timeline", `crasher +[^\n]*x`, `\|\d\d:\d\d`, "x failed", "Last exit", "exit code 3", `\| <img src=x`)
	x.keys("G")
	x.shows("Container started", "Pod accepted")
	x.keys("d")
	x.shows(`Name: +crash`)
	x.keys("Escape")
	x.shows("crash: NotReady", "Pod accepted")
	x.keys("Escape")
	x.shows("4 pods")

	// Logs, followed and filtered.
	x.keys("/", "w", "e", "b", "Enter")
	x.shows(`1 of 4 pods, filter "web"`)
	x.keys("l")
	x.shows(`app request \d+ <b>bold</b>`, "side side")
	newest := func() (n int) {
		screen, err := x.run("capture-pane", "-p", "-t", "test")
		f.Check(err)
		for _, m := range regexp.MustCompile(`request (\d+)`).FindAllStringSubmatch(screen, -1) {
			n, _ = strconv.Atoi(m[1])
		}
		return n
	}
	follows := func() {
		seen := newest()
		f.Await(func() error {
			if n := newest(); n <= seen+3 {
				return fmt.Errorf("the newest line is %d, want more than %d", n, seen+3)
			}
			return nil
		})
	}
	follows()
	x.keys("/", "s", "i", "d", "e", "Enter")
	x.shows(`filter "side": \d+ of \d+ lines`, "side side")
	if newest() != 0 {
		f.Error("the filter shows other lines")
	}
	x.keys("Escape")
	x.shows("app request")
	// Logs continue after the daemon was killed.
	f.MustKillDaemon()
	x.shows("not current for")
	f.MustRun("get")
	x.shows(`live\n`)
	x.keys("/", "r", "e", "c", "o", "n", "n", "Enter") // other lines would move it from the screen
	x.shows(`filter "reconn": \d+ of`, "reconnected")
	x.keys("Escape")
	follows()
	x.keys("Escape")
	x.shows(`web +Running +2/2`)

	// A restart asks.
	before := f.Until("web", "runs", func(*api.Pod) bool { return true })
	x.keys("r")
	x.shows(`podstead restart web`)
	x.keys("y")
	x.shows("pod/web restarted")
	restarts := before.Status.ContainerStatuses[0].RestartCount
	f.Until("web", "was restarted", func(p *api.Pod) bool {
		return p.Status.ContainerStatuses[0].RestartCount > restarts && p.Status.Phase == api.PhaseRunning
	})
	x.shows(`web +Running +2/2`)

	// A shell.
	x.keys("s")
	x.shows("1 app", "2 side")
	x.keys("1")
	x.shows(`/ #`)
	x.keys("echo in-$((1+1))", "Enter")
	x.shows("in-2")
	x.keys("exit", "Enter")
	x.shows("the shell in pod/web has exited")
	x.typesUntil("?", "Keys in all views")
	x.keys(":", "q", "Enter")
	x.shows("exit 0", "restored")
	alternate, err := x.run("display", "-p", "-t", "test", "#{alternate_on} #{cursor_flag}")
	if f.Check(err); alternate != "0 1\n" {
		f.Errorf("alternate screen, cursor: %q", alternate)
	}
}

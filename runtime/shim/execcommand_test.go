package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// execcommandRun writes the files of a command in a container, and returns the run of an OCI runtime that starts it.
func execcommandRun(t *testing.T, stateFile, process string) (c *exec.Cmd, bundle string) {
	t.Helper()
	root, bundle := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(root, "c1", stateFile): "{}", filepath.Join(bundle, "process.json"): process,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return exec.Command("crun", "--root", root, "--log-format", "json", "exec", "--process", filepath.Join(bundle, "process.json"),
		"--detach",
		"--pid-file", filepath.Join(bundle, "e1.pid"), "c1"), bundle
}

// startSleep starts a child that leads a session.
func startSleep(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "1000")
	c.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// Only a run of crun that starts a command in a container is prepared.
func TestPrepare(t *testing.T) {
	for _, test := range []struct {
		name, state, process string
		change               func(args []string) []string
		prepared             bool
		err                  string
	}{
		{name: "crun", state: "status", process: `{"oomScoreAdj": 7}`, prepared: true},
		{name: "crun without a score", state: "status", process: `{}`, prepared: true},
		{name: "runc", state: "state.json", process: `{"oomScoreAdj": 7}`},
		{name: "another run of crun", state: "status", process: `{}`, change: func(args []string) []string {
			args[len(args)-7] = "create"
			return args
		}},
		{name: "no file for the process ID", state: "status", process: `{}`, change: func(args []string) []string {
			return append(args[:len(args)-3], args[len(args)-1])
		}},
		{name: "damaged settings", state: "status", process: `{`, err: "read settings of process: "},
		{name: "no settings", state: "status", process: `{}`, err: "read settings of process: ", change: func(args []string) []string {
			args[len(args)-5] += "-missing"
			return args
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := execcommandRun(t, test.state, test.process)
			if test.change != nil {
				c.Args = test.change(c.Args)
			}
			got, err := prepareCommand(c)
			if (got != nil) != test.prepared || (err == nil) != (test.err == "") ||
				err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%q: %+v, %v", c.Args, got, err)
			}
			if c.SysProcAttr != nil {
				t.Errorf("attributes of the process were changed: %+v", c.SysProcAttr)
			}
		})
	}
}

// crun gets the OOM score of the settings. Without one it keeps its own.
func TestStarted(t *testing.T) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	for process, want := range map[string]string{`{"oomScoreAdj": 987}`: "987\n", `{}`: string(own)} {
		c, _ := execcommandRun(t, "status", process)
		command, err := prepareCommand(c)
		if err != nil {
			t.Fatal(err)
		}
		pid := startSleep(t).Process.Pid
		if err := command.Started(pid); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid)); string(got) != want || err != nil {
			t.Errorf("%s: score %q, %v, want %q", process, got, err, want)
		}
	}
	c, _ := execcommandRun(t, "status", `{"oomScoreAdj": 987}`)
	command, err := prepareCommand(c)
	if err != nil {
		t.Fatal(err)
	}
	const noProcess = 1 << 30
	if err := command.Started(noProcess); err == nil || !strings.HasPrefix(err.Error(), "set OOM score of command: ") {
		t.Errorf("score of a process that does not exist: %v", err)
	}
}

// The session of a command is recorded while it runs, and if it has exited before crun.
func TestSession(t *testing.T) {
	for _, exits := range []bool{false, true} {
		t.Run(fmt.Sprint("exits ", exits), func(t *testing.T) {
			c, bundle := execcommandRun(t, "status", `{}`)
			command, err := prepareCommand(c)
			if err != nil {
				t.Fatal(err)
			}
			// As crun does, a leader of a session starts the command and exits.
			leader := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
			leader.SysProcAttr = &unix.SysProcAttr{Setsid: true}
			out, err := leader.Output()
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
			if err := os.WriteFile(filepath.Join(bundle, "e1.pid"), out, 0o600); err != nil {
				t.Fatal(err)
			}
			if exits {
				command.Exiting(pid)
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			if err := command.Finish(); err != nil {
				t.Fatal(err)
			}
			want := strconv.Itoa(leader.Process.Pid)
			if got, err := os.ReadFile(SessionFile(bundle, "e1")); string(got) != want || err != nil {
				t.Errorf("session %q, %v, want %s", got, err, want)
			}
		})
	}
}

// A process that has exited has its session until it is reaped.
func TestSessionOfZombie(t *testing.T) {
	c, bundle := execcommandRun(t, "status", `{}`)
	command, err := prepareCommand(c)
	if err != nil {
		t.Fatal(err)
	}
	child := startSleep(t)
	pid := child.Process.Pid
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	command.Exiting(pid)
	_ = child.Wait() // reaps it; the error is its exit code
	if err := os.WriteFile(filepath.Join(bundle, "e1.pid"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := command.Finish(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(SessionFile(bundle, "e1")); string(got) != strconv.Itoa(pid) || err != nil {
		t.Errorf("session %q, %v, want %d", got, err, pid)
	}
}

// If crun has started nothing, nothing is recorded. A file that is not a process ID is reported.
func TestNoSession(t *testing.T) {
	c, bundle := execcommandRun(t, "status", `{}`)
	command, err := prepareCommand(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Finish(); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "x", strconv.Itoa(1 << 30)} {
		if err := os.WriteFile(filepath.Join(bundle, "e1.pid"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := command.Finish(); err == nil || !strings.HasPrefix(err.Error(), "record session of command: ") {
			t.Errorf("process ID %q: %v", text, err)
		}
	}
	if _, err := os.Stat(SessionFile(bundle, "e1")); err == nil {
		t.Error("a session was recorded")
	}
	var none *crunCommand
	none.Exiting(os.Getpid())
	if err := none.Finish(); err != nil {
		t.Error(err)
	}
	if err := none.Started(os.Getpid()); err != nil {
		t.Error(err)
	}
}

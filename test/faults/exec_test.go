//go:build e2e

package faults

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// execPod starts a pod with the containers c, which has a user, a variable and a limit, and other.
func (f *fixture) execPod() *run {
	f.Helper()
	file := f.PodFile("web", "terminationGracePeriodSeconds = 1\n"+
		container("c", "echo up; exec sleep 100000")+`env = [{ name = "A", value = "1" }]
workingDir = "/tmp"
securityContext = { runAsUser = 1000, runAsGroup = 1000, allowPrivilegeEscalation = false }
resources = { limits = { memory = "64Mi" } }
`+container("other", "exec sleep 100000"))
	r := f.start(file)
	r.line("c", 1)
	f.awaitReady("web", "c other")
	return r
}

// end stops the pod of [fixture.execPod].
func (f *fixture) end(r *run) {
	f.Helper()
	r.interrupt()
	r.exitCode()
}

// result is the result of a command.
type result struct {
	Code           int
	Stdout, Stderr string
}

// exec runs podstead exec with an input.
func (f *fixture) exec(stdin io.Reader, args ...string) result {
	f.Helper()
	cmd := f.Command(f.Ctx(), append([]string{"exec"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		f.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// sleeping returns the processes of pods that sleep this long.
func (f *fixture) sleeping(seconds string) (found []string) {
	f.Helper()
	list, err := f.Processes()
	f.Check(err)
	for _, p := range list {
		if p.Command == "sleep "+seconds {
			found = append(found, p.Command)
		}
	}
	return found
}

// awaitSleeping waits until this many processes of pods sleep this long.
func (f *fixture) awaitSleeping(seconds string, n int) {
	f.Helper()
	f.Await(func() error {
		if found := f.sleeping(seconds); len(found) != n {
			return fmt.Errorf("%d processes %q, want %d", len(found), found, n)
		}
		return nil
	})
}

func TestExec(t *testing.T) {
	f := newFixture(t)
	r := f.execPod()
	const terminated = "podstead: command terminated with exit code %d\n"
	for _, tt := range []struct {
		name  string
		stdin string
		args  []string
		want  result
	}{
		{"output", "", []string{"web", "--", "sh", "-c", "echo out; echo err >&2"}, result{0, "out\n", "err\n"}},
		{"exit code", "", []string{"web", "--", "sh", "-c", "exit 7"}, result{7, "", fmt.Sprintf(terminated, 7)}},
		{"exit code without message", "", []string{"-q", "web", "--", "sh", "-c", "exit 7"}, result{7, "", ""}},
		{"signal", "", []string{"web", "-q", "--", "sh", "-c", "kill -9 $$"}, result{137, "", ""}},
		{"without dashes", "", []string{"pod/web", "-c", "other", "id", "-u"}, result{0, "0\n", ""}},
		{
			"environment", "",
			[]string{
				"web", "sh", "-c",
				"echo $A; pwd; id -u; grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; cmp /proc/self/cgroup /proc/1/cgroup && echo " +
					"same limits; echo ${TERM-none}",
			},
			result{0, "1\n/tmp\n1000\nNoNewPrivs:\t1\nSeccomp:\t2\nsame limits\nnone\n", ""},
		},
		{"input", "some\x00\xff", []string{"-i", "web", "--", "sh", "-c", "cat; echo end"}, result{0, "some\x00\xffend\n", ""}},
		{"input that is not passed", "some", []string{"web", "--", "cat"}, result{}},
		{
			"input that is not read", strings.Repeat("y\n", 1<<20),
			[]string{"-i", "web", "--", "sh", "-c", "exec <&-; echo done"},
			result{0, "done\n", ""},
		},
		{
			"not a terminal", "",
			[]string{"-it", "web", "--", "tty"},
			result{1, "not a tty\n", "podstead: cannot use a terminal: stdin is not a terminal\n" + fmt.Sprintf(terminated, 1)},
		},
	} {
		if diff := cmp.Diff(tt.want, f.exec(strings.NewReader(tt.stdin), tt.args...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"not found", []string{"web", "--", "none"}, 127, "not found in $path"},
		{"not executable", []string{"web", "--", "/etc/hosts"}, 126, "permission denied"},
		{"unknown container", []string{"web", "-c", "x", "--", "true"}, 3, "hint: use one of c, other"},
		{"unknown pod", []string{"none", "--", "true"}, 3, `no such pod "none"`},
	} {
		// runc and crun differ in the case of letters.
		if got := f.exec(nil, tt.args...); got.Code != tt.code || !strings.Contains(strings.ToLower(got.Stderr), tt.want) {
			t.Errorf("%s: %+v, want code %d and %q", tt.name, got, tt.code, tt.want)
		}
	}
	f.end(r)
}

// TestExecData: 100 MB of binary data arrive complete in both directions, also if the command exits before they are read.
func TestExecData(t *testing.T) {
	f := newFixture(t)
	r := f.execPod()
	data := make([]byte, 100<<20)
	random := rand.NewChaCha8([32]byte{1})
	if _, err := random.Read(data); err != nil {
		t.Fatal(err)
	}
	got := f.exec(bytes.NewReader(data), "-i", "web", "--", "cat")
	if got.Code != 0 || sha256.Sum256([]byte(got.Stdout)) != sha256.Sum256(data) {
		t.Errorf("exit code %d, %d bytes of %d, stderr %q", got.Code, len(got.Stdout), len(data), got.Stderr)
	}
	// The rest of the output is in the pipes when the command has exited.
	for range 5 {
		if got := f.exec(nil, "web", "--", "sh", "-c",
			"head -c 3000000 /dev/zero; head -c 50000 /dev/zero >&2"); len(got.Stdout) != 3000000 ||
			len(got.Stderr) != 50000 {
			t.Errorf("%d and %d bytes of output, want 3000000 and 50000", len(got.Stdout), len(got.Stderr))
		}
	}
	f.end(r)
}

// TestExecLeftProcess: a process that holds the output open does not delay the exit of its command, and keeps running.
func TestExecLeftProcess(t *testing.T) {
	f := newFixture(t)
	r := f.execPod()
	if diff := cmp.Diff(result{0, "started\n", ""}, f.exec(nil, "web", "--", "sh", "-c", "sleep 7001 & echo started")); diff != "" {
		t.Error(diff)
	}
	if left := f.sleeping("7001"); len(left) != 1 {
		t.Errorf("processes after the exit of their command: %q", left)
	}
	f.end(r)
}

// startExec starts podstead exec of a command that has two more processes, and waits for them.
func (f *fixture) startExec(seconds string) (*exec.Cmd, *bytes.Buffer) {
	f.Helper()
	cmd := f.Command(f.Ctx(), "exec", "web", "--", "sh", "-c", "sleep "+seconds+" & setsid sleep "+seconds+" & sleep "+seconds)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	f.Check(cmd.Start())
	f.awaitSleeping(seconds, 3)
	return cmd, &stderr
}

// TestExecEnds: a client that is killed or interrupted, and a daemon that stops or is killed, end the command with all its processes.
func TestExecEnds(t *testing.T) {
	f := newFixture(t)
	r := f.execPod()
	for _, tt := range []struct {
		name, seconds string
		end           func(client *os.Process)
		code          int // -1: killed
		want          string
	}{
		{"client is killed", "7101", func(client *os.Process) { f.Check(client.Kill()) }, -1, ""},
		{"client is interrupted", "7102", func(client *os.Process) { f.Check(client.Signal(syscall.SIGINT)) }, 130, "received SIGINT"},
		{"daemon is stopped", "7103", func(*os.Process) { f.MustRun("daemon", "stop") }, 4, "the daemon stopped, the session was ended"},
		{"daemon is killed", "7104", func(*os.Process) { f.MustKillDaemon(); f.MustRun("get") }, 4, "connection lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd, stderr := f.startExec(tt.seconds)
			tt.end(cmd.Process)
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != tt.code || !strings.Contains(stderr.String(), tt.want) {
				t.Errorf("the client ended with %v: %s; want code %d and %q", err, stderr, tt.code, tt.want)
			}
			f.awaitSleeping(tt.seconds, 0)
		})
	}
	f.MustRun("get") // starts the daemon
	f.awaitReady("web", "c other")
	f.end(r)
}

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// reader is a user who may only read.
type reader struct {
	program, dir string
	env          []string
}

// newReader starts a daemon, with an engine in memory, and returns a user who is in the group of the read-only socket.
func newReader(t *testing.T) *reader {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("requires root, to become another user")
	}
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{program: filepath.Join(dir, "podstead"), dir: dir, env: append(os.Environ(), "NO_COLOR=1",
		"PODSTEAD_STATE_DIR="+filepath.Join(dir, "lib"), "PODSTEAD_RUN_DIR="+filepath.Join(dir, "r"),
		"PODSTEAD_LOG_DIR="+filepath.Join(dir, "log"),
		"PODSTEAD_CONFIG_DIR="+filepath.Join(dir, "etc"), "PODSTEAD_CONFIG="+filepath.Join(dir, "podstead.toml"))}
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(r.program, text, 0o755),
		os.WriteFile(filepath.Join(dir, "podstead.toml"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	return r
}

// readers is the group of the read-only socket.
const readers = 54322

// daemon starts the daemon.
func (r *reader) daemon(t *testing.T) {
	t.Helper()
	cmd := exec.Command(r.program, "daemon")
	cmd.Env = r.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	socket := filepath.Join(r.dir, "r", "podstead-ro.sock")
	timeout := time.After(time.Minute)
	for again := time.Tick(5 * time.Millisecond); ; {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		select {
		case <-again:
		case <-timeout:
			t.Fatal("the daemon does not listen")
		}
	}
	if err := os.Chown(socket, 0, readers); err != nil {
		t.Fatal(err)
	}
}

// run executes a command, as a reader or as root (0), and returns its output.
func (r *reader) run(t *testing.T, uid uint32, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.program, strings.Fields(line)...)
	cmd.Env, cmd.Dir = r.env, "/"
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: readers}}
	}
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("podstead %s: %v", line, err)
	}
	return strings.ReplaceAll(string(out), r.dir, "$DIR")
}

// TestReadOnlyUser runs commands as a user who may only use the read-only socket: those that read succeed, others say what is required, and
// no command starts a daemon.
func TestReadOnlyUser(t *testing.T) {
	const uid = 54321
	r := newReader(t)
	if out := r.run(t, uid, "get"); !strings.Contains(out, "permission denied") && !strings.Contains(out, "start daemon") {
		t.Errorf("get without a daemon: %s", out)
	}
	r.daemon(t)
	file := filepath.Join(r.dir, "web.toml")
	text := "name = \"web\"\n[[containers]]\nname = \"main\"\nimage = \"i\"\nimagePullPolicy = \"Never\"\nenv.PASSWORD = " +
		"\"hunter2\"\ncommand = [\"sleep\", \"inf\"]\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := r.run(t, 0, "apply "+file); !strings.Contains(out, "pod/web created") {
		t.Fatalf("apply: %s", out)
	}
	for line, want := range map[string]string{
		"get": "web ", "get web -o name": "pod/web", "get web -o yaml": "value: (hidden)", "why web": "web ", "events web": "Pod accepted",
		"describe web": "web", "version": "daemon", "rollout history web": "1", "logs web -c main": "",
		"top pods web": "web ", "metrics": "podstead_", "ps -a": "web ", "wait web --for=jsonpath={.metadata.name}=web": "condition met",
	} {
		out := r.run(t, uid, line)
		if !strings.Contains(out, want) || strings.Contains(out, "podstead: ") || strings.Contains(out, "hunter2") {
			t.Errorf("podstead %s: %s", line, out)
		}
	}
	for _, line := range []string{
		"delete web", "stop web", "apply " + file, "restart web", "port-forward web :80", "daemon stop", "volume rm data",
	} {
		out := r.run(t, uid, line)
		if !strings.Contains(out, "is not allowed over the read-only socket") ||
			!strings.Contains(out, "hint: use the socket $DIR/r/podstead.sock as root or as a member of group podstead") {
			t.Errorf("podstead %s: %s", line, out)
		}
	}
	if out := r.run(t, 0, "get web -o yaml"); !strings.Contains(out, "value: hunter2") {
		t.Errorf("get as root: %s", out)
	}
	if err := os.Remove(filepath.Join(r.dir, "r", "podstead-ro.sock")); err != nil {
		t.Fatal(err)
	}
	if out := r.run(t, uid, "get"); !strings.Contains(out, "permission denied") || !strings.Contains(out, "podstead-ro") {
		t.Errorf("get without the read-only socket: %s", out)
	}
}

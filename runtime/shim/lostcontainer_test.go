package shim

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	runc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
)

// An OCI runtime is not asked to kill or delete a container of which it has no state, and containerd gets the error of runc. Other runs,
// and those for a container with a state, reach the OCI runtime.
func TestLostContainer(t *testing.T) {
	if r, _ := asSubreaper(t); r == nil {
		return
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "crun")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho reached >&2; exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "state", "known"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := &runc.Runc{Command: program, Root: filepath.Join(dir, "state"), Log: filepath.Join(dir, "log"), LogFormat: runc.JSON}
	for _, test := range []struct {
		name string
		run  func(ctx context.Context) error
		want string
	}{
		{"kill", func(ctx context.Context) error { return r.Kill(ctx, "lost", 9, nil) }, "does not exist"},
		{"kill all", func(ctx context.Context) error { return r.Kill(ctx, "lost", 9, &runc.KillOpts{All: true}) }, "does not exist"},
		{"delete", func(ctx context.Context) error { return r.Delete(ctx, "lost", nil) }, "does not exist"},
		{"delete by force", func(ctx context.Context) error { return r.Delete(ctx, "lost", &runc.DeleteOpts{Force: true}) }, "reached"},
		{"start", func(ctx context.Context) error { return r.Start(ctx, "lost") }, "reached"},
		{"kill one that is known", func(ctx context.Context) error { return r.Kill(ctx, "known", 9, nil) }, "reached"},
		{"delete one that is known", func(ctx context.Context) error { return r.Delete(ctx, "known", nil) }, "reached"},
	} {
		if err := test.run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// The reaper records the session of a command that a run of crun has started, also if it has exited before crun. It exits after the
// leader, which would otherwise reap it, unlike that of crun.
func TestSessionOfCommand(t *testing.T) {
	if r, _ := asSubreaper(t); r == nil {
		return
	}
	for name, command := range map[string]string{"runs": "sleep 1000", "has exited": "while kill -0 $$ 2>/dev/null; do sleep 0.01; done"} {
		dir := t.TempDir()
		for _, file := range []string{"state/c1/status", "process.json"} {
			path := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{}"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		// As crun does, a leader of a session starts the command and exits. crun exits later.
		program := filepath.Join(dir, "crun")
		script := "#!/bin/sh\nsetsid sh -c '(echo $$ >" + dir + "/leader; " + command + ") >/dev/null 2>&1 & echo $! >" + dir +
			"/e1.pid'; sleep 0.3\n"
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, "--root", filepath.Join(dir, "state"), "exec", "--process",
			filepath.Join(dir, "process.json"),
			"--pid-file", filepath.Join(dir, "e1.pid"), "c1")
		exit, err := runc.Monitor.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if code, err := runc.Monitor.Wait(cmd, exit); code != 0 || err != nil {
			t.Fatalf("exit code %d, %v", code, err)
		}
		want, err := os.ReadFile(filepath.Join(dir, "leader"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(SessionFile(dir, "e1"))
		if err != nil || strings.TrimSpace(string(want)) != string(got) {
			t.Errorf("%s: session %q, %v, want %q", name, got, err, want)
		}
		pid, err := os.ReadFile(filepath.Join(dir, "e1.pid"))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(pid))); err == nil && name == "runs" {
			_ = unix.Kill(n, unix.SIGKILL)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestScope tests which daemon is used. Only a user without a group is affected by whether a socket exists.
func TestScope(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		scope scope
		own   bool
	}{
		{scope{}, true},
		{scope{root: true}, false},
		{scope{system: true}, false},
		{scope{named: true}, false},
		{scope{member: true}, false},
		{scope{member: true, access: true}, false},
		{scope{access: true}, false},
		{scope{user: true}, true},
		{scope{user: true, named: true, member: true, access: true}, true},
	} {
		if got := test.scope.own(); got != test.own {
			t.Errorf("%+v: %v, want %v", test.scope, got, test.own)
		}
	}
}

// TestInstalled tests what shows that the system has a daemon.
func TestInstalled(t *testing.T) {
	t.Parallel()
	if isInstalled("") || isInstalled(t.TempDir()) {
		t.Error("nothing is installed")
	}
	for _, path := range []string{
		"etc/podstead", "run/podstead", "usr/lib/systemd/system/podstead.socket", "etc/systemd/system/podstead.service",
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, path), 0o755); err != nil {
			t.Fatal(err)
		}
		if !isInstalled(root) {
			t.Errorf("%s is not found", path)
		}
	}
}

// TestNoteScope tests that the daemon that is used is reported once, and only if that can surprise.
func TestNoteScope(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{err: &out}
	for _, met := range []bool{false, true, true} {
		a.noteScope(func() bool { return met }, "text")
	}
	if out.String() != "podstead: text\n" {
		t.Errorf("got %q", out.String())
	}
}

// TestWithoutRuntimeDirectory runs commands as a user who has no runtime directory. Those that need no daemon work, doctor reports it, and
// others fail with a hint.
func TestWithoutRuntimeDirectory(t *testing.T) {
	t.Parallel()
	const pod = "name = 'p'\n[[containers]]\nname = 'c'\nimage = 'localhost/i:1'\n"
	for _, test := range []struct {
		args         []string
		exit         int
		text, absent string
	}{
		{[]string{"version"}, 0, "podstead", "runtime directory"},
		{[]string{"validate", "-"}, 0, "-: ok", "runtime directory"},
		{[]string{"doctor"}, 1, "fail  runtime directory", ""},
		{[]string{"get"}, 2, "hint: use a directory of your own with mode 0700 in memory for XDG_RUNTIME_DIR", ""},
		{[]string{"--run-dir", "/usr/p", "--user", "get"}, 2, "/usr/p, or a directory above it, must belong to user", ""},
	} {
		code, out := runAsUser(t, pod, nil, test.args...)
		if code != test.exit || !strings.Contains(out, test.text) || test.absent != "" && strings.Contains(out, test.absent) {
			t.Errorf("%v: exit code %d, want %d:\n%s", test.args, code, test.exit, out)
		}
	}
}

// TestNamedFile tests that a configuration file with a socket names the daemon: none of the user is started.
func TestNamedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "podstead.toml")
	socket := filepath.Join(dir, "p.sock")
	if err := errors.Join(os.WriteFile(file, []byte("socket = '"+socket+"'\n"), 0o644), os.Chmod(dir, 0o755),
		os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, as := range [][]string{{"--config", file}, nil} {
		var env []string
		if as == nil {
			env = []string{"PODSTEAD_CONFIG=" + file}
		}
		code, out := runAsUser(t, "", env, append(as, "get")...)
		if code == 0 || !strings.Contains(out, "start daemon: ") || strings.Contains(out, "XDG_RUNTIME_DIR") {
			t.Errorf("%v %v: exit code %d:\n%s", env, as, code, out)
		}
	}
}

// runAsUser runs podstead as a user without a home directory who is not root, and returns the exit code and all output.
func runAsUser(t *testing.T, stdin string, env []string, args ...string) (code int, out string) {
	t.Helper()
	const nobody = 65534
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...) // its directory may be readable to root only
	cmd.Args[0] = "podstead"                                   // the command of TestMain
	cmd.Env, cmd.Dir, cmd.WaitDelay = append([]string{"HOME=/missing-podstead", "NO_COLOR=1"}, env...), "/", 10*time.Second
	cmd.Stdin = strings.NewReader(stdin)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

package doctor_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/doctor"
	"github.com/podstead/podstead/spec"
)

// run runs all checks for a daemon whose directories are in dir, and returns the findings by check.
func run(t *testing.T, dir, runtime string) map[string]doctor.Finding {
	t.Helper()
	c := &config.Config{
		Socket: filepath.Join(dir, "s"), StateDir: filepath.Join(dir, "lib"), RunDir: filepath.Join(dir, "run"),
		LogDir: filepath.Join(dir, "log"),
	}
	c.Engine.Runtime = runtime
	daemon := client.New(c.Socket, "podstead doctor")
	defer daemon.Close()
	findings := map[string]doctor.Finding{}
	for _, f := range doctor.Run(t.Context(), c, nil, daemon, "v1", nil) {
		if f.Detail == "" {
			t.Errorf("%s: no detail", f.Check)
		}
		if f.Grade == doctor.OK && f.Hint != "" {
			t.Errorf("%s: grade %s with a hint: %s", f.Check, f.Grade, f.Hint)
		}
		findings[f.Check] = f
	}
	return findings
}

func TestMissingRuntime(t *testing.T) {
	findings := run(t, t.TempDir(), "/no/such/runc")
	if f := findings["OCI runtime"]; f.Grade != doctor.Fail || f.Hint == "" {
		t.Errorf("runtime that does not exist: %+v", f)
	}
	want := doctor.OK
	if os.Geteuid() != 0 {
		want = doctor.Fail
	}
	if f := findings["privileges"]; f.Grade != want && f.Grade != doctor.Warn {
		t.Errorf("user %d: %+v", os.Geteuid(), f)
	}
	if f := findings["daemon"]; f.Grade != doctor.OK {
		t.Errorf("no daemon and no pods: %+v", f)
	}
}

func TestBrokenRuntime(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "runc")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if f := run(t, t.TempDir(), broken)["OCI runtime"]; f.Grade != doctor.Fail || f.Hint == "" {
		t.Errorf("%+v", f)
	}
}

func TestPodsWithoutDaemon(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "lib", "pods"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lib", "pods", "web.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := run(t, dir, "true")["daemon"]; f.Grade != doctor.Warn {
		t.Errorf("%+v", f)
	}
}

func TestDirectoriesThatDoNotExist(t *testing.T) {
	findings := run(t, filepath.Join(t.TempDir(), "a", "b"), "true")
	for _, check := range []string{"state directory", "run directory", "log directory"} {
		if f, ok := findings[check]; !ok || f.Detail == "" {
			t.Errorf("%s: %+v", check, f)
		}
	}
}

// TestInvalidConfiguration: each problem of the file is shown with its line. Pods run with the last valid file, and do not start without
// one.
func TestInvalidConfiguration(t *testing.T) {
	for _, tt := range []struct {
		lastValid, hidden bool
		grade             doctor.Grade
		hint              string
	}{
		{true, false, doctor.Warn, "the daemon uses the last valid one"},
		{false, true, doctor.Warn, "run podstead doctor as root: this user cannot read"},
		{false, false, doctor.Fail, "no earlier one was valid, and the daemon does not start"},
	} {
		invalid := &config.FileError{Err: spec.Problems{
			{File: "/etc/podstead/podstead.toml", Line: 2, Column: 1, Path: "engine.x", Message: "unknown field"},
			{File: "/etc/podstead/podstead.toml", Line: 7, Column: 3, Message: "unknown field"},
		}, LastValid: tt.lastValid, Hidden: tt.hidden}
		c := &config.Config{Socket: filepath.Join(t.TempDir(), "s")}
		findings := doctor.Run(t.Context(), c, invalid, client.New(c.Socket, "podstead doctor"), "v1", nil)
		i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Check == "configuration" })
		const detail = "/etc/podstead/podstead.toml:2:1: engine.x: unknown field; /etc/podstead/podstead.toml:7:3: unknown field"
		if i < 0 || findings[i].Detail != detail || findings[i].Grade != tt.grade || !strings.Contains(findings[i].Hint, tt.hint) {
			t.Errorf("%+v: findings %+v", tt, findings)
		}
	}
}

// TestRunDirectoryOnDisk: the run directory has values of secrets, so that one on a disk is a warning.
func TestRunDirectoryOnDisk(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/dev/shm/podstead-none"} {
		var st unix.Statfs_t
		if err := unix.Statfs(filepath.Dir(dir), &st); err != nil {
			t.Fatal(err)
		}
		f := run(t, dir, "true")["run directory"]
		inMemory := st.Type == unix.TMPFS_MAGIC || uint32(st.Type) == unix.RAMFS_MAGIC
		if strings.Contains(f.Detail, "values of secrets") == inMemory || !inMemory && f.Grade == doctor.OK {
			t.Errorf("%s, in memory %v: %+v", dir, inMemory, f)
		}
	}
}

package engine

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// TestSweepRunc expects that a container of the OCI runtime without a bundle is deleted, and that others are kept.
func TestSweepRunc(t *testing.T) {
	state := t.TempDir()
	runc := filepath.Join(state, "runc", Namespace)
	deleted := filepath.Join(state, "deleted")
	binary := filepath.Join(state, "oci")
	script := "#!/bin/sh\n[ \"$3 $4\" = 'delete --force' ] && echo \"$5\" >>" + deleted + "\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{
		filepath.Join(runc, "incomplete"), filepath.Join(runc, "lost"), filepath.Join(runc, "task"), filepath.Join(runc, "sandbox"),
		filepath.Join(state, taskPlugin, Namespace, "task"), filepath.Join(state, sandboxPlugin, Namespace, "sandbox"),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"lost", "task", "sandbox"} {
		if err := os.WriteFile(filepath.Join(runc, id, "state.json"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sweepRunc(t.Context(), Options{State: state, Runtime: "auto", Classes: []string{"crun", binary}, Log: slog.New(slog.DiscardHandler)})
	if got, _ := os.ReadFile(deleted); string(got) != "lost\n" {
		t.Errorf("deleted by the OCI runtime: %q, want lost", got)
	}
	if _, err := os.Stat(filepath.Join(runc, "incomplete")); err == nil {
		t.Error("the directory of a container that was never created was kept")
	}
}

// TestRuntimeOfLeft expects the configured program that can have created a container that was left.
func TestRuntimeOfLeft(t *testing.T) {
	for _, test := range []struct {
		runtime string
		classes []string
		want    string // of a container of crun
	}{
		{"auto", nil, "crun"},
		{"/opt/crun", nil, "/opt/crun"},
		{"/opt/runc", nil, "crun"},
		{"/opt/runc", []string{"runc", "/opt/crun-1.20"}, "/opt/crun-1.20"},
		{"/opt/crun", []string{"/opt/crun-1.20"}, "/opt/crun"},
	} {
		o := Options{Runtime: test.runtime, Classes: test.classes}
		if got := o.runtimeOf("crun"); got != test.want {
			t.Errorf("%s and %v: %s, want %s", test.runtime, test.classes, got, test.want)
		}
	}
}

// TestRestoreBundles expects that a bundle that was set aside is moved back, whatever the engine did when it was killed.
func TestRestoreBundles(t *testing.T) {
	state := t.TempDir()
	e := &Engine{opt: Options{State: state}}
	bundles := []string{filepath.Join(state, sandboxPlugin, Namespace, "s"), filepath.Join(state, taskPlugin, Namespace, "c")}
	for _, bundle := range bundles {
		if err := os.MkdirAll(filepath.Join(bundle, "rootfs"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := e.setAside("s", bundle); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(bundle, "rootfs")); err != nil {
			t.Errorf("not found while set aside: %v", err)
		}
		if info, err := os.Lstat(bundle); err != nil || info.IsDir() {
			t.Errorf("containerd would load %s: %v, %v", bundle, info, err)
		}
	}
	// One was not exchanged yet, and one was set aside and deleted since.
	unfinished, deleted := filepath.Join(e.asideDir("s"), Namespace, "u"), filepath.Join(state, taskPlugin, Namespace, "d")
	for _, link := range []string{unfinished, deleted} {
		if err := os.Symlink(unfinished, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := restoreBundles(state); err != nil {
		t.Fatal(err)
	}
	for _, bundle := range bundles {
		if info, err := os.Lstat(bundle); err != nil || !info.IsDir() {
			t.Errorf("%s was not restored: %v, %v", bundle, info, err)
		}
	}
	for _, path := range []string{filepath.Join(state, asideDir), deleted} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was not removed", path)
		}
	}
}

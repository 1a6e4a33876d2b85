package ociruntime

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// countingPrograms makes programs of which crun counts its trials, and returns the number of them since the last call.
func countingPrograms(t *testing.T, exitCode int) (trials func() int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "trials")
	programs(t,
		map[string]string{"crun": fmt.Sprintf("case $* in *run*--bundle*) echo x >>%s; exit %d;; esac; exit 1", log, exitCode), "runc": ""})
	return func() int {
		t.Helper()
		text, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.RemoveAll(log); err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "x")
	}
}

// A container is run once, and again if something has changed that the result depends on.
func TestMemory(t *testing.T) {
	trials := countingPrograms(t, 0)
	o := options(t, Auto)
	o.Memory = filepath.Join(t.TempDir(), "trial.json")
	expect := func(what string, want int) {
		t.Helper()
		got, err := Select(t.Context(), o)
		if err != nil || got.Program != "crun" || got.UserNamespaces != "crun" || got.Reason != "crun works on this host" {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		if n := trials(); n != want {
			t.Errorf("%s: %d trials, want %d", what, n, want)
		}
	}
	expect("first start", 1)
	expect("next start", 0)
	crunPath, err := exec.LookPath("crun")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct {
		name   string
		change func() error
	}{
		{"crun is replaced", func() error { return os.Chmod(crunPath, 0o500) }},
		{"runc is removed", func() error { return os.Remove(filepath.Join(filepath.Dir(crunPath), "runc")) }},
		{"another program", func() error { o.Pause = crunPath; return nil }},
		{"another kind of cgroups", func() error { o.Host.UnifiedCgroups = !o.Host.UnifiedCgroups; return nil }},
		{"the file is damaged", func() error { return os.WriteFile(o.Memory, []byte("{"), 0o600) }},
		{"the file is empty", func() error { return os.WriteFile(o.Memory, []byte("{}"), 0o600) }},
	} {
		if err := change.change(); err != nil {
			t.Fatal(err)
		}
		expect(change.name, 1)
		expect("start after: "+change.name, 0)
	}
	o.Memory = ""
	expect("no file", 1)
	expect("no file again", 1)
	o.Memory = filepath.Join(t.TempDir(), "none", "trial.json")
	expect("a file that cannot be written", 1)
}

// A configured program does not become that of an earlier trial.
func TestMemoryOfConfigured(t *testing.T) {
	trials := countingPrograms(t, 0)
	o := options(t, Auto)
	o.Memory = filepath.Join(t.TempDir(), "trial.json")
	if _, err := Select(t.Context(), o); err != nil || trials() != 1 {
		t.Fatalf("no trial: %v", err)
	}
	o.Program = "runc"
	if got, err := Select(t.Context(), o); err != nil || got.Program != "runc" || got.Reason != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A trial that failed is repeated: the cause may be gone.
func TestFailureIsNotKept(t *testing.T) {
	trials := countingPrograms(t, 1)
	o := options(t, Auto)
	o.Memory = filepath.Join(t.TempDir(), "trial.json")
	for range 2 {
		if got, err := Select(t.Context(), o); err != nil || got.Program != "runc" || trials() != 1 {
			t.Errorf("%+v, %v; want runc after a trial", got, err)
		}
	}
}

// That crun does not support the cgroups of the host is kept.
func TestCgroupsRefused(t *testing.T) {
	log := filepath.Join(t.TempDir(), "trials")
	programs(t, map[string]string{
		"crun": "case $* in *run*--bundle*) echo x >>" + log +
			"; echo 'cgroups in hybrid mode not supported, drop all controllers from cgroup v2' >&2; esac; exit 1",
		"runc": "",
	})
	o := options(t, Auto)
	o.Memory = filepath.Join(t.TempDir(), "trial.json")
	for range 2 {
		got, err := Select(t.Context(), o)
		trials, readErr := os.ReadFile(log)
		if err != nil || readErr != nil || got.Program != "runc" || got.UserNamespaces != "runc" ||
			!strings.Contains(got.Reason, "hybrid") || string(trials) != "x\n" {
			t.Errorf("%+v, %v; trials %q, %v; want runc after one trial", got, err, trials, readErr)
		}
	}
	o.Host.UnifiedCgroups = !o.Host.UnifiedCgroups
	if _, err := Select(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if trials, err := os.ReadFile(log); string(trials) != "x\nx\n" || err != nil {
		t.Errorf("trials %q after the cgroups have changed, %v", trials, err)
	}
}

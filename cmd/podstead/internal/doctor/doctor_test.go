package doctor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/cmd/podstead/internal/doctor"
)

// look makes all checks for a machine whose folders are below dir, and returns the findings by check.
func look(t *testing.T, dir, runtime string) map[string]doctor.Finding {
	t.Helper()
	c := &config.Config{
		Socket: filepath.Join(dir, "s"), StateDir: filepath.Join(dir, "lib"), RunDir: filepath.Join(dir, "run"), LogDir: filepath.Join(dir, "log"),
	}
	c.Engine.Runtime = runtime
	client := api.NewClient(c.Socket, "podstead doctor")
	defer client.Close()
	found := map[string]doctor.Finding{}
	for _, f := range doctor.Look(t.Context(), c, client, "v1") {
		if f.Detail == "" {
			t.Errorf("%s says nothing", f.Check)
		}
		if f.Grade == doctor.OK && f.Mend != "" {
			t.Errorf("%s is well, and to be mended: %s", f.Check, f.Mend)
		}
		found[f.Check] = f
	}
	return found
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	found := look(t, t.TempDir(), "/no/such/runc")
	if f := found["OCI runtime"]; f.Grade != doctor.Fail || f.Mend == "" {
		t.Errorf("a runtime that is not there: %+v", f)
	}
	want := doctor.OK
	if os.Geteuid() != 0 {
		want = doctor.Fail
	}
	if f := found["privileges"]; f.Grade != want && f.Grade != doctor.Warn {
		t.Errorf("user %d: %+v", os.Geteuid(), f)
	}
	if f := found["daemon"]; f.Grade != doctor.OK {
		t.Errorf("no daemon and no pods: %+v", f)
	}
}

func TestARuntimeThatDoesNotRunIsSaid(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "runc")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if f := look(t, t.TempDir(), broken)["OCI runtime"]; f.Grade != doctor.Fail || f.Mend == "" {
		t.Errorf("%+v", f)
	}
}

func TestPodsWithoutADaemonAreSaid(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "lib", "pods"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lib", "pods", "web.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := look(t, dir, "true")["daemon"]; f.Grade != doctor.Warn {
		t.Errorf("%+v", f)
	}
}

func TestFoldersThatAreNotThereYet(t *testing.T) {
	found := look(t, filepath.Join(t.TempDir(), "a", "b"), "true")
	for _, check := range []string{"state folder", "run folder", "log folder"} {
		if f, looked := found[check]; !looked || f.Detail == "" {
			t.Errorf("%s: %+v", check, f)
		}
	}
}

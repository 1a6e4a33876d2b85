//go:build e2e

package ociruntime

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/test/purecgroup"
	"github.com/podstead/podstead/test/suite"
)

func TestMain(m *testing.M) {
	os.Exit(suite.Main(m.Run, suite.Options{Together: true}))
}

// programVariable is the path of the trial container's program in another process of the test.
const programVariable = "OCIRUNTIME_TEST_PROGRAM"

// TestAuto expects that crun is selected.
func TestAuto(t *testing.T) {
	path := os.Getenv(programVariable)
	if path == "" {
		path = buildMonitor(t)
	}
	purecgroup.Run(t, []string{programVariable + "=" + path}, func(t *testing.T) {
		selects(t, path, "crun", "crun works on this host")
	})
}

// TestAutoHybrid expects that runc is selected with cgroup v1 and v2 side by side, in which crun does not work.
func TestAutoHybrid(t *testing.T) {
	if purecgroup.Hybrid() {
		selects(t, buildMonitor(t), "runc", "crun does not work on this host: ")
	}
}

// selects runs crun, and expects that nothing is left of the trial.
func selects(t *testing.T, path, want, reason string) {
	t.Helper()
	host, err := oci.DetectHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := podcgroup.New(podcgroup.Cgroupfs, "/podstead-trial-test", host.UnifiedCgroups)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Program: Auto, Dir: filepath.Join(t.TempDir(), "trial"), Pause: path, Cgroups: groups, Host: host}
	got, err := Select(t.Context(), o)
	if err != nil || got.Program != want || !strings.Contains(got.Reason, reason) || !got.RecursiveReadOnly {
		t.Errorf("%+v, %v, want %s because %s", got, err, want, reason)
	}
	if dirs, err := cgroup.Dirs(groups.Trial(o.name())); err != nil || len(dirs) > 0 {
		t.Errorf("cgroups of the trial: %q, %v", dirs, err)
	}
	if err := groups.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(o.Dir); err == nil {
		t.Error("the directory of the trial was kept")
	}
}

// buildMonitor builds the monitor, whose static program runs in an empty root file system.
func buildMonitor(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), monitor.Name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/podstead/podstead/cmd/"+monitor.Name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

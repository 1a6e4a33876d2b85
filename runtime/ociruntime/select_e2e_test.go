//go:build e2e

package ociruntime

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/shim"
)

func TestMain(m *testing.M) {
	if shim.Invoked(os.Args) {
		os.Exit(shim.Main(context.Background()))
	}
	os.Exit(m.Run())
}

// hybrid is where systemd mounts cgroup v2 beside v1.
const hybrid = "/sys/fs/cgroup/unified"

// pureVariable is set in a mount namespace in which cgroup v2 is not mounted beside v1, to the path of the shim.
const pureVariable = "OCIRUNTIME_TEST_PURE"

// TestAuto runs crun. With cgroup v1 and v2 side by side it does not work, and runc is selected. Without v2, in a mount namespace of its own,
// or with v2 alone, crun is selected.
func TestAuto(t *testing.T) {
	host, err := oci.DetectHost()
	if err != nil {
		t.Fatal(err)
	}
	groups, err := podcgroup.New(podcgroup.Cgroupfs, "/podstead-trial-test", host.UnifiedCgroups)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Program: Auto, Dir: filepath.Join(t.TempDir(), "trial"), ShimPath: os.Getenv(pureVariable), Cgroups: groups, Host: host}
	pure := o.ShimPath != ""
	if !pure {
		o.ShimPath = buildShim(t)
	}
	want, reason := "crun", "crun works on this host"
	var st unix.Statfs_t
	isHybrid := unix.Statfs(hybrid, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
	if isHybrid {
		want, reason = "runc", "crun does not work on this host: "
	}
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
	if !isHybrid || pure {
		return
	}
	again := exec.CommandContext(t.Context(), "/bin/sh", "-c", "umount "+hybrid+` && exec "$0" -test.run '^TestAuto$' -test.v`, os.Args[0])
	again.Env = append(os.Environ(), pureVariable+"="+o.ShimPath)
	again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // with private mounts
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestAuto") {
		t.Errorf("without cgroup v2: %v\n%s", err, out)
	}
}

// buildShim builds the shim, whose static program runs in an empty root file system.
func buildShim(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), shim.Name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/podstead/podstead/cmd/"+shim.Name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

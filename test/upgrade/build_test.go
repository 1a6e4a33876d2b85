//go:build e2e

package upgrade

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/test/internal/rig"
)

// programs are those of a package that run pods. A version with shims has no monitor.
var programs = []string{"podstead", "containerd-shim-podstead-v1", monitor.Name}

// buildEarlier builds an earlier version, and returns the directory of its programs. In a clone without its commit, that is the current
// one.
func buildEarlier(t *testing.T, unpack unpacker, version string, names []string) (dir string) {
	t.Helper()
	p, err := unpack(t.Context(), repository(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if p.Warning != "" {
		fmt.Fprintln(os.Stderr, p.Warning)
		t.Log(p.Warning)
		names = programs
	} else {
		t.Logf("the version %s is %s", version, p.Commit)
	}
	dir = t.TempDir()
	build(t, p.Dir, dir, version, names)
	return dir
}

// build builds programs of a source tree. -trimpath makes the paths of sources irrelevant, so that the build cache is used.
func build(t *testing.T, source, dir, version string, names []string, flags ...string) {
	t.Helper()
	args := append([]string{
		"build", "-trimpath", "-tags", "grpcnotrace", "-buildvcs=false", "-ldflags", "-s -w -X main.version=" + version, "-o", dir + "/",
	},
		flags...)
	for _, name := range names {
		args = append(args, "./cmd/"+name)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the version %s: %v: %s", version, err, out)
	}
}

// current returns the directory of the programs that make build has built.
func current(t *testing.T) string {
	t.Helper()
	return filepath.Join(repository(t), "bin")
}

// buildPrevious builds the previous version.
func buildPrevious(t *testing.T) (dir string) {
	t.Helper()
	return buildEarlier(t, rig.UnpackPrevious, "previous", programs)
}

// buildShims builds the last version in which each pod has a shim.
func buildShims(t *testing.T) (dir string) {
	t.Helper()
	return buildEarlier(t, rig.UnpackShims, "shims", programs[:2])
}

func repository(t *testing.T) string {
	t.Helper()
	dir, err := rig.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

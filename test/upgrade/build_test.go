//go:build e2e

package upgrade

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/suite"
)

// buildPrevious builds the programs of the previous version into a directory.
func buildPrevious(t *testing.T, repository, dir string) {
	t.Helper()
	p, err := rig.UnpackPrevious(t.Context(), repository, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if p.Warning != "" {
		fmt.Fprintln(os.Stderr, p.Warning)
		t.Log(p.Warning)
	} else {
		t.Logf("the previous version is %s", p.Commit)
	}
	build(t, p.Dir, dir, "previous")
}

// build builds the programs of a source tree. -trimpath makes the paths of sources irrelevant, so that the build cache is used.
func build(t *testing.T, source, dir, version string, flags ...string) {
	t.Helper()
	args := append([]string{
		"build", "-trimpath", "-tags", "grpcnotrace", "-buildvcs=false", "-ldflags", "-s -w -X main.version=" + version, "-o", dir + "/",
	},
		flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./cmd/podstead", "./cmd/containerd-shim-podstead-v1")...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the version %s: %v: %s", version, err, out)
	}
}

// programs are the files that a package replaces, besides the monitor.
var programs = []string{"podstead", "containerd-shim-podstead-v1"}

// versions are the directories with the programs of two versions.
type versions struct{ previous, current string }

// buildVersions returns the previous version, and the current one that make build has built.
func buildVersions(t *testing.T) versions {
	t.Helper()
	repository, err := rig.Repository()
	if err != nil {
		t.Fatal(err)
	}
	v := versions{previous: t.TempDir(), current: suite.Programs(repository)}
	buildPrevious(t, repository, v.previous)
	return v
}

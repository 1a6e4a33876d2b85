//go:build e2e

package upgrade

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
)

// previousCommit returns the commit of the previous version: the last release before HEAD, or the commit in the file previous if there is
// no release.
func previousCommit(t *testing.T, repository string) string {
	t.Helper()
	if tag, err := git(t.Context(), repository, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"); err == nil {
		return tag
	}
	recorded, err := os.ReadFile("previous")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(recorded))
}

func git(ctx context.Context, repository string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=" + repository}, args...)...) // CI may run as another user
	cmd.Dir = repository
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// buildPrevious builds the programs of the previous version into a directory.
//
// A shallow clone does not have the commit. The current sources are built as another version then: the test still replaces the programs,
// but finds no incompatibility.
func buildPrevious(t *testing.T, repository, dir string) {
	t.Helper()
	commit, source := previousCommit(t, repository), t.TempDir()
	archive := filepath.Join(source, "source.tar")
	if _, err := git(t.Context(), repository, "archive", "--output", archive, commit); err != nil {
		text := fmt.Sprintf("WARNING: commit %s of the previous version is not in this clone (shallow?), the CURRENT sources are built as the previous version; run git fetch --unshallow --tags", commit)
		fmt.Fprintln(os.Stderr, text)
		t.Log(text)
		source = repository
	} else {
		if out, err := exec.CommandContext(t.Context(), "tar", "-C", source, "-xf", archive).CombinedOutput(); err != nil {
			t.Fatalf("unpack the previous version: %v: %s", err, out)
		}
		t.Logf("the previous version is %s", commit)
	}
	build(t, source, dir, "previous")
}

// build builds the programs of a source tree. -trimpath makes the paths of sources irrelevant, so that the build cache is used.
func build(t *testing.T, source, dir, version string, flags ...string) {
	t.Helper()
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=" + version, "-o", dir + "/"}, flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./cmd/podstead", "./cmd/containerd-shim-podstead-v1")...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the version %s: %v: %s", version, err, out)
	}
}

// programs are the files that a package replaces.
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
	v := versions{previous: t.TempDir(), current: filepath.Join(repository, "bin")}
	buildPrevious(t, repository, v.previous)
	return v
}

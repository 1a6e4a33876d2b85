package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Previous is the source of an earlier version.
type Previous struct {
	// Dir has the source tree.
	Dir string
	// Commit is a tag or a commit.
	Commit string
	// Warning is not empty if this clone does not have the commit (a shallow one). Dir is the repository then: a test still replaces the
	// programs, but finds no incompatibility.
	Warning string
}

// UnpackPrevious unpacks the source of the previous version into dir, an empty directory: the last release before HEAD, or the commit in
// test/upgrade/previous if there is no release.
func UnpackPrevious(ctx context.Context, repository, dir string) (Previous, error) {
	commit, err := git(ctx, repository, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^")
	if err != nil {
		if commit, err = recorded(repository, "previous"); err != nil {
			return Previous{}, err
		}
	}
	return unpack(ctx, repository, dir, commit)
}

// UnpackShims unpacks the source of the last version in which each pod has a shim, as UnpackPrevious does: the commit in
// test/upgrade/shims. Its programs use the monitor if podstead-monitor is installed beside them.
func UnpackShims(ctx context.Context, repository, dir string) (Previous, error) {
	commit, err := recorded(repository, "shims")
	if err != nil {
		return Previous{}, err
	}
	return unpack(ctx, repository, dir, commit)
}

// recorded returns the commit in a file of test/upgrade.
func recorded(repository, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(repository, "test/upgrade", name))
	return strings.TrimSpace(string(text)), err
}

func unpack(ctx context.Context, repository, dir, commit string) (Previous, error) {
	p := Previous{Dir: dir, Commit: commit}
	archive := filepath.Join(dir, "source.tar")
	if _, err := git(ctx, repository, "archive", "--output", archive, p.Commit); err != nil {
		p.Dir = repository
		p.Warning = fmt.Sprintf("WARNING: commit %s of an earlier version is not in this clone (shallow?), the CURRENT sources are "+
			"built as that version; run git fetch --unshallow --tags",
			p.Commit)
		return p, nil
	}
	if out, err := exec.CommandContext(ctx, "tar", "-C", dir, "-xf", archive).CombinedOutput(); err != nil {
		return p, fmt.Errorf("unpack the version %s: %w: %s", p.Commit, err, out)
	}
	return p, os.Remove(archive)
}

func git(ctx context.Context, repository string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=" + repository}, args...)...) // CI may run as another user
	cmd.Dir = repository
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

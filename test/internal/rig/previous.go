package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Previous is the source of the previous version.
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
	p := Previous{Dir: dir}
	var err error
	if p.Commit, err = git(ctx, repository, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"); err != nil {
		recorded, err := os.ReadFile(filepath.Join(repository, "test/upgrade/previous"))
		if err != nil {
			return p, err
		}
		p.Commit = strings.TrimSpace(string(recorded))
	}
	archive := filepath.Join(dir, "source.tar")
	if _, err := git(ctx, repository, "archive", "--output", archive, p.Commit); err != nil {
		p.Dir = repository
		p.Warning = fmt.Sprintf("WARNING: commit %s of the previous version is not in this clone (shallow?), the CURRENT sources are "+
			"built as the previous version; run git fetch --unshallow --tags",
			p.Commit)
		return p, nil
	}
	if out, err := exec.CommandContext(ctx, "tar", "-C", dir, "-xf", archive).CombinedOutput(); err != nil {
		return p, fmt.Errorf("unpack the previous version: %w: %s", err, out)
	}
	return p, os.Remove(archive)
}

func git(ctx context.Context, repository string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=" + repository}, args...)...) // CI may run as another user
	cmd.Dir = repository
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

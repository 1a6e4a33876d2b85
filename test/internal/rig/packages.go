package rig

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// packagesTimeout is for the packages of one version on a loaded host with an empty build cache.
const packagesTimeout = 30 * time.Minute

// Versions of the packages that are tested: of the previous version from git, and of the current one.
const OldVersion, NewVersion = "0.1.0", "0.2.0"

// BuildPackages builds the packages of both versions for amd64 in dir/packages, and returns that directory. dir exists. The flags of the Go
// compiler are those of make build, so that nothing is compiled a second time.
func BuildPackages(ctx context.Context, repository, dir string) (string, error) {
	source, err := os.MkdirTemp(dir, "previous")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(source)
	previous, err := UnpackPrevious(ctx, repository, source)
	if err != nil {
		return "", err
	}
	if previous.Warning != "" {
		fmt.Fprintln(os.Stderr, previous.Warning)
	}
	output := filepath.Join(dir, "packages")
	if previous.Dir != repository {
		if err := editScript(filepath.Join(previous.Dir, "packaging", "build")); err != nil {
			return "", err
		}
	}
	// Without the variable, packages of before 2026-11-29 have no monitor.
	if err := buildPackages(ctx, previous.Dir, output, OldVersion, "PODSTEAD_TEST_MONITOR=1"); err != nil {
		return "", err
	}
	return output, buildPackages(ctx, repository, output, NewVersion)
}

// editScript changes the flags of the compiler in the script of a previous version to those of make build: the manual pages are the output
// of a program.
func editScript(script string) error {
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	text = bytes.Replace(text, []byte("-tags manpages "), []byte("-tags manpages,grpcnotrace "), 1)
	return os.WriteFile(script, text, 0o755) // a script
}

func buildPackages(ctx context.Context, source, output, version string, env ...string) error {
	ctx, cancel := context.WithTimeout(ctx, packagesTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(source, "packaging", "build"), "package", output, "amd64")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "VERSION=v"+version, "SOURCE_DATE_EPOCH=1700000000",
		"GOFLAGS=-trimpath -tags=grpcnotrace")
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build packages %s: %w\n%s", version, err, out)
	}
	return nil
}

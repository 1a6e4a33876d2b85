//go:build vm

package vm_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/vm"
)

// buildTimeout is for one part on a loaded host with an empty build cache.
const buildTimeout = 30 * time.Minute

// Parts that virtual machines are built from. The flags of the Go compiler are those of make build: nothing is compiled a second time.
var (
	image = sync.OnceValues(func() (vm.Image, error) {
		return vm.Build(context.Background(), filepath.Join(repository, ".cache", "vm"))
	})
	agent = sync.OnceValues(func() (string, error) {
		return compile("init", "build", "-tags", "grpcnotrace", "-o", filepath.Join(work, "init"), "./test/vm/agent")
	})
	runtimeTests = sync.OnceValues(func() (string, error) {
		return compile("runtime.test", "test", "-c", "-tags", "e2e,grpcnotrace", "-o", filepath.Join(work, "runtime.test"), "./runtime")
	})
	keep = sync.OnceValues(func() (string, error) {
		return compile("keep", "build", "-tags", "grpcnotrace", "-o", filepath.Join(work, "keep"), "./test/vm/keep")
	})
	packages = sync.OnceValues(buildPackages)
)

// compile runs the Go compiler, and returns the path of the program that it writes to the work directory.
func compile(name, verb string, args ...string) (string, error) {
	cmd, cancel := command(repository, "go", append([]string{verb, "-trimpath", "-ldflags", "-s -w"}, args...)...)
	defer cancel()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return filepath.Join(work, name), nil
}

// command returns a command. The programs that it compiles do not use cgo.
func command(dir, name string, args ...string) (*exec.Cmd, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd, cancel
}

// Versions of the packages that are tested: of the previous version from git, and of the current one.
const oldVersion, newVersion = "0.1.0", "0.2.0"

// buildPackages builds packages of both versions, and returns their directory.
func buildPackages() (string, error) {
	dir, err := os.MkdirTemp(work, "previous")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	previous, err := rig.UnpackPrevious(context.Background(), repository, dir)
	if err != nil {
		return "", err
	}
	if previous.Warning != "" {
		fmt.Fprintln(os.Stderr, previous.Warning)
	}
	output := filepath.Join(work, "packages")
	for version, source := range map[string]string{oldVersion: previous.Dir, newVersion: repository} {
		if err := buildPackage(version, source, output); err != nil {
			return "", err
		}
	}
	return output, nil
}

// buildPackage builds the packages of a version. The script of the previous version may have flags of the compiler that differ from those
// of make build: the manual pages are the output of a program.
func buildPackage(version, source, output string) error {
	script := filepath.Join(source, "packaging", "build")
	if source != repository {
		text, err := os.ReadFile(script)
		if err != nil {
			return err
		}
		text = bytes.Replace(text, []byte("-tags manpages "), []byte("-tags manpages,grpcnotrace "), 1)
		if err := os.WriteFile(script, text, 0o755); err != nil { // a script
			return err
		}
	}
	cmd, cancel := command(source, script, "package", output, "amd64")
	defer cancel()
	if source != repository {
		cmd.Env = append(cmd.Env, "PODSTEAD_TEST_MONITOR=1") // without it, packages of before 2026-11-29 have no monitor
	}
	cmd.Env = append(cmd.Env, "VERSION=v"+version, "SOURCE_DATE_EPOCH=1700000000", "GOFLAGS=-trimpath -tags=grpcnotrace")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build package %s: %w\n%s", version, err, out)
	}
	return nil
}

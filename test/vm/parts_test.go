//go:build vm

package vm_test

import (
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
	packages = sync.OnceValues(func() (string, error) {
		return rig.BuildPackages(context.Background(), repository, work)
	})
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

//go:build e2e

package upgrade

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/suite"
)

// TestMain runs the tests side by side, in a directory that must be empty at the end. The tests have no network, so it downloads before
// what the previous version requires and this one does not.
func TestMain(m *testing.M) {
	os.Exit(suite.Main(m.Run, suite.Options{
		Shims: map[string]string{
			"TestUpgradeAndDowngrade": "the previous version has no monitor: it cannot have pods of one after a downgrade",
		},
		Monitor: map[string]string{"TestUpgradeToMonitor": "the current version has no monitor"},
		Around: func(run func() int) int {
			return rig.InDir("psu-", nil, func() int {
				if err := downloadPrevious(); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return 1
				}
				return run()
			})
		},
	}))
}

// downloadPrevious downloads the modules of the previous version that are not in the module cache.
func downloadPrevious() error {
	repository, err := rig.Repository()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "previous")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	p, err := rig.UnpackPrevious(ctx, repository, dir)
	if err != nil {
		return err
	}
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-tags", "grpcnotrace", "./cmd/podstead", "./cmd/containerd-shim-podstead-v1")
	list.Dir, list.Env = p.Dir, append(os.Environ(), "GOFLAGS=")
	if out, err := list.CombinedOutput(); err != nil {
		return fmt.Errorf("download modules of the previous version: %w: %s", err, out)
	}
	return nil
}

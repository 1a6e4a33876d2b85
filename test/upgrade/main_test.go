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
// what earlier versions require and this one does not.
func TestMain(m *testing.M) {
	os.Exit(suite.Main(m.Run, suite.Options{
		Around: func(run func() int) int {
			return rig.InDir("psu-", nil, func() int {
				for _, unpack := range []unpacker{rig.UnpackPrevious, rig.UnpackShims} {
					if err := download(unpack); err != nil {
						fmt.Fprintln(os.Stderr, err)
						return 1
					}
				}
				return run()
			})
		},
	}))
}

// unpacker unpacks the source of an earlier version.
type unpacker func(ctx context.Context, repository, dir string) (rig.Previous, error)

// download downloads the modules of an earlier version that are not in the module cache.
func download(unpack unpacker) error {
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
	p, err := unpack(ctx, repository, dir)
	if err != nil {
		return err
	}
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-tags", "grpcnotrace", "./cmd/...")
	list.Dir, list.Env = p.Dir, append(os.Environ(), "GOFLAGS=")
	if out, err := list.CombinedOutput(); err != nil {
		return fmt.Errorf("download modules of the version %s: %w: %s", p.Commit, err, out)
	}
	return nil
}

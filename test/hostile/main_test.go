//go:build e2e

package hostile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/ownnet"
	"github.com/podstead/podstead/test/internal/rig"
)

// TestMain keeps all folders of the tests below one that is named after this process, so that those of one that was killed are
// found.
func TestMain(m *testing.M) { os.Exit(ownnet.Main(func() int { return run(m) })) }

const prefix = "psh-"

func run(m *testing.M) int {
	dir := filepath.Join(os.TempDir(), prefix+strconv.Itoa(os.Getpid()))
	err := sweep()
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		return 1
	}
	status := m.Run()
	if err := os.Remove(dir); err != nil { // it is empty, or something is left
		fmt.Fprintln(os.Stderr, "hostile:", err)
		status = max(status, 1)
	}
	return status
}

// sweep clears away what tests have left that were killed.
func sweep() error {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, dir := range left {
		pid, numberErr := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), prefix))
		if numberErr != nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		err = errors.Join(err, rig.Sweep(ctx, dir))
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

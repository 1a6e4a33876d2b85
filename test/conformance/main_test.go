//go:build e2e

package conformance

import (
	"context"
	"errors"
	"flag"
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

// TestMain runs the rows in a network of their own, on one private engine but for those that kill theirs, and fails where
// anything of them is left. All folders lie below one that is named after this process, so that those of one that was killed
// are found.
func TestMain(m *testing.M) { os.Exit(ownnet.Main(func() int { return run(m) })) }

const prefix = "pcf-"

// atOnce is how many rows run side by side: most of the time they wait.
const atOnce = "6"

// shared is the engine of the rows that do not kill theirs.
var shared *stage

func run(m *testing.M) int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(atOnce); err != nil {
			return fail(err)
		}
	}
	dir := filepath.Join(os.TempDir(), prefix+strconv.Itoa(os.Getpid()))
	if err := errors.Join(sweep(), os.Mkdir(dir, 0o755), os.Setenv("TMPDIR", dir)); err != nil { //nolint:gosec // containers see parts of it
		return fail(err)
	}
	var err error
	if shared, err = newStage(); err != nil {
		return fail(err)
	}
	status := m.Run()
	ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, errors.New("it does not go"))
	defer cancel()
	if status == 0 {
		err = shared.leavesNothing(ctx)
	}
	if err := errors.Join(err, shared.Close(ctx), os.Remove(dir)); err != nil { // the folder is empty, or something is left
		return fail(err)
	}
	return status
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "conformance:", err)
	return 1
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
		err = errors.Join(err, rig.Sweep(ctx, dir), os.RemoveAll(dir))
	}
	return err
}

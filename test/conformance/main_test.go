//go:build e2e

package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/suite"
)

// TestMain runs the tests in one process. All share one daemon, but those that kill it. It fails if anything is left behind.
func TestMain(m *testing.M) {
	os.Exit(suite.Main(func() int { return run(m) }, suite.Options{
		Together: true, Around: func(run func() int) int { return rig.InDir("pcf-", nil, run) },
	}))
}

// parallel is the number of tests that run at the same time. They mostly wait.
const parallel = "6"

// shared is the daemon of the tests that do not kill it.
var shared *testDaemon

func run(m *testing.M) int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(parallel); err != nil {
			return fail(err)
		}
	}
	r, err := rig.New()
	if err != nil {
		return fail(err)
	}
	shared = &testDaemon{r}
	status := m.Run()
	ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, errors.New("timed out waiting for cleanup"))
	defer cancel()
	if status == 0 {
		if _, err = shared.Podstead(ctx, stopAll...); err == nil {
			err = shared.AwaitNoLeftovers(ctx)
		}
	}
	if err := errors.Join(err, shared.Close(ctx)); err != nil {
		return fail(err)
	}
	return status
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "conformance:", err)
	return 1
}

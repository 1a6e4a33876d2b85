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
	"github.com/podstead/podstead/test/ownnet"
)

// TestMain runs the rows in a network of their own, on one private engine but for those that kill theirs, and fails where
// anything of them is left.
func TestMain(m *testing.M) {
	os.Exit(ownnet.Main(func() int { return rig.InFolder("pcf-", nil, func() int { return run(m) }) }))
}

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
	r, err := rig.New()
	if err != nil {
		return fail(err)
	}
	shared = &stage{r}
	status := m.Run()
	ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, errors.New("it does not go"))
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

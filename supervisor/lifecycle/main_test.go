package lifecycle_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain sets a fixed seed for the random worlds, so that test runs are reproducible. `make soak` uses others: -rapid.seed=N
// sets one, and 0 a random one.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.seed" })
	if !given {
		if err := flag.Set("rapid.seed", "20261121"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

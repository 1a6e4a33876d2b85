package lifecycle_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain gives the random worlds a fixed seed, so that a test run says something about the change that it tests. `make
// soak` runs them with others: -rapid.seed=N is one of them, and 0 is another each time.
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

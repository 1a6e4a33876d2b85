package rig

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Times returns the factor by which make soak lengthens storms.
func Times(t testing.TB) int {
	t.Helper()
	text := os.Getenv("PODSTEAD_STORM")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("PODSTEAD_STORM: %q must be a number of at least 1", text)
	}
	return n
}

// Seeded returns random numbers, whose seed is in the log of the test. PODSTEAD_SEED repeats a run.
func Seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("PODSTEAD_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal("PODSTEAD_SEED: ", err)
		}
	}
	t.Logf("PODSTEAD_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

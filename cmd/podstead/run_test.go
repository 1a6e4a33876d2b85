package main

import (
	"math"
	"testing"
	"time"
)

// TestGracePeriod checks the limits: 0 becomes 1 second, and larger values become the maximum of a pod file.
func TestGracePeriod(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 40: 40 * time.Second, math.MaxInt: math.MaxInt32 * time.Second,
	} {
		if got := gracePeriod(n); got == nil || *got != want {
			t.Errorf("%d: got %v, want %v", n, got, want)
		}
	}
	if got := gracePeriod(-1); got != nil {
		t.Errorf("-1: got %v, want nil", *got)
	}
}

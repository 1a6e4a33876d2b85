package main

import (
	"math"
	"testing"
	"time"
)

// TestSeconds: a grace period of 0 is a second, and one that nobody sees the end of is a long one.
func TestSeconds(t *testing.T) {
	for n, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 40: 40 * time.Second, math.MaxInt: math.MaxInt32 * time.Second} {
		if got := seconds(n); got == nil || *got != want {
			t.Errorf("%d: got %v, want %v", n, got, want)
		}
	}
	if got := seconds(-1); got != nil {
		t.Errorf("none: got %v", *got)
	}
}

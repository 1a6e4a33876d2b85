package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// series is a series of samples.
type series struct{ samples []float64 }

func (s *series) add(sample float64)      { s.samples = append(s.samples, sample) }
func (s *series) took(d time.Duration)    { s.add(float64(d) / float64(time.Millisecond)) }
func (s *series) since(started time.Time) { s.took(time.Since(started)) }

func (s *series) sorted() []float64 { return slices.Sorted(slices.Values(s.samples)) }

// median returns the median, or 0 without samples.
func (s *series) median() float64 {
	all := s.sorted()
	n := len(all)
	switch {
	case n == 0:
		return 0
	case n%2 == 0:
		return (all[n/2-1] + all[n/2]) / 2
	}
	return all[n/2]
}

// only returns the sample of a series that has one, otherwise 0.
func (s *series) only() time.Duration {
	if len(s.samples) != 1 {
		return 0
	}
	return time.Duration(s.samples[0] * float64(time.Millisecond))
}

// cells returns median, minimum, maximum and number of samples as table cells.
func (s *series) cells() string {
	if len(s.samples) == 0 {
		return "not measured | | | 0"
	}
	return fmt.Sprintf("%s | %s | %s | %d", number(s.median()), number(slices.Min(s.samples)), number(slices.Max(s.samples)),
		len(s.samples))
}

// number formats with at most three significant digits.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// loadAverage returns the host's load average over one minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

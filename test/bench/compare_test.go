package main

import (
	"strings"
	"testing"
)

// TestCompareSeries checks when a value is worse: in the median and in the best round, by more than the tolerance and by more than noise.
func TestCompareSeries(t *testing.T) {
	tests := []struct {
		name          string
		before, after []float64
		want          string
	}{
		{"equal", []float64{100, 110, 120}, []float64{100, 110, 120}, ""},
		{"within the tolerance", []float64{100, 100, 100}, []float64{110, 110, 110}, ""},
		{"worse", []float64{100, 110, 120}, []float64{112, 123, 130}, "**worse**"},
		{"worse in the median, because of other work", []float64{100, 110, 120}, []float64{100, 200, 300}, ""},
		{"worse in the best round only", []float64{100, 200, 200}, []float64{150, 150, 150}, ""},
		{"better", []float64{112, 123, 130}, []float64{100, 110, 120}, "better"},
		{"noise", []float64{1, 1, 1}, []float64{3, 3, 3}, ""},
		{"not measured", []float64{0, 0, 0}, []float64{0, 0, 0}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			value := []compared{{what: "value", least: 3}}
			table, worse := compareSeries(value, []series{{tt.before}}, []series{{tt.after}}, 0.1)
			lines := strings.Split(strings.TrimSpace(table), "\n")
			cells := strings.Split(lines[len(lines)-1], " | ")
			if verdict := strings.TrimSuffix(cells[len(cells)-1], " |"); verdict != tt.want && strings.TrimSpace(verdict) != tt.want {
				t.Errorf("verdict %q, want %q:\n%s", verdict, tt.want, table)
			}
			if (len(worse) > 0) != (tt.want == "**worse**") {
				t.Errorf("worse: %q", worse)
			}
		})
	}
}

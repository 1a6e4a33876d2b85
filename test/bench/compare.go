package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/podstead/podstead/test/internal/rig"
)

// compared is a value that is compared between two builds. Smaller is better.
type compared struct {
	what  string
	value func(*report) float64
	least float64 // a difference below it is noise
}

// comparison returns what is compared.
func comparison() []compared {
	return []compared{
		{"file to first process, ms", func(r *report) float64 { return r.warm.process.median() }, 3},
		{"`kill -9` of the process to the first restart, ms", func(r *report) float64 { return r.restart.median() }, 3},
		{"stop to exit, ms", func(r *report) float64 { return r.stop.median() }, 3},
		{"20 pods started together, until all are ready, ms", func(r *report) float64 { return r.atOnce.median() }, 50},
		{"daemon without pods, MiB (PSS)", func(r *report) float64 { return r.many.none.daemon }, 0.5},
		{"20 pods, all memory, MiB (PSS)", func(r *report) float64 { return r.many.all.total() }, 2},
		{"idle CPU with 20 pods, % of one core", func(r *report) float64 { return r.idle }, 0.1},
		{"waits for the disk in the lifetime of a pod", func(r *report) float64 { return r.fsyncs.all() }, 0.5},
	}
}

// compare measures the programs in a directory and those of this repository in turns. It fails if one of the values is worse by more than
// the tolerance, a fraction: in the median of the rounds and in the best of them, because other work on the host makes values worse only.
func (b *bench) compare(ctx context.Context, base string, rounds int, tolerance float64) error {
	built := os.Getenv(rig.Programs)
	defer os.Setenv(rig.Programs, built)
	values := comparison()
	before, after := make([]series, len(values)), make([]series, len(values))
	for round := range rounds {
		order := []struct {
			name, programs string
			into           []series
		}{{"base", base, before}, {"this revision", built, after}}
		if round%2 == 1 {
			slices.Reverse(order) // the first one of a round finds other caches
		}
		for _, build := range order {
			b.say(fmt.Sprintf("round %d of %d: %s", round+1, rounds, build.name))
			if err := os.Setenv(rig.Programs, build.programs); err != nil {
				return err
			}
			var r report
			for _, take := range []func(context.Context, *report) error{b.starts, b.restartAndStop, b.manyPods, b.fsyncs} {
				if err := take(ctx, &r); err != nil {
					return fmt.Errorf("measure %s: %w", build.name, err)
				}
			}
			for i, v := range values {
				build.into[i].add(v.value(&r))
			}
		}
	}
	table, worse := compareSeries(values, before, after, tolerance)
	fmt.Print(table)
	if len(worse) > 0 {
		return fmt.Errorf("worse than the base by more than %.0f%%: %s", 100*tolerance, strings.Join(worse, "; "))
	}
	return nil
}

// compareSeries returns a table of values with their ratios, and what is worse.
func compareSeries(values []compared, before, after []series, tolerance float64) (table string, worse []string) {
	var t strings.Builder
	t.WriteString("| | base | this revision | ratio of medians | ratio of best | |\n| --- | --- | --- | --- | --- | --- |\n")
	for i, v := range values {
		was, is := &before[i], &after[i]
		best := func(s *series) float64 { return slices.Min(s.samples) }
		verdict := ""
		switch {
		case exceeds(was.median(), is.median(), v.least, tolerance) && exceeds(best(was), best(is), v.least, tolerance):
			verdict = "**worse**"
			worse = append(worse, v.what)
		case exceeds(is.median(), was.median(), v.least, tolerance) && exceeds(best(is), best(was), v.least, tolerance):
			verdict = "better"
		}
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %s | %s |\n", v.what, number(was.median()), number(is.median()),
			ratio(is.median(), was.median()), ratio(best(is), best(was)), verdict)
	}
	return t.String(), worse
}

// exceeds reports whether a value is larger than another by more than the tolerance, and not by less than what is noise.
func exceeds(than, value, least, tolerance float64) bool {
	return value-than > least && value > than*(1+tolerance)
}

// ratio formats a ratio.
func ratio(value, to float64) string {
	if to == 0 || value == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.2f", value/to)
}

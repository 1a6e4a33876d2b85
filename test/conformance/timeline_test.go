package conformance

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// line is a line of an actor's log: its name, an event, and the time.
type line struct {
	at          time.Time
	name, event string
}

// timeline is what the actors of a pod have logged, in order. Hooks and probes are actors too.
type timeline []line

func readTimeline(path string) (timeline, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all timeline
	complete := text[:bytes.LastIndexByte(text, '\n')+1] // without a line that is being written
	for row := range strings.Lines(string(complete)) {
		words := strings.Fields(row)
		if len(words) != 3 {
			return nil, fmt.Errorf("read timeline: %q is not a line of an actor", row)
		}
		at, err := time.Parse(time.RFC3339Nano, words[0])
		if err != nil {
			return nil, err
		}
		all = append(all, line{at, words[1], words[2]})
	}
	return all, nil
}

// span is one run of an actor. A time that is not logged is zero; a killed actor has no exiting.
type span struct {
	starting, started, terminating, exiting time.Time
}

// runs returns the runs of an actor.
func (t timeline) runs(name string) []span {
	var runs []span
	for _, l := range t {
		if l.name != name {
			continue
		}
		if l.event == "Starting" {
			runs = append(runs, span{starting: l.at})
			continue
		}
		if len(runs) == 0 {
			continue
		}
		run := &runs[len(runs)-1]
		switch {
		case l.event == "Started":
			run.started = l.at
		case l.event == "Terminating" && run.terminating.IsZero():
			run.terminating = l.at
		case l.event == "Exiting":
			run.exiting = l.at
		}
	}
	return runs
}

// first returns the first run of an actor.
func (t timeline) first(name string) (span, error) {
	runs := t.runs(name)
	if len(runs) == 0 {
		return span{}, fmt.Errorf("%s has not started", name)
	}
	return runs[0], nil
}

// last returns the newest run of an actor.
func (t timeline) last(name string) (span, error) {
	runs := t.runs(name)
	if len(runs) == 0 {
		return span{}, fmt.Errorf("%s has not started", name)
	}
	return runs[len(runs)-1], nil
}

// StartsBefore fails unless the first run of a starts before the first run of b.
func (t timeline) StartsBefore(a, b string) error {
	return t.order(a+" starts", b+" starts", func() (x, y time.Time, err error) {
		return t.times(a, b, func(a, b span) (time.Time, time.Time) { return a.starting, b.starting })
	})
}

// ExitsBefore fails unless the first run of a exits before the first run of b starts.
func (t timeline) ExitsBefore(a, b string) error {
	return t.order(a+" exits", b+" starts", func() (x, y time.Time, err error) {
		return t.times(a, b, func(a, b span) (time.Time, time.Time) { return a.exiting, b.starting })
	})
}

// StartedBefore fails unless the first run of a has started, after its delay, before the first run of b starts.
func (t timeline) StartedBefore(a, b string) error {
	return t.order(a+" has started", b+" starts", func() (x, y time.Time, err error) {
		return t.times(a, b, func(a, b span) (time.Time, time.Time) { return a.started, b.starting })
	})
}

// EndsBeforeSignal fails unless a hook exits before its container gets the signal.
func (t timeline) EndsBeforeSignal(hook, container string) error {
	return t.order(hook+" exits", container+" gets the signal", func() (x, y time.Time, err error) {
		return t.times(hook, container, func(a, b span) (time.Time, time.Time) { return a.exiting, b.terminating })
	})
}

// ExitsBeforeSignal fails unless the last run of a exits before the last run of b gets the signal.
func (t timeline) ExitsBeforeSignal(a, b string) error {
	return t.order(a+" exits", b+" gets the signal", func() (x, y time.Time, err error) {
		x1, err := t.last(a)
		if err != nil {
			return x, y, err
		}
		y1, err := t.last(b)
		return x1.exiting, y1.terminating, err
	})
}

// StartsAfter fails unless the first run of a starts at that time or later.
func (t timeline) StartsAfter(a string, at time.Time) error {
	run, err := t.first(a)
	if err == nil && run.starting.Before(at) {
		err = fmt.Errorf("%s starts %v before %v", a, at.Sub(run.starting), at)
	}
	return err
}

// RunTogether fails unless the first runs of two actors overlap.
func (t timeline) RunTogether(a, b string) error {
	x, err := t.first(a)
	if err != nil {
		return err
	}
	y, err := t.first(b)
	if err != nil {
		return err
	}
	before := func(x, y span) bool { return !x.exiting.IsZero() && x.exiting.Before(y.starting) }
	if before(x, y) || before(y, x) {
		return fmt.Errorf("the runs of %s and %s do not overlap", a, b)
	}
	return nil
}

// HasRestarted fails unless an actor has run more than once.
func (t timeline) HasRestarted(name string) error {
	if n := len(t.runs(name)); n < 2 {
		return fmt.Errorf("%s has not restarted: it ran %d times", name, n)
	}
	return nil
}

// HasNotRestarted fails unless an actor has run exactly once.
func (t timeline) HasNotRestarted(name string) error {
	if n := len(t.runs(name)); n != 1 {
		return fmt.Errorf("%s ran %d times, want once", name, n)
	}
	return nil
}

// DoesNotStart fails if an actor has run.
func (t timeline) DoesNotStart(name string) error {
	if n := len(t.runs(name)); n > 0 {
		return fmt.Errorf("%s ran %d times, want never", name, n)
	}
	return nil
}

// times returns the times that pick selects from the first runs of two actors.
func (t timeline) times(a, b string, pick func(a, b span) (time.Time, time.Time)) (x, y time.Time, err error) {
	first, err := t.first(a)
	if err != nil {
		return x, y, err
	}
	second, err := t.first(b)
	if err != nil {
		return x, y, err
	}
	x, y = pick(first, second)
	return x, y, nil
}

func (t timeline) order(before, after string, times func() (time.Time, time.Time, error)) error {
	x, y, err := times()
	switch {
	case err != nil:
		return err
	case x.IsZero():
		return fmt.Errorf("has not happened: %s", before)
	case y.IsZero():
		return fmt.Errorf("has not happened: %s", after)
	case y.Before(x):
		return fmt.Errorf("%s %v after %s", before, x.Sub(y), after)
	}
	return nil
}

// TestTimeline checks when each assertion holds and when it fails.
func TestTimeline(t *testing.T) {
	// Each character is a second: S starting, r started, t terminating, x exiting, and a space nothing.
	events := map[rune]string{'S': "Starting", 'r': "Started", 't': "Terminating", 'x': "Exiting"}
	parse := func(rows ...string) (all timeline) {
		for _, row := range rows {
			name, marks, _ := strings.Cut(row, ":")
			for i, mark := range marks {
				if event := events[mark]; event != "" {
					all = append(all, line{time.Unix(int64(i), 0), name, event})
				}
			}
		}
		slices.SortStableFunc(all, func(a, b line) int { return a.at.Compare(b.at) })
		return all
	}
	type check func(t timeline) error
	two := func(f func(timeline, string, string) error) check {
		return func(t timeline) error { return f(t, "a", "b") }
	}
	one := func(f func(timeline, string) error) check { return func(t timeline) error { return f(t, "a") } }
	after2 := func(t timeline) error { return t.StartsAfter("a", time.Unix(2, 0)) }
	for _, test := range []struct {
		name  string
		check check
		rows  []string
		holds bool
	}{
		{"StartsBefore", two(timeline.StartsBefore), []string{"a:S", "b: S"}, true},
		{"StartsBefore", two(timeline.StartsBefore), []string{"a: S", "b:S"}, false},
		{"StartsBefore", two(timeline.StartsBefore), []string{"a:S"}, false},
		{"StartsBefore", two(timeline.StartsBefore), []string{"b:S"}, false},
		{"ExitsBefore", two(timeline.ExitsBefore), []string{"a:Srx", "b:   S"}, true},
		{"ExitsBefore", two(timeline.ExitsBefore), []string{"a:Sr x", "b:  S"}, false},
		{"ExitsBefore", two(timeline.ExitsBefore), []string{"a:Sr", "b:  S"}, false},
		{"StartedBefore", two(timeline.StartedBefore), []string{"a:S r", "b:   S"}, true},
		{"StartedBefore", two(timeline.StartedBefore), []string{"a:S r", "b: S"}, false},
		{"EndsBeforeSignal", two(timeline.EndsBeforeSignal), []string{"a: Sx", "b:S   t"}, true},
		{"EndsBeforeSignal", two(timeline.EndsBeforeSignal), []string{"a: S  x", "b:S  t"}, false},
		{"EndsBeforeSignal", two(timeline.EndsBeforeSignal), []string{"a: Sx", "b:S  "}, false},
		{"ExitsBeforeSignal", two(timeline.ExitsBeforeSignal), []string{"a:Sx Sx", "b:S    t"}, true},
		{"ExitsBeforeSignal", two(timeline.ExitsBeforeSignal), []string{"a:Sx S x", "b:S   t"}, false},
		{"StartsAfter", after2, []string{"a:  S"}, true},
		{"StartsAfter", after2, []string{"a: S S"}, false},
		{"StartsAfter", after2, nil, false},
		{"RunTogether", two(timeline.RunTogether), []string{"a:S x", "b: S x"}, true},
		{"RunTogether", two(timeline.RunTogether), []string{"a:S", "b: S x"}, true},
		{"RunTogether", two(timeline.RunTogether), []string{"a:Sx", "b:  Sx"}, false},
		{"RunTogether", two(timeline.RunTogether), []string{"a:S"}, false},
		{"HasRestarted", one(timeline.HasRestarted), []string{"a:Sx S"}, true},
		{"HasRestarted", one(timeline.HasRestarted), []string{"a:Sx", "b:Sx Sx"}, false},
		{"HasNotRestarted", one(timeline.HasNotRestarted), []string{"a:Sx"}, true},
		{"HasNotRestarted", one(timeline.HasNotRestarted), []string{"a:SxS"}, false},
		{"HasNotRestarted", one(timeline.HasNotRestarted), []string{"b:S"}, false},
		{"DoesNotStart", one(timeline.DoesNotStart), []string{"b:S"}, true},
		{"DoesNotStart", one(timeline.DoesNotStart), []string{"a:S"}, false},
	} {
		if err := test.check(parse(test.rows...)); (err == nil) != test.holds {
			t.Errorf("%s of %q: %v, want holds = %t", test.name, test.rows, err, test.holds)
		}
	}
}

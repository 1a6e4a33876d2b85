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

// line is what an actor has written: its name, an event of its run, and when.
type line struct {
	at          time.Time
	name, event string
}

// tale is what the actors of a pod have written, in the order in which they wrote. Hooks and probes are actors too.
type tale []line

func readTale(path string) (tale, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all tale
	whole := text[:bytes.LastIndexByte(text, '\n')+1] // not what is just being written
	for row := range strings.Lines(string(whole)) {
		words := strings.Fields(row)
		if len(words) != 3 {
			return nil, fmt.Errorf("read tale: %q is no line of an actor", row)
		}
		at, err := time.Parse(time.RFC3339Nano, words[0])
		if err != nil {
			return nil, err
		}
		all = append(all, line{at, words[1], words[2]})
	}
	return all, nil
}

// span is one run of an actor. What it has not written is the zero time; one that was killed has no exiting.
type span struct {
	starting, started, terminating, exiting time.Time
}

// runs are those of an actor.
func (t tale) runs(name string) []span {
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

// first is an actor's first run.
func (t tale) first(name string) (span, error) {
	runs := t.runs(name)
	if len(runs) == 0 {
		return span{}, fmt.Errorf("%s never starts", name)
	}
	return runs[0], nil
}

// last is an actor's newest run.
func (t tale) last(name string) (span, error) {
	runs := t.runs(name)
	if len(runs) == 0 {
		return span{}, fmt.Errorf("%s never starts", name)
	}
	return runs[len(runs)-1], nil
}

// StartsBefore fails unless the first run of a starts before that of b.
func (t tale) StartsBefore(a, b string) error {
	return t.order(a+" starts", b+" starts", func() (x, y time.Time, err error) {
		return t.times(a, b, func(a, b span) (time.Time, time.Time) { return a.starting, b.starting })
	})
}

// ExitsBefore fails unless the first run of a has exited before that of b starts.
func (t tale) ExitsBefore(a, b string) error {
	return t.order(a+" exits", b+" starts", func() (x, y time.Time, err error) {
		return t.times(a, b, func(a, b span) (time.Time, time.Time) { return a.exiting, b.starting })
	})
}

// StartedBefore fails unless the first run of a was started, after its delay, before that of b starts.
func (t tale) StartedBefore(a, b string) error {
	return t.order(a+" is started", b+" starts", func() (x, y time.Time, err error) {
		return t.times(a, b, func(a, b span) (time.Time, time.Time) { return a.started, b.starting })
	})
}

// EndsBeforeSignal fails unless the run of a hook is over before its container has the signal.
func (t tale) EndsBeforeSignal(hook, container string) error {
	return t.order(hook+" exits", container+" has its signal", func() (x, y time.Time, err error) {
		return t.times(hook, container, func(a, b span) (time.Time, time.Time) { return a.exiting, b.terminating })
	})
}

// ExitsBeforeSignal fails unless the last run of a has exited before the last one of b has its signal.
func (t tale) ExitsBeforeSignal(a, b string) error {
	return t.order(a+" exits", b+" has its signal", func() (x, y time.Time, err error) {
		x1, err := t.last(a)
		if err != nil {
			return x, y, err
		}
		y1, err := t.last(b)
		return x1.exiting, y1.terminating, err
	})
}

// StartsAfter fails unless the first run of a starts at that time or later.
func (t tale) StartsAfter(a string, at time.Time) error {
	run, err := t.first(a)
	if err == nil && run.starting.Before(at) {
		err = fmt.Errorf("%s starts %v before %v", a, at.Sub(run.starting), at)
	}
	return err
}

// RunTogether fails unless the first runs of two actors overlap.
func (t tale) RunTogether(a, b string) error {
	x, err := t.first(a)
	if err != nil {
		return err
	}
	y, err := t.first(b)
	if err != nil {
		return err
	}
	over := func(x, y span) bool { return !x.exiting.IsZero() && x.exiting.Before(y.starting) }
	if over(x, y) || over(y, x) {
		return fmt.Errorf("%s and %s do not run together", a, b)
	}
	return nil
}

// HasRestarted fails unless an actor has run more than once.
func (t tale) HasRestarted(name string) error {
	if n := len(t.runs(name)); n < 2 {
		return fmt.Errorf("%s has not restarted: it ran %d times", name, n)
	}
	return nil
}

// HasNotRestarted fails unless an actor has run once.
func (t tale) HasNotRestarted(name string) error {
	if n := len(t.runs(name)); n != 1 {
		return fmt.Errorf("%s ran %d times, want once", name, n)
	}
	return nil
}

// DoesNotStart fails if an actor has run.
func (t tale) DoesNotStart(name string) error {
	if n := len(t.runs(name)); n > 0 {
		return fmt.Errorf("%s ran %d times, want never", name, n)
	}
	return nil
}

// times are those that pick takes from the first runs of two actors.
func (t tale) times(a, b string, pick func(a, b span) (time.Time, time.Time)) (x, y time.Time, err error) {
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

func (t tale) order(before, after string, times func() (time.Time, time.Time, error)) error {
	x, y, err := times()
	switch {
	case err != nil:
		return err
	case x.IsZero():
		return fmt.Errorf("not yet, or never: %s", before)
	case y.IsZero():
		return fmt.Errorf("not yet, or never: %s", after)
	case y.Before(x):
		return fmt.Errorf("%s %v after %s", before, x.Sub(y), after)
	}
	return nil
}

// TestTale: each assertion holds where it must and fails where it must.
func TestTale(t *testing.T) {
	// Each letter is a second: S starting, r started, t terminating, x exiting, and nothing.
	events := map[rune]string{'S': "Starting", 'r': "Started", 't': "Terminating", 'x': "Exiting"}
	tell := func(rows ...string) (all tale) {
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
	type check func(t tale) error
	two := func(f func(tale, string, string) error) check { return func(t tale) error { return f(t, "a", "b") } }
	one := func(f func(tale, string) error) check { return func(t tale) error { return f(t, "a") } }
	after2 := func(t tale) error { return t.StartsAfter("a", time.Unix(2, 0)) }
	for _, test := range []struct {
		name  string
		check check
		rows  []string
		holds bool
	}{
		{"StartsBefore", two(tale.StartsBefore), []string{"a:S", "b: S"}, true},
		{"StartsBefore", two(tale.StartsBefore), []string{"a: S", "b:S"}, false},
		{"StartsBefore", two(tale.StartsBefore), []string{"a:S"}, false},
		{"StartsBefore", two(tale.StartsBefore), []string{"b:S"}, false},
		{"ExitsBefore", two(tale.ExitsBefore), []string{"a:Srx", "b:   S"}, true},
		{"ExitsBefore", two(tale.ExitsBefore), []string{"a:Sr x", "b:  S"}, false},
		{"ExitsBefore", two(tale.ExitsBefore), []string{"a:Sr", "b:  S"}, false},
		{"StartedBefore", two(tale.StartedBefore), []string{"a:S r", "b:   S"}, true},
		{"StartedBefore", two(tale.StartedBefore), []string{"a:S r", "b: S"}, false},
		{"EndsBeforeSignal", two(tale.EndsBeforeSignal), []string{"a: Sx", "b:S   t"}, true},
		{"EndsBeforeSignal", two(tale.EndsBeforeSignal), []string{"a: S  x", "b:S  t"}, false},
		{"EndsBeforeSignal", two(tale.EndsBeforeSignal), []string{"a: Sx", "b:S  "}, false},
		{"ExitsBeforeSignal", two(tale.ExitsBeforeSignal), []string{"a:Sx Sx", "b:S    t"}, true},
		{"ExitsBeforeSignal", two(tale.ExitsBeforeSignal), []string{"a:Sx S x", "b:S   t"}, false},
		{"StartsAfter", after2, []string{"a:  S"}, true},
		{"StartsAfter", after2, []string{"a: S S"}, false},
		{"StartsAfter", after2, nil, false},
		{"RunTogether", two(tale.RunTogether), []string{"a:S x", "b: S x"}, true},
		{"RunTogether", two(tale.RunTogether), []string{"a:S", "b: S x"}, true},
		{"RunTogether", two(tale.RunTogether), []string{"a:Sx", "b:  Sx"}, false},
		{"RunTogether", two(tale.RunTogether), []string{"a:S"}, false},
		{"HasRestarted", one(tale.HasRestarted), []string{"a:Sx S"}, true},
		{"HasRestarted", one(tale.HasRestarted), []string{"a:Sx", "b:Sx Sx"}, false},
		{"HasNotRestarted", one(tale.HasNotRestarted), []string{"a:Sx"}, true},
		{"HasNotRestarted", one(tale.HasNotRestarted), []string{"a:SxS"}, false},
		{"HasNotRestarted", one(tale.HasNotRestarted), []string{"b:S"}, false},
		{"DoesNotStart", one(tale.DoesNotStart), []string{"b:S"}, true},
		{"DoesNotStart", one(tale.DoesNotStart), []string{"a:S"}, false},
	} {
		if err := test.check(tell(test.rows...)); (err == nil) != test.holds {
			t.Errorf("%s of %q: %v, want it to hold: %t", test.name, test.rows, err, test.holds)
		}
	}
}

package view

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/explain"
)

// Story is why a pod is as it is, for a person: how it is, what has happened to each container, the newest restart in full
// and those before it in a line each, and what has happened to the pod as a whole. It ends with a new line.
func Story(s *api.Story, now time.Time) string {
	b := &strings.Builder{}
	fmt.Fprintln(b, Plain(StoryLine(s)))
	for i := range s.Containers {
		container(b, &s.Containers[i], now)
	}
	if len(s.Steps) > 0 {
		fmt.Fprintf(b, "\nThe pod as a whole:\n")
		steps(b, s.Steps, now)
	}
	return b.String()
}

// StoryLine is how a pod is and why, in one line.
func StoryLine(s *api.Story) string { return Plain(s.Pod + " " + s.Summary + ".") }

// container tells the story of one container.
func container(b *strings.Builder, c *explain.Container, now time.Time) {
	fmt.Fprintf(b, "\n%s: ", c.Name)
	if c.Restarts > 0 {
		fmt.Fprintf(b, "Restarts: %d. ", c.Restarts)
	}
	fmt.Fprint(b, Plain(c.Now))
	if !c.Next.IsZero() {
		fmt.Fprintf(b, " The next try is at %s, in %s.", clock(c.Next, now), Age(c.Next.Sub(now)))
	}
	fmt.Fprintln(b)
	last := len(c.Told) - 1
	if last < 0 {
		return
	}
	for _, r := range c.Told[:last] {
		fmt.Fprintf(b, "  %s  Ended before: %s.\n", clock(r.Time, now), Plain(r.Why))
	}
	steps(b, c.Told[last].Steps, now)
}

func steps(b *strings.Builder, list []explain.Step, now time.Time) {
	for _, s := range list {
		text := Plain(capital(strings.TrimSuffix(s.Text, ".")))
		if s.Seen > 0 {
			text += fmt.Sprintf(" (%d times, this is the last)", s.Seen)
		}
		fmt.Fprintf(b, "  %s  %s.\n", clock(s.Time, now), text)
	}
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// clock is a time as a person reads it now: without the day if that is today.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

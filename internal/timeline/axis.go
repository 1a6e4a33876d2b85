package timeline

import (
	"strings"
	"time"
)

// maxTicks bounds the ticks of an axis.
const maxTicks = 12

// steps are the distances of ticks. A longer time has a multiple of the last one.
var steps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day,
}

const day = 24 * time.Hour

// tick is a tick of an axis.
type tick struct {
	at    time.Time
	label string
}

// axis returns the ticks of the axis, at round times.
func (p *Picture) axis() []tick {
	length := p.To.Sub(p.From)
	step := steps[len(steps)-1]
	for i := len(steps) - 1; i >= 0 && length/steps[i] < maxTicks; i-- {
		step = steps[i]
	}
	for length/step >= maxTicks {
		step *= 2
	}
	first := p.From
	if !p.Elapsed {
		year, month, date := p.From.Date()
		midnight := time.Date(year, month, date, 0, 0, 0, 0, p.From.Location())
		round := min(step, day)
		first = midnight.Add((p.From.Sub(midnight) + round - 1).Truncate(round))
	}
	var ticks []tick
	for at := first; !at.After(p.To); at = at.Add(step) {
		ticks = append(ticks, tick{at, p.tickLabel(at, step)})
	}
	return ticks
}

// tickLabel is the time of a tick. A day begins with its date.
func (p *Picture) tickLabel(at time.Time, step time.Duration) string {
	switch {
	case p.Elapsed:
		return elapsed(at.Sub(p.From))
	case at.Hour() == 0 && at.Minute() == 0 && at.Second() == 0 && step >= time.Minute:
		return at.Format("Jan 2")
	case step >= time.Minute:
		return at.Format("15:04")
	case step >= time.Second:
		return at.Format(time.TimeOnly)
	}
	return at.Format("15:04:05.000")
}

// clock is a time for people: since the start of the picture, or of the day, with the date unless the picture has one day only.
func (p *Picture) clock(at time.Time) string {
	at = at.In(p.From.Location())
	switch {
	case p.Elapsed:
		return elapsed(at.Sub(p.From))
	case p.To.Sub(p.From) < time.Minute && sameDay(p.From, at):
		return at.Format("15:04:05.000")
	case sameDay(p.From, p.To.In(p.From.Location())) && sameDay(p.From, at):
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// sameDay compares the dates of times of one location.
func sameDay(a, b time.Time) bool { return a.Format(time.DateOnly) == b.Format(time.DateOnly) }

// elapsed is a duration as text, such as 1h30m.
func elapsed(d time.Duration) string {
	unit := time.Millisecond
	if d >= time.Minute {
		unit = time.Second
	}
	text := d.Round(unit).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

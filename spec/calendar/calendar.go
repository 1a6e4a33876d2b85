// Package calendar computes the times of a cron expression. It reads no clock.
//
// The syntax and the meaning of the fields are those of a CronJob. What happens at changes of daylight saving time is the rule of cron(8):
//
//   - A time that is left out by a change runs once, at the moment of the change.
//   - A time that exists twice runs once, the first time.
//   - An expression whose hour starts with `*`, such as one for every hour, is not affected: it runs at the times that exist, all of them.
//
// CronJob leaves out the first, and runs the second twice.
package calendar

import (
	"errors"
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// parser accepts what a CronJob accepts. Days match if the day of the month or the day of the week does, as in cron(8).
var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom).
	WithMaxSearchYears(searchYears)

// searchYears is how far the next time is searched for. The 29 February is at most 8 years away.
const searchYears = 8

// maxLength is the maximum length of an expression.
const maxLength = 256

// Calendar has the times of a cron expression in a time zone. It is immutable.
type Calendar struct {
	civil  cron.Schedule // in UTC, which has no daylight saving time: its times are readings of a clock on the wall
	hourly bool          // the hour starts with an asterisk
	zone   *time.Location
}

// Parse parses a cron expression of five fields, or one of the words that CronJob knows, such as @daily. Zone is the name of a time zone in
// the database of the IANA, or empty for that of the host.
func Parse(expression, zone string) (*Calendar, error) {
	location, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	civil, err := parse(expression)
	if err != nil {
		return nil, err
	}
	if civil.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("matches no time")
	}
	fields := strings.Fields(strings.ToLower(expression))
	hourly := fields[0] == "@hourly" || len(fields) == 5 && strings.HasPrefix(fields[1], "*")
	return &Calendar{civil: civil, zone: location, hourly: hourly}, nil
}

func parse(expression string) (cron.Schedule, error) {
	text := strings.ToLower(strings.TrimSpace(expression)) // the parser takes the H of THU as a field of its own
	switch {
	case text == "":
		return nil, errors.New("must not be empty")
	case len(text) > maxLength:
		return nil, fmt.Errorf("must be no more than %d characters", maxLength)
	case strings.HasPrefix(text, "tz=") || strings.HasPrefix(text, "cron_tz="):
		return nil, errors.New("must not have a time zone, which is a field of its own")
	case strings.HasPrefix(text, "@every"):
		return nil, errors.New("@every is not supported, since it has no times of its own")
	}
	return parser.Parse(text)
}

// Zone returns the time zone of a name, that of the host for the empty name.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	if strings.EqualFold(name, "Local") {
		return nil, errors.New("must be an explicit time zone as defined in https://www.iana.org/time-zones")
	}
	return time.LoadLocation(name)
}

// Next returns the first time after t.
func (c *Calendar) Next(t time.Time) time.Time {
	t = t.Round(0).In(c.zone)
	if c.hourly {
		return c.nextExisting(t)
	}
	for reading := readingOf(t); ; {
		reading = c.civil.Next(reading)
		if at := c.at(reading); at.After(t) {
			return at
		}
	}
}

// nextExisting returns the first time after t at which a clock on the wall shows a time of the expression.
func (c *Calendar) nextExisting(t time.Time) time.Time {
	for {
		reading := readingOf(t)
		at := t.Add(c.civil.Next(reading).Sub(reading)) // if the offset of the zone stays the same
		_, change := t.ZoneBounds()
		if change.IsZero() || at.Before(change) {
			return at
		}
		t = change
		if reading = readingOf(t); c.civil.Next(reading.Add(-time.Second)).Equal(reading) {
			return t
		}
	}
}

// readingOf returns what a clock on the wall shows at t, as a time in UTC.
func readingOf(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.Add(time.Duration(offset) * time.Second).UTC()
}

// at returns the first moment at which a clock on the wall shows a reading or, if a change leaves it out, the moment of the change.
func (c *Calendar) at(reading time.Time) time.Time {
	guess := time.Date(reading.Year(), reading.Month(), reading.Day(), reading.Hour(), reading.Minute(), reading.Second(), 0, c.zone)
	start, end := guess.ZoneBounds()
	switch shown := readingOf(guess); {
	case shown.After(reading): // guess is after the change
		return start
	case shown.Before(reading):
		return end
	}
	if !start.IsZero() { // the offset before may have shown it already
		_, before := start.Add(-time.Second).Zone()
		_, offset := guess.Zone()
		if first := guess.Add(time.Duration(offset-before) * time.Second); first.Before(start) && first.Before(guess) {
			return first
		}
	}
	return guess
}

// Last returns the last time after from and not after until; zero: there is none. It takes no longer for a time far in the past.
func (c *Calendar) Last(from, until time.Time) (last time.Time) {
	for span := time.Hour; last.IsZero(); span *= 2 {
		begin := until.Add(-span)
		done := !begin.After(from) || span > maxSpan
		if done && !begin.After(from) {
			begin = from
		}
		for t := c.Next(begin); !t.After(until); t = c.Next(t) {
			last = t
		}
		if done {
			break
		}
	}
	return last
}

// maxSpan is longer than the time between two times of an expression.
const maxSpan = searchYears * 366 * 24 * time.Hour

package calendar_test

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec/calendar"
)

func parsed(t *testing.T, expression, zone string) *calendar.Calendar {
	t.Helper()
	c, err := calendar.Parse(expression, zone)
	if err != nil {
		t.Fatalf("parse %q in %s: %v", expression, zone, err)
	}
	return c
}

// year returns all times of a year, in its zone.
func year(t *testing.T, c *calendar.Calendar, zone string, n int) (list []time.Time) {
	t.Helper()
	location, err := calendar.Zone(zone)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(n+1, 1, 1, 0, 0, 0, 0, location)
	for at := c.Next(time.Date(n, 1, 1, 0, 0, 0, 0, location).Add(-time.Nanosecond)); at.Before(end); at = c.Next(at) {
		list = append(list, at.In(location))
	}
	return list
}

// TestDaylightSaving walks through a year in zones whose clocks are changed by an hour at night, at midnight, and by half an hour.
func TestDaylightSaving(t *testing.T) {
	for _, tc := range []struct {
		expression, zone string
		year             int
		count            int
		day              string // of a change
		want             []string
	}{
		{"30 2 * * *", "Europe/Berlin", 2026, 365, "2026-03-29", []string{"03:00 +0200"}},
		{"30 2 * * *", "Europe/Berlin", 2026, 365, "2026-10-25", []string{"02:30 +0200"}},
		{"0,20,40 2 * * *", "Europe/Berlin", 2026, 3*365 - 2, "2026-03-29", []string{"03:00 +0200"}},
		{"30 2,3 * * *", "Europe/Berlin", 2026, 730, "2026-03-29", []string{"03:00 +0200", "03:30 +0200"}},
		{"0 2,3 * * *", "Europe/Berlin", 2026, 729, "2026-03-29", []string{"03:00 +0200"}},
		{"0 3 * * *", "Europe/Berlin", 2026, 365, "2026-03-29", []string{"03:00 +0200"}},
		{"0 3 * * *", "Europe/Berlin", 2026, 365, "2026-10-25", []string{"03:00 +0100"}},
		{"@daily", "Europe/Berlin", 2026, 365, "2026-10-25", []string{"00:00 +0200"}},
		{"30 1-3 * * *", "Europe/Berlin", 2026, 3 * 365, "2026-10-25", []string{"01:30 +0200", "02:30 +0200", "03:30 +0100"}},
		{"15 1-3 * * *", "America/New_York", 2026, 3 * 365, "2026-03-08", []string{"01:15 -0500", "03:00 -0400", "03:15 -0400"}},
		{"15 1 * * *", "America/New_York", 2026, 365, "2026-11-01", []string{"01:15 -0400"}},
		{"30 0 * * *", "Africa/Cairo", 2026, 365, "2026-04-24", []string{"01:00 +0300"}},
		{"30 23 * * *", "Africa/Cairo", 2026, 365, "2026-10-29", []string{"23:30 +0300"}},
		{"@daily", "America/Sao_Paulo", 2018, 365, "2018-11-04", []string{"01:00 -0200"}},
		{"15 2 * * *", "Australia/Lord_Howe", 2026, 365, "2026-10-04", []string{"02:30 +1100"}},
		{"45 1 * * *", "Australia/Lord_Howe", 2026, 365, "2026-04-05", []string{"01:45 +1100"}},
		{"30 2 * * *", "Asia/Kolkata", 2026, 365, "2026-03-29", []string{"02:30 +0530"}},
		{"30 2 * * *", "UTC", 2028, 366, "2028-02-29", []string{"02:30 +0000"}},
		{"0 0 29 2 *", "Europe/Berlin", 2028, 1, "2028-02-29", []string{"00:00 +0100"}},
		{"0 0 13 * FRI", "UTC", 2026, 12 + 52 - 3, "2026-02-13", []string{"00:00 +0000"}},
		// Every hour that exists, as long as an hour lasts.
		{"0 * * * *", "Europe/Berlin", 2026, 8760, "2026-03-29", nil},
		{"*/15 * * * *", "America/New_York", 2026, 4 * 8760, "2026-11-01", nil},
		{"0 */2 * * *", "Europe/Berlin", 2026, 4380, "", nil},
		{"@hourly", "Australia/Lord_Howe", 2026, 8759, "", nil},
	} {
		list := year(t, parsed(t, tc.expression, tc.zone), tc.zone, tc.year)
		var got []string
		for _, at := range list {
			if at.Format(time.DateOnly) == tc.day {
				got = append(got, at.Format("15:04 -0700"))
			}
		}
		if len(list) != tc.count || tc.want != nil && !slices.Equal(got, tc.want) {
			t.Errorf("%q in %s: %d times in %d, want %d; on %s %q, want %q", tc.expression, tc.zone, len(list), tc.year, tc.count,
				tc.day, got, tc.want)
		}
	}
}

// TestYears compares the times of years with those that a walk through all minutes finds.
func TestYears(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"} {
		for _, expression := range []string{
			"*/7 * * * *", "5 */3 * * *", "0 3 * * *", "17 0,1,2,3 * * *", "*/20 1-4 1,15 * *", "59 23 28-31 * *", "0 12 * 1,7 1-5",
			"30 2 1 * 0", "0 0 31 * *", "*/5 2 * 3,4,10,11 *",
		} {
			got, want := year(t, parsed(t, expression, zone), zone, 2027), walk(t, expression, zone, 2027)
			if !slices.EqualFunc(got, want, time.Time.Equal) {
				at := 0
				for at < min(len(got), len(want)) && got[at].Equal(want[at]) {
					at++
				}
				t.Errorf("%q in %s: %d times, want %d; from index %d: %v, want %v", expression, zone, len(got), len(want), at,
					got[at:min(len(got), at+3)], want[at:min(len(want), at+3)])
			}
		}
	}
}

// walk returns the times of a year by the definition: it looks at each minute. An hour that does not start with an asterisk runs once.
func walk(t *testing.T, expression, zone string, n int) (list []time.Time) {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(expression)
	minutes, hours := set(t, fields[0], 0, 59), set(t, fields[1], 0, 23)
	days, months, weekdays := set(t, fields[2], 1, 31), set(t, fields[3], 1, 12), set(t, fields[4], 0, 6)
	matches := func(reading time.Time) bool {
		day := days&(1<<reading.Day()) != 0
		weekday := weekdays&(1<<reading.Weekday()) != 0
		either := fields[2] != "*" && fields[4] != "*" && (day || weekday)
		return minutes&(1<<reading.Minute()) != 0 && hours&(1<<reading.Hour()) != 0 && months&(1<<reading.Month()) != 0 &&
			(either || day && weekday)
	}
	end := time.Date(n+1, 1, 1, 0, 0, 0, 0, location)
	furthest := time.Time{} // reading of the clock on the wall
	for at := time.Date(n, 1, 1, 0, 0, 0, 0, location); at.Before(end); at = at.Add(time.Minute) {
		_, offset := at.Zone()
		reading := at.Add(time.Duration(offset) * time.Second).UTC()
		runs := matches(reading)
		if !strings.HasPrefix(fields[1], "*") {
			runs = runs && reading.After(furthest)
			for left := furthest.Add(time.Minute); !furthest.IsZero() && left.Before(reading); left = left.Add(time.Minute) {
				runs = runs || matches(left)
			}
		}
		if runs {
			list = append(list, at)
		}
		if reading.After(furthest) {
			furthest = reading
		}
	}
	return list
}

// set returns the values of a field.
func set(t *testing.T, field string, low, high int) (values uint64) {
	t.Helper()
	for part := range strings.SplitSeq(field, ",") {
		span, stepText, _ := strings.Cut(part, "/")
		step := 1
		if stepText != "" {
			step = number(t, stepText)
		}
		from, to := low, high
		if span != "*" {
			first, last, ranged := strings.Cut(span, "-")
			from = number(t, first)
			to = from
			if ranged {
				to = number(t, last)
			}
		}
		for n := from; n <= to; n += step {
			values |= 1 << n
		}
	}
	if bits.OnesCount64(values) == 0 {
		t.Fatalf("field %q has no values", field)
	}
	return values
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLast: the last time of a long absence is found at once, whatever the expression.
func TestLast(t *testing.T) {
	epoch := time.Unix(0, 0)
	now := time.Date(2026, 11, 29, 12, 0, 30, 0, time.UTC)
	for _, tc := range []struct {
		expression string
		from       time.Time
		want       string
	}{
		{"* * * * *", epoch, "2026-11-29T12:00:00Z"},
		{"0 3 * * *", epoch, "2026-11-29T03:00:00Z"},
		{"0 0 29 2 *", epoch, "2024-02-29T00:00:00Z"},
		{"* * 1 1 *", epoch, "2026-01-01T23:59:00Z"},
		{"0 3 * * *", now.Add(-9 * time.Hour), "0001-01-01T00:00:00Z"},
		{"0 3 * * *", now.Add(-10 * time.Hour), "2026-11-29T03:00:00Z"},
		{"0 3 * * *", time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC), "0001-01-01T00:00:00Z"},
		{"0 12 * * *", now.Add(time.Hour), "0001-01-01T00:00:00Z"},
	} {
		if got := parsed(t, tc.expression, "UTC").Last(tc.from, now); got.Format(time.RFC3339) != tc.want {
			t.Errorf("last time of %q after %v: %v, want %s", tc.expression, tc.from.UTC(), got, tc.want)
		}
	}
	if got := parsed(t, "0 12 * * *", "UTC").Last(epoch, now.Truncate(time.Minute)); !got.Equal(now.Truncate(time.Minute)) {
		t.Errorf("a time that is now: %v", got)
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{
		"0 3 * * THU", "0 3 * MAR *", "*/5 8-18 * * mon-fri", "@weekly", "@midnight", " 0 3 * * * ", "0 3 ? * 7", "0 0 29 2 *",
	} {
		if _, err := calendar.Parse(text, "Europe/Berlin"); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, tc := range []struct{ expression, zone, want string }{
		{"", "", "must not be empty"},
		{"0 3 * *", "", "expected exactly 5 fields, found 4"},
		{"0 0 3 * * *", "", "expected exactly 5 fields, found 6"},
		{"60 3 * * *", "", "above maximum (59)"},
		{"0 3 0 * *", "", "below minimum (1)"},
		{"0 3 31 2 *", "", "matches no time"},
		{", 3 * * *", "", "matches no time"},
		{"0 3 * * L", "", "failed to parse"},
		{"H 3 * * *", "", "failed to parse"},
		{"TZ=UTC 0 3 * * *", "", "must not have a time zone"},
		{"CRON_TZ=UTC", "", "must not have a time zone"},
		{"@every 1h", "", "@every is not supported"},
		{"@reboot", "", "@reboot"},
		{strings.Repeat("0,", 200) + "0 3 * * *", "", "must be no more than 256 characters"},
		{"0 3 * * *", "Europe/Atlantis", "unknown time zone Europe/Atlantis"},
		{"0 3 * * *", "local", "must be an explicit time zone"},
		{"0 3 * * *", "../etc/passwd", "invalid location name"},
	} {
		if _, err := calendar.Parse(tc.expression, tc.zone); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q in %q: %v, want %q", tc.expression, tc.zone, err, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"0 3 * * *", "*/5 1-3 1,2 JAN MON", "@daily", "TZ=", "0 0 29 2 ?"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := calendar.Parse(text, "Australia/Lord_Howe")
		if err != nil {
			return
		}
		at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		for range 20 {
			next := c.Next(at)
			if !next.After(at) || next.Second() != 0 {
				t.Fatalf("%q: %v follows %v", text, next, at)
			}
			if last := c.Last(at, next); !last.Equal(next) {
				t.Fatalf("%q: last time until %v is %v", text, next, last)
			}
			at = next
		}
	})
}

package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/view"
)

// TestEvent checks the times of events: with the date unless it is today, with the year unless it is this year.
func TestEvent(t *testing.T) {
	now := time.Date(2026, 11, 28, 9, 30, 0, 0, time.Local)
	event := func(at time.Time) *api.Event {
		return &api.Event{Time: at, Level: api.EventWarning, Reason: "BackOff", Pod: "web", Container: "app", Message: "text"}
	}
	for _, tt := range []struct {
		at   time.Time
		form view.EventTime
		want string
	}{
		{now.Add(-time.Hour), view.EventClock, "08:30:00 web/app warning: text"},
		{now.Add(-10 * time.Hour), view.EventClock, "Nov 27 23:30:00 web/app warning: text"},
		{now.Add(-72 * time.Hour), view.EventClock, "Nov 25 09:30:00 web/app warning: text"},
		{now.AddDate(-1, 0, 0), view.EventClock, "2025-11-28 09:30:00 web/app warning: text"},
		{now.Add(-72 * time.Hour), view.EventAge, "3d web/app warning: text"},
		{now.Add(-time.Hour), view.EventStamp, now.Add(-time.Hour).Format(time.RFC3339) + " web/app warning: text"},
	} {
		if got := view.Event(event(tt.at), tt.form, now); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.at, got, tt.want)
		}
	}
	host := &api.Event{Time: now, Level: api.EventNormal, Reason: "ConfigReloaded", Message: "text"}
	for e, want := range map[*api.Event]string{
		host:       "09:30:00 Normal ConfigReloaded <host> text",
		event(now): "09:30:00 Warning BackOff web/app text",
	} {
		if got := strings.Join(strings.Fields(view.WideEvent(e, view.EventClock, now)), " "); got != want {
			t.Errorf("wide: %q, want %q", got, want)
		}
	}
}

package explain

import (
	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
)

// ofSchedule are the kinds of events of a pod that is started by a schedule.
var ofSchedule = map[api.EventKind]bool{
	api.EventScheduleStarted: true, api.EventScheduleFailed: true, api.EventScheduleMissed: true, api.EventScheduleWaiting: true,
	api.EventScheduleClockSetBack: true, api.EventFileInvalid: true, api.EventFileAccepted: true,
}

// ScheduleTimeline returns the newest events of a pod that is started by a schedule.
func ScheduleTimeline(events []event.Event) []api.TimelineEntry {
	var t timeline
	for i := range events {
		if ofSchedule[events[i].Kind] {
			t = t.with(&events[i])
		}
	}
	return t.entries()
}

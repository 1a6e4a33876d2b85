package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/timeline"
	"github.com/podstead/podstead/internal/view"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// ev is an event some seconds after noon. The fields are pairs.
func ev(seconds float64, kind api.EventKind, container string, fields ...string) api.Event {
	e := api.Event{
		Time: noon.Add(time.Duration(seconds * float64(time.Second))), Kind: kind, Level: kind.Entry().Level, Pod: "web",
		Container: container, Fields: map[string]string{}, Message: string(kind),
	}
	for i := 0; i < len(fields); i += 2 {
		e.Fields[fields[i]] = fields[i+1]
	}
	return e
}

// normal makes the exit of a container one on request.
func normal(e api.Event) api.Event {
	e.Level = api.EventNormal
	return e
}

// drawn is a picture as text, with times in seconds after noon.
func drawn(p *timeline.Picture) string {
	s := func(t time.Time) string { return fmt.Sprint(t.Sub(noon).Seconds()) }
	var lines []string
	for _, m := range p.Marks {
		lines = append(lines, fmt.Sprintf("mark %s %s %s", s(m.At), m.Kind, m.Label))
	}
	for _, l := range p.Lanes {
		for _, b := range l.Bars {
			line := fmt.Sprintf("%s %s-%s %s [%s] %s", l.Name, s(b.From), s(b.To), b.Outcome, b.Label, b.Text)
			if !b.Stop.IsZero() {
				line += ", from " + s(b.Stop)
			}
			lines = append(lines, line)
		}
		for _, g := range l.Gaps {
			lines = append(lines, fmt.Sprintf("%s %s-%s %s", l.Name, s(g.From), s(g.To), g.Kind))
		}
		for _, t := range l.Ticks {
			lines = append(lines, fmt.Sprintf("%s %s %s", l.Name, s(t.At), t.Kind))
		}
	}
	return strings.Join(lines, "\n")
}

// TestTimeline draws lists of events.
func TestTimeline(t *testing.T) {
	const started, failed, succeeded = api.EventContainerStarted, api.EventContainerFailed, api.EventContainerSucceeded
	for name, tt := range map[string]struct {
		off    []timeline.Span
		events []api.Event
		want   string
	}{
		"crashes": {
			events: []api.Event{
				ev(0, api.EventImagePulling, "app"), ev(5, api.EventImagePulled, "app", "duration", "5s"),
				ev(5, started, "app"), ev(9, failed, "app", "code", "1", "reason", "Error"),
				ev(9, started, "app"), ev(12, failed, "app", "code", "137", "reason", "OOMKilled"),
				ev(12, api.EventContainerBackOff, "app", "delay", "10s"), ev(22, started, "app"), ev(30, succeeded, "app"),
				ev(30, api.EventContainerBackOff, "app", "delay", "20s"), ev(50, started, "app"), ev(55, api.EventProbeFailed, "app"),
			},
			want: `
app 5-9 failed [exit 1] exited with code 1 (Error)
app 9-12 oom [OOM-killed] exited with code 137 (OOMKilled)
app 22-30 succeeded [exit 0] exited with code 0
app 50-100 running [running] running
app 0-5 pull
app 12-22 backoff
app 30-50 backoff
app 55 probe`,
		},
		"stops": {
			events: []api.Event{
				ev(0, started, "a"), ev(0, started, "b"), ev(0, started, "c"),
				ev(10, api.EventRestartRequested, "a"), ev(10, api.EventContainerStopping, "a"),
				normal(ev(13, failed, "a", "code", "143", "reason", "Error")), ev(13, started, "a"),
				ev(20, api.EventContainerLivenessFailed, "b"), ev(25, api.EventContainerKilled, "b"),
				ev(25, failed, "b", "code", "137", "reason", "Error"), ev(25, started, "b"),
				ev(40, api.EventPodStopping, ""), ev(40, api.EventContainerStopping, "a"), ev(40, api.EventContainerStopping, "b"),
				ev(40, api.EventContainerStopping, "c"), ev(41, succeeded, "a"), ev(42, api.EventContainerKilled, "c"),
				normal(ev(42, failed, "b", "code", "143")), normal(ev(42, failed, "c", "code", "137")), ev(42, api.EventPodStopped, ""),
			},
			want: `
mark 40 asked stop
mark 42 phase stopped
a 0-13 stopped [stopped] exited with code 143 (Error), stopped, from 10
a 13-41 stopped [stopped] exited with code 0, stopped, from 40
a 10 request
b 0-25 failed [exit 137] exited with code 137 (Error), killed, from 20
b 25-42 stopped [stopped] exited with code 143, stopped, from 40
c 0-42 stopped [stopped] exited with code 137, killed, from 40`,
		},
		"power loss": {
			off: []timeline.Span{{From: noon.Add(20 * time.Second), To: noon.Add(30 * time.Second)}},
			events: []api.Event{
				ev(0, started, "a"), ev(5, failed, "b", "code", "1"), ev(5, api.EventContainerBackOff, "b", "delay", "80s"),
				ev(30, api.EventHostRebooted, "", "how", " after it stopped without a shutdown"), ev(31, started, "a"),
			},
			want: `
mark 30 boot boot
a 0-20 lost [lost] lost with the host
a 31-100 running [running] running
b 0-5 failed [exit 1] exited with code 1
b 5-20 backoff`,
		},
		"schedule": {
			events: []api.Event{
				ev(0, api.EventScheduleStarted, ""), ev(60, api.EventScheduleFailed, ""), ev(90, api.EventScheduleMissed, ""),
			},
			want: `
mark 0 asked run
mark 60 trouble run not created
mark 90 trouble run missed`,
		},
		"unknown": { // the first start and an exit are not known, and the host was off for an unknown time
			events: []api.Event{
				ev(7, failed, "a", "code", "2"), ev(8, started, "a"), ev(9, started, "a"), ev(20, api.EventHostRebooted, ""),
				ev(60, api.EventImagePulled, "b", "duration", "30s"), ev(70, api.EventImagePulling, "c"),
				ev(71, api.EventImagePullFailed, "c"), ev(71, api.EventImageBackOff, "c", "delay", "40s"),
			},
			want: `
mark 20 boot boot
a 0-7 failed [exit 2] exited with code 2
a 8-9 lost [lost] its exit is not known
a 9-20 lost [lost] lost with the host
b 30-60 pull
c 70-71 pull
c 71-100 backoff
c 71 error`,
		},
	} {
		p := view.Timeline(timeline.Picture{From: noon, To: noon.Add(100 * time.Second), Off: tt.off}, nil, tt.events)
		if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), drawn(&p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestLanes checks that the containers of a pod come in its order, before others.
func TestLanes(t *testing.T) {
	p := view.Timeline(timeline.Picture{From: noon, To: noon.Add(time.Minute)}, []string{"init", "app"}, []api.Event{
		ev(1, api.EventContainerStarted, "debug"), ev(2, api.EventContainerStarted, "app"),
	})
	var names []string
	for _, l := range p.Lanes {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "init app debug" {
		t.Errorf("lanes %s", got)
	}
}

// TestExplained checks the time that the picture of an explanation shows.
func TestExplained(t *testing.T) {
	events := []api.Event{ev(10, api.EventContainerStarted, "app"), ev(40, api.EventContainerSucceeded, "app")}
	now := noon.Add(time.Hour)
	for _, tt := range []struct {
		state     api.PodState
		last      time.Duration
		from, to  time.Duration
		shown, in int // events that are shown, and bars
	}{
		{api.PodStateReady, 0, 10 * time.Second, time.Hour, 2, 1},
		{api.PodStateReady, 10 * time.Minute, 50 * time.Minute, time.Hour, 0, 1},
		{api.PodStateSucceeded, 0, 10 * time.Second, 40600 * time.Millisecond, 2, 1},
		{api.PodStateDeleted, 5 * time.Second, 35600 * time.Millisecond, 40600 * time.Millisecond, 1, 1},
	} {
		p, shown := view.Explained(&api.Explanation{Pod: "web", State: tt.state}, events, tt.last, now)
		from, to := p.From.Sub(noon), p.To.Sub(noon)
		if from != tt.from || to != tt.to || len(shown) != tt.shown || len(p.Lanes[0].Bars) != tt.in {
			t.Errorf("%s, last %v: from %v to %v, %d events, %d bars", tt.state, tt.last, from, to, len(shown), len(p.Lanes[0].Bars))
		}
	}
	if p, shown := view.Explained(&api.Explanation{Pod: "web"}, nil, 0, now); !p.From.Equal(now) || !p.To.Equal(now) || len(shown) > 0 {
		t.Errorf("without events: from %v to %v", p.From, p.To)
	}
}

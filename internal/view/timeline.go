package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/timeline"
)

// stops are the kinds of events that begin the stop of a run, with why it is stopped.
var stops = map[api.EventKind]string{
	api.EventContainerStopping:        "stopped",
	api.EventContainerSandboxChanged:  "pod sandbox changed",
	api.EventContainerLivenessFailed:  "failed liveness probe",
	api.EventContainerStartupFailed:   "failed startup probe",
	api.EventContainerPostStartFailed: "postStart hook failed",
	api.EventContainerChanged:         "definition changed",
	api.EventContainerDropped:         "removed from the pod definition",
	api.EventContainerKilled:          "killed",
}

// ticks are the kinds of events of containers that a timeline has as ticks.
var ticks = map[api.EventKind]timeline.TickKind{
	api.EventProbeFailed:           timeline.ProbeFailed,
	api.EventProbeErrored:          timeline.ProbeFailed,
	api.EventContainerCreateFailed: timeline.Trouble,
	api.EventContainerStartFailed:  timeline.Trouble,
	api.EventPostStartFailed:       timeline.Trouble,
	api.EventPreStopFailed:         timeline.Trouble,
	api.EventSignalFailed:          timeline.Trouble,
	api.EventImagePullFailed:       timeline.Trouble,
	api.EventImageNeverPull:        timeline.Trouble,
	api.EventImageInspectFailed:    timeline.Trouble,
	api.EventRestartRequested:      timeline.Request,
	api.EventDeviceRemoved:         timeline.Trouble,
}

// marks are the kinds of events of pods that a timeline has as vertical lines, with their labels.
var marks = map[api.EventKind]struct {
	kind  timeline.MarkKind
	label string
}{
	api.EventHostRebooted:        {timeline.Boot, "boot"},
	api.EventPodRecovered:        {timeline.Daemon, "daemon restarted"},
	api.EventDefinitionChanged:   {timeline.Update, "update"},
	api.EventUpdateFailed:        {timeline.PodTrouble, "update failed"},
	api.EventRollbackStarted:     {timeline.Update, "rollback"},
	api.EventRolloutUndone:       {timeline.Update, "undo"},
	api.EventRolloutResumed:      {timeline.Update, "resume"},
	api.EventPodStopping:         {timeline.Requested, "stop"},
	api.EventPodStartRequested:   {timeline.Requested, "start"},
	api.EventPodRestartRequested: {timeline.Requested, "restart"},
	api.EventNodeShutdown:        {timeline.Requested, "shutdown"},
	api.EventPodRejected:         {timeline.PodTrouble, "rejected"},
	api.EventPodQuarantined:      {timeline.PodTrouble, "quarantined"},
	api.EventPodEvicted:          {timeline.PodTrouble, "evicted"},
	api.EventPodDeadlineExceeded: {timeline.PodTrouble, "deadline exceeded"},
	api.EventPodBackoffExceeded:  {timeline.PodTrouble, "back-off limit exceeded"},
	api.EventPodJobEnded:         {timeline.Requested, "Job ended"},
	api.EventPodEscalated:        {timeline.PodTrouble, "unready too long"},
	api.EventPodRestarting:       {timeline.PodTrouble, "all restarted"},
	api.EventRebootRequested:     {timeline.PodTrouble, "reboot requested"},
	api.EventSandboxFailed:       {timeline.PodTrouble, "sandbox failed"},
	api.EventSandboxChanged:      {timeline.PodTrouble, "sandbox lost"},
	api.EventVolumeFailed:        {timeline.PodTrouble, "mount failed"},
	api.EventOrphanFound:         {timeline.PodTrouble, "orphaned"},
	api.EventStateLost:           {timeline.PodTrouble, "state lost"},
	api.EventEngineUnavailable:   {timeline.PodTrouble, "engine unavailable"},
	api.EventEngineDamaged:       {timeline.PodTrouble, "engine damaged"},
	api.EventMonitorRestarted:    {timeline.Daemon, "monitor restarted"},
	api.EventMonitorUnavailable:  {timeline.PodTrouble, "monitor unavailable"},
	api.EventScheduleStarted:     {timeline.Requested, "run"},
	api.EventScheduleFailed:      {timeline.PodTrouble, "run not created"},
	api.EventScheduleMissed:      {timeline.PodTrouble, "run missed"},
	api.EventPodSucceeded:        {timeline.Phase, "succeeded"},
	api.EventPodFailed:           {timeline.Phase, "failed"},
	api.EventPodStopped:          {timeline.Phase, "stopped"},
	api.EventPodRemoved:          {timeline.Phase, "removed"},
}

// Timeline adds the events of a pod, in their order, to a picture, which has the time and when the host was off. The containers are the
// lanes that come first. What began before the picture is drawn from its start.
func Timeline(p timeline.Picture, containers []string, events []api.Event) timeline.Picture {
	b := tracks{picture: &p, lanes: map[string]*track{}}
	for _, name := range containers {
		b.track(name)
	}
	for i := range events {
		e := &events[i]
		if m, is := marks[e.Kind]; is {
			p.Marks = append(p.Marks, timeline.Mark{At: e.Time, Kind: m.kind, Label: m.label, Text: e.Message})
		}
		switch {
		case e.Container != "":
			b.track(e.Container).add(&p, e)
		case e.Kind == api.EventHostRebooted:
			b.lose(e.Time)
		case marks[e.Kind].kind == timeline.Phase: // nothing is pulled or started any more
			for _, t := range b.lanes {
				t.wait(e.Time)
				t.endPull(e.Time)
			}
		}
	}
	for _, name := range b.order {
		t := b.lanes[name]
		t.end(p.To, timeline.Running, "running", "running")
		t.endPull(p.To)
		for i := range t.lane.Gaps {
			g := &t.lane.Gaps[i]
			g.To = earlier(g.To, p.To)
		}
		p.Lanes = append(p.Lanes, t.lane)
	}
	return p
}

// terminal are the states of pods of which no container runs.
var terminal = []api.PodState{
	api.PodStateSucceeded, api.PodStateFailed, api.PodStateStopped, api.PodStateRejected, api.PodStateDeleted,
}

// Explained is the picture of a pod from its events, and those of the events that are not older than it. It shows the time until now, or
// until the last event of a pod that has completed: all of it, or the last part.
func Explained(e *api.Explanation, events []api.Event, last time.Duration, now time.Time) (timeline.Picture, []api.Event) {
	p := timeline.Picture{Title: e.Pod, Summary: Headline(e, now), From: now, To: now}
	for i := range events {
		p.From = earlier(p.From, events[i].Time.In(now.Location()))
	}
	if slices.Contains(terminal, e.State) && len(events) > 0 {
		p.To = p.From
		for i := range events {
			p.To = later(p.To, events[i].Time.In(now.Location()))
		}
		p.To = p.To.Add(p.To.Sub(p.From) / 50) // so that the last event is not at the edge
	}
	if last > 0 {
		p.From = later(p.From, p.To.Add(-last))
	}
	var containers []string
	for i := range e.Containers {
		containers = append(containers, e.Containers[i].Name)
	}
	shown := slices.DeleteFunc(slices.Clone(events), func(ev api.Event) bool { return ev.Time.Before(p.From) })
	return Timeline(p, containers, events), shown
}

// tracks are the lanes of a picture while events are added.
type tracks struct {
	picture *timeline.Picture
	order   []string
	lanes   map[string]*track
}

// track is a lane with what has not ended.
type track struct {
	lane    timeline.Lane
	run     timeline.Bar // From is zero: none
	seen    bool         // a run was seen
	why     string       // it is stopped
	pulling time.Time
}

// track returns the track of a container.
func (b *tracks) track(name string) *track {
	t := b.lanes[name]
	if t == nil {
		t = &track{lane: timeline.Lane{Name: name}}
		b.lanes[name] = t
		b.order = append(b.order, name)
	}
	return t
}

// lose ends what runs when the host goes down: at a boot, if it is not known when.
func (b *tracks) lose(boot time.Time) {
	at := boot
	for _, off := range b.picture.Off {
		if !off.From.After(boot) && !off.To.Before(boot) {
			at = off.From
		}
	}
	for _, t := range b.lanes {
		t.end(at, timeline.Lost, "lost", "lost with the host")
		t.wait(at)
		t.endPull(at)
	}
}

// end ends the run, if there is one.
func (t *track) end(at time.Time, o timeline.Outcome, label, text string) {
	if t.run.From.IsZero() {
		return
	}
	t.run.To, t.run.Outcome, t.run.Label, t.run.Text = later(at, t.run.From), o, label, text
	if t.why != "" {
		t.run.Text += ", " + t.why
		t.run.Stop = earlier(t.run.Stop, t.run.To)
	}
	t.lane.Bars = append(t.lane.Bars, t.run)
	t.run, t.why = timeline.Bar{}, ""
}

// wait ends a back-off.
func (t *track) wait(at time.Time) {
	if n := len(t.lane.Gaps); n > 0 {
		g := &t.lane.Gaps[n-1]
		g.To = later(earlier(g.To, at), g.From)
	}
}

// endPull ends the pull of the image.
func (t *track) endPull(at time.Time) {
	if !t.pulling.IsZero() && at.After(t.pulling) {
		t.gap(t.pulling, at, timeline.Pull, "pulling the image")
	}
	t.pulling = time.Time{}
}

func (t *track) gap(from, to time.Time, kind timeline.GapKind, text string) {
	t.lane.Gaps = append(t.lane.Gaps, timeline.Gap{Span: timeline.Span{From: from, To: later(to, from)}, Kind: kind, Text: text})
}

// add adds an event.
func (t *track) add(p *timeline.Picture, e *api.Event) {
	if kind, is := ticks[e.Kind]; is {
		t.lane.Ticks = append(t.lane.Ticks, timeline.Tick{At: e.Time, Kind: kind, Text: e.Message})
	}
	if why, is := stops[e.Kind]; is && !t.run.From.IsZero() {
		if t.run.Stop.IsZero() {
			t.run.Stop = e.Time
		}
		if t.why == "" || e.Kind == api.EventContainerKilled {
			t.why = why
		}
	}
	switch e.Kind { //nolint:exhaustive // the others change no lane
	case api.EventImagePulling:
		t.wait(e.Time)
		t.pulling = e.Time
	case api.EventImagePulled:
		took, _ := time.ParseDuration(e.Fields["duration"])
		if t.pulling.IsZero() && took > 0 {
			t.pulling = e.Time.Add(-took)
		}
		t.endPull(e.Time)
	case api.EventImagePullFailed:
		t.endPull(e.Time)
	case api.EventContainerBackOff, api.EventImageBackOff:
		delay, _ := time.ParseDuration(e.Fields["delay"])
		t.wait(e.Time)
		t.gap(e.Time, e.Time.Add(delay), timeline.BackOff, "back-off")
	case api.EventContainerStarted:
		t.end(e.Time, timeline.Lost, "lost", "its exit is not known")
		t.wait(e.Time)
		t.endPull(e.Time) // the daemon was restarted meanwhile
		t.run.From, t.seen = e.Time, true
	case api.EventContainerSucceeded, api.EventContainerFailed:
		if !t.seen {
			t.run.From, t.seen = earlier(p.From, e.Time), true // its start is not known any more
		}
		t.exit(e)
	}
}

// exit ends the run with an exit.
func (t *track) exit(e *api.Event) {
	code := cmp.Or(e.Fields["code"], "0")
	label, text := "exit "+code, "exited with code "+code
	if reason := e.Fields["reason"]; reason != "" {
		text += " (" + reason + ")"
	}
	byRequest := slices.Contains([]string{stops[api.EventContainerStopping], stops[api.EventContainerChanged]}, t.why)
	switch {
	case e.Fields["reason"] == string(api.ReasonOOMKilled):
		t.end(e.Time, timeline.OOMKilled, "OOM-killed", text)
	case e.Kind == api.EventContainerFailed && e.Level == api.EventWarning:
		t.end(e.Time, timeline.Failed, label, text)
	case e.Kind == api.EventContainerFailed, byRequest:
		t.end(e.Time, timeline.Stopped, "stopped", text)
	default:
		t.end(e.Time, timeline.Succeeded, label, text)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

package explain

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// maxRuns is how many runs of a container an explanation has.
	maxRuns = 5
	// maxEntries bounds a timeline. The oldest entries are dropped.
	maxEntries = 20
)

// onContainer are the kinds of events of a container that are part of its timeline. The value says that the event is not a cause:
// it follows from one, or comes with it.
var onContainer = map[api.EventKind]bool{
	api.EventContainerLivenessFailed:  false,
	api.EventContainerStartupFailed:   false,
	api.EventContainerPostStartFailed: false,
	api.EventContainerSandboxChanged:  false,
	api.EventContainerStopping:        false,
	api.EventRestartRequested:         false,
	api.EventContainerChanged:         false,
	api.EventContainerDropped:         false,
	api.EventContainerKilled:          false,
	api.EventContainerSucceeded:       false,
	api.EventContainerFailed:          false,
	api.EventContainerCreateFailed:    false,
	api.EventContainerStartFailed:     false,
	api.EventImagePullFailed:          false,
	api.EventImageInspectFailed:       false,
	api.EventImageNeverPull:           false,
	api.EventDeviceRemoved:            false,
	api.EventDeviceAdded:              true,
	api.EventPreStopFailed:            true,
	api.EventSignalFailed:             true,
	api.EventContainerBackOff:         true,
	api.EventMaxRestartsReached:       true,
	api.EventContainerAdded:           true,
	api.EventContainerStarted:         true,
}

// onAll are the kinds of events of a pod that are part of the timelines of its containers, with the same value.
var onAll = map[api.EventKind]bool{
	api.EventHostRebooted:        false,
	api.EventSandboxChanged:      false,
	api.EventPodRestarting:       false,
	api.EventPodEscalated:        false,
	api.EventPodStopping:         false,
	api.EventPodStartRequested:   false,
	api.EventPodRestartRequested: false,
	api.EventDefinitionChanged:   true,
	api.EventPodEvicted:          false,
	api.EventPodDeadlineExceeded: false,
	api.EventPodBackoffExceeded:  false,
	api.EventPodJobEnded:         false,
	api.EventPodRecovered:        true,
	api.EventEngineUnavailable:   true,
	api.EventEngineDamaged:       true,
}

// followsFrom reports whether an event is part of the timelines of containers, and whether it is not a cause, as [onContainer] has it.
func followsFrom(e *event.Event) (follows, known bool) {
	if e.Container == "" {
		follows, known = onAll[e.Kind]
		return follows, known
	}
	follows, known = onContainer[e.Kind]
	return follows || e.KeepsDevice(), known
}

// onPod are the kinds of events that are part of the timeline of a pod.
var onPod = map[api.EventKind]bool{
	api.EventPodRejected:         true,
	api.EventPodQuarantined:      true,
	api.EventPodRecovered:        true,
	api.EventHostRebooted:        true,
	api.EventPodWaiting:          true,
	api.EventConditionMet:        true,
	api.EventSandboxFailed:       true,
	api.EventSandboxChanged:      true,
	api.EventVolumeFailed:        true,
	api.EventPodRestarting:       true,
	api.EventPodEscalated:        true,
	api.EventRebootRequested:     true,
	api.EventRebootHeldBack:      true,
	api.EventRebootFailed:        true,
	api.EventPodStopping:         true,
	api.EventPodStartRequested:   true,
	api.EventPodRestartRequested: true,
	api.EventDefinitionChanged:   true,
	api.EventResizeStarted:       true,
	api.EventResizeCompleted:     true,
	api.EventResizeError:         true,
	api.EventUpdateFailed:        true,
	api.EventRollbackStarted:     true,
	api.EventRollbackCompleted:   true,
	api.EventRolloutUndone:       true,
	api.EventRolloutResumed:      true,
	api.EventPodEvicted:          true,
	api.EventNodeShutdown:        true,
	api.EventPodDeadlineExceeded: true,
	api.EventPodBackoffExceeded:  true,
	api.EventPodJobEnded:         true,
	api.EventPodSucceeded:        true,
	api.EventPodFailed:           true,
	api.EventPodStopped:          true,
	api.EventPodCollected:        true,
	api.EventPodRemoved:          true,
	api.EventRemovalFailed:       true,
	api.EventStateLost:           true,
	api.EventStateNotDurable:     true,
	api.EventOrphanFound:         true,
	api.EventEngineUnavailable:   true,
	api.EventMonitorUnresponsive: true,
	api.EventMonitorResponding:   true,
	api.EventVolumesNotUpdated:   true,
	api.EventVolumesUpdated:      true,
	api.EventEngineDamaged:       true,
	api.EventCgroupCleared:       true,
	api.EventInternalError:       true,
	api.EventMonitorRestarted:    true,
	api.EventMonitorUnavailable:  true,
	api.EventMonitorAvailable:    true,
	api.EventMonitorNotReplaced:  true,
}

// onHost are the kinds of events without a pod that concern all pods.
var onHost = map[api.EventKind]bool{
	api.EventMonitorRestarted: true, api.EventMonitorUnavailable: true, api.EventMonitorAvailable: true,
	api.EventMonitorReplaced: true, api.EventMonitorNotReplaced: true,
}

// restartsAll are the kinds of events after which all containers of a pod start again.
var restartsAll = map[api.EventKind]bool{
	api.EventHostRebooted: true, api.EventSandboxChanged: true, api.EventPodRestarting: true, api.EventPodEscalated: true,
	api.EventPodStartRequested: true, api.EventPodRestartRequested: true,
}

// startsPod are the kinds of events by which a pod that was stopped runs again.
var startsPod = map[api.EventKind]bool{api.EventPodStartRequested: true, api.EventPodRestartRequested: true}

// endsPod are the kinds of events after which no container of a pod is started.
var endsPod = map[api.EventKind]bool{
	api.EventPodStopping: true, api.EventPodEvicted: true, api.EventNodeShutdown: true, api.EventPodDeadlineExceeded: true,
	api.EventPodBackoffExceeded: true, api.EventPodJobEnded: true,
}

// timeline is a list of events in which equal ones in a row are one entry.
type timeline []row

// row is an entry with the last event that it stands for.
type row struct {
	api.TimelineEntry
	event *event.Event
}

func (t timeline) with(e *event.Event) timeline {
	if n := len(t); n > 0 {
		if last := &t[n-1]; last.event.Kind == e.Kind && last.Container == e.Container && maps.Equal(last.event.Fields, e.Fields) {
			last.Count++
			last.Time, last.Seq, last.event = e.Time, e.Seq, e
			return t
		}
	}
	return append(t, row{event: e, TimelineEntry: api.TimelineEntry{
		Time: e.Time, Container: e.Container, Message: e.Message, Kind: e.Kind, Reason: e.Reason, Seq: e.Seq, Cause: e.Cause, Count: 1,
	}})
}

// ordered moves an exit that happened while the daemon did not run before the event that says that the daemon is back.
func (t timeline) ordered() timeline {
	for i := len(t) - 1; i > 0 && t[i-1].event.Kind == api.EventPodRecovered && t[i].Time.Before(t[i-1].Time); i-- {
		t[i-1], t[i] = t[i], t[i-1]
	}
	return t
}

// entries are the newest rows.
func (t timeline) entries() []api.TimelineEntry {
	var list []api.TimelineEntry
	for _, r := range t[max(0, len(t)-maxEntries):] {
		list = append(list, r.TimelineEntry)
	}
	return list
}

// podTimeline are the events of the pod as a whole, without failures before the start of the sandbox. When the daemon was restarted, the
// starts of the containers that ran when it stopped are among them.
func (b *builder) podTimeline() []api.TimelineEntry {
	var t timeline
	running := map[string]*event.Event{} // the starts, by container
	for i := range b.events {
		e := &b.events[i]
		switch {
		case e.Kind == api.EventContainerStarted:
			running[e.Container] = e
		case exited[e.Kind]:
			delete(running, e.Container)
		case e.Container != "":
		case e.Kind == api.EventSandboxReady:
			t = slices.DeleteFunc(t, func(r row) bool {
				return r.event.Kind == api.EventSandboxFailed || r.event.Kind == api.EventVolumeFailed
			})
		case e.Kind == api.EventPodRecovered:
			for _, start := range running {
				t = t.with(start)
			}
			t = t.with(e)
			clear(running)
		case onPod[e.Kind]:
			t = t.with(e)
			if restartsAll[e.Kind] {
				clear(running)
			}
		}
	}
	order.Sort(t, func(a, b row) int { return cmp.Compare(a.Seq, b.Seq) })
	return t.entries()
}

// period is what happened to a container from one start to the next.
type period struct {
	rows     timeline
	started  time.Time // of the run; zero: it is not known, or there was none
	eventful bool      // one of the rows is a cause
	lost     bool      // a start followed the rows, without an event
}

// run is a run with the causes of the restarts that followed in it, oldest first.
type run struct {
	api.ExplainedRun
	restarts []api.RestartCause
}

// setRuns sets the newest runs of a container, and the causes of its restarts.
func setRuns(c *api.ExplainedContainer, all []run) {
	for _, r := range all[max(0, len(all)-maxRuns):] {
		c.Runs = append(c.Runs, r.ExplainedRun)
	}
	c.RestartCauses = restartCauses(all, c.Restarts)
}

// runs are the runs of a container as far as the events are stored, each with its cause and what followed, up to the next start. Failures
// to start a container that has not run yet make a run too. Nothing that happens to a pod ends a run of a container that never had one.
func (b *builder) runs(name string, neverRestarted bool) []run {
	var all []run
	var p period
	neverStarted := neverRestarted
	podEnds := false // a start after this was in progress before it
	added := false   // the container is ephemeral
	finish := func() {
		if p.eventful && len(p.rows) > 0 {
			all = append(all, b.run(name, &p))
		}
	}
	for i := range b.events {
		e := &b.events[i]
		follows, known := followsFrom(e)
		if !known || e.Container != "" && e.Container != name || added && e.Kind == api.EventPodRestarting {
			continue
		}
		if e.Kind == api.EventContainerAdded { // what happened before does not concern the container
			added, p = true, period{}
		}
		if start := b.lostStart(name, &p, e); !start.IsZero() {
			p.lost = true
			finish()
			p, neverStarted = period{started: start}, false
		}
		p.rows = p.rows.with(e).ordered()
		p.eventful = p.eventful || !follows && (e.Container != "" || !neverStarted)
		podEnds = (podEnds || e.Container == "" && endsPod[e.Kind]) && !startsPod[e.Kind]
		if e.Kind == api.EventContainerStarted && !podEnds {
			finish()
			p, neverStarted = period{started: e.Time}, false
		}
	}
	finish()
	return all
}

// lostStart is when a run started that ended with the power of the host, if its event is lost: the last events before a power loss may not
// be on the disk. Zero: there is no such run before this event.
func (b *builder) lostStart(name string, p *period, e *event.Event) time.Time {
	if b.snapshot == nil || e.Kind != api.EventHostRebooted || e.Fields["how"] == "" {
		return time.Time{}
	}
	exit := slices.IndexFunc(p.rows, func(r row) bool { return exited[r.event.Kind] })
	record := b.snapshot.Facts.Container(name)
	for _, a := range []*lifecycle.Attempt{&record.Newest, &record.Previous} {
		at, until := a.Started.Wall, a.Exited.Wall
		if exit >= 0 && !at.Before(p.rows[exit].Time) && at.Before(e.Time) && until.After(p.rows[exit].Time) {
			return at
		}
	}
	return time.Time{}
}

// run computes the cause and the exit of a period. The cause is its first event that can be one. A container that had completed
// is an exception: it was restarted because of what restarted the whole pod, unless that was caused by this very exit.
func (b *builder) run(name string, p *period) run {
	r := run{ExplainedRun: api.ExplainedRun{Timeline: p.rows.entries(), Restarted: p.restarted()}}
	completed := uint64(0)
	var rebooted *api.Cause
	for i := range p.rows {
		e := p.rows[i].event
		follows, _ := followsFrom(e)
		all := restartsAll[e.Kind]
		if exited[e.Kind] {
			r.Exit = exitOf(e, p.started)
		}
		if e.Kind == api.EventHostRebooted {
			rebooted = b.causeOf(e, name, p.started)
		}
		switch {
		case r.Cause == nil && !follows:
			r.Cause = b.causeOf(e, name, p.started)
			if e.Kind == api.EventContainerSucceeded {
				completed = e.Seq
			}
		case e.Kind == api.EventSandboxChanged && r.Cause != nil && killedWith(r.Cause, e.Time):
			r.Cause = b.causeOf(e, name, p.started)
		case e.Kind == api.EventPodStartRequested && r.Restarted && rebooted != nil && e.Fields["by"] == lifecycle.ByStart:
			r.Cause = rebooted // the shutdown has stopped the pod
		case e.Kind == api.EventPodStartRequested && r.Restarted:
			r.Cause = b.causeOf(e, name, p.started)
		case completed > 0 && r.Restarted && all && e.Cause != completed:
			r.Cause, completed = b.causeOf(e, name, p.started), 0
		case e.Kind == api.EventPodRestarting && r.Cause != nil && r.Cause.Kind == api.CauseRestartAll, // it names the container
			e.Fields["retry"] != "" && r.Cause != nil && booted[r.Cause.Kind]: // the container had completed before
			r.Cause = b.causeOf(e, name, p.started)
		}
	}
	b.addRestarts(&r, name, p)
	return r
}

var booted = map[api.CauseKind]bool{api.CauseHostRebooted: true, api.CauseUncleanShutdown: true}

// killedWith reports whether a cause is an exit by SIGKILL that came with the loss of the sandbox at a time. The events of a shim that
// died arrive in any order.
func killedWith(c *api.Cause, lost time.Time) bool {
	const window = 2 * time.Second
	byKill := c.Kind == api.CauseExited && c.Exit != nil && c.Exit.Signal == "SIGKILL"
	return (byKill || c.Kind == api.CauseExitUnknown) && lost.Sub(c.Time) < window
}

// exited are the kinds of events that say that a run exited.
var exited = map[api.EventKind]bool{api.EventContainerSucceeded: true, api.EventContainerFailed: true}

// restarted reports whether the container was started at the end of the period.
func (p *period) restarted() bool {
	n := len(p.rows)
	return p.lost || n > 0 && p.rows[n-1].event.Kind == api.EventContainerStarted
}

// untilExit drops what happened to the pod after the last exit of a container that is not restarted, or after the event that says why it is
// not. What killed the container may be reported after the exit: their order is chance.
func untilExit(entries []api.TimelineEntry, exit *api.ContainerExit) []api.TimelineEntry {
	killed := exit != nil && (exit.Signal == "SIGKILL" || exit.Code == 255)
	for n := len(entries); n > 0; n-- {
		switch kind := entries[n-1].Kind; {
		case exited[kind], kind == api.EventMaxRestartsReached, kind == api.EventContainerStartFailed:
			return entries[:n]
		case killed && kind != api.EventPodRecovered && kind != api.EventHostRebooted:
			return entries[:n]
		}
	}
	return entries
}

// starts is how many starts of a container the events have.
func (b *builder) starts(name string) int {
	n := 0
	for i := range b.events {
		if e := &b.events[i]; e.Container == name && e.Kind == api.EventContainerStarted {
			n++
		}
	}
	return n
}

// exitOf is the exit that an event reports.
func exitOf(e *event.Event, started time.Time) *api.ContainerExit {
	x := api.ContainerExit{StartedAt: started, FinishedAt: e.Time, Reason: api.Reason(e.Fields["reason"])}
	if x.Code, _ = strconv.Atoi(e.Fields["code"]); e.Kind == api.EventContainerSucceeded {
		x.Code, x.Reason = 0, api.ReasonCompleted
	}
	x.Signal = signalOf(x.Code)
	return &x
}

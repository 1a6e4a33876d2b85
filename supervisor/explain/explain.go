package explain

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// maxRestarts is how many restarts of a container are told.
	maxRestarts = 5
	// maxSteps bounds the steps of one chapter: the oldest give way.
	maxSteps = 20
	// recent is for how long a pod that was restarted is not well, though it runs.
	recent = time.Hour
)

// Story is why a pod is as it is.
type Story struct {
	Pod string `json:"pod"`
	UID string `json:"uid"`
	// Well says that there is nothing that a person has to look at: the pod is ready or has succeeded, nothing waits, and
	// the last restart was more than an hour ago.
	Well bool `json:"well"`
	// Summary is how the pod is and why, in one sentence without the pod's name.
	Summary    string      `json:"summary"`
	Containers []Container `json:"containers,omitempty"` // those that have a story
	// Steps are what has happened to the pod as a whole, but for hindrances that are over.
	Steps []Step `json:"steps,omitempty"`
}

// Container is the story of one container.
type Container struct {
	Name     string `json:"name"`
	Restarts int    `json:"restarts"` // over the life of the pod
	// Told are the newest of them, oldest first. The last one may have no start yet.
	Told []Restart `json:"told,omitempty"`
	// Now is how the container is, in one sentence without its name.
	Now string `json:"now"`
	// Next is when what it waits for is tried again; zero if that is not known, or nothing is.
	Next time.Time `json:"next,omitzero"`
}

// Restart is why one run of a container ended, and what followed, in the order of time.
type Restart struct {
	// Why is the text of the step that was the cause of what followed, and Time when that was.
	Why   string    `json:"why"`
	Time  time.Time `json:"time"`
	Steps []Step    `json:"steps"`
}

// restartOf tells an end by its steps. One that was well is not why a container that was done began again: what all of the pod began
// again for is, unless that is this very end.
func restartOf(steps []Step) Restart {
	r := Restart{Steps: bounded(steps)}
	exit, again := uint64(0), r.over()
	for _, s := range steps {
		switch kind := event.Kind(s.Kind); {
		case r.Why == "" && !beside[kind]:
			r.Why, r.Time = s.Text, s.Time
			if kind == event.ContainerSucceeded {
				exit = s.Seq
			}
		case exit > 0 && again && begins[kind] && s.By != exit:
			r.Why, r.Time, exit = s.Text, s.Time, 0
		case kind == event.PodRestarting && strings.HasPrefix(r.Why, allBegin):
			r.Why = s.Text // which says by whom
		}
	}
	return r
}

// over reports whether the container was started again.
func (r *Restart) over() bool {
	n := len(r.Steps)
	return n > 0 && r.Steps[n-1].Kind == string(event.ContainerStarted)
}

// begins are the kinds of events by which all of a pod begins again.
var begins = map[event.Kind]bool{event.HostRebooted: true, event.SandboxChanged: true, event.PodRestarting: true}

// beside are the kinds that tell of what follows, or of what went on beside it, but are no cause.
var beside = map[event.Kind]bool{
	event.PodRecovered: true, event.EngineUnavailable: true, event.ContainerStarted: true, event.ContainerBackOff: true,
	event.ContainerAdded: true,
}

// Step is something that was seen or done.
type Step struct {
	Time time.Time `json:"time"`           // of the last, if it was so several times in a row
	Text string    `json:"text"`           // a sentence without its subject's name
	Kind string    `json:"kind"`           // of the event
	Seq  uint64    `json:"seq"`            // of the event
	By   uint64    `json:"by,omitempty"`   // of the event that caused it
	Seen int       `json:"seen,omitempty"` // how often it was so, if more than once
}

// Of tells the story of a pod that is there, at the instant now. The events are those of its name, in the order of their
// numbers.
func Of(s *supervisor.Snapshot, events []event.Event, now lifecycle.Instant) Story {
	events = ofUID(events, s.Facts.UID)
	t := teller{snapshot: s, events: events, now: now}
	story := Story{Pod: s.Pod.Name, UID: s.Facts.UID, Steps: t.podSteps()}
	for i := range s.Status.InitContainerStatuses {
		t.add(&story, &s.Status.InitContainerStatuses[i])
	}
	for i := range s.Status.ContainerStatuses {
		t.add(&story, &s.Status.ContainerStatuses[i])
	}
	for i := range s.Status.EphemeralContainerStatuses {
		t.add(&story, &s.Status.EphemeralContainerStatuses[i])
	}
	story.Summary, story.Well = t.summary(&story)
	return story
}

// refused is the story of a pod that was not accepted.
func refused(e *event.Event) Story {
	summary := "was refused: " + oneLine(e.Fields["error"])
	if hint := oneLine(e.Fields["hint"]); hint != "" {
		summary += "; to hint it, " + hint
	}
	return Story{Pod: e.Pod, Summary: summary, Steps: []Step{{Time: e.Time, Text: podSentence(e), Kind: string(e.Kind), Seq: e.Seq}}}
}

// Gone tells the story of the newest pod of a name that is there no more, or never came to be, of the events that are kept;
// false if none are.
func Gone(events []event.Event) (Story, bool) {
	if newest := len(events) - 1; newest >= 0 && events[newest].Kind == event.PodRejected {
		return refused(&events[newest]), true
	}
	last := len(events) - 1
	for last >= 0 && events[last].UID == "" {
		last--
	}
	if last < 0 {
		return Story{}, false
	}
	uid := events[last].UID
	events = ofUID(events, uid)
	t := teller{events: events, now: lifecycle.Instant{Wall: events[len(events)-1].Time}}
	story := Story{Pod: events[0].Pod, UID: uid, Well: true, Summary: "is gone", Steps: t.podSteps()}
	var names []string
	for _, e := range events {
		if e.Container != "" && !slices.Contains(names, e.Container) {
			names = append(names, e.Container)
		}
	}
	for _, name := range names {
		c := Container{Name: name, Told: t.restarts(name, false), Now: "It is gone."}
		c.Restarts = max(0, t.starts(name)-1)
		if len(c.Told) > 0 {
			story.Containers = append(story.Containers, c)
		}
	}
	return story, true
}

func ofUID(events []event.Event, uid string) []event.Event {
	var own []event.Event
	for _, e := range events {
		if e.UID == uid {
			own = append(own, e)
		}
	}
	return own
}

// teller is one story in the making.
type teller struct {
	snapshot *supervisor.Snapshot // nil: the pod is gone
	events   []event.Event
	now      lifecycle.Instant
}

// add adds the story of a container, if it has one.
func (t *teller) add(s *Story, c *lifecycle.ContainerStatus) {
	told := Container{Name: c.Name, Restarts: c.RestartCount, Told: t.restarts(c.Name, c.RestartCount == 0)}
	if n := len(told.Told); n > 0 && t.done(c) {
		told.Told[n-1].Steps = upToTheEnd(told.Told[n-1].Steps, c.State.Terminated.ExitCode)
	}
	told.Now = t.state(c)
	if in, known := lifecycle.NextTry(t.snapshot.Pod, t.snapshot.Facts, c.Name, t.now); known {
		told.Next = t.now.Wall.Add(in).UTC()
	}
	if len(told.Told) > 0 || !t.fine(c) {
		s.Containers = append(s.Containers, told)
	}
}

// upToTheEnd leaves out what happened to the pod after the end of a container that is not started again. What may have killed it may be
// told after that: it is chance what is seen first.
func upToTheEnd(steps []Step, code int) []Step {
	killed := code == 128+int(unix.SIGKILL) || code == 255
	for n := len(steps); n > 0; n-- {
		switch kind := event.Kind(steps[n-1].Kind); {
		case kind == event.ContainerSucceeded, kind == event.ContainerFailed, kind == event.ContainerStartFailed:
			return steps[:n]
		case killed && kind != event.PodRecovered && kind != event.HostRebooted:
			return steps[:n]
		}
	}
	return steps
}

// starts is how many starts of a container are known.
func (t *teller) starts(container string) int {
	n := 0
	for _, e := range t.events {
		if e.Container == container && e.Kind == event.ContainerStarted {
			n++
		}
	}
	return n
}

// restarts are the newest ends of a container's runs, each with what led to it and what followed, up to the next start. What
// an untold start was preceded by is told too, as long as the container has not run: an image that is not to be had. Of a
// container that was never restarted nothing before its start can be an end.
func (t *teller) restarts(container string, never bool) []Restart {
	var all []Restart
	var steps []Step
	run := run{unborn: never}
	ending := false // the pod is: what starts after that was under way before
	added := false  // it is an ephemeral container
	end := func() {
		if len(steps) > 0 && run.eventful {
			all = append(all, restartOf(steps))
		}
		steps = nil
	}
	for i := range t.events {
		e := &t.events[i]
		if e.Container != container && (e.Container != "" || !aboutAll[e.Kind]) {
			continue
		}
		if e.Kind == event.ContainerAdded { // what was before is not its story, nor is a restart of all containers
			added, steps, run.eventful = true, nil, false
		}
		if added && e.Kind == event.PodRestarting {
			continue
		}
		if text := run.tell(e); text != "" {
			steps = inTime(appendStep(steps, e, text))
		}
		ending = ending || ends[e.Kind]
		if e.Kind == event.ContainerStarted && e.Container == container && !ending {
			end()
			run = begun(e)
		}
	}
	end()
	return all[max(0, len(all)-maxRestarts):]
}

// aboutAll are the kinds of events of a pod that are part of its containers' stories.
var aboutAll = map[event.Kind]bool{
	event.PodRecovered: true, event.HostRebooted: true, event.SandboxChanged: true, event.PodRestarting: true,
	event.PodStopping: true, event.PodEvicted: true, event.PodDeadlineExceeded: true, event.EngineUnavailable: true,
}

// ends are the kinds of events after which nothing of a pod is started.
var ends = map[event.Kind]bool{event.PodStopping: true, event.PodEvicted: true, event.PodDeadlineExceeded: true}

// podSteps are the steps of the pod as a whole: why it cannot begin, or has to end, and restarts of what is around it.
func (t *teller) podSteps() []Step {
	var steps []Step
	for i := range t.events {
		e := &t.events[i]
		switch {
		case e.Container != "":
		case e.Kind == event.SandboxReady: // what hindered it is over
			steps = slices.DeleteFunc(steps, func(s Step) bool {
				return s.Kind == string(event.SandboxFailed) || s.Kind == string(event.VolumeFailed)
			})
		default:
			if text := podSentence(e); text != "" {
				steps = appendStep(steps, e, text)
			}
		}
	}
	return bounded(steps)
}

// appendStep adds a step, or counts it where the one before was the same.
func appendStep(steps []Step, e *event.Event, text string) []Step {
	if n := len(steps); n > 0 && steps[n-1].Kind == string(e.Kind) && steps[n-1].Text == text {
		last := &steps[n-1]
		last.Seen = max(last.Seen, 1) + 1
		last.Time, last.Seq = e.Time, e.Seq
		return steps
	}
	return append(steps, Step{Time: e.Time, Text: text, Kind: string(e.Kind), Seq: e.Seq, By: e.Cause})
}

// inTime puts an end that nobody saw, as the daemon was away, before the daemon's return.
func inTime(steps []Step) []Step {
	for i := len(steps) - 1; i > 0 && steps[i-1].Kind == string(event.PodRecovered) && steps[i].Time.Before(steps[i-1].Time); i-- {
		steps[i-1], steps[i] = steps[i], steps[i-1]
	}
	return steps
}

func bounded(steps []Step) []Step { return steps[max(0, len(steps)-maxSteps):] }

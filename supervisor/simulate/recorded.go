package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// offBefore is how long the host is taken to be off before a boot after a power loss, whose time is not known.
	offBefore = 30 * time.Second
	// downBefore is how long the daemon is taken to be down before it recovers a pod.
	downBefore = 5 * time.Second
	// startUp bounds the time from the start of a run to a first failure that belongs to its start-up, if nothing else shows it.
	startUp = 10 * time.Second
	// moreThanSeen is added to a time for which probes were seen to fail, but at most half of the time between two of them: the next one
	// may have succeeded.
	moreThanSeen = time.Second
)

// Recorded returns the scenario of what the events of a pod report, from the first one until a time, and for people what it leaves out.
// The events must be in their order. The scenario is for another definition of the pod: what the definition decides, such as the times of
// restarts and stops because of probes, is not in it. Of a longer time, the scenario has the last 366 days.
//
// Events do not report everything: a run that was stopped because of a probe has failing probes for the time that was seen.
func Recorded(pod *spec.Pod, events []api.Event, until time.Time) (*Scenario, []string) {
	r := recorder{
		pod: pod, scenario: &Scenario{}, containers: map[string]*recorded{}, left: map[string]bool{},
		pulled: map[string]bool{},
	}
	events, until = inOrder(events, until)
	oldest := until.Add(-maxFor)
	r.start = oldest
	if len(events) > 0 {
		r.start = later(events[0].Time, oldest)
	}
	r.last = r.start
	for i := range events {
		e := &events[i]
		if e.Kind == api.EventImagePulling {
			r.pulled[e.Fields["image"]] = true
		}
		switch {
		case e.Container != "" && pod.Container(e.Container) == nil:
			r.left[fmt.Sprintf("container %q, which the pod does not have", e.Container)] = true
			continue
		case e.Time.Before(oldest):
			r.left["events from more than 366 days before the end"] = true
			r.beforeStart(e)
		case e.Container != "":
			r.ofContainer(e)
		default:
			r.ofPod(e)
		}
		r.last = later(r.last, e.Time)
	}
	r.scenario.For = text(min(max(until.Sub(r.start), time.Second), maxFor))
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if o := r.containers[c.Name]; o != nil {
			if !o.run.from.IsZero() {
				r.end(o, &ContainerRun{}, time.Time{})
			}
			r.registry(o)
			r.scenario.Containers = append(r.scenario.Containers, o.Container)
		}
	}
	slices.SortStableFunc(r.scenario.Events, func(a, b Happening) int { return cmp.Compare(a.At.Duration(), b.At.Duration()) })
	return r.scenario, slices.Sorted(maps.Keys(r.left))
}

// inOrder returns events, and the time until which they were recorded, as if the wall clock was never set back: no event but an exit is
// before an earlier one. The daemon reports an exit with its own time, which may be before that of its recovery.
func inOrder(events []api.Event, until time.Time) ([]api.Event, time.Time) {
	var last time.Time
	var back time.Duration // by which the clock is set back
	next := func(t, least time.Time) time.Time {
		if !t.Before(last) {
			back = 0 // it is not any more
		}
		if t = t.Add(back); t.Before(least) {
			back += least.Sub(t)
			t = least
		}
		last = later(last, t)
		return t
	}
	events = slices.Clone(events)
	started := map[string]time.Time{}
	for i := range events {
		e := &events[i]
		least := last
		if e.Kind == api.EventContainerSucceeded || e.Kind == api.EventContainerFailed {
			least = started[e.Container]
		}
		e.Time = next(e.Time, least)
		if e.Kind == api.EventContainerStarted {
			started[e.Container] = e.Time
		}
	}
	return events, next(until, last)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// recorder makes a scenario of events.
type recorder struct {
	pod        *spec.Pod
	scenario   *Scenario
	containers map[string]*recorded
	left       map[string]bool // what is left out
	pulled     map[string]bool // images of which a pull has begun

	start, last time.Time // of the scenario, and of the events so far
	shutdown    time.Time // of the host; zero: it is not being shut down
	begun       time.Time // when the host was booted, or the daemon was started after it had stopped its pods
	exited      time.Time // the newest exit
	round       time.Time // when the newest round of starts began
	started     time.Time // the newest start
}

// recorded is a container while events are read.
type recorded struct {
	Container

	run        recordedRun
	exited     time.Time // its newest exit
	image      time.Time // when the image of the next run was present; zero: not known
	pulling    time.Time
	failed     time.Time // the first pull that failed; zero: none
	lastFailed time.Time
}

// recordedRun is a run that has not ended. From is zero: there is none.
type recordedRun struct {
	from     time.Time
	takes    time.Duration // that the start took; 0: not known
	stop     time.Time     // zero: it was not stopped
	why      api.EventKind
	ignores  bool // it was killed after its grace period
	failures map[string][]failure
}

// failure is a probe that failed.
type failure struct {
	at    time.Time
	count int // of failures in a row
}

// text is a duration of a scenario, in the bounds of one.
func text(d time.Duration) Duration { return Duration(offset(min(max(d, 0), maxFor))) }

// parsed is a duration of an event.
func parsed(s string) time.Duration { return Duration(s).Duration() }

// at is a time of the scenario.
func (r *recorder) at(t time.Time) Duration { return text(t.Sub(r.start)) }

func (r *recorder) happens(at time.Time, h Happening) {
	h.At = r.at(at)
	if kind := h.kind(); slices.Contains(kind.Fields, "pod") {
		h.Pod = r.pod.Name
	}
	r.scenario.Events = append(r.scenario.Events, h)
}

// beforeStart follows which containers run at the start, of an event from before it.
func (r *recorder) beforeStart(e *api.Event) {
	switch e.Kind { //nolint:exhaustive // the others do not change what runs
	case api.EventContainerStarted:
		r.container(e.Container).begin(r.start)
	case api.EventContainerSucceeded, api.EventContainerFailed:
		r.container(e.Container).run = recordedRun{}
	case api.EventHostRebooted:
		for _, o := range r.containers {
			o.run = recordedRun{}
		}
	}
}

// off adds an event that lasts until a time, from at most a duration before it, but after the event that came first: what is requested at
// the instant of a crash is lost.
func (r *recorder) off(event string, until time.Time, before time.Duration) {
	at := later(until.Add(-before), r.last.Add(time.Millisecond))
	r.happens(at, Happening{Event: event, For: text(max(until.Sub(at), time.Millisecond))})
}

// ofPod adds an event of the pod.
func (r *recorder) ofPod(e *api.Event) {
	switch e.Kind { //nolint:exhaustive // the others follow from these, and from the definition
	case api.EventSandboxReady, api.EventPodRestarting:
		r.round = e.Time
		r.forgetImages()
	case api.EventPodStopping:
		r.happens(e.Time, Happening{Event: "stop", Grace: text(parsed(e.Fields["grace"]))})
	case api.EventPodRestartRequested:
		r.happens(e.Time, Happening{Event: "restart"})
	case api.EventPodStartRequested:
		if e.Fields["by"] != lifecycle.ByStart { // otherwise the boot starts it
			r.happens(e.Time, Happening{Event: "start"})
		}
		if e.Fields["by"] == lifecycle.ByDaemonStart {
			r.begun = e.Time
		}
	case api.EventNodeShutdown:
		if e.Fields["by"] == lifecycle.ByShutdown {
			r.shutdown = e.Time
		} else {
			r.happens(e.Time, Happening{Event: "stop"})
		}
	case api.EventHostRebooted:
		r.boot(e)
	case api.EventPodRecovered:
		if e.Time.After(r.begun) {
			r.off("daemonCrash", e.Time, downBefore)
		}
		r.forgetImages()
	case api.EventConditionMet:
		r.condition(e)
	case api.EventDefinitionChanged:
		r.left["updates (containers that they restarted are restarted on request)"] = true
	case api.EventPodEvicted, api.EventSandboxFailed, api.EventSandboxChanged, api.EventVolumeFailed, api.EventEngineUnavailable,
		api.EventStateNotDurable, api.EventPodQuarantined, api.EventPodRejected, api.EventPodJobEnded:
		r.left[fmt.Sprintf("events with the reason %s", e.Reason)] = true
	}
}

// forgetImages forgets since when containers could start: what has happened delays them.
func (r *recorder) forgetImages() {
	for _, o := range r.containers {
		o.image = time.Time{}
	}
}

// boot adds the reboot or the power loss before a boot. What ran then is lost, or was stopped.
func (r *recorder) boot(e *api.Event) {
	switch {
	case !r.shutdown.IsZero():
		from := r.shutdown
		if r.exited.After(from) {
			from = r.exited
		}
		r.happens(r.shutdown, Happening{Event: "reboot", For: text(max(e.Time.Sub(from), time.Millisecond))})
	default:
		r.off("powerCut", e.Time, offBefore)
	}
	r.shutdown, r.begun = time.Time{}, e.Time
	for _, o := range r.containers {
		if !o.run.from.IsZero() {
			r.end(o, &ContainerRun{}, time.Time{})
		}
	}
}

// condition adds when a condition of waitFor was met first.
func (r *recorder) condition(e *api.Event) {
	name, after := e.Fields["condition"], parsed(e.Fields["duration"])
	known := after == 0 // those that are not listed are met at once
	for _, c := range r.scenario.Conditions {
		known = known || c.Condition == name
	}
	if !known && slices.Contains(r.pod.WaitFor, name) && spec.ParseWaitCondition(name).Kind != spec.WaitPod {
		r.scenario.Conditions = append(r.scenario.Conditions, Condition{Condition: name, MetAfter: text(after)})
	}
}

// container returns what is recorded of a container.
func (r *recorder) container(name string) *recorded {
	o := r.containers[name]
	if o == nil {
		o = &recorded{Container: Container{Pod: r.pod.Name, Name: name}}
		r.containers[name] = o
	}
	return o
}

// ofContainer adds an event of a container.
func (r *recorder) ofContainer(e *api.Event) {
	o := r.container(e.Container)
	switch e.Kind { //nolint:exhaustive // the others follow from these, and from the definition
	case api.EventImagePresent:
		if image := e.Fields["image"]; image == r.pod.Container(o.Name).Image && !r.pulled[image] {
			o.ImagePresent = true
		}
		o.image = e.Time
		r.registry(o)
	case api.EventImagePulling:
		o.pulling = e.Time
	case api.EventImagePulled:
		if took := parsed(e.Fields["duration"]); o.PullTakes == "" && took > 0 {
			o.PullTakes = text(took)
		}
		o.image = e.Time
		r.registry(o)
	case api.EventImagePullFailed:
		if o.lastFailed = e.Time; o.failed.IsZero() {
			o.failed = e.Time
			if !o.pulling.IsZero() {
				o.failed = o.pulling
			}
		}
	case api.EventContainerStarted:
		if !o.run.from.IsZero() {
			r.end(o, &ContainerRun{Lasts: text(e.Time.Sub(o.run.from))}, e.Time) // its exit is not known
		}
		o.begin(e.Time)
		if from := o.image; !from.IsZero() {
			if !o.exited.After(r.round) {
				from = later(from, r.started) // the first start in a round waits for that of the container before
			}
			o.run.takes = e.Time.Sub(from)
		}
		o.image, r.started = time.Time{}, e.Time
	case api.EventContainerStartFailed:
		o.add(&ContainerRun{StartError: e.Fields["error"]})
	case api.EventContainerCreateFailed:
		r.left["containers that could not be created"] = true
	case api.EventProbeFailed:
		if o.run.failures != nil {
			count, _ := strconv.Atoi(e.Fields["count"])
			probe := map[string]lifecycle.ProbeKind{
				"Startup": lifecycle.ProbeStartup, "Liveness": lifecycle.ProbeLiveness, "Readiness": lifecycle.ProbeReadiness,
			}[e.Fields["probe"]]
			o.run.failures[string(probe)] = append(o.run.failures[string(probe)], failure{e.Time, count})
		}
	case api.EventRestartRequested:
		r.happens(e.Time, Happening{Event: "restart", Container: e.Container})
	case api.EventContainerChanged:
		r.happens(e.Time, Happening{Event: "restart", Container: e.Container})
		o.stopped(e)
	case api.EventContainerKilled:
		o.run.ignores = e.Fields["grace"] != ""
		o.stopped(e)
	case api.EventContainerStopping, api.EventContainerLivenessFailed, api.EventContainerStartupFailed, api.EventContainerPostStartFailed,
		api.EventContainerSandboxChanged, api.EventContainerDropped:
		o.stopped(e)
	case api.EventContainerSucceeded, api.EventContainerFailed:
		r.exit(o, e)
	}
}

// begin begins a run.
func (o *recorded) begin(from time.Time) {
	o.run = recordedRun{from: from, failures: map[string][]failure{}}
}

// stopped records that the run is stopped.
func (o *recorded) stopped(e *api.Event) {
	if o.run.stop.IsZero() {
		o.run.stop, o.run.why = e.Time, e.Kind
	}
}

// registry adds the time in which the image could not be pulled.
func (r *recorder) registry(o *recorded) {
	if !o.failed.IsZero() {
		r.happens(o.failed, Happening{Event: "registryDown", For: text(o.lastFailed.Sub(o.failed) + moreThanSeen)})
	}
	o.failed, o.pulling = time.Time{}, time.Time{}
}

// exit adds a run that has exited.
func (r *recorder) exit(o *recorded, e *api.Event) {
	r.exited, o.exited = e.Time, e.Time
	if o.run.from.IsZero() {
		o.begin(r.start) // its start is not known any more
	}
	var run ContainerRun
	code, _ := strconv.ParseInt(e.Fields["code"], 10, 64)
	switch oom := e.Fields["reason"] == string(lifecycle.ReasonOOMKilled); {
	case oom || o.run.stop.IsZero():
		run.Lasts, run.ExitCode, run.OOMKilled = text(e.Time.Sub(o.run.from)), code, oom
	case o.run.ignores:
		run.IgnoresStop = true
	default:
		if took := e.Time.Sub(o.run.stop); took >= time.Millisecond {
			run.StopTakes = text(took)
		}
		if code != 143 && e.Fields["reason"] != string(lifecycle.ReasonStatusUnknown) {
			run.StopExitCode = &code
		}
	}
	r.end(o, &run, e.Time)
}

// end adds a run with the results of its probes. The time is that of its exit, or zero.
func (r *recorder) end(o *recorded, run *ContainerRun, exit time.Time) {
	byProbe := o.run.why == api.EventContainerLivenessFailed || o.run.why == api.EventContainerStartupFailed
	_, inStartup := o.run.failures[string(lifecycle.ProbeStartup)] // the other probes run after that
	ready, hangs := time.Duration(0), time.Duration(0)
	for _, probe := range slices.Sorted(maps.Keys(o.run.failures)) {
		for _, g := range groups(o.run.failures[probe]) {
			begin, end := g.first.Sub(o.run.from), g.last.Sub(o.run.from)
			last := byProbe && probe != string(lifecycle.ProbeReadiness) && !g.last.Add(g.gap).Before(o.run.stop)
			switch {
			case begin <= max(g.gap+g.gap/2, startUp) && (!inStartup || probe == string(lifecycle.ProbeStartup)):
				ready = max(ready, end+margin(g.gap))
			case last:
				hangs = begin
			default:
				a := ProbeAnswer{Probe: probe, From: r.at(g.first), To: r.at(g.last.Add(max(g.gap, moreThanSeen))), Fails: true}
				if a.To.Duration() > a.From.Duration() { // otherwise it is at the end of the longest scenario
					o.Probes = append(o.Probes, a)
				}
			}
		}
	}
	if byProbe && ready == 0 && hangs == 0 { // the failures are not kept any more
		ready = o.run.stop.Sub(o.run.from) + moreThanSeen
	}
	if ready > 0 {
		run.ReadyAfter = text(ready)
	}
	if after := text(hangs); after.Duration() > run.ReadyAfter.Duration() {
		run.HangsAfter = after
	}
	if !exit.IsZero() && run.Lasts != "" && ready > run.Lasts.Duration() {
		run.ReadyAfter = run.Lasts // it exited before
	}
	if o.run.takes >= time.Millisecond {
		run.StartTakes = text(o.run.takes)
	}
	o.run = recordedRun{}
	o.add(run)
}

// margin returns what is added to a time for which probes were seen to fail with this time between two of them; 0: not known.
func margin(gap time.Duration) time.Duration {
	if gap == 0 {
		return moreThanSeen
	}
	return min(gap/2, moreThanSeen)
}

// group is failures of a probe in a row.
type group struct {
	first, last time.Time
	gap         time.Duration // between two of them; 0: not known
}

// groups divides failures where the probe has succeeded in between.
func groups(list []failure) []group {
	var out []group
	for i, f := range list {
		n := len(out)
		if n == 0 || f.count <= list[i-1].count {
			out = append(out, group{first: f.at, last: f.at})
			continue
		}
		g := &out[n-1]
		g.gap = f.at.Sub(g.last) / time.Duration(f.count-list[i-1].count)
		if g.last = f.at; i == 1 || list[i-2].count >= list[i-1].count {
			g.first = g.first.Add(-g.gap * time.Duration(list[i-1].count-1)) // the ones before are not kept
		}
	}
	return out
}

// add adds a run. Equal runs in a row are one entry.
func (o *recorded) add(run *ContainerRun) {
	if n := len(o.Runs); n > 0 {
		last := o.Runs[n-1]
		if last.Times = 0; reflect.DeepEqual(last, *run) && o.Runs[n-1].Times < maxTimes {
			o.Runs[n-1].Times = max(o.Runs[n-1].Times, 1) + 1
			return
		}
	}
	o.Runs = append(o.Runs, *run)
}

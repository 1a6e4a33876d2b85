package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	defaultFor = 30 * time.Minute
	// maxEntries bounds what [Pods] keeps.
	maxEntries = 1_000_000
)

// Options are the options of [Pods]. The zero value simulates 30 minutes in which nothing fails.
type Options struct {
	// For is the time that is simulated; 0: that of the scenario.
	For time.Duration
	// Scenario is what happens; nil: nothing fails.
	Scenario *Scenario
	// MaxStarts limits how many containers start at the same time, as pods.maxParallelStarts does; 0: there is no limit.
	MaxStarts int
	// Read reads the pod file of an update, given by its path; nil: [spec.ParseFile].
	Read func(path string) ([]*spec.Pod, error)
}

// Result is what happened to pods.
type Result struct {
	For      time.Duration
	Pods     []PodResult // in the order of the arguments of [Pods], then those that an update has added
	Timeline []Entry     // in the order of time
	Off      []Span      // when the host was off
	Failures []Failure   // of the assertions of the scenario, in their order
}

// PodResult is what happened to a pod.
type PodResult struct {
	Name   string
	Status lifecycle.Status // at the end
	Ready  []Span           // when the pod was ready
	// Restarts are the times at which containers were restarted, by container.
	Restarts map[string][]time.Duration

	phases []phaseChange
}

// Span is a time from the start of the simulation. Of what has not ended, To is the end of the simulation.
type Span struct{ From, To time.Duration }

type phaseChange struct {
	at    time.Duration
	phase lifecycle.Phase
}

// Entry is an event of a pod, or a change of its phase or readiness, which has no Kind.
type Entry struct {
	At        time.Duration // since the start of the simulation
	Pod       string        // empty: the host
	Container string        // empty: the pod
	Kind      api.EventKind // see the reference of events
	Reason    string        // of the event
	Warning   bool
	Fields    event.Fields
	Restart   int // number of the restart of the container, of an event of its start
	Message   string
}

// Failure is an assertion that does not hold.
type Failure struct {
	Assertion int // index in [Scenario.Assert]
	Message   string

	problem spec.Problem
}

// Error returns what is wrong, with the line of the scenario file if there is one.
func (f Failure) Error() string {
	if f.problem.Line > 0 {
		return f.problem.String()
	}
	return fmt.Sprintf("assert[%d]: %s", f.Assertion, f.Message)
}

// Problem returns the failure as a problem of the scenario file.
func (f Failure) Problem() spec.Problem { return f.problem }

// Pods simulates pods. The error wraps [spec.Problems] if the scenario does not fit the pods. An assertion that does not hold is no error,
// but one of the failures of the result. Equal arguments give equal results.
func Pods(pods []*spec.Pod, o Options) (*Result, error) {
	s := cmp.Or(o.Scenario, &Scenario{})
	r := runner{scenario: s, world: New(), results: map[string]*PodResult{}, updates: map[int][]*spec.Pod{}}
	if err := r.check(pods, &o); err != nil {
		return nil, err
	}
	r.world.Batches, r.world.MaxStarts = true, o.MaxStarts
	r.world.endless = !slices.ContainsFunc(s.Events, func(h Happening) bool { return h.kind().restarts })
	r.result.For = cmp.Or(o.For, s.For.Duration(), defaultFor)
	r.world.booting, r.world.cut = r.boot, r.off
	r.conditions()
	for _, pod := range pods {
		r.add(pod)
	}
	for i := range s.Events {
		r.schedule(&s.Events[i], r.updates[i])
	}
	if err := r.world.Run(r.result.For); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	if r.full {
		return nil, fmt.Errorf("simulate: more than %d events: simulate less time", maxEntries)
	}
	if n := len(r.result.Off); n > 0 && r.result.Off[n-1].To < 0 {
		r.result.Off[n-1].To = r.result.For
	}
	for _, name := range r.order {
		p := r.results[name]
		if n := len(p.Ready); n > 0 && p.Ready[n-1].To < 0 {
			p.Ready[n-1].To = r.result.For
		}
		r.result.Pods = append(r.result.Pods, *p)
	}
	r.assert()
	return &r.result, nil
}

// runner carries out a scenario.
type runner struct {
	scenario *Scenario
	podOf    map[any]string // of a table of the scenario, given as a pointer to it
	world    *World
	result   Result
	order    []string // the names of the pods
	results  map[string]*PodResult
	updates  map[int][]*spec.Pod // the pods of the file of an event, by its index
	seen     uint64              // the newest event that was read
	events   []event.Event       // those that were read last
	full     bool
}

// check checks the scenario, and reads the files of updates.
func (r *runner) check(pods []*spec.Pod, o *Options) error {
	c := checker{scenario: r.scenario, pods: slices.Clone(pods)}
	if r.scenario.file == nil {
		c.check()
	}
	if len(c.problems) > 0 {
		return c.problems
	}
	read := o.Read
	if read == nil {
		read = readOne
	}
	for i := range r.scenario.Events {
		h := &r.scenario.Events[i]
		if h.File == "" {
			continue
		}
		updated, err := read(r.scenario.filePath(h.File))
		if problems, is := errors.AsType[spec.Problems](err); is {
			return problems
		}
		if err != nil {
			c.bad(h, &h.File, err.Error(), "")
			continue
		}
		r.updates[i] = updated
		c.pods = append(c.pods, updated...)
	}
	r.podOf = c.names()
	if len(c.problems) > 0 {
		return c.problems
	}
	return nil
}

// readOne reads a pod file with one pod.
func readOne(path string) ([]*spec.Pod, error) {
	pod, problems, err := spec.ParseFile(path)
	switch {
	case err != nil:
		return nil, err
	case pod == nil:
		return nil, problems
	}
	return []*spec.Pod{pod}, nil
}

// conditions sets the conditions of waitFor that are not about pods, after each boot.
func (r *runner) conditions() {
	w := r.world
	boot := w.boots
	for _, pod := range w.pods {
		for _, condition := range pod.Spec.WaitFor {
			r.meet(condition)
		}
	}
	for _, c := range r.scenario.Conditions {
		w.met[c.Condition] = false
		w.At(w.now+c.MetAfter.Duration(), func() {
			if w.boots == boot {
				w.SetCondition(c.Condition, true)
			}
		})
	}
}

// meet makes a condition of a pod true unless the scenario has it.
func (r *runner) meet(condition string) {
	if spec.ParseWaitCondition(condition).Kind != spec.WaitPod &&
		!slices.ContainsFunc(r.scenario.Conditions, func(c Condition) bool { return c.Condition == condition }) {
		r.world.met[condition] = true
	}
}

// add adds a pod to the world.
func (r *runner) add(pod *spec.Pod) {
	for _, condition := range pod.WaitFor {
		r.meet(condition)
	}
	p := r.world.Add(pod, r.script(pod))
	p.Publish = func(s *lifecycle.Status) { r.published(pod.Name, p, s) }
	if r.results[pod.Name] == nil {
		r.order = append(r.order, pod.Name)
		r.results[pod.Name] = &PodResult{Name: pod.Name, Restarts: map[string][]time.Duration{}}
	}
	p.accept()
}

// script returns what the scenario has of a pod.
func (r *runner) script(pod *spec.Pod) Script {
	s := Script{Runs: map[string][]Run{}, Then: map[string]Run{}, PullTakes: map[string]time.Duration{}, Answers: map[string][]Answer{}}
	for i := range r.scenario.Containers {
		c := &r.scenario.Containers[i]
		if r.podOf[c] != pod.Name {
			continue
		}
		if c.PullTakes != "" {
			s.PullTakes[c.Name] = c.PullTakes.Duration()
		}
		if of := pod.Container(c.Name); of != nil && c.ImagePresent { // nil: an update adds the container
			r.world.images[of.Image] = true
		}
		for _, run := range c.Runs {
			one := run.run()
			s.Then[c.Name] = one
			s.Runs[c.Name] = append(s.Runs[c.Name], slices.Repeat([]Run{one}, int(max(run.Times, 1)))...)
		}
		for _, a := range c.Probes {
			s.Answers[c.Name] = append(s.Answers[c.Name], Answer{
				Kind: lifecycle.ProbeKind(a.Probe), From: a.From.Duration(), To: a.To.Duration(), Failure: a.Fails,
				Latency: a.Latency.Duration(),
			})
		}
	}
	return s
}

// run returns the script of a run.
func (c *ContainerRun) run() Run {
	r := Run{
		Start: Start{Takes: c.StartTakes.Duration()}, Lasts: c.Lasts.Duration(),
		Forever:     c.Lasts == "" && c.ExitCode == 0 && !c.OOMKilled,
		Exit:        lifecycle.Exit{Code: int(c.ExitCode)},
		IgnoresStop: c.IgnoresStop, StopTakes: c.StopTakes.Duration(), StopCode: c.StopExitCode,
		StartsUp: c.ReadyAfter.Duration(), Hangs: c.HangsAfter.Duration(),
		PostStart: Start{Takes: c.PostStartTakes.Duration()}, PreStop: Start{Takes: c.PreStopTakes.Duration()},
	}
	if c.StartError != "" {
		r.Failure = &lifecycle.Failure{Message: c.StartError}
	}
	if c.OOMKilled {
		r.Exit = oomKilled(r.Exit.Code)
	}
	return r
}

// oomKilled is the exit of a run that is out of memory.
func oomKilled(code int) lifecycle.Exit {
	return lifecycle.Exit{Code: cmp.Or(code, 137), Reason: lifecycle.ReasonOOMKilled}
}

// schedule schedules an event.
func (r *runner) schedule(h *Happening, updated []*spec.Pod) {
	w, lasts := r.world, h.lasts()
	during := func(set func(bool)) func() {
		return func() {
			set(true)
			if lasts > 0 {
				w.At(w.now+lasts, func() { set(false) })
			}
		}
	}
	do := map[string]func(){
		"stop":    r.toPod(h, func(p *Pod) { p.stopByUser(h) }),
		"start":   r.toPod(h, func(p *Pod) { p.startByUser() }),
		"restart": r.toPod(h, func(p *Pod) { p.restartByUser(h.Container) }),
		"oomKill": r.toPod(h, func(p *Pod) { p.Exit(h.Container, oomKilled(0)) }),
		"update":  func() { r.update(updated) },
		"reboot":  func() { w.Reboot(lasts) }, "powerCut": func() { w.Cut(lasts, true) },
		"daemonCrash": func() { w.Crash(lasts) },
		"unplug":      during(func(away bool) { w.SetDevice(h.Device, !away) }),
		"clockLeap":   func() { w.JumpClock(h.By.Duration()) },
		"diskFull":    during(w.SetDiskFull), "registryDown": during(w.SetRegistryDown), "engineDown": during(w.SetUnavailable),
	}[h.Event]
	w.At(h.At.Duration(), func() {
		if text := h.kind().host; text != "" {
			r.enter(Entry{At: w.now, Message: text + h.extent()})
		}
		do()
	})
}

// boot records that the host runs again.
func (r *runner) boot() {
	r.result.Off[len(r.result.Off)-1].To = r.world.now
	r.conditions()
}

// off records that the host is off: no pod is ready.
func (r *runner) off() {
	if n := len(r.result.Off); n == 0 || r.result.Off[n-1].To >= 0 { // otherwise it is off already
		r.result.Off = append(r.result.Off, Span{r.world.now, -1})
	}
	for _, p := range r.results {
		if n := len(p.Ready); n > 0 && p.Ready[n-1].To < 0 {
			p.Ready[n-1].To = r.world.now
		}
	}
}

// toPod returns a function for the pod of an event. It does nothing if the pod does not exist then.
func (r *runner) toPod(h *Happening, do func(*Pod)) func() {
	return func() {
		if p := r.world.Find(r.podOf[h]); p != nil {
			do(p)
		}
	}
}

// update applies the pods of a file.
func (r *runner) update(pods []*spec.Pod) {
	for _, pod := range pods {
		for _, condition := range pod.WaitFor {
			r.meet(condition)
		}
		if p := r.world.Find(pod.Name); p != nil {
			p.Update(pod)
		} else {
			r.add(pod)
		}
	}
}

// published records what has happened in a turn of a pod.
func (r *runner) published(name string, p *Pod, s *lifecycle.Status) {
	now, result := r.world.now, r.results[name]
	r.events, _ = r.world.ring.AppendSince(r.events[:0], r.seen)
	for i := range r.events {
		r.record(&r.events[i])
	}
	change := func(message string, warning bool) {
		r.enter(Entry{At: now, Pod: name, Message: message, Warning: warning})
	}
	if result.Status.Phase != s.Phase {
		result.phases = append(result.phases, phaseChange{now, s.Phase})
		if first := len(result.phases) == 1; !s.Phase.Terminal() && (!first || s.Phase != lifecycle.PhasePending) {
			change("Phase "+string(s.Phase), s.Phase == lifecycle.PhaseUnknown)
		}
	}
	n := len(result.Ready)
	was := n > 0 && result.Ready[n-1].To < 0
	switch is := ready(s); {
	case is && !was:
		result.Ready = append(result.Ready, Span{now, -1})
		if !ready(&result.Status) {
			change("Pod is ready", false)
		}
	case !is && (was || ready(&result.Status)):
		if was {
			result.Ready[n-1].To = now // otherwise it is not ready since the host was off
		}
		change("Pod is not ready", !lifecycle.Terminating(p.Spec, p.Facts))
	}
	result.Status = *s
}

// record records an event.
func (r *runner) record(ev *event.Event) {
	r.seen = ev.Seq
	e := Entry{
		At: r.world.now, Pod: ev.Pod, Container: ev.Container, Kind: ev.Kind, Reason: ev.Reason, Warning: ev.Level == api.EventWarning,
		Fields: ev.Fields, Message: ev.Message,
	}
	if ev.Kind == api.EventContainerStarted {
		p := r.world.Find(ev.Pod)
		if result := r.results[ev.Pod]; p != nil {
			if e.Restart = p.Facts.Container(ev.Container).Newest.Restarts; e.Restart > 0 {
				result.Restarts[ev.Container] = append(result.Restarts[ev.Container], r.world.now)
			}
		}
	}
	r.enter(e)
}

// enter adds an entry to the timeline.
func (r *runner) enter(e Entry) {
	if r.full = len(r.result.Timeline) >= maxEntries; !r.full {
		if n := len(r.result.Timeline); n == cap(r.result.Timeline) {
			r.result.Timeline = slices.Grow(r.result.Timeline, max(n, 64)) // append grows by less
		}
		r.result.Timeline = append(r.result.Timeline, e)
	}
}

// Package schedule starts pods at the times of their schedule. It decides when a run starts, and which runs are kept: see decide, which is
// a pure function. Each run is a pod of its own, which the set of pods supervises as any other. Package schedule changes no pod that it
// has not created.
package schedule

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/calendar"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/state"
)

// Pods is the set of pods of a host. [*supervisor.Supervisor] implements it.
type Pods interface {
	Pods() []supervisor.Snapshot
	Changed() <-chan struct{}
	AddStaged(pod *spec.Pod, owner state.Owner, staged supervisor.Staged) (supervisor.Snapshot, error)
	Stop(ctx context.Context, name string, o supervisor.StopOptions) error
	// SetSchedules sets the names of the pods with a schedule.
	SetSchedules(names []string)
}

// Files is the pods directory. [*podfiles.Set] implements it.
type Files interface {
	Files() []podfiles.File
	Changed() <-chan struct{}
	// Known returns the names of the pods that files define or may define; complete is false if there may be others.
	Known() (names map[string]bool, complete bool)
	// Suspended reports whether no pod may be added, because a client deletes all pods.
	Suspended() bool
}

// Options are options of [Schedules].
type Options struct {
	Events *event.Ring
	// States stores up to when runs were started.
	States *States
	// Host identifies the host, so that the delays of runs differ between hosts.
	Host string
	Now  func() time.Time // wall clock; nil: [time.Now]
	Log  *slog.Logger     // nil: discarded
}

// Schedules are the schedules of the pods directory. It is safe for concurrent use.
type Schedules struct {
	files Files
	pods  Pods
	o     Options
	disk  *disk.Caller

	// turn is held while schedules are decided and carried out. It protects everything up to mu.
	turn    sync.Mutex
	loaded  bool
	states  map[string]State // by name of the pod
	entries map[string]*entry
	deleted map[string]*spec.Pod // definitions that are being deleted, by name
	invalid map[string]string    // why schedules are not used, by name of the pod

	mu      sync.Mutex
	decided map[string]Status // without File and Runs, by name of the pod. It is not changed, but replaced
	changed chan struct{}     // closed and replaced when decided changes
}

// entry is what is known of a schedule.
type entry struct {
	definition *spec.Pod
	calendar   *calendar.Calendar
	state      State               // as it is to be saved
	saved      State               // as it is on the disk
	failure    string              // of the newest attempt to save the state; empty: it succeeded
	failed     time.Time           // when that was
	waiting    time.Time           // see facts
	seen       time.Time           // see facts
	loaded     bool                // see facts
	tried      time.Time           // when the newest run was attempted
	refused    []lifecycle.Refusal // why it was rejected, if it is attempted again
}

// Status is a schedule at one moment. It is immutable.
type Status struct {
	Pod    *spec.Pod // the definition
	File   string    // in the pods directory
	Reason api.Reason
	Next   time.Time // when the next run is due; zero: no run is planned
	Last   time.Time // time of the schedule of the last run that it started; zero: none
	Runs   []Run     // the newest first
	// Failure is why the newest run was not started; zero: it was, or a person has started one since.
	Failure Failure
}

// New returns the schedules of a pods directory. They start nothing until [Schedules.Run] is called.
func New(files Files, pods Pods, o Options) *Schedules {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Schedules{
		files: files, pods: pods, o: o, disk: disk.NewCaller(o.Log), entries: map[string]*entry{}, deleted: map[string]*spec.Pod{},
		changed: make(chan struct{}),
		invalid: map[string]string{},
	}
}

const (
	// maxSleep is the longest time until the clock of the host is read again, which may be set. Timers do not follow it.
	maxSleep = 30 * time.Second
	// pace is the least time between two decisions. Pods that start change often.
	pace = 100 * time.Millisecond
	// retry is the time after which states are read or saved, and runs started, again if that has failed.
	retry = 10 * time.Second
)

// Run starts runs until ctx ends. The pods keep running.
func (s *Schedules) Run(ctx context.Context) {
	for {
		files, pods := s.files.Changed(), s.pods.Changed()
		wait := s.pass(ctx)
		if wait < 0 {
			pods = nil // without a schedule, pods are of no interest
		}
		if !pause(ctx, pace, nil, nil) || !pause(ctx, min(wait, maxSleep), files, pods) {
			return
		}
	}
}

// pause waits for a time, which is without end if it is negative, or until one of the channels is closed. It returns false if ctx ends
// before.
func pause(ctx context.Context, d time.Duration, files, pods <-chan struct{}) bool {
	var due <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-files:
	case <-pods:
	case <-ctx.Done():
		return false
	}
	return true
}

// pass decides and carries out all schedules once. It returns the time until the next pass; negative: until a file changes.
func (s *Schedules) pass(ctx context.Context) (wait time.Duration) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.files.Suspended() {
		return retry
	}
	if err := s.load(ctx); err != nil {
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "schedules cannot be read, no run is started", slog.Any("error", err))
		return retry
	}
	scheduled := s.scheduled()
	s.forget(ctx, scheduled)
	names := map[string]bool{} // with those whose file is missing because the directory is lost
	for name := range s.states {
		names[name] = true
	}
	for name := range scheduled {
		names[name] = true
	}
	s.pods.SetSchedules(slices.Sorted(maps.Keys(names)))
	wait = -1
	if len(scheduled) > 0 {
		wait = maxSleep
	}
	runs := runsOf(s.pods.Pods())
	decided := map[string]Status{}
	for _, name := range slices.Sorted(maps.Keys(scheduled)) {
		file := scheduled[name]
		e, err := s.entry(name, file.Definition)
		if err != nil { // the time zone is not installed any more
			s.reject(ctx, name, err)
			continue
		}
		delete(s.invalid, name)
		d := s.turnOf(ctx, e, runs[name])
		if !d.again.IsZero() {
			wait = min(wait, max(0, d.again.Sub(s.o.Now())))
		}
		decided[name] = Status{Pod: file.Definition, Reason: d.reason, Next: d.next, Last: e.state.Last, Failure: e.state.Failure}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(a, b Status) bool {
		return a.Pod == b.Pod && a.Reason == b.Reason && a.Next.Equal(b.Next) && a.Last.Equal(b.Last) && a.Failure.equal(b.Failure)
	}
	if !maps.EqualFunc(s.decided, decided, same) {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	s.decided = decided
	return wait
}

// load reads the states once.
func (s *Schedules) load(ctx context.Context) error {
	if s.loaded {
		return nil
	}
	type found struct {
		states   map[string]State
		problems []error
	}
	f, err := disk.Call(ctx, s.disk, func() (found, error) {
		states, problems, err := s.o.States.load()
		return found{states, problems}, err
	})
	if err != nil {
		return err
	}
	for _, problem := range f.problems {
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "state of a schedule cannot be used", slog.Any("error", problem))
	}
	s.states, s.loaded = f.states, true
	return nil
}

// scheduled returns the files whose pods have a schedule, by name of the pod, except those that are being deleted.
func (s *Schedules) scheduled() map[string]podfiles.File {
	scheduled := map[string]podfiles.File{}
	for _, f := range s.files.Files() {
		if f.Definition != nil && f.Definition.Schedule != nil && f.Reason == "" {
			scheduled[f.Pod] = f
		}
	}
	for name, definition := range s.deleted {
		if scheduled[name].Definition != definition {
			delete(s.deleted, name)
		} else {
			delete(scheduled, name)
		}
	}
	return scheduled
}

// forget drops what is known of schedules without a file, and of those that their valid file does not have any more.
func (s *Schedules) forget(ctx context.Context, scheduled map[string]podfiles.File) {
	maps.DeleteFunc(s.entries, func(name string, _ *entry) bool { _, exists := scheduled[name]; return !exists })
	maps.DeleteFunc(s.invalid, func(name, _ string) bool { _, exists := scheduled[name]; return !exists })
	names, complete := s.files.Known()
	plain := s.plain()
	for name := range s.states {
		if _, exists := scheduled[name]; !exists && (plain[name] || complete && !names[name]) {
			s.drop(ctx, name)
		}
	}
}

// plain returns the names of the pods that have no schedule: each file that defines the pod is valid, and none has a schedule. That of an
// invalid file may be the same as before.
func (s *Schedules) plain() map[string]bool {
	plain := map[string]bool{}
	for _, f := range s.files.Files() {
		others, found := plain[f.Pod]
		plain[f.Pod] = (others || !found) && f.Definition != nil && f.Definition.Schedule == nil
	}
	return plain
}

// drop drops the state of a schedule that does not exist any more.
func (s *Schedules) drop(ctx context.Context, name string) {
	delete(s.entries, name)
	delete(s.states, name)
	if _, err := disk.Call(ctx, s.disk, func() (struct{}, error) { return struct{}{}, s.o.States.remove(name) }); err != nil {
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "state of a schedule not removed", slog.String("pod", name), slog.Any("error", err))
	}
}

// entry returns what is known of a schedule. One that is new, or has other times than before, begins now.
func (s *Schedules) entry(name string, definition *spec.Pod) (*entry, error) {
	e := s.entries[name]
	if e != nil && e.definition == definition {
		return e, nil
	}
	rule := definition.Schedule
	times, err := calendar.Parse(rule.Cron, rule.TimeZone)
	if err != nil {
		return nil, err
	}
	if e == nil {
		e = &entry{state: s.states[name], saved: s.states[name], loaded: true}
		s.entries[name] = e
	}
	e.definition, e.calendar = definition, times
	if e.state.Cron != rule.Cron || e.state.TimeZone != rule.TimeZone {
		e.state = State{Pod: name, Cron: rule.Cron, TimeZone: rule.TimeZone, Since: s.o.Now(), Last: e.state.Last}
		e.saved, e.waiting = State{}, time.Time{}
	}
	return e, nil
}

// reject logs that a schedule is not used, once for each reason.
func (s *Schedules) reject(ctx context.Context, name string, err error) {
	if s.invalid[name] != err.Error() {
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "schedule not used", slog.String("pod", name), slog.Any("error", err))
	}
	s.invalid[name] = err.Error()
}

// turnOf decides what becomes of a schedule now, and carries it out.
func (s *Schedules) turnOf(ctx context.Context, e *entry, runs []Run) decision {
	rule, now := e.definition.Schedule, s.o.Now()
	d := decide(&facts{
		rule: rule, times: e.calendar, since: e.state.Since, saved: e.saved.Since, ahead: e.state.Ahead, loaded: e.loaded,
		delay: s.delay(e.definition), runs: runs, now: now, seen: e.seen, waiting: e.waiting,
	})
	e.loaded = e.loaded && d.reason == api.ReasonClockNotSet
	if !d.found.IsZero() {
		e.state.Last, e.state.Failure = d.found, Failure{}
	}
	e.waiting, e.seen = d.waiting, now
	for _, r := range d.reports {
		s.emit(e.definition.Name, r)
	}
	for _, r := range d.remove {
		s.remove(ctx, r, scheduler(e.definition.Name))
	}
	if !d.missed.IsZero() {
		cause := "startingDeadlineSeconds has passed"
		if tried := e.state.Failure; tried.Scheduled.Equal(d.missed) { // it was due before, and could not be started
			cause += ": " + tried.Cause
		}
		e.state.Failure = Failure{d.missed, cause}
	}
	if !d.start.IsZero() && !s.attempt(e, &d, now) {
		return d // the next daemon starts it
	}
	e.state.Since, e.state.Ahead = d.since, d.ahead
	s.save(ctx, e)
	if e.failure != "" {
		if again := e.failed.Add(retry); d.again.IsZero() || again.Before(d.again) {
			d.again = again
		}
	}
	return d
}

// save saves the state of a schedule if it has changed. If that fails, the runs tell the next daemon which were started, and
// the disk is not written again for [retry].
func (s *Schedules) save(ctx context.Context, e *entry) {
	next := e.state
	now := s.o.Now()
	since := now.Sub(e.failed)
	unchanged := e.saved.Since.Equal(next.Since) && e.saved.Ahead.Equal(next.Ahead) && e.saved.Failure.equal(next.Failure)
	if unchanged || e.failure != "" && since >= 0 && since < retry { // the clock may have been set back
		return
	}
	name := next.Pod
	if _, err := disk.Call(ctx, s.disk, func() (struct{}, error) { return struct{}{}, s.o.States.save(next) }); err != nil {
		if err.Error() != e.failure { // it is repeated
			s.o.Log.LogAttrs(ctx, slog.LevelWarn, "state of a schedule not saved", slog.String("pod", name), slog.Any("error", err))
		}
		e.failure, e.failed = err.Error(), now
		return
	}
	e.saved, e.failure, s.states[name] = next, "", next
}

// delay is how long the runs of a pod are delayed on this host.
func (s *Schedules) delay(definition *spec.Pod) time.Duration {
	limit := uint64(definition.Schedule.JitterSeconds.Duration())
	if limit == 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(s.o.Host + "\x00" + definition.Name))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % limit).Truncate(time.Second)
}

// scheduler is who requests what a schedule does, for people.
func scheduler(pod string) string { return "the schedule of pod " + pod }

// attempt starts the run that is due. If that fails for a reason that may pass, the run stays due and is started again after [retry]. It
// returns false if the daemon is stopping.
func (s *Schedules) attempt(e *entry, d *decision, now time.Time) bool {
	repeated := e.state.Failure.Scheduled.Equal(d.start)
	if since := now.Sub(e.tried); !repeated || since < 0 || since >= retry { // the clock may have been set back
		run, by := e.definition.Run(d.start, false), scheduler(e.definition.Name)
		owner := state.Owner{By: by, Schedule: e.definition.Name, Scheduled: d.start.Unix()}
		_, err := s.pods.AddStaged(run, owner, supervisor.Staged{Refused: e.refused})
		e.tried, e.refused = now, nil
		switch {
		case errors.Is(err, supervisor.ErrLeaving):
			return false
		case err == nil:
			e.state.Last, e.state.Failure = d.start, Failure{}
			s.emit(e.definition.Name, report{
				api.EventScheduleStarted, event.Fields{"run": run.Name, "time": " at " + timeText(d.start), "by": by},
			})
			return true
		case !repeated || e.state.Failure.Cause != err.Error():
			s.emit(e.definition.Name, report{api.EventScheduleFailed, event.Fields{"run": run.Name, "error": err.Error()}})
		}
		e.state.Failure = Failure{d.start, err.Error()}
		if !passes(err) {
			return true
		}
		if refused, is := errors.AsType[*supervisor.RefusedError](err); is {
			e.refused = refused.Refusals
		}
	}
	d.since = d.start.Add(-time.Nanosecond) // the times before are done with
	if again := e.tried.Add(retry); d.again.IsZero() || again.Before(d.again) {
		d.next, d.again = again, again
	}
	return true
}

// passes reports whether the error of a run that was not created may pass without a change of the file or of the configuration. What other
// pods use may become free.
func passes(err error) bool {
	if _, taken := errors.AsType[*supervisor.NameTakenError](err); taken {
		return false
	}
	refused, is := errors.AsType[*supervisor.RefusedError](err)
	return !is || !slices.ContainsFunc(refused.Refusals, func(r lifecycle.Refusal) bool {
		switch r.Reason {
		case lifecycle.ReasonNodePorts, lifecycle.ReasonVolumeTerminating,
			lifecycle.ReasonOutOfCPU, lifecycle.ReasonOutOfMemory, lifecycle.ReasonOutOfEphemeralStorage:
			return false
		}
		return !strings.HasPrefix(string(r.Reason), string(lifecycle.ReasonOutOfHugePages))
	})
}

// StartNow starts a run that a person has requested, beside those of the schedule, and returns its name.
func (s *Schedules) StartNow(pod, by string) (string, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	status, exists := s.Status(pod)
	if !exists {
		return "", supervisor.ErrNotFound
	}
	run := status.Pod.Run(s.o.Now(), true)
	_, err := s.pods.AddStaged(run, state.Owner{By: by, Schedule: pod}, supervisor.Staged{})
	for next := time.Second; next < maxSleep; next += time.Second {
		if _, taken := errors.AsType[*supervisor.NameTakenError](err); !taken {
			break
		}
		run = status.Pod.Run(s.o.Now().Add(next), true) // names have seconds
		_, err = s.pods.AddStaged(run, state.Owner{By: by, Schedule: pod}, supervisor.Staged{})
	}
	if err != nil {
		return "", err
	}
	if e := s.entries[pod]; e != nil {
		e.state.Failure = Failure{} // saved by the pass that follows the change of the pods
	}
	s.emit(pod, report{api.EventScheduleStarted, event.Fields{"run": run.Name, "time": ", requested by " + by, "by": by}})
	return run.Name, nil
}

// Settle waits until no run is being started that was decided before the call.
func (s *Schedules) Settle() {
	s.turn.Lock()
	s.turn.Unlock() //nolint:staticcheck // it was free
}

// Delete deletes the runs of a schedule whose file was removed, and starts no others.
func (s *Schedules) Delete(ctx context.Context, pod, by string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	for _, f := range s.files.Files() {
		if f.Pod == pod && f.Definition != nil {
			s.deleted[pod] = f.Definition
		}
	}
	s.drop(ctx, pod)
	var errs []error
	for _, r := range runsOf(s.pods.Pods())[pod] {
		err := s.pods.Stop(ctx, r.Pod, supervisor.StopOptions{UID: r.UID, Delete: true, By: by})
		if err != nil && !errors.Is(err, supervisor.ErrNotFound) {
			errs = append(errs, fmt.Errorf("delete run %s: %w", r.Pod, err))
		}
	}
	return errors.Join(errs...)
}

// remove deletes a run.
func (s *Schedules) remove(ctx context.Context, r Run, by string) {
	err := s.pods.Stop(ctx, r.Pod, supervisor.StopOptions{UID: r.UID, Delete: true, By: by})
	if err != nil && ctx.Err() == nil && !errors.Is(err, supervisor.ErrNotFound) && !errors.Is(err, supervisor.ErrLeaving) {
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "run not deleted", slog.String("pod", r.Pod), slog.Any("error", err))
	}
}

// emit emits an event of a schedule.
func (s *Schedules) emit(pod string, r report) {
	s.o.Events.Add(event.New(r.kind, time.Now(), pod, r.fields))
}

// List returns the schedules, sorted by name of the pod. One whose file was accepted a moment ago is among them.
func (s *Schedules) List() (list []Status) {
	s.mu.Lock()
	decided := s.decided
	s.mu.Unlock()
	var runs map[string][]Run
	for _, f := range s.files.Files() {
		if f.Definition == nil || f.Definition.Schedule == nil || f.Reason != "" {
			continue
		}
		if runs == nil {
			runs = runsOf(s.pods.Pods())
		}
		status, known := decided[f.Pod]
		if !known || status.Pod != f.Definition {
			last, failure := status.Last, status.Failure
			status = s.preview(f.Definition, last)
			status.Failure = failure
			for _, r := range runs[f.Pod] {
				status.Last = latest(status.Last, r.Scheduled)
			}
		}
		status.File, status.Runs = f.Path, inOrder(runs[f.Pod], s.o.Now())
		slices.Reverse(status.Runs)
		list = append(list, status)
	}
	order.Sort(list, func(a, b Status) int { return cmp.Compare(a.Pod.Name, b.Pod.Name) })
	return list
}

// preview returns the status of a schedule that was not decided yet, as if it began now.
func (s *Schedules) preview(definition *spec.Pod, last time.Time) Status {
	status := Status{Pod: definition, Reason: api.ReasonScheduled, Last: last}
	rule, now := definition.Schedule, s.o.Now()
	if times, err := calendar.Parse(rule.Cron, rule.TimeZone); err == nil {
		d := decide(&facts{rule: rule, times: times, since: now, saved: now, delay: s.delay(definition), now: now})
		status.Reason, status.Next = d.reason, d.next
	}
	return status
}

// Changed returns a channel that is closed when a schedule has changed.
func (s *Schedules) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Status returns the schedule of a pod.
func (s *Schedules) Status(pod string) (Status, bool) {
	list := s.List()
	i := slices.IndexFunc(list, func(status Status) bool { return status.Pod.Name == pod })
	if i < 0 {
		return Status{}, false
	}
	return list[i], true
}

// waiting returns why a container of a pod waits, or the pod itself; empty: none does, or only for the init containers.
func waiting(status *lifecycle.Status) lifecycle.Reason {
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != lifecycle.ReasonPodInitializing {
			return cmp.Or(status.Reason, w.Reason)
		}
	}
	return ""
}

// runsOf returns the runs of schedules by name of the pod, the oldest first.
func runsOf(snapshots []supervisor.Snapshot) map[string][]Run {
	runs := map[string][]Run{}
	for i := range snapshots {
		p := &snapshots[i]
		if p.Owner.Schedule == "" {
			continue
		}
		r := Run{
			Pod: p.Pod.Name, UID: p.Facts.UID, Created: p.Facts.Accepted.Wall, Finished: p.AtRest, Phase: p.Status.Phase,
			Stopped: p.AtRest && p.Status.Phase != lifecycle.PhaseSucceeded && p.Stopped(), deleting: p.Facts.Stop.Delete,
		}
		if !p.Status.Phase.Terminal() {
			r.Waiting = waiting(&p.Status)
		}
		if p.Owner.Scheduled != 0 {
			r.Scheduled = time.Unix(p.Owner.Scheduled, 0)
		}
		if p.AtRest {
			r.Ended = lifecycle.Finished(p.Pod, p.Facts).Wall
		}
		runs[p.Owner.Schedule] = append(runs[p.Owner.Schedule], r)
	}
	for _, list := range runs {
		order.Sort(list, func(a, b Run) int { return a.Created.Compare(b.Created) })
	}
	return runs
}

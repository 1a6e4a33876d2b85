package schedule

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/state"
)

// host has the pods and the pods directory of a host.
type host struct {
	*testing.T
	dir      string // of the states
	now      time.Time
	files    []podfiles.File
	complete bool
	list     []supervisor.Snapshot

	suspended bool
	refuse    error // of AddStaged
	added     []supervisor.Staged
	names     []string
	ring      *event.Ring
	log       strings.Builder
}

func (h *host) Files() []podfiles.File      { return h.files }
func (h *host) Changed() <-chan struct{}    { return nil }
func (h *host) SetSchedules(names []string) { h.names = names }

func (h *host) Known() (names map[string]bool, complete bool) {
	names = map[string]bool{}
	for _, f := range h.files {
		names[f.Pod] = true
	}
	return names, h.complete
}

func (h *host) Suspended() bool { return h.suspended }

func (h *host) Pods() []supervisor.Snapshot { return slices.Clone(h.list) }

func (h *host) AddStaged(pod *spec.Pod, owner state.Owner, staged supervisor.Staged) (supervisor.Snapshot, error) {
	h.added = append(h.added, staged)
	if h.refuse != nil {
		return supervisor.Snapshot{}, h.refuse
	}
	if slices.ContainsFunc(h.list, func(p supervisor.Snapshot) bool { return p.Pod.Name == pod.Name }) {
		return supervisor.Snapshot{}, &supervisor.NameTakenError{Name: pod.Name}
	}
	p := supervisor.Snapshot{Pod: pod, Owner: owner, Facts: lifecycle.Facts{UID: pod.Name, Accepted: lifecycle.Instant{Wall: h.now}}}
	h.list = append(h.list, p)
	return p, nil
}

func (h *host) Stop(_ context.Context, name string, o supervisor.StopOptions) error {
	before := len(h.list)
	h.list = slices.DeleteFunc(h.list, func(p supervisor.Snapshot) bool { return p.Pod.Name == name && o.UID == p.Facts.UID && o.Delete })
	if len(h.list) == before {
		return supervisor.ErrNotFound
	}
	return nil
}

// finish completes all runs.
func (h *host) finish() {
	for i := range h.list {
		h.list[i].AtRest, h.list[i].Status.Phase = true, lifecycle.PhaseSucceeded
	}
}

func (h *host) runs() (names string) {
	for i := range h.list {
		names += " " + h.list[i].Pod.Name
	}
	return strings.TrimSpace(names)
}

func (h *host) events() (kinds []api.EventKind) {
	events, _ := h.ring.Since(0)
	for i := range events {
		if events[i].Pod == "backup" {
			kinds = append(kinds, events[i].Kind)
		}
	}
	return kinds
}

// daemon returns the schedules of a new daemon.
func (h *host) daemon() *Schedules {
	return New(h, h, Options{
		Events: h.ring, States: NewStates(h.dir), Host: "a", Now: func() time.Time { return h.now },
		Log: slog.New(slog.NewTextHandler(&h.log, nil)),
	})
}

// plain defines the pod without a schedule.
func (h *host) plain() {
	h.file(`cron = "0 3 * * *"`)
	h.files[0].Definition.Schedule = nil
}

// file defines the pod with a schedule.
func (h *host) file(text string) {
	h.Helper()
	text = "restartPolicy = \"Never\"\nschedule = { " + text + ", timeZone = \"UTC\" }\n[[containers]]\nname = \"a\"\nimage = \"b\"\n"
	pod, problems := spec.Parse("backup.toml", []byte(text))
	if pod == nil {
		h.Fatal(problems)
	}
	h.files = []podfiles.File{{Path: "/etc/backup.toml", Pod: "backup", Definition: pod, SpecHash: pod.Hash}}
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{
		T: t, dir: filepath.Join(t.TempDir(), "schedules"), now: time.Date(2026, 5, 1, 1, 0, 0, 0, time.UTC), complete: true,
		ring: event.NewRing(100),
	}
	h.file(`cron = "0 3 * * *"`)
	return h
}

func (h *host) at(s *Schedules, day, hour int) time.Duration {
	h.now = time.Date(2026, 5, day, hour, 0, 0, 0, time.UTC)
	return s.pass(h.Context())
}

// TestDaemons: what one daemon has started, no other one starts again, and what it has missed starts once.
func TestDaemons(t *testing.T) {
	h := newHost(t)
	s := h.daemon()
	if wait := h.at(s, 1, 1); wait <= 0 || wait > maxSleep || h.runs() != "" {
		t.Errorf("the next pass is in %v, runs: %s", wait, h.runs())
	}
	h.at(h.daemon(), 1, 3) // another daemon, since the host was off
	const first, second, third = "backup-29626740", "backup-29628180", "backup-29632500"
	if h.runs() != first || !slices.Equal(h.names, []string{"backup"}) {
		t.Fatalf("runs: %s, names: %v", h.runs(), h.names)
	}
	// The daemon was killed before it had saved the time.
	kept := h.dir + ".kept"
	if err := os.CopyFS(kept, os.DirFS(h.dir)); err != nil {
		t.Fatal(err)
	}
	s = h.daemon()
	h.at(s, 2, 3)
	if err := errors.Join(os.RemoveAll(h.dir), os.Rename(kept, h.dir)); err != nil {
		t.Fatal(err)
	}
	s = h.daemon()
	h.at(s, 2, 4)
	if h.runs() != first+" "+second || len(h.events()) != 2 {
		t.Errorf("runs: %s, events: %v", h.runs(), h.events())
	}
	h.finish()
	h.at(h.daemon(), 5, 9)
	if h.runs() != first+" "+second+" "+third || h.events()[2] != api.EventScheduleMissed {
		t.Errorf("runs: %s, events: %v", h.runs(), h.events())
	}
	// A daemon that loses the state begins now.
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	s = h.daemon()
	h.at(s, 20, 9)
	if h.runs() != first+" "+second+" "+third {
		t.Errorf("without a state: %s", h.runs())
	}
	list := s.List()
	if len(list) != 1 || list[0].Runs[0].Pod != third || !list[0].Next.Equal(time.Date(2026, 5, 21, 3, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", list)
	}
}

// TestDisk: a time that cannot be saved is not forgotten, and its run is kept until it is saved.
func TestDisk(t *testing.T) {
	h := newHost(t)
	h.file(`cron = "0 3 * * *", successfulJobsHistoryLimit = 0`)
	s := h.daemon()
	h.at(s, 1, 1)
	if err := errors.Join(os.RemoveAll(h.dir), os.WriteFile(h.dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h.at(s, 1, 3)
	h.finish()
	h.at(s, 1, 4)
	if h.runs() == "" {
		t.Error("the run was deleted although its time is not saved")
	}
	if err := os.Remove(h.dir); err != nil {
		t.Fatal(err)
	}
	h.at(s, 1, 5)
	h.at(s, 1, 6)
	if h.runs() != "" {
		t.Errorf("runs: %s", h.runs())
	}
	h.at(h.daemon(), 1, 7)
	if h.runs() != "" {
		t.Errorf("runs of the next daemon: %s", h.runs())
	}
	// A state that cannot be read starts nothing until it can.
	if err := errors.Join(os.RemoveAll(h.dir), os.WriteFile(h.dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s = h.daemon()
	if wait := h.at(s, 3, 1); wait != retry || h.runs() != "" {
		t.Errorf("%v, runs: %s", wait, h.runs())
	}
}

// killed returns a host whose daemon was killed after it had started a run, and before it saved that, and the next daemon.
func killed(t *testing.T) (*host, *Schedules) {
	t.Helper()
	h := newHost(t)
	h.at(h.daemon(), 1, 1)
	kept := h.dir + ".kept"
	if err := os.CopyFS(kept, os.DirFS(h.dir)); err != nil {
		t.Fatal(err)
	}
	h.at(h.daemon(), 1, 3)
	h.finish()
	if err := errors.Join(os.RemoveAll(h.dir), os.Rename(kept, h.dir)); err != nil {
		t.Fatal(err)
	}
	return h, h.daemon()
}

// TestKilled: a run that was started without being saved is not reported as missed.
func TestKilled(t *testing.T) {
	h, s := killed(t)
	h.at(s, 2, 2)
	if list := s.List(); len(list) != 1 || !list[0].Last.Equal(time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", list)
	}
	h.at(s, 2, 4)
	if want := []api.EventKind{api.EventScheduleStarted, api.EventScheduleStarted}; !slices.Equal(h.events(), want) {
		t.Errorf("events: %v, want %v", h.events(), want)
	}
}

// TestBoots: the next daemon knows up to when runs were started before the clock was set back.
func TestBoots(t *testing.T) {
	h := newHost(t)
	h.at(h.daemon(), 20, 1)
	h.at(h.daemon(), 20, 3)
	h.finish()
	h.at(h.daemon(), 1, 1)
	h.list = nil // runs tell up to when they were started, too
	h.at(h.daemon(), 20, 5)
	if want := []api.EventKind{api.EventScheduleStarted, api.EventScheduleClockSetBack}; !slices.Equal(h.events(), want) {
		t.Errorf("events: %v, want %v", h.events(), want)
	}
}

// TestCreatedBeforeClockSet: a schedule that is created while the clock is not set begins when it is, by this daemon or the next one.
func TestCreatedBeforeClockSet(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		h := newHost(t)
		s := h.daemon()
		h.now = time.Unix(60, 0)
		s.pass(t.Context())
		if list := s.List(); len(list) != 1 || list[0].Reason != api.ReasonClockNotSet {
			t.Errorf("%+v", list)
		}
		if restarted {
			s = h.daemon()
		}
		h.at(s, 1, 14)
		if h.runs() != "" || len(h.events()) > 0 {
			t.Errorf("restarted: %t, runs: %s, events: %v", restarted, h.runs(), h.events())
		}
		if h.at(s, 2, 3); h.runs() != "backup-29628180" || len(h.events()) != 1 {
			t.Errorf("restarted: %t, runs: %s, events: %v", restarted, h.runs(), h.events())
		}
	}
}

// TestKilledBeforeClockSet: a run that was started without being saved is not started again when the next daemon begins before the clock
// is set.
func TestKilledBeforeClockSet(t *testing.T) {
	h, s := killed(t)
	h.now = time.Unix(60, 0)
	s.pass(t.Context())
	h.at(s, 1, 5)
	if want := []api.EventKind{api.EventScheduleStarted}; h.runs() != "backup-29626740" || !slices.Equal(h.events(), want) {
		t.Errorf("runs: %s, events: %v, want %v", h.runs(), h.events(), want)
	}
}

// TestSameTime: a run of a clock that was ahead does not prevent the one of the same time. It is deleted if it has finished.
func TestSameTime(t *testing.T) {
	const started, failed = api.EventScheduleStarted, api.EventScheduleFailed
	for finished, last := range map[bool]api.EventKind{true: started, false: failed} {
		h := newHost(t)
		s := h.daemon()
		h.at(s, 3, 1)
		h.at(s, 3, 3)
		if finished {
			h.finish()
		}
		h.at(s, 1, 1)
		h.at(s, 3, 2)
		h.now = time.Date(2026, 5, 3, 2, 59, 50, 0, time.UTC)
		s.pass(t.Context())
		h.at(s, 3, 3)
		h.at(s, 3, 3)
		events := h.events()
		if got := events[len(events)-1]; got != last {
			t.Errorf("finished: %t, events: %v", finished, events)
		}
		run := h.list[len(h.list)-1]
		if finished && (run.Pod.Name != "backup-29629620" || run.AtRest) {
			t.Errorf("%+v", run)
		}
	}
}

// TestSaveAgain: a disk that is full is not written at each change of a pod.
func TestSaveAgain(t *testing.T) {
	h := newHost(t)
	s := h.daemon()
	h.at(s, 1, 1)
	if err := errors.Join(os.RemoveAll(h.dir), os.WriteFile(h.dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if wait := h.at(s, 1, 3); wait != retry {
		t.Errorf("the next pass is in %v", wait)
	}
	if err := os.Remove(h.dir); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		after time.Duration
		saved bool
	}{{retry - time.Second, false}, {time.Second, true}} {
		h.now = h.now.Add(tc.after)
		s.pass(t.Context())
		if _, err := os.Stat(filepath.Join(h.dir, "backup.json")); (err == nil) != tc.saved {
			t.Errorf("at %v: %v", h.now, err)
		}
	}
	if n := strings.Count(h.log.String(), "state of a schedule not saved"); n != 1 {
		t.Errorf("%d messages: %s", n, h.log.String())
	}
}

// TestTimeZoneRemoved: a schedule whose time zone is not installed any more is reported once.
func TestTimeZoneRemoved(t *testing.T) {
	h := newHost(t)
	s := h.daemon()
	valid := h.files[0].Definition
	for range 2 {
		h.file(`cron = "0 3 * * *"`)
		h.files[0].Definition.Schedule.TimeZone = "Mars/Olympus"
		for hour := range 3 {
			h.at(s, 1, hour)
		}
		h.files[0].Definition = valid
		h.at(s, 1, 3)
	}
	if n := strings.Count(h.log.String(), "schedule not used"); n != 2 { // it was valid in between
		t.Errorf("%d messages: %s", n, h.log.String())
	}
}

// TestFiles: a file that is missing because the directory is lost keeps the state, and one that was removed does not.
func TestFiles(t *testing.T) {
	h := newHost(t)
	s := h.daemon()
	h.at(s, 1, 1)
	path := filepath.Join(h.dir, "backup.json")
	files := h.files
	h.files, h.complete = nil, false
	if wait := h.at(s, 2, 4); wait >= 0 || len(s.List()) != 0 {
		t.Errorf("the next pass is in %v", wait)
	}
	if _, err := os.Stat(path); err != nil || h.runs() != "" || !slices.Equal(h.names, []string{"backup"}) {
		t.Errorf("%v, runs: %s, names: %v", err, h.runs(), h.names)
	}
	h.files, h.complete = files, true
	h.at(s, 2, 5)
	if h.runs() != "backup-29628180" {
		t.Errorf("runs: %s", h.runs())
	}
	h.file(`cron = "30 4 * * *"`) // its times count from now
	h.at(s, 2, 6)
	if h.runs() != "backup-29628180" {
		t.Errorf("runs after a change: %s", h.runs())
	}
	h.files = nil
	h.at(s, 2, 7)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || h.runs() == "" {
		t.Errorf("%v, runs: %s", err, h.runs())
	}
}

// TestScheduleRemoved: a schedule ends when a valid file of its pod has none. One that is added again begins then, and the limits for
// finished pods apply to the runs that are left.
func TestScheduleRemoved(t *testing.T) {
	h := newHost(t)
	s := h.daemon()
	h.at(s, 1, 1)
	path := filepath.Join(h.dir, "backup.json")
	h.files[0].Definition, h.files[0].Reason = nil, api.ReasonInvalidFile
	h.at(s, 2, 1)
	h.plain()
	plain := h.files[0]
	h.file(`cron = "0 3 * * *"`)
	h.files[0].Reason = api.ReasonRejected // two files define the pod
	h.files = append(h.files, plain)
	h.files[1].Reason = api.ReasonRejected
	h.at(s, 2, 2)
	if _, err := os.Stat(path); err != nil || !slices.Equal(h.names, []string{"backup"}) {
		t.Errorf("the file may define the schedule: %v, names: %v", err, h.names)
	}
	h.plain()
	h.files[0].Reason = api.ReasonRejected // by the admission of the host
	h.at(s, 2, 4)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || len(h.names) > 0 {
		t.Errorf("the file has no schedule: %v, names: %v", err, h.names)
	}
	h.file(`cron = "0 3 * * *"`)
	h.at(s, 9, 14)
	if h.runs() != "" || len(h.events()) > 0 {
		t.Errorf("runs of a schedule that was added again: %s, events: %v", h.runs(), h.events())
	}
	if h.at(s, 10, 3); h.runs() != "backup-29639700" {
		t.Errorf("runs: %s", h.runs())
	}
}

func TestRefused(t *testing.T) {
	h := newHost(t)
	s := h.daemon()
	h.at(s, 1, 1)
	h.refuse = supervisor.ErrLeaving
	h.at(s, 1, 3)
	h.refuse = &supervisor.RefusedError{Pod: "backup-1", Refusals: []lifecycle.Refusal{
		{Reason: lifecycle.ReasonOutOfCPU, Message: "Too much"}, {Reason: lifecycle.ReasonPodSecurity, Message: "Too privileged"},
	}}
	h.at(s, 1, 4)
	h.at(s, 1, 5)
	if !slices.Equal(h.events(), []api.EventKind{api.EventScheduleFailed}) {
		t.Errorf("events: %v", h.events())
	}
	h.refuse = nil
	h.at(s, 1, 6)
	if h.runs() != "" {
		t.Errorf("runs: %s", h.runs())
	}
}

// TestRetry: a run that was not created for a reason that may pass stays due until its deadline or the next time, and is reported once.
func TestRetry(t *testing.T) {
	const started, failed, missed = api.EventScheduleStarted, api.EventScheduleFailed, api.EventScheduleMissed
	ports := []lifecycle.Refusal{{Reason: lifecycle.ReasonNodePorts, Message: "in use"}, {Reason: lifecycle.ReasonOutOfMemory}}
	for _, refuse := range []error{errors.New("no space left on device"), &supervisor.RefusedError{Pod: "backup-1", Refusals: ports}} {
		h := newHost(t)
		s := h.daemon()
		after := func(d time.Duration) time.Duration {
			h.now = h.now.Add(d)
			return s.pass(t.Context())
		}
		h.at(s, 1, 1)
		h.refuse = refuse
		if wait := h.at(s, 3, 3); wait != retry {
			t.Errorf("%v: the next pass is in %v", refuse, wait)
		}
		at := h.now
		if status, _ := s.Status("backup"); !status.Next.Equal(at.Add(retry)) || !status.Failure.equal(Failure{at, refuse.Error()}) {
			t.Errorf("%v: %+v", refuse, status)
		}
		if wait := after(time.Second); wait != retry-time.Second || len(h.added) != 1 { // a pod has changed
			t.Errorf("%v: the next pass is in %v, %d attempts", refuse, wait, len(h.added))
		}
		after(retry - time.Second)
		_, isRefused := errors.AsType[*supervisor.RefusedError](refuse)
		if len(h.added) != 2 || (len(h.added[1].Refused) == 2) != isRefused {
			t.Errorf("%v: attempts %+v", refuse, h.added)
		}
		s = h.daemon()
		after(time.Second)
		h.refuse = nil
		after(retry)
		if want := []api.EventKind{missed, failed, started}; !slices.Equal(h.events(), want) || h.runs() != "backup-29629620" {
			t.Errorf("%v: runs: %s, events: %v, want %v", refuse, h.runs(), h.events(), want)
		}
		h.finish()
		h.refuse = refuse
		h.at(s, 4, 3)
		h.refuse = nil
		h.now = time.Date(2026, 5, 5, 3, 0, 0, 0, time.UTC)
		s.pass(t.Context())
		want := []api.EventKind{missed, failed, started, failed, missed, started} // the next time has come
		if !slices.Equal(h.events(), want) || h.runs() != "backup-29629620 backup-29632500" {
			t.Errorf("%v: runs: %s, events: %v, want %v", refuse, h.runs(), h.events(), want)
		}
	}
	h := newHost(t)
	h.file(`cron = "0 3 * * *", startingDeadlineSeconds = 60`)
	s := h.daemon()
	h.at(s, 1, 1)
	h.now = time.Date(2026, 5, 1, 2, 59, 50, 0, time.UTC)
	s.pass(t.Context())
	h.refuse = errors.New("no space left on device")
	for range 10 {
		h.now = h.now.Add(retry)
		s.pass(t.Context())
	}
	h.refuse = nil
	h.at(s, 1, 4)
	if want := []api.EventKind{failed, missed}; !slices.Equal(h.events(), want) || len(h.added) != 7 {
		t.Errorf("with a deadline: events: %v, want %v, %d attempts", h.events(), want, len(h.added))
	}
}

// TestFailure: why the newest run was not started is known until a run starts, also to the next daemon.
func TestFailure(t *testing.T) {
	h := newHost(t)
	h.file(`cron = "0 3 * * *", startingDeadlineSeconds = 3600`)
	s := h.daemon()
	failure := func(s *Schedules) Failure {
		status, ok := s.Status("backup")
		if !ok {
			t.Error("no schedule")
		}
		return status.Failure
	}
	third := func(day int) time.Time { return time.Date(2026, 5, day, 3, 0, 0, 0, time.UTC) }
	h.at(s, 1, 2)
	h.refuse = &supervisor.RefusedError{Pod: "backup-1", Refusals: []lifecycle.Refusal{{Reason: lifecycle.ReasonPodSecurity}}}
	h.at(s, 1, 3)
	refused := Failure{third(1), h.refuse.Error()}
	if got := failure(s); !got.equal(refused) {
		t.Errorf("after a refusal: %+v, want %+v", got, refused)
	}
	s = h.daemon()
	h.at(s, 1, 4)
	if got := failure(s); !got.equal(refused) {
		t.Errorf("with the next daemon: %+v, want %+v", got, refused)
	}
	h.refuse = nil
	h.at(s, 2, 3)
	if got := failure(s); got != (Failure{}) || h.runs() == "" {
		t.Errorf("after a run: %+v, runs: %s", got, h.runs())
	}
	changed := s.Changed()
	h.at(s, 3, 12)
	if got := failure(s); !got.equal(Failure{third(3), "startingDeadlineSeconds has passed"}) {
		t.Errorf("after a deadline: %+v", got)
	}
	select {
	case <-changed:
	default:
		t.Error("the change of the failure was not announced")
	}
	if _, err := s.StartNow("backup", "podstead start"); err != nil {
		t.Error(err)
	}
	h.at(s, 3, 13)
	if got := failure(s); got != (Failure{}) {
		t.Errorf("after a run that a person has requested: %+v", got)
	}
	s = h.daemon()
	h.at(s, 3, 14)
	if got := failure(s); got != (Failure{}) {
		t.Errorf("after that run, with the next daemon: %+v", got)
	}
	h.refuse = errors.New("no space left on device")
	h.at(s, 4, 3)
	h.at(s, 4, 12)
	if got := failure(s); !got.equal(Failure{third(4), "startingDeadlineSeconds has passed: no space left on device"}) {
		t.Errorf("after the deadline of a run that could not be started: %+v", got)
	}
	h.at(s, 4, 13)
	if got := failure(s); !got.equal(Failure{third(4), "startingDeadlineSeconds has passed: no space left on device"}) {
		t.Errorf("an hour later: %+v", got)
	}
}

// TestOutcomes: a run that a person has stopped has not failed, and one that waits does not run.
func TestOutcomes(t *testing.T) {
	stopped := lifecycle.Stop{Requested: lifecycle.Instant{Mono: 5}, ByUser: true}
	deadline := lifecycle.Stop{Requested: lifecycle.Instant{Mono: 5}, Reason: "DeadlineExceeded"}
	waits := func(reasons ...lifecycle.Reason) (list []lifecycle.ContainerStatus) {
		for _, reason := range reasons {
			c := lifecycle.ContainerStatus{State: lifecycle.State{Waiting: &lifecycle.Waiting{Reason: reason}}}
			if reason == "" {
				c.State.Waiting = nil
			}
			list = append(list, c)
		}
		return list
	}
	type status = lifecycle.Status
	for name, tc := range map[string]struct {
		status status
		stop   lifecycle.Stop
		want   Run
	}{
		"succeeded": {status{Phase: lifecycle.PhaseSucceeded}, stopped, Run{Finished: true}},
		"stopped":   {status{Phase: lifecycle.PhaseFailed}, stopped, Run{Finished: true, Stopped: true}},
		"failed":    {status{Phase: lifecycle.PhaseFailed}, deadline, Run{Finished: true}},
		"running":   {status{Phase: lifecycle.PhaseRunning, ContainerStatuses: waits("")}, lifecycle.Stop{}, Run{}},
		"waiting": {
			status{Phase: lifecycle.PhaseRunning, ContainerStatuses: waits("", lifecycle.ReasonImagePullBackOff)},
			lifecycle.Stop{},
			Run{Waiting: lifecycle.ReasonImagePullBackOff},
		},
		"init container runs": {
			status{Phase: lifecycle.PhasePending, InitContainerStatuses: waits(""), ContainerStatuses: waits("PodInitializing")},
			lifecycle.Stop{},
			Run{},
		},
		"waits for a pod": {
			status{Phase: lifecycle.PhasePending, Reason: lifecycle.ReasonWaitingFor, ContainerStatuses: waits("ContainerCreating")},
			lifecycle.Stop{},
			Run{Waiting: lifecycle.ReasonWaitingFor},
		},
	} {
		snapshot := supervisor.Snapshot{
			Pod: &spec.Pod{Name: "backup-1"}, Owner: state.Owner{Schedule: "backup"},
			Status: tc.status, Facts: lifecycle.Facts{Stop: tc.stop}, AtRest: tc.status.Phase.Terminal(),
		}
		got := runsOf([]supervisor.Snapshot{snapshot})["backup"][0]
		if got.Finished != tc.want.Finished || got.Stopped != tc.want.Stopped || got.Waiting != tc.want.Waiting ||
			got.Failed() != (name == "failed") || got.Succeeded() != (name == "succeeded") {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestRequests: a person starts a run at any time, and deletes all runs. No run follows while the file is being removed.
func TestRequests(t *testing.T) {
	h := newHost(t)
	h.file(`cron = "0 3 * * *", suspend = true, jitterSeconds = 3600`)
	s := h.daemon()
	if status, ok := s.Status("backup"); !ok || status.Reason != api.ReasonSuspended || !status.Next.IsZero() { // before the first pass
		t.Errorf("%+v", status)
	}
	run, err := s.StartNow("backup", "podstead start")
	if err != nil || run != "backup-manual-1777597200" || h.list[0].Owner.By != "podstead start" {
		t.Errorf("%s, %v, %+v", run, err, h.list)
	}
	if run, err := s.StartNow("backup", "podstead start"); err != nil || run != "backup-manual-1777597201" {
		t.Errorf("in the same second: %s, %v", run, err)
	}
	if _, err := s.StartNow("other", "podstead start"); !errors.Is(err, supervisor.ErrNotFound) {
		t.Errorf("a pod that does not exist: %v", err)
	}
	h.at(s, 1, 2)
	h.file(`cron = "0 3 * * *"`)
	if err := s.Delete(t.Context(), "backup", "podstead delete"); err != nil || h.runs() != "" {
		t.Errorf("%v, runs: %s", err, h.runs())
	}
	h.at(s, 1, 2)
	h.at(s, 1, 3)
	if h.runs() != "" {
		t.Errorf("runs while the file is removed: %s", h.runs())
	}
	h.file(`cron = "0 3 * * *"`) // another file
	h.at(s, 1, 4)
	h.at(s, 2, 3)
	if h.runs() != "backup-29628180" {
		t.Errorf("runs of a new file: %s", h.runs())
	}
}

// TestJitter: the delay of a pod on a host is always the same, and others have others.
func TestJitter(t *testing.T) {
	h := newHost(t)
	h.file(`cron = "0 3 * * *", jitterSeconds = 3600`)
	delays := map[time.Duration]bool{}
	for _, name := range []string{"a", "b", "c", "d"} {
		s := h.daemon()
		s.o.Host = name
		delay := s.delay(h.files[0].Definition)
		if delay < 0 || delay >= time.Hour || delay != s.delay(h.files[0].Definition) || delay%time.Second != 0 {
			t.Errorf("host %s: %v", name, delay)
		}
		delays[delay] = true
	}
	if len(delays) < 3 {
		t.Errorf("delays: %v", delays)
	}
}

// TestStates: damaged files are set aside, and those of a later version are not touched.
func TestStates(t *testing.T) {
	h := newHost(t)
	path := func(name string) string { return filepath.Join(h.dir, name) }
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const later = `{"version":2,"pod":"backup","new":1}`
	for name, text := range map[string]string{"backup.json": later, "damaged.json": "{", "other.json": `{"version":1,"pod":"web"}`} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := h.daemon()
	h.at(s, 1, 1)
	h.at(s, 1, 3)
	if text, err := os.ReadFile(path("backup.json")); err != nil || string(text) != later {
		t.Errorf("%s, %v", text, err)
	}
	for _, name := range []string{"damaged.json.unreadable", "other.json.unreadable"} {
		if _, err := os.Stat(path(name)); err != nil {
			t.Error(err)
		}
	}
	if h.runs() != "backup-29626740" {
		t.Errorf("runs: %s", h.runs())
	}
}

// TestRun: a schedule is decided when its file appears.
func TestRun(t *testing.T) {
	h := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := h.daemon()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	for {
		if _, err := os.Stat(filepath.Join(h.dir, "backup.json")); err == nil {
			break
		}
		if !pause(t.Context(), time.Millisecond, nil, nil) {
			t.Fatal("no state was saved")
		}
	}
	cancel()
	<-done
}

// busyPods change at each moment.
type busyPods struct {
	*host
	passes *atomic.Int64 // calls of SetSchedules
}

func (p busyPods) Changed() <-chan struct{} {
	changed := make(chan struct{})
	close(changed)
	return changed
}

func (p busyPods) SetSchedules(names []string) { p.passes.Add(1); p.host.SetSchedules(names) }

// TestPodsWithoutSchedule: changes of pods are followed only while there is a schedule.
func TestPodsWithoutSchedule(t *testing.T) {
	for scheduled, want := range map[bool]int64{false: 1, true: 10} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t)
			if !scheduled {
				h.plain()
			}
			var passes atomic.Int64
			s := New(h, busyPods{h, &passes}, Options{Events: h.ring, States: NewStates(h.dir), Now: func() time.Time { return h.now }})
			ctx, cancel := context.WithTimeout(t.Context(), 10*pace-1)
			defer cancel()
			s.Run(ctx)
			if got := passes.Load(); got != want {
				t.Errorf("scheduled: %t, %d passes, want %d", scheduled, got, want)
			}
		})
	}
}

// TestListBeforeDecision: the last run is known as soon as a daemon lists its files.
func TestListBeforeDecision(t *testing.T) {
	h := newHost(t)
	h.at(h.daemon(), 1, 1)
	h.at(h.daemon(), 1, 3)
	status, ok := h.daemon().Status("backup")
	if want := time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC); !ok || !status.Last.Equal(want) || !status.Next.Equal(want.AddDate(0, 0, 1)) {
		t.Errorf("%+v", status)
	}
}

// TestSuspendedFiles: while a client deletes all pods, no run starts. Those whose time has passed start afterwards.
func TestSuspendedFiles(t *testing.T) {
	h := newHost(t)
	s := h.daemon()
	h.at(s, 1, 1)
	h.suspended = true
	if wait := h.at(s, 1, 3); wait != retry || h.runs() != "" {
		t.Errorf("suspended: the next pass is in %v, runs: %s", wait, h.runs())
	}
	h.suspended = false
	if h.at(s, 1, 4); h.runs() != "backup-29626740" {
		t.Errorf("runs: %s", h.runs())
	}
}

// TestChanged: the channel is closed when the last or the next run of a schedule has changed, and not at each pass.
func TestChanged(t *testing.T) {
	h := newHost(t)
	s := h.daemon()
	changes := func(day, hour int) bool {
		changed := s.Changed()
		h.at(s, day, hour)
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	if !changes(1, 1) || changes(1, 2) || !changes(1, 3) || changes(1, 4) {
		t.Error("a change is missing, or there is one that is none")
	}
}

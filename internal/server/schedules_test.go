package server_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/schedule"
)

// schedules are schedules that decide nothing.
type schedules struct {
	list    []schedule.Status
	deleted []string
	refuse  error // of Delete
	settled int   // calls of Settle
}

func (s *schedules) List() []schedule.Status { return s.list }

func (s *schedules) Status(pod string) (schedule.Status, bool) {
	i := slices.IndexFunc(s.list, func(status schedule.Status) bool { return status.Pod.Name == pod })
	if i < 0 {
		return schedule.Status{}, false
	}
	return s.list[i], true
}

func (s *schedules) Settle() { s.settled++ }

func (*schedules) Changed() <-chan struct{} { return nil }

func (s *schedules) StartNow(pod, by string) (string, error) { return pod + "-manual-1 " + by, nil }

func (s *schedules) Delete(_ context.Context, pod, by string) error {
	s.deleted = append(s.deleted, pod+" "+by)
	return s.refuse
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	pod, problems := spec.Parse("backup.toml", []byte(`restartPolicy = "Never"
schedule = { cron = "0 3 * * *", timeZone = "Europe/Berlin" }
[[containers]]
name = "dump"
image = "dump"
`))
	if pod == nil {
		t.Fatal(problems)
	}
	at := func(day int) time.Time { return time.Date(2026, 5, day, 1, 0, 0, 500, time.UTC) }
	fake := &schedules{list: []schedule.Status{{
		Pod: pod, File: "/pods.d/backup.toml", Reason: api.ReasonScheduled, Next: time.Now().Add(150 * time.Minute), Last: at(3),
		Runs: []schedule.Run{
			{Pod: "backup-3", Created: at(3), Finished: true, Phase: lifecycle.PhaseFailed, Ended: at(3)},
			{Pod: "backup-2", Created: at(2), Finished: true, Phase: lifecycle.PhaseSucceeded, Ended: at(2)},
			{Pod: "backup-1", Created: at(1)},
		},
	}}}
	d.schedules = fake
	d.serve(t, "second")
	d.files.Refuse(podfiles.File{Path: "/pods.d/backup.toml", Pod: "backup", Definition: pod})
	d.supervisor.Events().Add(event.New(api.EventScheduleStarted, time.Now(), "backup", event.Fields{"run": "backup-3", "time": " at 3"}))

	list, err := d.client.Pods(t.Context())
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	got, err := d.client.Pod(t.Context(), "backup")
	s := list.Items[0].Status
	if err != nil || s.Phase != api.PhasePending || s.Reason != api.ReasonScheduled || s.Schedule == nil ||
		got.Status.Message != s.Message || !s.Schedule.LastScheduleTime.Equal(at(3).Truncate(time.Second)) ||
		!s.Schedule.LastSuccessfulTime.Equal(at(2).Truncate(time.Second)) ||
		!slices.Equal(s.Schedule.Active, []string{"backup-1"}) || list.Items[0].Metadata.UID != "" {
		t.Errorf("%+v, %+v, %v", s, s.Schedule, err)
	}
	e, err := d.client.Why(t.Context(), "backup", 0)
	const begin, end = `backup runs at "0 3 * * *" (Europe/Berlin). Next run at `, ` failed. See podstead why backup-3.`
	if err != nil || e.Healthy || !strings.HasPrefix(e.Text, begin) || !strings.HasSuffix(e.Text, end) ||
		!strings.Contains(e.Text, " (in 2h29m). Last run backup-3 at ") || len(e.Timeline) != 1 {
		t.Errorf("why: %+v, %v", e, err)
	}
	if all, err := d.client.WhyAll(t.Context(), 0); err != nil || len(all.Items) != 1 || all.Items[0].State != api.PodStateScheduled {
		t.Errorf("why for all pods: %+v, %v", all, err)
	}
	started, err := d.client.Start(t.Context(), "backup", "")
	if err != nil || !strings.HasPrefix(started.Run, "backup-manual-1 podstead run, pid ") {
		t.Errorf("start: %+v, %v", started, err)
	}
	_, restart := d.client.Restart(t.Context(), "backup", "", "")
	if !isStatus(restart, http.StatusConflict) || !strings.Contains(restart.Error(), `its newest run is pod "backup-3"`) {
		t.Errorf("restart: %v", restart)
	}
	stop := d.client.Stop(t.Context(), "backup", client.StopOptions{})
	if !isStatus(stop, http.StatusConflict) || !strings.Contains(stop.Error(), "does not run itself") {
		t.Errorf("stop: %v", stop)
	}
	fake.refuse = errors.New("delete run backup-1: no answer")
	_, err = d.client.Delete(t.Context(), "backup", client.StopOptions{})
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Hint != "delete them with podstead delete -l podstead.io/schedule=backup" ||
		e.Message != `file /pods.d/backup.toml was removed, but not all runs of pod "backup" were deleted: delete run backup-1: no answer` {
		t.Errorf("delete: %v", err)
	}
	fake.refuse = nil
	d.files.Refuse(podfiles.File{Path: "/pods.d/backup.toml", Pod: "backup", Definition: pod})
	deleted, err := d.client.Delete(t.Context(), "backup", client.StopOptions{})
	if err != nil || deleted.File != "/pods.d/backup.toml" || len(fake.deleted) != 2 ||
		!strings.HasPrefix(fake.deleted[1], "backup podstead run, ") {
		t.Errorf("delete: %+v, %v, %q", deleted, err, fake.deleted)
	}
}

// TestPruneSchedules: pruning a file deletes the runs of its schedule.
func TestPruneSchedules(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	fake := &schedules{}
	for _, name := range []string{"a", "b", "kept"} {
		pod := &spec.Pod{Name: name, Schedule: &spec.Schedule{Cron: "@daily"}}
		fake.list = append(fake.list, schedule.Status{Pod: pod, Reason: api.ReasonScheduled})
		d.files.Refuse(podfiles.File{Path: "/pods.d/" + name + ".toml", Pod: name, Definition: pod})
	}
	d.schedules = fake
	d.serve(t, "second")
	fake.refuse = errors.New("no answer")
	_, err := d.client.Prune(t.Context(), api.PruneRequest{Keep: []string{"kept"}})
	for _, name := range []string{"a", "b"} {
		want := "file /pods.d/" + name + ".toml was removed, but not all runs of pod \"" + name + "\" were deleted: no answer"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if len(fake.deleted) != 2 || !strings.HasPrefix(fake.deleted[0], "a ") || !strings.HasPrefix(fake.deleted[1], "b ") {
		t.Errorf("deleted: %q", fake.deleted)
	}
}

// TestSuspendSchedules: when the files are suspended, no run is being started any more.
func TestSuspendSchedules(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	fake := &schedules{}
	d.schedules = fake
	d.serve(t, "second")
	if err := d.client.SuspendFiles(t.Context()); err != nil || fake.settled != 1 || !d.files.Suspended() {
		t.Errorf("%v, settled %d times", err, fake.settled)
	}
}

// TestScheduleTexts has one row for each state of a schedule.
func TestScheduleTexts(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	pod := &spec.Pod{Name: "backup", Schedule: &spec.Schedule{Cron: "@daily"}}
	fake := &schedules{}
	d.schedules = fake
	d.serve(t, "second")
	at := time.Date(2026, 5, 1, 1, 0, 0, 0, time.Local)
	shown := at.Format("2006-01-02 15:04:05 MST")
	run := schedule.Run{Pod: "backup-1", Created: at}
	stopped, failed, pulling := run, run, run
	failed.Finished, failed.Phase = true, lifecycle.PhaseFailed
	stopped.Finished, stopped.Phase, stopped.Stopped = true, lifecycle.PhaseFailed, true
	pulling.Waiting = lifecycle.ReasonImagePullBackOff
	for _, tc := range []struct {
		status  schedule.Status
		want    string
		healthy bool
	}{
		{schedule.Status{Reason: api.ReasonSuspended}, "The schedule is suspended. No run has started yet.", true},
		{
			schedule.Status{Reason: api.ReasonClockNotSet},
			"No run starts until the clock of the host is set. No run has started yet.", false,
		},
		{schedule.Status{Reason: api.ReasonScheduled, Last: at}, "Last run at " + shown + ".", true},
		{
			schedule.Status{Reason: api.ReasonRunActive, Next: at, Runs: []schedule.Run{run}},
			"A run waits until an earlier one has finished. Next run at " + shown + ". Last run backup-1 at " + shown + " is running.",
			true,
		},
		{
			schedule.Status{Reason: api.ReasonScheduled, Runs: []schedule.Run{stopped, failed}},
			"Last run backup-1 at " + shown + " was stopped.", true,
		},
		{
			schedule.Status{Reason: api.ReasonScheduled, Runs: []schedule.Run{failed, stopped}},
			"Last run backup-1 at " + shown + " failed.", false,
		},
		{
			schedule.Status{Reason: api.ReasonScheduled, Runs: []schedule.Run{pulling}},
			"Last run backup-1 at " + shown + " is waiting: ImagePullBackOff.", true,
		},
		{
			schedule.Status{Reason: api.ReasonSuspended, Failure: schedule.Failure{Scheduled: at, Cause: "no space left"}},
			"The schedule is suspended. The run of " + shown + " was not started: no space left. No run has started yet.", false,
		},
		{
			schedule.Status{Reason: api.ReasonScheduled, Failure: schedule.Failure{Scheduled: at, Cause: "no space left."}},
			"The run of " + shown + " was not started: no space left. No run has started yet.", false,
		},
	} {
		tc.status.Pod = pod
		fake.list = []schedule.Status{tc.status}
		reason := tc.status.Reason
		if reason == api.ReasonScheduled && tc.status.Failure.Cause != "" {
			reason = api.ReasonRunNotStarted
		}
		got, err := d.client.Pod(t.Context(), "backup")
		if err != nil || got.Status.Message != tc.want || got.Status.Reason != reason {
			t.Errorf("%s: %q, %v, want %q, %s", got.Status.Reason, got.Status.Message, err, tc.want, reason)
		}
		e, err := d.client.Why(t.Context(), "backup", 0)
		if sentence, _, _ := strings.Cut(tc.want, ". "); err != nil || e.Healthy != tc.healthy || !strings.Contains(e.Text, sentence) {
			t.Errorf("why: %+v, %v, want healthy: %t", e, err, tc.healthy)
		}
	}
	_, err := d.client.Restart(t.Context(), "backup", "", "")
	if fake.list[0].Runs = nil; !isStatus(err, http.StatusConflict) {
		t.Errorf("restart: %v", err)
	}
	if _, err := d.client.Restart(t.Context(), "backup", "", ""); err == nil || !strings.Contains(err.Error(), "and has no run") {
		t.Errorf("restart without runs: %v", err)
	}
}

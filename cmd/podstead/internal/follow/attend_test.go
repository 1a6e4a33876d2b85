package follow

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

// TestAttendAtRest follows a pod that has completed before it is noticed.
func TestAttendAtRest(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	c := client.New(h.socket, "podstead up")
	defer c.Close()
	begun := time.Now()
	q := file("job", "echo ran")
	q.Keep = true
	if _, err := c.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for change, err := range c.Watch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Object.Status.Phase == api.PhaseSucceeded && change.Object.Status.AtRest {
			break
		}
	}
	a := Attend(t.Context(), Options{Daemon: c, Connect: h.connect, Printer: s}, begun, func(string) bool { return true })
	defer a.Close()
	s.await(t, "the line of the job", func() bool { return slices.Equal(s.lines, []string{"job/c ran"}) })
}

// TestAttendEnds: without a daemon, the attendance ends with the error of the connection.
func TestAttendEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t, fakeruntime.Options{})
	c := client.New(h.socket, "podstead up")
	defer c.Close()
	h.stop()
	want := errors.New("the daemon cannot start")
	o := Options{Daemon: c, Connect: func(context.Context) error { return want }, Printer: newRecorder()}
	a := Attend(t.Context(), o, time.Now(), func(string) bool { return true })
	defer a.Close()
	select {
	case <-a.Ended():
	case <-time.After(testTimeout):
		t.Fatal("the attendance continues")
	}
	if err := a.Err(); !errors.Is(err, want) {
		t.Errorf("error %v, want that of the connection", err)
	}
}

// TestAttend follows pods that are created, complete, start again, and are deleted, over a restart of the daemon. What other pods write,
// and what was written before, is not printed.
func TestAttend(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	c := client.New(h.socket, "podstead up")
	defer c.Close()
	create := func(name, script string) api.Pod {
		t.Helper()
		q := file(name, script)
		q.Keep = true
		created, err := c.Create(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return created.Pod
	}
	early := create("early", "echo before; sleep 1000")
	awaitRunning(t, c, "early")
	lines := func(want ...string) func() bool {
		return func() bool {
			got := slices.Clone(s.lines)
			slices.Sort(got)
			return slices.Equal(got, want)
		}
	}
	o := Options{Daemon: c, Connect: h.connect, Printer: s}
	a := Attend(t.Context(), o, time.Now(), func(pod string) bool { return pod != "other" })
	defer a.Close()
	create("other", "echo other")
	job := create("job", "echo ran")
	s.await(t, "the line of the job", lines("job/c ran"))
	s.await(t, "the event of its success", s.hasEvent(api.EventPodSucceeded))
	h.stop()
	if err := h.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Start(t.Context(), "job", job.Metadata.UID); err != nil {
		t.Fatal(err)
	}
	s.await(t, "the line of its next run", lines("job/c ran", "job/c ran"))
	if !slices.Contains(s.notices, "connection to the daemon lost, reconnected") {
		t.Errorf("notices %q", s.notices)
	}
	grace := time.Duration(0)
	for _, p := range []api.Pod{early, job} {
		if _, err := c.Delete(t.Context(), p.Metadata.Name, client.StopOptions{UID: p.Metadata.UID, Grace: &grace}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	a.Finish(ctx, []string{early.Metadata.UID, job.Metadata.UID})
	if ctx.Err() != nil {
		t.Fatal("the deleted pods are still followed")
	}
	deleted := map[string]bool{}
	for _, e := range s.events {
		if deleted[e.Pod] = deleted[e.Pod] || e.Kind == api.EventPodRemoved; e.Pod == "other" {
			t.Errorf("an event of another pod: %+v", e)
		}
	}
	if !deleted["early"] || !deleted["job"] {
		t.Errorf("the deletion of the pods was not printed: %+v", s.events)
	}
}

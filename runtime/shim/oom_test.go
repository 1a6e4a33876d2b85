package shim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	eventsapi "github.com/containerd/containerd/api/events"
	api "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/v2/core/events"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
)

// counter is a fake cgroup: its number of kills, or one of the negative constants.
type counter int64

const (
	gone   counter = -1
	broken counter = -2
)

func (c *counter) MemoryPeak() int64 { return int64(max(*c, 0)) << 20 }

func (c *counter) OOMKills() (int64, error) {
	switch *c {
	case gone:
		return 0, fs.ErrNotExist
	case broken:
		return 0, errors.New("broken")
	}
	return int64(*c), nil
}

// publisherFunc is called with each event.
type publisherFunc struct {
	containerdshim.Publisher
	do func()
}

func (p publisherFunc) Publish(context.Context, string, events.Event) error {
	p.do()
	return nil
}

func TestOOMLedger(t *testing.T) {
	for _, test := range []struct {
		name                    string
		own, pod, accounts      counter // accounts: kills attributed to earlier containers
		other                   counter // of a running container
		v1, notified, requested bool
		status                  uint32
		want, failed            bool
	}{
		{name: "own cgroup counts a kill", own: 1, pod: 1, status: 137, want: true},
		{name: "child killed and container exits with 0", own: 1, status: 0, want: true},
		{name: "own cgroup counts no kill", own: 0, pod: 3, notified: true, status: 137},
		{name: "own cgroup unreadable", own: broken, status: 137, failed: true},
		{name: "cgroup removed, pod counts a kill", own: gone, pod: 1, status: 137, want: true},
		{name: "cgroup removed, kills belong to other containers", own: gone, pod: 5, accounts: 3, other: 2, status: 137},
		{
			name: "cgroup removed, cgroup of another container removed too", own: gone, pod: 5, accounts: 3, other: gone, status: 137,
			want: true,
		},
		{name: "cgroup removed, SIGKILL requested", own: gone, pod: 1, requested: true, status: 137},
		{name: "cgroup removed, container exits with 1", own: gone, pod: 1, status: 1},
		{name: "cgroup removed, kernel notified", own: gone, pod: 1, notified: true, status: 1, want: true},
		{name: "cgroup removed, pod's cgroup unreadable", own: gone, pod: broken, status: 137, failed: true},
		{name: "v1, cgroup removed, no notification", v1: true, own: gone, pod: 1, status: 137},
		{name: "v1, cgroup removed, kernel notified", v1: true, own: gone, notified: true, status: 137, want: true},
		{name: "v1, cgroup removed, kernel notified, container exits with 0", v1: true, own: gone, notified: true, status: 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := oomLedger{accounted: int64(test.accounts)}
			m := &memory{own: &test.own, pod: &test.pod, unified: !test.v1}
			m.notified.Store(test.notified)
			m.requested.Store(test.requested)
			l.add(m)
			l.add(&memory{own: &test.other, pod: &test.pod, unified: !test.v1})
			got, err := l.exited(m, test.status)
			if got != test.want || (err != nil) != test.failed {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
			if _, live := l.live[m]; live || len(l.live) != 1 {
				t.Errorf("%d containers are still accounted as running", len(l.live))
			}
		})
	}
}

// A kill counted by the pod's cgroup is attributed once: the next container that is killed by a signal was not out of memory.
func TestOOMKillIsAttributedOnce(t *testing.T) {
	pod, own := counter(2), gone
	var l oomLedger
	for i, want := range []bool{true, false} {
		m := &memory{own: &own, pod: &pod, unified: true}
		l.add(m)
		if got, err := l.exited(m, 137); got != want || err != nil {
			t.Errorf("container %d: %v, %v", i, got, err)
		}
	}
}

// The OOM kill is recorded before the exit is reported by a response or an event.
func TestOOMIsRecordedBeforeExitIsReported(t *testing.T) {
	for _, way := range []string{"Wait", "TaskExit"} {
		t.Run(way, func(t *testing.T) {
			tasks, _, _ := newTest(t)
			bundle, own, pod := t.TempDir(), counter(1), counter(1)
			c := &container{bundle: bundle, created: make(chan struct{}), memory: &memory{own: &own, pod: &pod, unified: true}}
			close(c.created)
			tasks.containers["c"] = c
			reported := func() {
				if killed, err := OOMKilled(bundle); !killed || err != nil {
					t.Errorf("exit reported before the OOM kill was recorded: %v, %v", killed, err)
				}
				if peak := MemoryPeak(bundle); peak != 1<<20 {
					t.Errorf("got a peak of %d bytes, want 1 MiB", peak)
				}
			}
			if killed, err := OOMKilled(bundle); killed || err != nil {
				t.Errorf("before the exit: %v, %v", killed, err)
			}
			if way == "Wait" {
				if _, err := tasks.Wait(t.Context(), &api.WaitRequest{ID: "c"}); err != nil {
					t.Fatal(err)
				}
				reported()
				return
			}
			p := tasks.watch(publisherFunc{do: reported})
			if err := p.Publish(t.Context(), "/tasks/exit", &eventsapi.TaskExit{ContainerID: "c", ID: "c", ExitStatus: 137}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if _, err := OOMKilled(os.DevNull); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing bundle: %v", err)
	}
}

func TestOOMNotificationAndRequestedKill(t *testing.T) {
	tasks, _, _ := newTest(t)
	own := counter(1)
	m := &memory{own: &own}
	tasks.containers["c"] = &container{memory: m}
	for _, r := range []*api.KillRequest{{ID: "c", Signal: 15}, {ID: "c", ExecID: "e", Signal: 9}, {ID: "other", Signal: 9}} {
		if _, err := tasks.Kill(t.Context(), r); err != nil || m.requested.Load() {
			t.Errorf("%v: requested %v, %v", r, m.requested.Load(), err)
		}
	}
	for _, all := range []bool{false, true} { // the daemon requests it with all
		m.requested.Store(false)
		if _, err := tasks.Kill(t.Context(), &api.KillRequest{ID: "c", Signal: 9, All: all}); err != nil || !m.requested.Load() {
			t.Errorf("all %v: requested %v, %v", all, m.requested.Load(), err)
		}
	}
	p := tasks.watch(publisherFunc{do: func() {}})
	for _, id := range []string{"other", "c"} {
		if m.notified.Load() {
			t.Error("recorded the notification of another container")
		}
		if err := p.Publish(t.Context(), "/tasks/oom", &eventsapi.TaskOOM{ContainerID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if !m.notified.Load() || m.peak.Load() != 1<<20 {
		t.Error("notification not recorded")
	}
}

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

// counter is a cgroup: a number of kills, or gone below zero, or one that cannot be asked.
type counter int64

const (
	gone   counter = -1
	broken counter = -2
)

func (c *counter) OOMKills() (int64, error) {
	switch *c {
	case gone:
		return 0, fs.ErrNotExist
	case broken:
		return 0, errors.New("broken")
	}
	return int64(*c), nil
}

func (c *counter) MemoryPeak() int64 { return int64(max(*c, 0)) << 20 }

// publisherFunc is called with each event.
type publisherFunc struct {
	containerdshim.Publisher
	do func()
}

func (p publisherFunc) Publish(context.Context, string, events.Event) error {
	p.do()
	return nil
}

// TestOOMLedger: who was killed for want of memory, when the cgroup of the container is there and when it is gone.
func TestOOMLedger(t *testing.T) {
	for _, test := range []struct {
		name               string
		own, pod, accounts counter // accounts: kills of containers before
		other              counter // of a container that lives
		v1, heard, asked   bool
		status             uint32
		want, failed       bool
	}{
		{name: "its cgroup says so", own: 1, pod: 1, status: 137, want: true},
		{name: "a child was killed, and it has ended by itself", own: 1, status: 0, want: true},
		{name: "its cgroup says no", own: 0, pod: 3, heard: true, status: 137},
		{name: "its cgroup cannot be read", own: broken, status: 137, failed: true},
		{name: "gone, and the pod has counted", own: gone, pod: 1, status: 137, want: true},
		{name: "gone, and the pod's count is of others", own: gone, pod: 5, accounts: 3, other: 2, status: 137},
		{name: "gone, and the pod's count is of others, gone ones too", own: gone, pod: 5, accounts: 3, other: gone, status: 137, want: true},
		{name: "gone, and it was ended by a signal of ours", own: gone, pod: 1, asked: true, status: 137},
		{name: "gone, and it has ended by itself", own: gone, pod: 1, status: 1},
		{name: "gone, and the kernel has told", own: gone, pod: 1, heard: true, status: 1, want: true},
		{name: "gone, and the pod's cannot be read", own: gone, pod: broken, status: 137, failed: true},
		{name: "gone with v1, where pods do not count", v1: true, own: gone, pod: 1, status: 137},
		{name: "gone with v1, and the kernel has told", v1: true, own: gone, heard: true, status: 137, want: true},
		{name: "gone with v1, told of the pod's want, and it has ended by itself", v1: true, own: gone, heard: true, status: 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := oomLedger{accounted: int64(test.accounts)}
			m := &memory{own: &test.own, pod: &test.pod, unified: !test.v1}
			m.heard.Store(test.heard)
			m.asked.Store(test.asked)
			l.add(m)
			l.add(&memory{own: &test.other, pod: &test.pod, unified: !test.v1})
			got, err := l.ended(m, test.status)
			if got != test.want || (err != nil) != test.failed {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
			if _, live := l.live[m]; live || len(l.live) != 1 {
				t.Errorf("%d containers are accounted for as living", len(l.live))
			}
		})
	}
}

// A pod's kill is accounted for once: the next container that dies of a signal did not lack memory.
func TestOOMIsAccountedForOnce(t *testing.T) {
	pod, own := counter(2), gone
	var l oomLedger
	for i, want := range []bool{true, false} {
		m := &memory{own: &own, pod: &pod, unified: true}
		l.add(m)
		if got, err := l.ended(m, 137); got != want || err != nil {
			t.Errorf("container %d: %v, %v", i, got, err)
		}
	}
}

// What was found out is on disk before the end of the container is told to anybody, by an answer or by an event.
func TestOOMIsWrittenBeforeItIsTold(t *testing.T) {
	for _, way := range []string{"Wait", "TaskExit"} {
		t.Run(way, func(t *testing.T) {
			tasks, _, _ := newTest(t)
			bundle, own, pod := t.TempDir(), counter(1), counter(1)
			c := &container{bundle: bundle, created: make(chan struct{}), memory: &memory{own: &own, pod: &pod, unified: true}}
			close(c.created)
			tasks.containers["c"] = c
			told := func() {
				if killed, err := OOMKilled(bundle); !killed || err != nil {
					t.Errorf("it is told, and not written down: %v, %v", killed, err)
				}
				if peak := MemoryPeak(bundle); peak != 1<<20 {
					t.Errorf("the peak is %d bytes", peak)
				}
			}
			if killed, err := OOMKilled(bundle); killed || err != nil {
				t.Errorf("before its end: %v, %v", killed, err)
			}
			if way == "Wait" {
				if _, err := tasks.Wait(t.Context(), &api.WaitRequest{ID: "c"}); err != nil {
					t.Fatal(err)
				}
				told()
				return
			}
			p := tasks.watch(publisherFunc{do: told})
			if err := p.Publish(t.Context(), "/tasks/exit", &eventsapi.TaskExit{ContainerID: "c", ID: "c", ExitStatus: 137}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if _, err := OOMKilled(os.DevNull); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a bundle that is none: %v", err)
	}
}

// Who asks for the kill of a container, or is told of one, is noted.
func TestOOMHeardAndAsked(t *testing.T) {
	tasks, _, _ := newTest(t)
	own := counter(1)
	m := &memory{own: &own}
	tasks.containers["c"] = &container{memory: m}
	for _, r := range []*api.KillRequest{{ID: "c", Signal: 15}, {ID: "c", ExecID: "e", Signal: 9}, {ID: "other", Signal: 9}} {
		if _, err := tasks.Kill(t.Context(), r); err != nil || m.asked.Load() {
			t.Errorf("%v: asked %v, %v", r, m.asked.Load(), err)
		}
	}
	for _, all := range []bool{false, true} { // the daemon's own wish is the latter
		m.asked.Store(false)
		if _, err := tasks.Kill(t.Context(), &api.KillRequest{ID: "c", Signal: 9, All: all}); err != nil || !m.asked.Load() {
			t.Errorf("all %v: asked %v, %v", all, m.asked.Load(), err)
		}
	}
	p := tasks.watch(publisherFunc{do: func() {}})
	for _, id := range []string{"other", "c"} {
		if m.heard.Load() {
			t.Error("heard of another")
		}
		if err := p.Publish(t.Context(), "/tasks/oom", &eventsapi.TaskOOM{ContainerID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if !m.heard.Load() || m.peak.Load() != 1<<20 {
		t.Errorf("heard %v, peak %d", m.heard.Load(), m.peak.Load())
	}
}

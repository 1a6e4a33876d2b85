package monitor

import (
	"errors"
	"io/fs"
	"testing"
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
			l := ledger{accounted: int64(test.accounts)}
			m := &memory{own: &test.own, pod: &test.pod, unified: !test.v1}
			m.notified.Store(test.notified)
			m.requested.Store(test.requested)
			l.add(m)
			l.add(&memory{own: &test.other, pod: &test.pod, unified: !test.v1})
			got, peak, err := l.end(m, test.status)
			if want := test.own.MemoryPeak(); got && peak != want {
				t.Errorf("peak %d, want %d", peak, want)
			}
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
	var l ledger
	for i, want := range []bool{true, false} {
		m := &memory{own: &own, pod: &pod, unified: true}
		l.add(m)
		if got, err := l.exited(m, 137); got != want || err != nil {
			t.Errorf("container %d: %v, %v", i, got, err)
		}
	}
}

package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
)

// group is a cgroup with memory counters.
type group interface {
	// OOMKills returns the number of OOM-killed processes. The error is [fs.ErrNotExist] if the cgroup was removed.
	OOMKills() (int64, error)
	// MemoryPeak returns the peak memory usage in bytes, 0 if unknown.
	MemoryPeak() int64
}

// memory is what must be recorded of a container's memory use to explain its exit.
type memory struct {
	own, pod group // the container's cgroup and its parent
	// unified is true for cgroup v2, where the counter of pod includes all containers, also those whose cgroups were removed.
	unified   bool
	notified  atomic.Bool // the kernel reported an OOM kill, with cgroup v1 an OOM condition
	requested atomic.Bool // a client requested SIGKILL
	// peak is the peak usage at the newest OOM notification: systemd may remove the cgroup before the exit is recorded.
	peak atomic.Int64
}

// ledger determines whether the kernel OOM-killed a process of a container. While the container's cgroup exists, its counter
// is exact. But systemd removes a scope as soon as its last process has exited, often before it can be read. Then the kills that
// the pod's cgroup counted and that no container accounts for are attributed to the container. The kernel increments the counter
// before it kills.
//
// One ledger serves the containers of one pod. The zero value is usable. Its methods are safe for concurrent use.
type ledger struct {
	mu        sync.Mutex
	accounted int64 // kills in the pod's counter that belong to containers that have exited
	live      map[*memory]struct{}
}

// watch starts to account for a container with this cgroup.
func (l *ledger) watch(own cgroup.MemoryGroup) *memory {
	m := &memory{own: own, pod: own.Parent(), unified: own.Unified()}
	l.add(m)
	return m
}

func (l *ledger) add(m *memory) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		l.live = map[*memory]struct{}{}
	}
	l.live[m] = struct{}{}
}

// end is exited, and returns the peak memory usage in bytes of a container that was OOM-killed, 0 if unknown.
func (l *ledger) end(m *memory, code uint32) (killed bool, peak int64, err error) {
	killed, err = l.exited(m, code)
	if killed {
		peak = max(m.own.MemoryPeak(), m.peak.Load())
	}
	return killed, peak, err
}

// exited reports whether the kernel OOM-killed a process of a container that exited with this code. It must be called once for each
// container, while its cgroup exists if possible.
func (l *ledger) exited(m *memory, code uint32) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, m)
	kills, err := m.own.OOMKills()
	if err == nil {
		l.accounted += kills
		return kills > 0, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	killed := code == 128+uint32(unix.SIGKILL) && !m.requested.Load()
	if !m.unified {
		return killed && m.notified.Load(), nil // cgroup v1 notifies every container of a pod that is out of memory
	}
	unknown, err := l.unaccounted(m)
	if err != nil {
		return m.notified.Load(), err
	}
	if m.notified.Load() || killed && unknown > 0 {
		l.accounted += unknown
		return true, nil
	}
	return false, nil
}

// unaccounted returns the kills in the pod's counter that belong to containers whose cgroups were removed before they were read.
// The caller holds the lock.
func (l *ledger) unaccounted(m *memory) (int64, error) {
	unknown, err := m.pod.OOMKills()
	if err != nil {
		return 0, fmt.Errorf("read cgroup of pod: %w", err)
	}
	unknown -= l.accounted
	for other := range l.live {
		if kills, err := other.own.OOMKills(); err == nil {
			unknown -= kills
		}
	}
	return unknown, nil
}

// total returns the number of OOM kills of containers that have exited.
func (l *ledger) total() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accounted
}

// restore sets the number that an earlier ledger has accounted for.
func (l *ledger) restore(accounted int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accounted = accounted
}

// oomNotified records an OOM notification of the kernel.
func (m *memory) oomNotified() {
	m.notified.Store(true)
	m.peak.Store(m.own.MemoryPeak())
}

package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/containerd/log"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
)

// oomFile is created in the bundle of a container if the kernel OOM-killed one of its processes. It exists before the exit is
// reported.
const oomFile = "oom-killed"

// OOMKilled reports whether the shim recorded an OOM kill for the container with this bundle. The result is meaningless while the
// container runs.
func OOMKilled(bundle string) (bool, error) {
	_, err := os.Stat(filepath.Join(bundle, oomFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// MemoryPeak returns the peak memory usage of an OOM-killed container in bytes, by its bundle, 0 if unknown.
func MemoryPeak(bundle string) int64 {
	text, err := os.ReadFile(filepath.Join(bundle, oomFile))
	if err != nil {
		return 0
	}
	peak, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0 // written by an older version
	}
	return peak
}

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
	once      sync.Once
	// peak is the peak usage at the newest OOM notification: systemd may remove the cgroup before the exit is recorded.
	peak atomic.Int64
}

// oomLedger determines whether the kernel OOM-killed a process of a container. While the container's cgroup exists, its counter
// is exact. But systemd removes a scope as soon as its last process has exited, often before it can be read. Then the kills that
// the pod's cgroup counted and that no container accounts for are attributed to the container. The kernel increments the counter
// before it kills.
//
// One ledger serves the containers of one pod. The zero value is usable.
type oomLedger struct {
	mu        sync.Mutex
	accounted int64 // kills in the pod's counter that belong to containers that have exited
	live      map[*memory]struct{}
}

// watch starts to account for a container, given its process. It returns nil if the host has no memory controller.
func (l *oomLedger) watch(pid int) (*memory, error) {
	own, err := cgroup.MemoryGroupOf(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // or the process has exited, which its creation reports
	}
	if err != nil {
		return nil, err
	}
	m := &memory{own: own, pod: own.Parent(), unified: own.Unified()}
	l.add(m)
	return m, nil
}

func (l *oomLedger) add(m *memory) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		l.live = map[*memory]struct{}{}
	}
	l.live[m] = struct{}{}
}

// exited reports whether the kernel OOM-killed a process of a container that exited with this status. It must be called once per
// container.
func (l *oomLedger) exited(m *memory, status uint32) (bool, error) {
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
	killed := status == 128+uint32(unix.SIGKILL) && !m.requested.Load()
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
func (l *oomLedger) unaccounted(m *memory) (int64, error) {
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

// oomNotified records the kernel's OOM notification for a running container.
func (t *tasks) oomNotified(id string) {
	var m *memory
	t.mu.Lock()
	if c := t.containers[id]; c != nil {
		m = c.memory
	}
	t.mu.Unlock()
	if m != nil {
		m.notified.Store(true)
		m.peak.Store(m.own.MemoryPeak())
	}
}

// recordOOM determines whether a container was OOM-killed and records it in the bundle. It runs before the exit is reported, so
// that every client finds the record.
func (t *tasks) recordOOM(ctx context.Context, id string, status uint32) {
	c := t.settled(ctx, id)
	if c == nil {
		return
	}
	t.mu.Lock()
	m := c.memory
	t.mu.Unlock()
	if m == nil {
		return
	}
	m.once.Do(func() {
		killed, err := t.oom.exited(m, status)
		if killed {
			peak := strconv.FormatInt(max(m.own.MemoryPeak(), m.peak.Load()), 10)
			err = errors.Join(err, os.WriteFile(filepath.Join(c.bundle, oomFile), []byte(peak), 0o600))
		}
		if err != nil {
			log.G(ctx).WithError(err).WithField("id", id).Error("determine whether the container was OOM-killed")
		}
	})
}

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

// oomFile is in the bundle of a container of which the kernel has killed a process for want of memory. It is there before
// anybody is told of the container's end.
const oomFile = "oom-killed"

// OOMKilled reports whether the shim has written down that the kernel has killed a process of a container, by its bundle, for
// want of memory. It says nothing of a container that has not ended.
func OOMKilled(bundle string) (bool, error) {
	_, err := os.Stat(filepath.Join(bundle, oomFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// MemoryPeak is the most memory that an OOM-killed container has used, in bytes, by its bundle; 0: not known.
func MemoryPeak(bundle string) int64 {
	text, err := os.ReadFile(filepath.Join(bundle, oomFile))
	if err != nil {
		return 0
	}
	peak, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0 // of an older version
	}
	return peak
}

// group is a cgroup that counts.
type group interface {
	// OOMKills is how many processes were killed; an [fs.ErrNotExist] where the cgroup is gone.
	OOMKills() (int64, error)
	// MemoryPeak is the most memory that was used, in bytes; 0: not known.
	MemoryPeak() int64
}

// memory is what is known of a container's use of memory that matters after its end.
type memory struct {
	own, pod group // the container's cgroup, and the one around it
	// unified says that pod counts the kills of all containers, those whose cgroups are gone too.
	unified bool
	heard   atomic.Bool // the kernel has told of an OOM kill, or with cgroup v1 of want of memory
	asked   atomic.Bool // somebody wanted the container to be killed
	once    sync.Once
	peak    atomic.Int64 // when the kernel last reported an OOM kill: the cgroup may be removed before the exit is reported
}

// oomLedger finds out whether the kernel has killed a container for want of memory. As long as the container's cgroup is there,
// it says so. But systemd removes a scope as soon as its last process has ended, before anybody can look. What the cgroup of
// the pod has counted and no container accounts for tells then: the kernel counts before it kills.
//
// The zero value is for the containers of one pod.
type oomLedger struct {
	mu        sync.Mutex
	accounted int64 // kills that the pod's cgroup has counted in containers that have ended
	live      map[*memory]struct{}
}

// watch begins to account for a container, by its process; nil where the machine has no memory controller.
func (l *oomLedger) watch(pid int) (*memory, error) {
	own, err := cgroup.MemoryGroupOf(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // or the process has ended, which its creation is about to tell
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

// ended reports whether the kernel has killed a process of a container that has ended with a status. It is to be asked once.
func (l *oomLedger) ended(m *memory, status uint32) (bool, error) {
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
	killed := status == 128+uint32(unix.SIGKILL) && !m.asked.Load()
	if !m.unified {
		return killed && m.heard.Load(), nil // the kernel tells every container of a pod that lacks memory
	}
	unknown, err := l.unaccounted(m)
	if err != nil {
		return m.heard.Load(), err
	}
	if m.heard.Load() || killed && unknown > 0 {
		l.accounted += unknown
		return true, nil
	}
	return false, nil
}

// unaccounted is how many kills the pod's cgroup has counted in containers that are gone and were not asked yet. The caller
// holds the lock.
func (l *oomLedger) unaccounted(m *memory) (int64, error) {
	unknown, err := m.pod.OOMKills()
	if err != nil {
		return 0, fmt.Errorf("ask the pod's cgroup: %w", err)
	}
	unknown -= l.accounted
	for other := range l.live {
		if kills, err := other.own.OOMKills(); err == nil {
			unknown -= kills
		}
	}
	return unknown, nil
}

// heardOOM notes what the kernel tells while a container runs.
func (t *tasks) heardOOM(id string) {
	var m *memory
	t.mu.Lock()
	if c := t.containers[id]; c != nil {
		m = c.memory
	}
	t.mu.Unlock()
	if m != nil {
		m.heard.Store(true)
		m.peak.Store(m.own.MemoryPeak())
	}
}

// recordOOM writes down, before the end of a container is told, whether memory was the cause. Whoever comes later finds it so.
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
		killed, err := t.oom.ended(m, status)
		if killed {
			peak := strconv.FormatInt(max(m.own.MemoryPeak(), m.peak.Load()), 10)
			err = errors.Join(err, os.WriteFile(filepath.Join(c.bundle, oomFile), []byte(peak), 0o600))
		}
		if err != nil {
			log.G(ctx).WithError(err).WithField("id", id).Error("find out whether memory was the cause of the end")
		}
	})
}

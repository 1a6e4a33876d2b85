package podcgroup

import (
	"fmt"
	"sync"

	"github.com/podstead/podstead/runtime/cgroup"
)

// Delegated returns the cgroups below root, a cgroup that is delegated to this user: cgroup v2 only, created as by [Cgroupfs]. Controllers
// are enabled from root on. The cgroup of the monitor is root/monitor.
//
// A pod that was started without cgroups has none, see [Groups.SetWithout]; pidOf is that of [WithoutCgroups] for it.
func Delegated(root string, pidOf func(id string) int) (Groups, error) {
	g := Groups{root: root, unified: true, pidOf: pidOf, without: &uids{list: map[string]bool{}}}
	var err error
	if g.processes, err = cgroup.ProcessMount(); err != nil {
		return g, fmt.Errorf("use cgroup %s: %w", root, err)
	}
	return g, nil
}

// uids is a set of UIDs that is safe for concurrent use.
type uids struct {
	mu   sync.Mutex
	list map[string]bool
}

func (u *uids) has(uid string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.list[uid]
}

func (u *uids) set(uid string, has bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if has {
		u.list[uid] = true
	} else {
		delete(u.list, uid)
	}
}

// IsDelegated reports whether the cgroups are below one that is delegated to this user.
func (g Groups) IsDelegated() bool { return g.without != nil }

// SetWithout records that a pod was started without cgroups. It keeps running without, until [Groups.SetWith]. The cgroups must be
// delegated ones.
func (g Groups) SetWithout(uid string) { g.without.set(uid, true) }

// SetWith records that a pod is about to be started. Delegated cgroups then have those of the pod.
func (g Groups) SetWith(uid string) {
	if g.IsDelegated() {
		g.without.set(uid, false)
	}
}

// Without reports whether a pod has no cgroup.
func (g Groups) Without(uid string) bool {
	return g.None() || g.IsDelegated() && g.without.has(uid)
}

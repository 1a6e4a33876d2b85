//go:build e2e

package runtime_test

import (
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// allCgroups begins the places of all pods below the mount of a hierarchy. systemd has one place for every runtime of a machine.
func (m *machine) allCgroups() string {
	if m.opts.CgroupDriver == runtime.CgroupSystemd {
		return "/podstead.slice/podstead-"
	}
	return m.opts.CgroupRoot
}

// cgroup is the place of a pod below the mount of a hierarchy, with whichever driver.
func (m *machine) cgroup(uid string) string {
	if m.opts.CgroupDriver == runtime.CgroupSystemd {
		return m.allCgroups() + strings.ReplaceAll(uid, "-", "_") + ".slice"
	}
	return path.Join(m.opts.CgroupRoot, uid)
}

// cgroupOf is the place of a container below the mount of a hierarchy, with whichever driver.
func (m *machine) cgroupOf(ref lifecycle.Ref) string {
	m.Helper()
	id := m.idOf(ref)
	if m.opts.CgroupDriver == runtime.CgroupSystemd {
		id = "podstead-" + id + ".scope"
	}
	return path.Join(m.cgroup(uid), id)
}

// checkCgroups looks for cgroups of pods. systemd takes a slice away soon after it was stopped, and keeps the parent of all.
func (m *machine) checkCgroups() {
	m.Helper()
	end := time.Now()
	if m.opts.CgroupDriver == runtime.CgroupSystemd {
		end = end.Add(deadline)
	}
	for left := m.cgroupDirs(); len(left) > 0; left = m.cgroupDirs() {
		if time.Now().After(end) {
			m.Errorf("cgroups are left: %v", left)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// cgroupDirs are the folders of pods in all hierarchies.
func (m *machine) cgroupDirs() []string {
	m.Helper()
	var dirs []string
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		found, err := filepath.Glob(mount + m.allCgroups() + "*")
		if err != nil {
			m.Fatal(err)
		}
		dirs = append(dirs, found...)
	}
	return dirs
}

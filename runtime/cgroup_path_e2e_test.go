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

// allCgroups returns the prefix of the cgroups of all pods, relative to a mount point. With systemd all runtimes of a host share it.
func (m *testHost) allCgroups() string {
	if m.opts.CgroupDriver == runtime.CgroupSystemd {
		return "/podstead.slice/podstead-"
	}
	return m.opts.CgroupRoot
}

// cgroup returns the cgroup of a pod, relative to a mount point.
func (m *testHost) cgroup(uid string) string {
	if m.opts.CgroupDriver == runtime.CgroupSystemd {
		return m.allCgroups() + strings.ReplaceAll(uid, "-", "_") + ".slice"
	}
	return path.Join(m.opts.CgroupRoot, uid)
}

// cgroupOf returns the cgroup of a container, relative to a mount point.
func (m *testHost) cgroupOf(ref lifecycle.Ref) string {
	m.Helper()
	id := m.idOf(ref)
	if m.opts.CgroupDriver == runtime.CgroupSystemd {
		id = "podstead-" + id + ".scope"
	}
	return path.Join(m.cgroup(uid), id)
}

// checkCgroups checks that no cgroup of a pod is left. systemd removes a slice soon after it was stopped, and keeps the parent of all.
func (m *testHost) checkCgroups() {
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

// cgroupDirs returns the cgroup directories of pods in all hierarchies.
func (m *testHost) cgroupDirs() []string {
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

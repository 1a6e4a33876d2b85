// Package podcgroup creates, limits and removes the cgroups of pods, with cgroupfs or with systemd.
//
// The cgroup of a container is <root>/<uid>/<container ID> in every hierarchy, and the shim of the pod is in <root>/<uid>-shim.
// With systemd, each pod has a slice below podstead.slice, and each container and each shim has a scope.
package podcgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/proctree"
)

// Driver is what creates the cgroups of containers.
type Driver string

// The cgroup drivers.
const (
	Auto     Driver = "auto"     // systemd if the host was booted with it, else cgroupfs
	Cgroupfs Driver = "cgroupfs" // the OCI runtime and the shim create cgroups
	Systemd  Driver = "systemd"  // systemd creates a slice for each pod and a scope for each container
)

// Groups are the cgroups of all pods. They are never below the cgroup of this process, whose limits or removal would affect
// them. A Groups is safe for concurrent use.
type Groups struct {
	root      string
	systemd   bool
	unified   bool
	processes string              // the mount point of a hierarchy that lists the processes of containers
	pidOf     func(id string) int // the first process of a container, 0 if there is none; nil: all pods have cgroups
	without   *uids               // pods without cgroups, if others have delegated ones; nil: cgroups are not delegated
}

// WithoutCgroups returns the Groups of pods that have no cgroups. The PID namespace of a container lists its processes, and the kernel
// kills them with the first one. pidOf returns that one, 0 if there is none.
func WithoutCgroups(pidOf func(id string) int) Groups { return Groups{pidOf: pidOf} }

// None reports whether pods have no cgroups.
func (g Groups) None() bool { return g.pidOf != nil && !g.IsDelegated() }

// New returns the cgroups below root. The root is not used with systemd. Unified means that the host has cgroup v2 only.
func New(driver Driver, root string, unified bool) (Groups, error) {
	g := Groups{root: root, unified: unified}
	var err error
	if g.processes, err = cgroup.ProcessMount(); err != nil {
		return g, err
	}
	switch driver {
	case Auto:
		_, err := os.Stat("/run/systemd/system") // sd_booted(3)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return g, fmt.Errorf("detect systemd: %w", err)
		}
		g.systemd = err == nil
	case Systemd:
		g.systemd = true
	case Cgroupfs:
	default:
		return g, fmt.Errorf("cgroup driver %q is not supported: must be auto, cgroupfs or systemd", driver)
	}
	return g, nil
}

// Systemd reports whether systemd creates the cgroups.
func (g Groups) Systemd() bool { return g.systemd }

// OCIPath returns the cgroup of a container in the form of the OCI runtime specification (linux.cgroupsPath).
func (g Groups) OCIPath(uid, id string) string {
	if g.Without(uid) {
		return "" // the OCI runtime then tolerates that it cannot create one
	}
	if g.systemd {
		return slice(uid) + ":" + unitPrefix + ":" + id
	}
	return path.Join(g.root, uid, id)
}

// Trial returns the cgroup of a container that belongs to no pod, relative to the mount point of a hierarchy. It is beside those of pods.
func (g Groups) Trial(name string) string {
	if g.None() {
		return ""
	}
	if g.systemd {
		return path.Join(g.Parent(), unitPrefix+"-"+name+".scope")
	}
	return path.Join(g.root, name)
}

// TrialOCIPath returns the cgroup of [Groups.Trial] in the form of the OCI runtime specification.
func (g Groups) TrialOCIPath(name string) string {
	if g.systemd {
		return unitPrefix + ".slice:" + unitPrefix + ":" + name
	}
	return g.Trial(name)
}

// RemoveShim removes the cgroup of the shim of a pod that an earlier version has started, if it has exited.
func (g Groups) RemoveShim(uid string) error {
	if g.systemd || g.pidOf != nil { // systemd removes an empty scope, and without root there was never a shim
		return nil
	}
	return cgroup.Remove(path.Join(g.root, uid+"-shim"))
}

// Monitor returns the cgroup in which the monitor is started. It is empty with systemd, where [Groups.PlaceMonitor] moves it afterwards.
func (g Groups) Monitor() string {
	if g.systemd || g.None() {
		return ""
	}
	return path.Join(g.root, "monitor")
}

// monitorScope is the start of the names of the scopes of monitors. One is named after the keeper with which it was started: a scope of an
// earlier keeper may still exist, and systemd may be about to remove it.
const monitorScope = unitPrefix + "-monitor-"

// MonitorMemory is the memory of the monitor and its keeper that is not reclaimed for others, in bytes. It is above what they use: a few
// MiB, and the files that they execute. packaging/podstead.slice has the same number: a cgroup gets at most the protection of its parent.
const MonitorMemory = 32 << 20

// PlaceMonitor moves the processes of the monitor to their cgroup, unless they are there, and protects its memory. The keeper is the first
// one.
func (g Groups) PlaceMonitor(ctx context.Context, pids ...int) error {
	if g.pidOf != nil { // delegated cgroups have it from its start, and nothing protects them
		return nil
	}
	if !g.systemd {
		return cgroup.ProtectMemory(g.Monitor(), MonitorMemory)
	}
	if !slices.ContainsFunc(pids, func(pid int) bool { return !inMonitorScope(cgroupsOf(pid)) }) {
		return nil
	}
	name := monitorScope + strconv.Itoa(pids[0]) + ".scope"
	if err := startScope(ctx, name, "Podstead monitor", protection(g.unified), pids...); err != nil {
		return err
	}
	for _, pid := range pids {
		if text := cgroupsOf(pid); text != "" && !inMonitorScope(text) {
			return fmt.Errorf("start %s: a scope with this name exists, and process %d is not in it", name, pid)
		}
	}
	return nil
}

// cgroupsOf returns the text of cgroups(7) about a process; "": it has exited.
func cgroupsOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return string(text)
}

// inMonitorScope reports whether the text of cgroups(7) about a process has a scope of a monitor.
func inMonitorScope(text string) bool {
	return strings.Contains(text, "/"+unitPrefix+".slice/"+monitorScope)
}

// Limit creates the cgroup of a pod if it does not exist, and sets its limits. With systemd the files are written too, because
// older versions of systemd do not support every limit, and round others.
func (g Groups) Limit(ctx context.Context, uid string, l cgroup.Limits) error {
	if g.Without(uid) {
		return nil // admission rejects pods with limits
	}
	if g.systemd {
		if err := startSlice(ctx, uid, l, g.unified); err != nil {
			return err
		}
	}
	if g.IsDelegated() {
		return cgroup.SetLimitsBelow(g.root, g.Pod(uid), l)
	}
	return cgroup.SetLimits(g.Pod(uid), l)
}

// Raise is [Groups.Limit] for limits of CPU time and of memory that are higher than those of the cgroup. It does not lower others: a resize
// does that when the containers need no more.
func (g Groups) Raise(ctx context.Context, uid string, l cgroup.Limits) error {
	if g.Without(uid) {
		return nil
	}
	now, err := cgroup.LimitsOf(g.Pod(uid))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return g.Limit(ctx, uid, l)
	case err != nil:
		return err
	}
	l.HugePages = nil // they change with a restart of the pod only
	return g.Limit(ctx, uid, l.AtLeast(now))
}

// Features reports whether the cgroup of a pod can limit swap, and whether it can kill all its processes when one is out of memory.
func (g Groups) Features(uid string) (swap, oomGroup bool, err error) {
	if g.Without(uid) {
		return false, false, nil
	}
	has := func(name string) (bool, error) {
		_, err := os.Stat(filepath.Join(g.memory(), g.Pod(uid), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		return err == nil, nil
	}
	swapFile := "memory.memsw.limit_in_bytes"
	if g.unified {
		swapFile = "memory.swap.max"
	}
	swap, err1 := has(swapFile)
	oomGroup, err2 := has("memory.oom.group")
	return swap, oomGroup, errors.Join(err1, err2)
}

// Remove removes the cgroup of a pod with all that is in it, see [Groups.Clear]. systemd stops a slice after its processes were killed:
// it would wait for one that ignores SIGTERM, and for frozen ones.
func (g Groups) Remove(ctx context.Context, uid string) (Cleared, error) {
	if g.Without(uid) {
		return g.Clear(ctx, uid)
	}
	if !g.systemd && cgroup.Remove(g.Pod(uid)) == nil {
		return Cleared{}, nil
	}
	cleared, err := g.Clear(ctx, uid)
	if err == nil && g.systemd {
		err = stopSlice(ctx, uid)
	}
	if err != nil {
		return cleared, err
	}
	dirs, err := cgroup.Dirs(g.Pod(uid)) // with systemd, those of hierarchies that it does not use, such as freezer
	for _, dir := range dirs {
		err = errors.Join(err, cgroup.RemoveTree(ctx, dir))
	}
	return cleared, err
}

// Close removes the root if no pod is left. A delegated one is that of systemd.
func (g Groups) Close() error {
	if g.systemd || g.pidOf != nil {
		return nil
	}
	err := cgroup.Remove(g.root)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// Kill kills the processes of a container, or of a sandbox's process, that has no shim, and removes its cgroup. Otherwise the
// cgroup of the pod could not be removed. An OCI runtime that was killed may have created the cgroup in some hierarchies only.
//
// Without cgroups it kills the PID namespace of the container's first process, see [proctree.KillCgroup].
func (g Groups) Kill(ctx context.Context, uid, id string) error {
	if g.Without(uid) {
		name, err := proctree.Contained(g.pidOf(id))
		if err == nil && name != "" {
			err = proctree.KillCgroup(ctx, []string{name})
		}
		if err != nil {
			return fmt.Errorf("kill processes of container %s: %w", id, err)
		}
		return nil
	}
	dirs, err := cgroup.Dirs(g.Container(uid, id))
	if err == nil && len(dirs) > 0 {
		err = proctree.KillCgroup(ctx, dirs)
	}
	for _, dir := range dirs {
		if err == nil && !g.systemd { // systemd removes an empty scope
			err = cgroup.RemoveTree(ctx, dir)
		}
	}
	if err != nil {
		return fmt.Errorf("kill processes of container %s: %w", id, err)
	}
	return nil
}

// Container returns the cgroup of a container, relative to the mount point of a hierarchy.
func (g Groups) Container(uid, id string) string {
	if g.Without(uid) {
		return ""
	}
	if g.systemd {
		return path.Join(g.Pod(uid), unitPrefix+"-"+id+".scope")
	}
	return path.Join(g.Pod(uid), id)
}

// ProcessDir returns the directory of a container's cgroup in a hierarchy that lists its processes or, without cgroups, the PID namespace
// of the container in the form of [proctree.NamespaceOf].
func (g Groups) ProcessDir(uid, id string) string {
	if g.Without(uid) {
		return proctree.NamespaceOf(g.pidOf(id))
	}
	return filepath.Join(g.processes, g.Container(uid, id))
}

// InPod reports whether a process is in the cgroup of a pod or, without cgroups, in the PID namespace of a container.
func (g Groups) InPod(pid int) bool {
	if g.pidOf != nil && proctree.NamespaceOf(pid) != "" {
		return true
	}
	return !g.None() && g.namesPod(cgroupsOf(pid))
}

// namesPod reports whether the text of cgroups(7) about a process has the cgroup of a pod in any hierarchy.
func (g Groups) namesPod(text string) bool {
	for line := range strings.Lines(text) {
		if _, below, found := strings.Cut(line, ":"+g.Parent()+"/"); found {
			if name, _, _ := strings.Cut(strings.TrimSpace(below), "/"); g.podUID(name) != "" {
				return true
			}
		}
	}
	return false
}

// OOMKilled reports whether the kernel has OOM-killed a process of a container, if the container's cgroup still exists. It is for a
// container whose shim could not record this.
func (g Groups) OOMKilled(uid, id string) bool {
	if g.Without(uid) {
		return false
	}
	kills, err := cgroup.MemoryGroupIn(filepath.Join(g.memory(), g.Container(uid, id)), g.unified).OOMKills()
	return err == nil && kills > 0
}

// Parent returns the cgroup that contains the cgroups of all pods, relative to the mount point of a hierarchy.
func (g Groups) Parent() string {
	if g.systemd {
		return path.Join("/", unitPrefix+".slice")
	}
	return g.root
}

// Pod returns the cgroup of a pod, which contains those of its containers, relative to the mount point of a hierarchy.
func (g Groups) Pod(uid string) string {
	if g.Without(uid) {
		return ""
	}
	if g.systemd {
		return path.Join(g.Parent(), slice(uid))
	}
	return path.Join(g.Parent(), uid)
}

// memory returns the mount point of the hierarchy with the memory controller.
func (g Groups) memory() string {
	if g.unified {
		return "/sys/fs/cgroup"
	}
	return "/sys/fs/cgroup/memory"
}

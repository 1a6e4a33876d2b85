package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/oci"
)

// CgroupDriver says who makes the cgroups of containers.
type CgroupDriver string

// The cgroup drivers.
const (
	CgroupAuto    CgroupDriver = "auto"     // systemd where it is the init, else cgroupfs
	CgroupFS      CgroupDriver = "cgroupfs" // the OCI runtime and the shim make them
	CgroupSystemd CgroupDriver = "systemd"  // systemd makes them: a slice for each pod, a scope for each container
)

// cgroups says where the processes of pods lie. That is never below the cgroup of this process, with which it could be
// killed or limited.
type cgroups struct {
	root    string
	systemd bool
	unified bool
	lists   string // where a hierarchy is mounted that lists the processes of containers
}

func newCgroups(o Options, unified bool) (cgroups, error) {
	g := cgroups{root: o.CgroupRoot, unified: unified}
	var err error
	if g.lists, err = cgroup.Lists(); err != nil {
		return g, err
	}
	switch o.CgroupDriver {
	case CgroupAuto:
		_, err := os.Stat("/run/systemd/system") // sd_booted(3)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return g, fmt.Errorf("look for systemd: %w", err)
		}
		g.systemd = err == nil
	case CgroupSystemd:
		g.systemd = true
	case CgroupFS:
	default:
		return g, fmt.Errorf("cgroup driver %q is none of auto, cgroupfs, systemd", o.CgroupDriver)
	}
	return g, nil
}

// spec is the place of a container in the form that the OCI runtime takes.
func (g cgroups) spec(uid, id string) string {
	if g.systemd {
		return slice(uid) + ":" + unitPrefix + ":" + id
	}
	return path.Join(g.root, uid, id)
}

// shim is the place in which a pod's shim is to be born; with systemd it is moved to its own afterwards. It is beside the
// pod's cgroup, not in it: a shim is neither starved nor killed for what its pod uses, and takes nothing of the pod's limits.
func (g cgroups) shim(uid string) string {
	if g.systemd {
		return ""
	}
	return path.Join(g.root, uid+"-shim")
}

// pod is the place of a pod, in which its containers lie.
func (g cgroups) pod(uid string) string {
	if g.systemd {
		return path.Join("/", unitPrefix+".slice", slice(uid))
	}
	return path.Join(g.root, uid)
}

// bound makes the cgroup of a pod, if it is not there, and bounds it. With systemd, which is told so that it keeps the limits,
// the files are written too: older ones do not know every limit, and round others.
func (g cgroups) bound(ctx context.Context, uid string, l cgroup.Limits) error {
	if g.systemd {
		if err := startSlice(ctx, uid, l, g.unified); err != nil {
			return err
		}
	}
	return cgroup.Bound(g.pod(uid), l)
}

// shows is what the cgroup of a pod shows.
func (g cgroups) shows(uid string) (oci.PodCgroup, error) {
	has := func(name string) (bool, error) {
		_, err := os.Stat(filepath.Join(g.memory(), g.pod(uid), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		return err == nil, nil
	}
	swap := "memory.memsw.limit_in_bytes"
	if g.unified {
		swap = "memory.swap.max"
	}
	var p oci.PodCgroup
	var err1, err2 error
	p.Swap, err1 = has(swap)
	p.OOMGroup, err2 = has("memory.oom.group")
	return p, errors.Join(err1, err2)
}

// place gives a new shim its place where it was not born there.
func (g cgroups) place(ctx context.Context, uid string, sandbox, pid int) error {
	if g.systemd {
		return startScope(ctx, uid, sandbox, pid)
	}
	return nil
}

// remove takes away the cgroup of a pod. Where it has processes or children, the error is EBUSY.
func (g cgroups) remove(ctx context.Context, uid string) error {
	if g.systemd {
		return stopSlice(ctx, uid)
	}
	return cgroup.Remove(g.pod(uid))
}

// close takes away the root of all pods, if no pod is left.
func (g cgroups) close() error {
	if g.systemd {
		return nil
	}
	err := cgroup.Remove(g.root)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// kill ends whatever is left of a container, or of a sandbox's process, that nobody else looks after, and takes its cgroup away,
// in which the pod's could not be removed. Who was killed while making it may have come to some of the hierarchies only.
func (g cgroups) kill(ctx context.Context, uid, id string) error {
	dirs, err := cgroup.Dirs(g.dir(uid, id))
	for _, dir := range dirs {
		all := tree{cgroup: dir, belongs: func(string) bool { return true }}
		err = errors.Join(err, all.kill(ctx))
		if err == nil && !g.systemd { // which removes an empty scope
			err = cgroup.RemoveTree(dir)
		}
	}
	if err != nil {
		return fmt.Errorf("end what is left of container %s: %w", id, err)
	}
	return nil
}

// memory is where the hierarchy is mounted that has the memory controller.
func (g cgroups) memory() string {
	if g.unified {
		return "/sys/fs/cgroup"
	}
	return "/sys/fs/cgroup/memory"
}

// procs is the folder of a container's cgroup in a hierarchy that lists its processes.
func (g cgroups) procs(uid, id string) string { return filepath.Join(g.lists, g.dir(uid, id)) }

// dir is the place of a container below the mount of a hierarchy.
func (g cgroups) dir(uid, id string) string {
	if g.systemd {
		return path.Join(g.pod(uid), unitPrefix+"-"+id+".scope")
	}
	return path.Join(g.pod(uid), id)
}

// oomKilled reports whether the kernel has killed a process of a container for want of memory, as far as the container's
// cgroup is still there to tell. What the shim has written down is certain; this is for a shim that could not write any more.
func (g cgroups) oomKilled(uid, id string) bool {
	kills, err := cgroup.MemoryGroupIn(filepath.Join(g.memory(), g.dir(uid, id)), g.unified).OOMKills()
	return err == nil && kills > 0
}

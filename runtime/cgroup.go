package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/shim"
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
}

func newCgroups(o Options, unified bool) (cgroups, error) {
	g := cgroups{root: o.CgroupRoot, unified: unified}
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

// shim is the place in which a pod's shim is to be born; with systemd it is moved to its own afterwards.
func (g cgroups) shim(uid string) string {
	if g.systemd {
		return ""
	}
	return path.Join(g.root, uid, "shim")
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
	return shim.RemoveCgroup(path.Join(g.root, uid))
}

// close takes away the root of all pods, if no pod is left.
func (g cgroups) close() error {
	if g.systemd {
		return nil
	}
	err := shim.RemoveCgroup(g.root)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// kill ends whatever is left of a container that nobody else looks after, and takes its cgroup away, in which the pod's
// could not be removed.
func (g cgroups) kill(ctx context.Context, uid, id string) error {
	tick := time.NewTicker(goneInterval)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(g.file(uid, id, "cgroup.procs"))
		// A cgroup that is removed while it is read has no such device.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for processes of container %s: %w", id, err)
		}
		pids := strings.Fields(string(text))
		if len(pids) == 0 {
			if g.systemd {
				return nil // which removes an empty scope
			}
			return shim.RemoveCgroup(path.Join(g.root, uid, id))
		}
		for _, p := range pids {
			if pid, err := strconv.Atoi(p); err == nil && pid > 0 {
				_ = unix.Kill(pid, unix.SIGKILL) // it may have ended by itself
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("end processes %v of container %s: %w", pids, id, ctx.Err())
		}
	}
}

// file is a file of a container's cgroup, in the hierarchy that has the memory controller.
func (g cgroups) file(uid, id, name string) string {
	mount := "/sys/fs/cgroup/memory"
	if g.unified {
		mount = "/sys/fs/cgroup"
	}
	return filepath.Join(mount, g.dir(uid, id), name)
}

// procs is the folder of a container's cgroup in a hierarchy that lists its processes.
func (g cgroups) procs(uid, id string) string { return filepath.Dir(g.file(uid, id, "cgroup.procs")) }

// dir is the place of a container below the mount of a hierarchy.
func (g cgroups) dir(uid, id string) string {
	if g.systemd {
		return path.Join(unitPrefix+".slice", slice(uid), unitPrefix+"-"+id+".scope")
	}
	return path.Join(g.root, uid, id)
}

// oomKilled reports whether the kernel has killed a process of the container for want of memory. It is to be asked
// before the container's task is deleted, and its cgroup with it. A scope of systemd is gone as soon as it is empty:
// then nobody knows.
func (g cgroups) oomKilled(uid, id string) bool {
	name := "memory.oom_control"
	if g.unified {
		name = "memory.events"
	}
	text, err := os.ReadFile(g.file(uid, id, name))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(text) {
		if name, count, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); string(name) == "oom_kill" {
			return string(count) != "0"
		}
	}
	return false
}

package namespace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
)

// setSysctls sets the pod's sysctls in order, in the namespaces of the calling thread. They apply to all containers of
// the pod while the namespaces are pinned.
//
// With a user namespace, the kernel allows the host's root to write sysctls of the network namespace, and the pod's root
// to write those of the IPC namespace. The latter are set last, since the thread then stays the pod's root.
func setSysctls(o Options) error {
	list := slices.Clone(o.Sysctls)
	if o.IDs.Own() {
		order.Sort(list, func(a, b spec.Sysctl) int { return cmp.Compare(ipcLast(a), ipcLast(b)) })
	}
	root := false
	for _, s := range list {
		if o.IDs.Own() && ipcLast(s) > 0 && !root {
			if err := becomeRoot(o.IDs); err != nil {
				return fmt.Errorf("set sysctl %s: %w", s.Name, err)
			}
			root = true
		}
		if err := setSysctl(o, s); err != nil {
			return err
		}
	}
	return nil
}

// ipcLast is a sort key that orders sysctls of the IPC namespace last.
func ipcLast(s spec.Sysctl) int {
	if spec.SysctlNamespace(spec.SysctlName(s.Name)) == "ipc" {
		return 1
	}
	return 0
}

func setSysctl(o Options, s spec.Sysctl) error {
	name := spec.SysctlName(s.Name)
	if !o.ownsSysctl(name) {
		return fmt.Errorf("set sysctl %s: not in a namespace of the pod", name)
	}
	path := filepath.Join("/proc/sys", filepath.Join("/", spec.SysctlPath(name)))
	err := writeSysctl(path, s.Value)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("set sysctl %s: not supported by the kernel", name)
	case err != nil:
		return fmt.Errorf("set sysctl %s to %q: %w", name, s.Value, err)
	}
	return nil
}

// writeSysctl writes to an existing file with one call.
func writeSysctl(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// ownsSysctl reports whether a sysctl belongs to a namespace of the pod. Any other would change the host.
func (o Options) ownsSysctl(name string) bool {
	switch spec.SysctlNamespace(name) {
	case "net":
		return o.has(unix.CLONE_NEWNET)
	case "ipc":
		return o.has(unix.CLONE_NEWIPC)
	}
	return false
}

package netns

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// setSysctls sets the pod's kernel parameters, in its order, in the namespaces that the calling thread is in. So they hold for
// every container of the pod from the first one on, and for as long as the namespaces are pinned.
//
// In a user namespace, the kernel lets the machine's root write to those of the network, and the pod's root to those of IPC. So these
// come last, and the thread has become the pod's root afterwards.
func setSysctls(o Options) error {
	list := slices.Clone(o.Sysctls)
	if o.IDs.First != 0 {
		slices.SortStableFunc(list, func(a, b spec.Sysctl) int { return cmp.Compare(ipcLast(a), ipcLast(b)) })
	}
	root := false
	for _, s := range list {
		if o.IDs.First != 0 && ipcLast(s) > 0 && !root {
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

// ipcLast orders parameters of IPC behind the others.
func ipcLast(s spec.Sysctl) int {
	if spec.SysctlNamespace(spec.SysctlName(s.Name)) == "ipc" {
		return 1
	}
	return 0
}

func setSysctl(o Options, s spec.Sysctl) error {
	name := spec.SysctlName(s.Name)
	if !o.ownsSysctl(name) {
		return fmt.Errorf("set sysctl %s: it belongs to no namespace of the pod's own", name)
	}
	path := filepath.Join("/proc/sys", filepath.Join("/", spec.SysctlPath(name)))
	err := writeSysctl(path, s.Value)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("set sysctl %s: the kernel has no such parameter", name)
	case err != nil:
		return fmt.Errorf("set sysctl %s to %q: %w", name, s.Value, err)
	}
	return nil
}

// writeSysctl writes to a file that is there, in one piece.
func writeSysctl(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// ownsSysctl reports whether a parameter is one of the pod's own namespaces: any other would be changed for the whole machine.
func (o Options) ownsSysctl(name string) bool {
	switch spec.SysctlNamespace(name) {
	case "net":
		return o.wants(unix.CLONE_NEWNET)
	case "ipc":
		return o.wants(unix.CLONE_NEWIPC)
	}
	return false
}

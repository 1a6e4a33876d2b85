package ocibundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/containerd/containerd/api/types"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// PIDAnnotation of a sandbox's specification is the path of the file to which the PID namespace of the sandbox's process is
// bind-mounted. Its directory must exist.
const PIDAnnotation = "podstead.io/pid-namespace"

// PauseRoot returns the root file system of a sandbox's process, which contains only mount points. It belongs to the root of the
// user namespace, since other users cannot create them.
func PauseRoot(spec *specs.Spec) []*types.Mount {
	options := []string{"nosuid", "nodev", "size=64k", "mode=0755"}
	if spec.Linux != nil {
		for _, m := range spec.Linux.UIDMappings {
			if m.ContainerID == 0 {
				options = append(options, fmt.Sprintf("uid=%d", m.HostID))
			}
		}
		for _, m := range spec.Linux.GIDMappings {
			if m.ContainerID == 0 {
				options = append(options, fmt.Sprintf("gid=%d", m.HostID))
			}
		}
	}
	return []*types.Mount{{Type: "tmpfs", Source: "pause", Options: options}}
}

// PinPID keeps the PID namespace of a process by a bind mount on a file; empty: it does nothing. A path in /proc would refer to another
// process as soon as the PID is reused.
func PinPID(pid int, file string) error {
	if file == "" {
		return nil
	}
	// A start of the sandbox that was interrupted can leave one here.
	err := unix.Unmount(file, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pin PID namespace: unmount %s: %w", file, err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return fmt.Errorf("pin PID namespace: %w", err)
	}
	if err := unix.Mount(fmt.Sprintf("/proc/%d/ns/pid", pid), file, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("pin PID namespace: mount %s: %w", file, err)
	}
	return nil
}

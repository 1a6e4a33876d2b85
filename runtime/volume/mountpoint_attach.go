package volume

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// flagOptions are the options of a bind mount that are flags of the mount.
var flagOptions = map[string]uintptr{
	"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
}

// recursiveOptions are the options of a bind mount that apply to the mounts below it too: the attribute, and the option of the mount alone.
var recursiveOptions = map[string]struct {
	attribute uint64
	option    string
}{"rro": {unix.MOUNT_ATTR_RDONLY, "ro"}, "rnosuid": {unix.MOUNT_ATTR_NOSUID, "nosuid"}}

// noSymFollow is ST_NOSYMFOLLOW of statfs(2), another value than the flag of mount(2).
const noSymFollow = 0x2000

// AttachMount mounts a file or directory, with everything that is mounted below it, on an open file or directory. Neither path is resolved
// again. The options are those of an OCI bind mount. It returns a descriptor of the root of the new mount.
func AttachMount(source string, target int, options []string) (root int, err error) {
	root, err = unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("bind mount %s: %w", source, err)
	}
	defer func() {
		if err != nil {
			unix.Close(root)
		}
	}()
	if err := unix.MoveMount(root, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return -1, fmt.Errorf("bind mount %s: %w", source, err)
	}
	if err := setOptions(root, options); err != nil {
		return -1, fmt.Errorf("set options of mount %s: %w", source, err)
	}
	return root, nil
}

// setOptions applies the options of an OCI bind mount to a mount, given a descriptor of its root. Flags that the mount has are kept.
func setOptions(root int, options []string) error {
	propagation, flags := uintptr(unix.MS_PRIVATE), uintptr(0)
	for _, o := range options {
		switch o {
		case "rbind", "rprivate", "rw":
		case "rslave":
			propagation = unix.MS_SLAVE
		case "rro", "rnosuid":
			if err := setRecursively(root, recursiveOptions[o].attribute); err != nil {
				return err
			}
		default:
			flag, known := flagOptions[o]
			if !known {
				return fmt.Errorf("option %q is not supported", o)
			}
			flags |= flag
		}
	}
	path := fdPath(root)
	if err := unix.Mount("", path, "", propagation|unix.MS_REC, ""); err != nil || flags == 0 {
		return err
	}
	var has unix.Statfs_t
	if err := unix.Fstatfs(root, &has); err != nil {
		return err
	}
	for _, flag := range flagOptions { // the same values as ST_RDONLY and so on
		flags |= uintptr(has.Flags) & flag
	}
	if has.Flags&noSymFollow != 0 {
		flags |= unix.MS_NOSYMFOLLOW
	}
	return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|flags, "")
}

// MakeMountReadOnly makes a mount and all mounts below it read-only, given a descriptor of its root.
func MakeMountReadOnly(root int) error { return setRecursively(root, unix.MOUNT_ATTR_RDONLY) }

// setRecursively sets an attribute of a mount and of all mounts below it, given a descriptor of its root.
func setRecursively(root int, attribute uint64) error {
	return unix.MountSetattr(root, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attribute})
}

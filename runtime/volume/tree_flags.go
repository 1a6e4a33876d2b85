package volume

import (
	"golang.org/x/sys/unix"
)

// Flags of files that keep root from removing them, see chattr(1). A container with CAP_LINUX_IMMUTABLE can set them.
const protected = 0x10 | 0x20 // FS_IMMUTABLE_FL, FS_APPEND_FL

// unprotect clears the flags of an open file or directory that keep it, or the entries of the directory, from being removed. It reports
// whether it has cleared any. A file system without such flags has nothing to clear.
func unprotect(fd int) bool {
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err != nil || flags&protected == 0 {
		return false
	}
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags&^protected)) == nil
}

// unprotectEntry is unprotect for an entry of a directory. Only regular files and directories have flags, and opening others can have side
// effects.
func unprotectEntry(parent int, name string) bool {
	fd, err := unix.Openat2(parent, name, &unix.OpenHow{Flags: openEntry, Resolve: resolveEntry})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG && stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	reading, err := unix.Open(fdPath(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(reading)
	return unprotect(reading)
}

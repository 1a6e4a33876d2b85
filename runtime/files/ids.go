package files

import (
	"archive/tar"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/runtime/namespace"
)

// overflowID is the ID that a user namespace shows for IDs that it does not have.
const overflowID = 65534

// inside returns the translation of IDs of the host to those that the container sees.
func inside(ids namespace.IDRange) func(uint32) int {
	return func(id uint32) int {
		switch {
		case ids.First == 0:
			return int(ids.Swap(id))
		case id < ids.First || id-ids.First >= namespace.IDRangeSize:
			return overflowID
		}
		return int(id - ids.First)
	}
}

// outside translates an ID of the container to that of the host.
func outside(ids namespace.IDRange, id int) (int, error) {
	limit := int64(1<<32 - 1) // the last one stands for no change
	switch {
	case ids.First != 0:
		limit = namespace.IDRangeSize
	case ids.Kept != 0:
		limit = int64(ids.Last) + 1
	}
	if id < 0 || int64(id) >= limit {
		return 0, fmt.Errorf("owner %d does not exist in the container, which has the IDs 0 to %d; use --no-preserve", id, limit-1)
	}
	return int(ids.First + ids.Swap(uint32(id))), nil
}

// attributes returns the attributes of created files. Without Preserve, files belong to the user of the container, have no setuid bit and
// can be written only by their owner.
func (c *container) attributes(o Options) func(*tar.Header) (filecopy.Attributes, error) {
	return func(h *tar.Header) (filecopy.Attributes, error) {
		uid, gid, a := h.Uid, h.Gid, filecopy.Attributes{Mode: uint32(h.Mode & 0o7777), ModTime: h.ModTime}
		if !o.Preserve {
			uid, gid, a = 0, 0, filecopy.Attributes{Mode: uint32(h.Mode & 0o755)}
			if c.spec.Process != nil {
				uid, gid = int(c.spec.Process.User.UID), int(c.spec.Process.User.GID)
			}
		}
		var err error
		if a.UID, err = outside(c.ids, uid); err == nil {
			a.GID, err = outside(c.ids, gid)
		}
		return a, err
	}
}

// writeCapabilities are those that a write needs. Without CAP_SYS_RESOURCE, it has no more disk space than the container.
const writeCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_FSETID

// assume makes the root of the container the creator of the files of this thread: in a mount that is id-mapped, others cannot create files.
// The thread must end afterwards.
func assume(ids namespace.IDRange) error {
	for _, call := range []uintptr{unix.SYS_SETFSGID, unix.SYS_SETFSUID} { // the functions of package syscall would change all threads
		_, _, _ = unix.RawSyscall(call, uintptr(ids.First), 0, 0)
		if now, _, _ := unix.RawSyscall(call, ^uintptr(0), 0, 0); now != uintptr(ids.First) {
			return fmt.Errorf("assume the user %d of the container: is %d", ids.First, now)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("get capabilities: %w", err)
	}
	// Setting the user has cleared the effective set; the permitted one has them still.
	data[0].Effective, data[1].Effective = data[0].Permitted&writeCapabilities, 0
	data[0].Inheritable, data[1].Inheritable = 0, 0
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("set capabilities: %w", err)
	}
	return nil
}

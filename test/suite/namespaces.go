package suite

import (
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// loopback sets up the loopback of the network namespace of this process.
func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// ownMounts ends the propagation between the mounts of this process and those of the host. If the root of the host is shared, as systemd
// makes it, that of this process is, with the mount namespaces that tests create.
func ownMounts() error {
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter("/"))
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")
	}
	if err == nil && len(mounts) > 0 && strings.Contains(mounts[0].Optional, "shared:") {
		err = unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, "")
	}
	if err != nil {
		return fmt.Errorf("change propagation of mounts: %w", err)
	}
	return nil
}

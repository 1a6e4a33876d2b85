package suite

import (
	"github.com/vishvananda/netlink"
)

// loopback sets up the loopback of the network namespace of this process.
func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// Package loopback sets up the loopback of new network namespaces. It imports little, because the process that holds namespaces uses it.
package loopback

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Up sets up the loopback of the network namespace of the calling thread.
func Up() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	defer unix.Close(socket)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	return nil
}

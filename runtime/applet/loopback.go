package applet

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// UpLoopback sets up the loopback of the network namespace of the calling thread. The daemon does the same in the namespaces of pods.
func UpLoopback() error {
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

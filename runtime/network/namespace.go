package network

import (
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/namespace"
)

// replyTimeout bounds each wait for a reply of the kernel.
const replyTimeout = 10 * time.Second

// Namespace is a network namespace: that of this process (the zero value), or that of an open file.
type Namespace struct{ file *os.File }

// OpenNamespace opens the network namespace at path. Empty means the namespace of this process. The caller calls Close.
func OpenNamespace(path string) (Namespace, error) {
	if path == "" {
		return Namespace{}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return Namespace{}, fmt.Errorf("open network namespace: %w", err)
	}
	return Namespace{file}, nil
}

// Close closes the file of the namespace.
func (n Namespace) Close() error {
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}

// Do runs f on a thread in the namespace. Sockets that f opens stay in the namespace; goroutines that f starts do not run
// in it.
func (n Namespace) Do(f func() error) error {
	if n.file == nil {
		return f()
	}
	return namespace.OnOwnThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return f()
	})
}

// Netlink opens a connection for links, addresses and routes. The caller closes it.
func (n Namespace) Netlink() (*netlink.Handle, error) { return n.open(unix.NETLINK_ROUTE) }

// Conntrack opens a connection to the connection tracking table. The caller closes it.
func (n Namespace) Conntrack() (*netlink.Handle, error) { return n.open(unix.NETLINK_NETFILTER) }

// open opens a netlink connection. A family that the kernel does not support is an error.
func (n Namespace) open(families ...int) (h *netlink.Handle, err error) {
	if n.file == nil {
		h, err = netlink.NewHandle(families...)
	} else {
		h, err = netlink.NewHandleAt(vnetns.NsHandle(n.file.Fd()), families...)
	}
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	if err := h.SetSocketTimeout(replyTimeout); err != nil {
		h.Close()
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return h, nil
}

// Fd returns the file descriptor of a namespace that was opened by path.
func (n Namespace) Fd() uintptr { return n.file.Fd() }

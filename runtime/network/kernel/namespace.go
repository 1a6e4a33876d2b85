package kernel

import (
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/netns"
)

// Timeout bounds each wait for an answer of the kernel.
const Timeout = 10 * time.Second

// namespace is a network namespace: the one that this process is in, or that of an open file.
type Namespace struct{ file *os.File }

// Open opens the namespace at path; empty is the one that this process is in.
func Open(path string) (Namespace, error) {
	if path == "" {
		return Namespace{}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return Namespace{}, fmt.Errorf("open network namespace: %w", err)
	}
	return Namespace{file}, nil
}

func (n Namespace) Close() error {
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}

// do runs f on a thread that is in the namespace. What f starts is not, and sockets that it opens stay there.
func (n Namespace) Do(f func() error) error {
	if n.file == nil {
		return f()
	}
	return netns.OnOwnThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return f()
	})
}

// links opens a connection to the namespace's links, addresses and routes. The caller closes it.
func (n Namespace) Netlink() (*netlink.Handle, error) { return n.open(unix.NETLINK_ROUTE) }

// flows opens a connection to the namespace's table of flows. The caller closes it.
func (n Namespace) Conntrack() (*netlink.Handle, error) { return n.open(unix.NETLINK_NETFILTER) }

// open opens a connection to a part of the kernel's networking. One that the kernel does not have is an error.
func (n Namespace) open(families ...int) (h *netlink.Handle, err error) {
	if n.file == nil {
		h, err = netlink.NewHandle(families...)
	} else {
		h, err = netlink.NewHandleAt(vnetns.NsHandle(n.file.Fd()), families...)
	}
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	if err := h.SetSocketTimeout(Timeout); err != nil {
		h.Close()
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return h, nil
}

// Fd returns the file descriptor of an opened namespace.
func (n Namespace) Fd() uintptr { return n.file.Fd() }

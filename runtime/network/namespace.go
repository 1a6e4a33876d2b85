package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/nftables"
	mnetlink "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/netns"
)

// netlinkTimeout bounds each wait for an answer of the kernel.
const netlinkTimeout = 10 * time.Second

// namespace is a network namespace: the one that this process is in, or that of an open file.
type namespace struct{ file *os.File }

// openNamespace opens the namespace at path; empty is the one that this process is in.
func openNamespace(path string) (namespace, error) {
	if path == "" {
		return namespace{}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return namespace{}, fmt.Errorf("open network namespace: %w", err)
	}
	return namespace{file}, nil
}

func (n namespace) close() error {
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}

// do runs f on a thread that is in the namespace. What f starts is not, and sockets that it opens stay there.
func (n namespace) do(f func() error) error {
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
func (n namespace) links() (*netlink.Handle, error) { return n.open(unix.NETLINK_ROUTE) }

// flows opens a connection to the namespace's table of flows. The caller closes it.
func (n namespace) flows() (*netlink.Handle, error) { return n.open(unix.NETLINK_NETFILTER) }

// open opens a connection to a part of the kernel's networking. One that the kernel does not have is an error.
func (n namespace) open(families ...int) (h *netlink.Handle, err error) {
	if n.file == nil {
		h, err = netlink.NewHandle(families...)
	} else {
		h, err = netlink.NewHandleAt(vnetns.NsHandle(n.file.Fd()), families...)
	}
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	if err := h.SetSocketTimeout(netlinkTimeout); err != nil {
		h.Close()
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return h, nil
}

// firewall is a connection to a namespace's nftables.
type firewall struct {
	*nftables.Conn
	socket *mnetlink.Conn
}

// nft opens a connection to the namespace's nftables, whose answers come within netlinkTimeout. The caller closes it.
func (n namespace) nft() (*firewall, error) {
	f := &firewall{}
	options := []nftables.ConnOption{nftables.AsLasting(), nftables.WithSockOptions(func(c *mnetlink.Conn) error {
		f.socket = c
		return c.SetDeadline(time.Now().Add(netlinkTimeout))
	})}
	if n.file != nil {
		options = append(options, nftables.WithNetNSFd(int(n.file.Fd())))
	}
	var err error
	if f.Conn, err = nftables.New(options...); err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	return f, nil
}

// nft calls f with a connection to nftables that is kept: when one is closed after something was deleted, the kernel lets
// the caller wait for 10 ms until the memory is free. After an error it is not used again, since answers may be left in it.
// The turn is held.
func (n *Network) nft(ctx context.Context, f func(*firewall) error) error {
	err := ctx.Err()
	if err == nil && n.firewall == nil {
		n.firewall, err = n.place.nft()
	}
	if err != nil {
		return err
	}
	if err = n.firewall.socket.SetDeadline(time.Now().Add(netlinkTimeout)); err == nil {
		err = f(n.firewall)
	}
	if err != nil {
		return errors.Join(err, n.closeNFT())
	}
	return nil
}

func (n *Network) closeNFT() error {
	if n.firewall == nil {
		return nil
	}
	f := n.firewall
	n.firewall = nil
	return f.CloseLasting()
}

// The sysctls below are those of the calling thread's namespace.

func sysctlPath(name string) string {
	return filepath.Join("/proc/sys/net", filepath.FromSlash(name))
}

// sysctl reads a setting below net, such as ipv4/ip_forward.
func sysctl(name string) (string, error) {
	value, err := os.ReadFile(sysctlPath(name))
	return strings.TrimSpace(string(value)), err
}

// setSysctl makes a setting below net have a value. One that has it is not written: /proc/sys may be read-only.
func setSysctl(name, value string) error {
	old, err := sysctl(name)
	if err == nil && old == value {
		return nil
	}
	if err == nil {
		err = os.WriteFile(sysctlPath(name), []byte(value), 0)
	}
	if err != nil {
		return fmt.Errorf("set sysctl net.%s to %s: %w", strings.ReplaceAll(name, "/", "."), value, err)
	}
	return nil
}

// hasIPv6 reports whether new links of the namespace have IPv6.
func hasIPv6() bool {
	for _, scope := range []string{"all", "default"} {
		if off, err := sysctl("ipv6/conf/" + scope + "/disable_ipv6"); err != nil || off != "0" {
			return false
		}
	}
	return true
}

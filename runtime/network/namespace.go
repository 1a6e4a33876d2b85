package network

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/nftables"
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
func (n namespace) links() (h *netlink.Handle, err error) {
	if n.file == nil {
		h, err = netlink.NewHandle(unix.NETLINK_ROUTE, unix.NETLINK_NETFILTER)
	} else {
		h, err = netlink.NewHandleAt(vnetns.NsHandle(n.file.Fd()), unix.NETLINK_ROUTE, unix.NETLINK_NETFILTER)
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

// nft opens a connection to the namespace's nftables. Each of its calls has a socket of its own.
func (n namespace) nft(ctx context.Context) (*nftables.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var options []nftables.ConnOption
	if n.file != nil {
		options = append(options, nftables.WithNetNSFd(int(n.file.Fd())))
	}
	c, err := nftables.New(options...)
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	return c, nil
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

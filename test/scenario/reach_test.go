//go:build e2e

package scenario

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/namespace"
)

type containerStatus = api.ContainerStatus

// space is the path of a network namespace. The empty one is that of the test, which is the host for the pods.
type space string

// reach is the timeout of one connection attempt.
const reach = 5 * time.Second

// do runs work in the network namespace, on a thread of its own.
func (s space) do(work func() error) error {
	if s == "" {
		return work()
	}
	return namespace.OnOwnThread(func() error {
		file, err := os.Open(string(s))
		if err != nil {
			return err
		}
		defer file.Close()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter %s: %w", s, err)
		}
		return work()
	})
}

// dial connects from the network namespace to a numeric address.
func (s space) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = s.do(func() (err error) {
		c, err = (&net.Dialer{Timeout: reach}).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// get requests a page and returns it. Every request has a connection of its own.
func (s space) get(ctx context.Context, page string) (string, error) {
	client := &http.Client{Timeout: 3 * reach, Transport: &http.Transport{DialContext: s.dial, DisableKeepAlives: true}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(q)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %d: %s", page, res.StatusCode, text)
	}
	return strings.TrimSpace(string(text)), err
}

// whoami asks a test server over tcp or udp for its host name and the client's address: "<host name> <address>".
func (s space) whoami(ctx context.Context, network, address string) (string, error) {
	if network == "tcp" {
		return s.get(ctx, "http://"+address+"/whoami")
	}
	c, err := s.dial(ctx, network, address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	answer := make([]byte, 200)
	n := 0
	err = c.SetDeadline(time.Now().Add(reach))
	if err == nil {
		_, err = c.Write([]byte("?"))
	}
	if err == nil {
		n, err = c.Read(answer)
	}
	return strings.TrimSpace(string(answer[:n])), err
}

// page returns the URL of a test server's page at a pod's address.
func page(ip, path string, query ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	return "http://" + net.JoinHostPort(ip, "8080") + path + "?" + values.Encode()
}

// inside requests a page from the test server of a pod, and retries until it answers.
func (f *fixture) inside(ip, path string, query ...string) (answer string) {
	f.Helper()
	f.Await(func() (err error) {
		answer, err = space("").get(f.Ctx(), page(ip, path, query...))
		return err
	})
	return answer
}

// space creates a network namespace, which is removed with the test.
func (f *fixture) space(name string) space {
	f.Helper()
	dir := filepath.Join(f.Dir, "space-"+name)
	pins, err := namespace.Pin(dir, namespace.Options{Network: true})
	f.Check(err)
	f.Cleanup(func() {
		if err := namespace.Unpin(dir); err != nil {
			f.Error(err)
		}
	})
	return space(pins.Network)
}

// Addresses of the host and of another host, in a network of both.
const (
	host4, outside4 = "198.51.100.1", "198.51.100.2"
	host6, outside6 = "2001:db8:1::1", "2001:db8:1::2"
)

// uplink connects the host with another host, which has no route to the pods, and returns that host's network namespace.
func (f *fixture) uplink() (outside space) {
	f.Helper()
	outside = f.space("outside")
	file, err := os.Open(string(outside))
	f.Check(err)
	defer file.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "up0"
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerNamespace = "up1", netlink.NsFd(int(file.Fd()))
	f.Check(netlink.LinkAdd(veth))
	f.Cleanup(func() {
		if err := netlink.LinkDel(veth); err != nil {
			f.Error(err)
		}
	})
	f.Check(address("up0", host4+"/24", host6+"/64"))
	f.Check(netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(outside4)}))
	f.Check(netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(outside6)}))
	f.Check(outside.do(func() error { return address("up1", outside4+"/24", outside6+"/64") }))
	return outside
}

// address adds addresses to a link in the calling thread's network namespace, and sets the link up.
func address(name string, addresses ...string) error {
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	for _, text := range addresses {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return err
		}
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD // otherwise duplicate address detection takes a second
		}
		if err := h.AddrAdd(link, a); err != nil {
			return fmt.Errorf("add %s to %s: %w", text, name, err)
		}
	}
	return h.LinkSetUp(link)
}

//go:build e2e

package network

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/test/suite"
)

// worldPrefix is the prefix of the names of test directories. The process ID follows.
const worldPrefix = "psnet-"

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Stderr.WriteString("these tests need root\n")
		os.Exit(1)
	}
	sweep()
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil { // opens the descriptors that the Go runtime keeps open
		_ = l.Close()
	}
	os.Exit(suite.Main(m.Run, suite.Options{Together: true}))
}

// sweep removes what killed tests left.
func sweep() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), worldPrefix+"*"))
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), worldPrefix), "-")
		if n, err := strconv.Atoi(pid); err != nil || unix.Kill(n, 0) == nil {
			continue
		}
		inside, _ := filepath.Glob(dir + "/*")
		for _, d := range inside {
			_ = namespace.Unpin(d)
		}
		_ = os.RemoveAll(dir)
	}
}

// world is a host, an outside network, and pods, each in a network namespace.
type world struct {
	t             *testing.T
	dir           string
	host, outside string
	opts          Options
	*Network
}

// The addresses of the uplink.
const (
	host4, outside4 = "198.51.100.1", "198.51.100.2"
	host6, outside6 = "2001:db8:1::1", "2001:db8:1::2"
	second4         = "198.51.100.9" // also of the host
)

func newWorld(t *testing.T) *world {
	t.Helper()
	files := openFiles(t)
	dir, err := os.MkdirTemp("", worldPrefix+strconv.Itoa(os.Getpid())+"-")
	check(t, err)
	w := &world{t: t, dir: dir}
	t.Cleanup(func() {
		check(t, os.RemoveAll(dir))
		eventually(t, func() error {
			if now := openFiles(t); now > files {
				return fmt.Errorf("%d open files, %d at the start", now, files)
			}
			return nil
		})
		goleak.VerifyNone(t)
	})
	w.host, w.outside = w.pin("host"), w.pin("outside")
	w.uplink()
	w.opts = Options{
		StateFile: filepath.Join(dir, "state", "network.json"), LeaseFile: filepath.Join(dir, "run", "network.json"),
		BootID: "this boot", NetnsPath: w.host,
	}
	w.open()
	t.Cleanup(func() {
		w.removeAll()
		check(t, w.Close())
	})
	return w
}

// pin creates a network namespace.
func (w *world) pin(name string) string {
	w.t.Helper()
	dir := filepath.Join(w.dir, "ns-"+name)
	pins, err := namespace.Pin(dir, namespace.Options{Network: true})
	check(w.t, err)
	w.t.Cleanup(func() {
		if err := namespace.Unpin(dir); err != nil {
			w.t.Error(err)
		}
	})
	return pins.Network
}

// open opens the network, as a daemon that starts.
func (w *world) open() {
	w.t.Helper()
	var err error
	w.Network, err = New(w.t.Context(), w.opts)
	check(w.t, err)
}

func (w *world) restart() {
	w.t.Helper()
	check(w.t, w.Close())
	w.open()
}

// removeAll tears down all pods and reports what is left.
func (w *world) removeAll() {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	eventually(w.t, w.workersIdle) // they read fault
	w.fault = nil
	check(w.t, w.Reconcile(ctx, nil))
	eventually(w.t, w.leftovers)
	check(w.t, w.Remove(ctx))
	in(w.t, w.host, func() error {
		links, err := os.ReadDir("/proc/self/task/" + strconv.Itoa(unix.Gettid()) + "/net/dev_snmp6")
		for _, l := range links {
			if l.Name() != "lo" && l.Name() != "up0" && !strings.HasPrefix(l.Name(), "other") {
				err = errors.Join(err, fmt.Errorf("the link %s is left", l.Name()))
			}
		}
		return err
	})
	if exists, err := w.rules.Exists(ctx); exists || err != nil {
		w.t.Errorf("the table is left: %v", err)
	}
}

// leftovers reports links, elements and leases that are left.
func (w *world) leftovers() error {
	release, err := w.lock(context.Background())
	if err != nil {
		return err
	}
	defer release()
	var errs []error
	links, err := w.podLinks()
	errs = append(errs, err)
	for _, l := range links {
		errs = append(errs, fmt.Errorf("link %s is left", l.Attrs().Name))
	}
	exists, err := w.rules.Exists(context.Background())
	errs = append(errs, err)
	if exists {
		for _, e := range w.elements() {
			errs = append(errs, fmt.Errorf("element %x: %x is left", e.Key, e.Val))
		}
	}
	for uid := range w.leases {
		errs = append(errs, fmt.Errorf("the lease of %s is left", uid))
	}
	return errors.Join(errs...)
}

// uplink links the host with the outside, which has no route to the pods.
func (w *world) uplink() {
	w.t.Helper()
	out, err := OpenNamespace(w.outside)
	check(w.t, err)
	defer out.Close()
	in(w.t, w.host, func() error {
		h, err := Namespace{}.Netlink()
		if err != nil {
			return err
		}
		defer h.Close()
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = "up0", 1400
		veth := netlink.NewVeth(attrs)
		veth.PeerName, veth.PeerNamespace = "up1", netlink.NsFd(int(out.Fd()))
		return errors.Join(
			h.LinkAdd(veth), setSysctl("ipv4/ip_forward", "0"), setSysctl("ipv6/conf/up0/accept_ra", "1"),
			address(h, "up0", host4+"/24", second4+"/24", host6+"/64"),
			h.RouteAdd(&netlink.Route{Gw: net.ParseIP(outside4)}), h.RouteAdd(&netlink.Route{Gw: net.ParseIP(outside6)}),
		)
	})
	in(w.t, w.outside, func() error {
		h, err := Namespace{}.Netlink()
		if err != nil {
			return err
		}
		defer h.Close()
		return address(h, "up1", outside4+"/24", outside6+"/64")
	})
}

func address(h *netlink.Handle, link string, addresses ...string) error {
	l, err := h.LinkByName(link)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		p := netip.MustParsePrefix(a)
		if err := h.AddrAdd(l, &netlink.Addr{IPNet: ipNet(p.Addr(), p.Bits()), Flags: flagsFor(p.Addr())}); err != nil {
			return err
		}
	}
	return h.LinkSetUp(l)
}

// pod is a pod with a network.
type pod struct {
	Request
	Result
}

// pod sets up a pod in a new namespace. The name is also the UID.
func (w *world) pod(name string, ports ...Port) pod {
	w.t.Helper()
	p, err := w.try(Request{UID: name, PodName: name, NetnsPath: w.pin(name), Ports: ports})
	check(w.t, err)
	return p
}

func (w *world) try(r Request) (pod, error) {
	result, err := w.Setup(w.t.Context(), r)
	return pod{r, result}, err
}

func tcp(host, container uint16) Port { return Port{HostPort: host, ContainerPort: container} }

// in runs f in a namespace.
func in(t *testing.T, path string, f func() error) {
	t.Helper()
	n, err := OpenNamespace(path)
	check(t, err)
	defer n.Close()
	check(t, n.Do(f))
}

// serve answers on a port in a namespace with "<name> <client address>" until the test ends.
func serve(t *testing.T, path, name, network, addr string) {
	t.Helper()
	in(t, path, func() error {
		if strings.HasPrefix(network, "udp") {
			c, err := net.ListenPacket(network, addr)
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = c.Close() })
			go func() {
				buffer := make([]byte, 100)
				for {
					_, from, err := c.ReadFrom(buffer)
					if err != nil {
						return
					}
					_, _ = c.WriteTo([]byte(answer(name, from)), from)
				}
			}()
			return nil
		}
		l, err := net.Listen(network, addr)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, answer(name, c.RemoteAddr()))
				_ = c.Close()
			}
		}()
		return nil
	})
}

func answer(name string, from net.Addr) string {
	host, _, _ := net.SplitHostPort(from.String())
	return name + " " + host + "\n"
}

// ask dials from a namespace once and returns the answer.
func ask(t *testing.T, path, network, addr string, wait time.Duration) (string, error) {
	t.Helper()
	n, err := OpenNamespace(path)
	check(t, err)
	defer n.Close()
	var c net.Conn
	if err := n.Do(func() (err error) {
		c, err = (&net.Dialer{Timeout: wait}).Dial(network, addr)
		return err
	}); err != nil {
		return "", err
	}
	defer c.Close()
	check(t, c.SetDeadline(time.Now().Add(wait)))
	if network == "udp" {
		if _, err := c.Write([]byte("?")); err != nil {
			return "", err
		}
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line), err
}

// wantAnswer compares an answer. from is the address that the server must see, or "" for any.
func wantAnswer(t *testing.T, what, path, network, addr, server, from string) {
	t.Helper()
	got, err := ask(t, path, network, addr, time.Minute)
	name, seen, _ := strings.Cut(got, " ")
	if err != nil || name != server || from != "" && seen != from {
		t.Errorf("%s: %s %s answered %q, %v; want %q seen from %q", what, network, addr, got, err, server, from)
	}
}

// wantSilence expects no answer.
func wantSilence(t *testing.T, what, path, network, addr string) {
	t.Helper()
	if got, err := ask(t, path, network, addr, 300*time.Millisecond); err == nil {
		t.Errorf("%s: %s %s answered %q; it must not", what, network, addr, got)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(entries)
}

// eventually waits for a condition.
func eventually(t *testing.T, holds func() error) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

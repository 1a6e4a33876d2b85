//go:build e2e

package hostcondition

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestMountAppears(t *testing.T) {
	dir := t.TempDir()
	at, below := filepath.Join(dir, "at"), filepath.Join(dir, "at", "file")
	source := filepath.Join(dir, "source")
	if err := errors.Join(os.Mkdir(at, 0o755), os.Mkdir(source, 0o755),
		os.WriteFile(filepath.Join(source, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	mount, path := start(t.Context(), t, notified(), "mount:"+at), start(t.Context(), t, notified(), "path:"+below)
	mount.expect("not mounted")
	path.expect("not found")
	if err := unix.Mount(source, at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	mount.met()
	path.met()
}

// TestNetworkComesOnline configures a network namespace step by step.
func TestNetworkComesOnline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	steps, done := make(chan func() error), make(chan error)
	go func() { // changes the namespace, with the netlink socket of its thread
		runtime.LockOSThread() // and does not unlock it: the thread ends in its namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		for step := range steps {
			done <- step()
		}
	}()
	do := func(what string, step func() error) {
		t.Helper()
		select {
		case steps <- step:
			if err := <-done; err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		case err := <-done:
			t.Fatal(err)
		}
	}
	defer close(steps)
	var namespace *os.File
	do("open namespace", func() (err error) {
		namespace, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	defer namespace.Close()
	begun := make(chan *waiting)
	go func() {
		runtime.LockOSThread()
		w := &waiting{t: t, reports: make(chan string), done: make(chan error, 1)}
		begun <- w
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			w.done <- err
			return
		}
		w.done <- New().waitForNetwork(ctx, func(unmet string) {
			select {
			case w.reports <- unmet:
			case <-ctx.Done():
			}
		})
	}()
	w := <-begun
	w.expect("no default route")
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
	_, network, err := net.ParseCIDR("192.0.2.0/24")
	if err != nil {
		t.Fatal(err)
	}
	do("add link", func() error { return netlink.LinkAdd(link) })
	do("set link up", func() error {
		peer, err := netlink.LinkByName("b")
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetUp(link), netlink.LinkSetUp(peer))
	})
	do("add route", func() error {
		index := link.Attrs().Index
		return netlink.RouteAdd(&netlink.Route{
			LinkIndex: index, Scope: netlink.SCOPE_LINK, Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)},
		})
	})
	for seen := ""; seen != "no address"; { // each change is reported
		select {
		case seen = <-w.reports:
		case <-time.After(time.Minute):
			t.Fatalf("the default route is not noticed: %q", seen)
		}
	}
	do("add address", func() error {
		return netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 0, 2, 7), Mask: network.Mask}})
	})
	w.met()
}

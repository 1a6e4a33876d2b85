package browser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Network is a network namespace for a browser and the servers of a test, with a loopback interface. A browser aborts its requests when an
// interface of its host appears or disappears (ERR_NETWORK_CHANGED), as those of pods do.
type Network struct{ namespace *os.File }

// NewNetwork creates a network that ends with the test. It requires root.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	n := &Network{}
	if err := onThread(n.create); err != nil {
		t.Fatalf("create a network namespace: %v", err)
	}
	t.Cleanup(func() { _ = n.namespace.Close() })
	return n
}

// create creates the namespace of the thread.
func (n *Network) create() (err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP)
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback), unix.Close(socket)); err != nil {
		return err
	}
	n.namespace, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	return err
}

// Do calls a function on a thread in the network. Processes that it starts, and sockets that it creates, stay in it.
func (n *Network) Do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// Dial connects to an address in the network.
func (n *Network) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = n.Do(func() (err error) {
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// Listen listens on a free port of the loopback interface of the network.
func (n *Network) Listen(ctx context.Context) (l net.Listener, err error) {
	err = n.Do(func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		return err
	})
	return l, err
}

// onThread calls a function on a thread that ends with it.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // without an unlock, the thread ends with the goroutine
		done <- f()
	}()
	return <-done
}

package runtime

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/network"
)

// This file connects to ports of pods from the network namespace of the pod, so that also servers on its loopback interface are
// reached.

// dialLoopback connects to a TCP port of the loopback interface in the network namespace at a path, with IPv4 and then with IPv6. An empty
// path is the network of the host.
func dialLoopback(ctx context.Context, path string, port uint16) (conn net.Conn, err error) {
	n, err := network.OpenNamespace(path)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	err = n.Do(func() (err error) {
		conn, err = dialIn(ctx, port)
		return err
	})
	return conn, err
}

// dialIn creates the sockets on the thread of the caller: for a literal address, package net starts no goroutine. A socket stays in the
// namespace in which it was created.
func dialIn(ctx context.Context, port uint16) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err == nil || !errors.Is(err, unix.ECONNREFUSED) {
		return conn, cause(err)
	}
	if conn, err6 := d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(int(port)))); err6 == nil {
		return conn, nil
	}
	return nil, cause(err)
}

// cause returns the error without the address, which the caller knows.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if call, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			return call.Err
		}
		return op.Err
	}
	return err
}

package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

// errEnded is wrapped by the error of a forward that stopped because its pod terminated.
var errEnded = errors.New("forwarding stopped")

// Port is a local port and the port of the pod to which it is forwarded. Local is 0 for a random port.
type Port struct{ Local, Remote uint16 }

// ParsePort reads a port in the forms of kubectl: 80, 8080:80, :80 or 0:80. The port of the pod can be a name.
func ParsePort(arg string, named func(string) (uint16, bool)) (Port, error) {
	local, remote, found := strings.Cut(arg, ":")
	if !found {
		remote = local
	}
	var p Port
	var err error
	if p.Remote, err = portNumber(remote); err != nil || p.Remote == 0 {
		port, ok := named(remote)
		if !ok {
			return p, fmt.Errorf("port %q: must be a name of a port of the pod, or between 1 and 65535", remote)
		}
		p.Remote = port
	}
	switch {
	case !found && err != nil:
		p.Local = p.Remote // of the named port
	case local != "":
		if p.Local, err = portNumber(local); err != nil {
			return p, fmt.Errorf("local port %q: must be between 0 and 65535", local)
		}
	}
	return p, nil
}

func portNumber(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err
}

// MayForward returns the error of a client that may not forward ports to a pod, such as one of the read-only socket. It asks for port 0,
// which the daemon refuses to all others for another reason, so that no connection to the pod is made.
func MayForward(ctx context.Context, c *client.Client, pod string) error {
	conn, err := c.DialPort(ctx, pod, "", 0)
	if err == nil {
		return conn.Close()
	}
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusForbidden {
		return err
	}
	return nil
}

// Forwarder forwards connections to a pod.
type Forwarder struct {
	Client    *client.Client
	Pod, UID  string
	Addresses []string
	// Printf prints a line to standard output, and Warn to standard error. Both are called concurrently.
	Printf func(format string, args ...any)
	Warn   func(format string, args ...any)
}

// listener is a listener with its port.
type listener struct {
	net.Listener
	port Port
}

// Run forwards connections until ctx ends, or the pod does. It listens on all ports before it returns any error of the pod.
func (f *Forwarder) Run(ctx context.Context, ports []Port) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	listeners, err := f.listen(ctx, ports)
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	if err != nil {
		return err
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel(nil)
	tasks.Go(func() { cancel(f.watch(ctx, f.Client.Watch(ctx))) })
	for _, l := range listeners {
		f.Printf("Forwarding from %s -> %d\n", l.Addr(), l.port.Remote)
		tasks.Go(func() { cancel(f.serve(ctx, &tasks, l)) })
	}
	<-ctx.Done()
	for _, l := range listeners {
		_ = l.Close()
	}
	return context.Cause(ctx)
}

// listen listens on every port at every address. Of localhost, one of both address families is enough.
func (f *Forwarder) listen(ctx context.Context, ports []Port) (list []listener, err error) {
	for _, p := range ports {
		for _, address := range f.Addresses {
			if address != "localhost" {
				l, err := listenPort(ctx, "tcp", address, p)
				if err != nil {
					return list, err
				}
				list = append(list, l)
				continue
			}
			l4, err4 := listenPort(ctx, "tcp4", "127.0.0.1", p)
			if err4 == nil {
				list = append(list, l4)
				p.Local = l4.port.Local // the same random port
			}
			l6, err6 := listenPort(ctx, "tcp6", "::1", p)
			if err6 == nil {
				list = append(list, l6)
			}
			if err4 != nil && err6 != nil {
				return list, err4
			}
		}
	}
	return list, nil
}

func listenPort(ctx context.Context, network, address string, p Port) (listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, network, net.JoinHostPort(address, strconv.Itoa(int(p.Local))))
	if err != nil {
		op, _ := errors.AsType[*net.OpError](err)
		if op != nil {
			err = op.Err
		}
		return listener{}, fmt.Errorf("listen on %s: %w", net.JoinHostPort(address, strconv.Itoa(int(p.Local))), err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		p.Local = uint16(a.Port)
	}
	return listener{l, p}, nil
}

// watch returns when the pod has terminated or the daemon does not respond.
func (f *Forwarder) watch(ctx context.Context, changes iter.Seq2[api.PodChange, error]) error {
	exists := false
	for change, err := range changes {
		switch {
		case err != nil:
			return cmp.Or(context.Cause(ctx), err)
		case change.Type == api.Listed && !exists:
			return fmt.Errorf("%w: pod %q was deleted", errEnded, f.Pod)
		case change.Object.Metadata.UID != f.UID:
			continue
		case change.Type == api.Deleted:
			return fmt.Errorf("%w: pod %q was deleted", errEnded, f.Pod)
		case change.Object.Status.Phase.Terminal():
			return fmt.Errorf("%w: pod %q is %s", errEnded, f.Pod, change.Object.Status.Phase)
		}
		exists = true
	}
	return cmp.Or(context.Cause(ctx), api.ErrUnavailable)
}

// serve accepts connections until the listener is closed.
func (f *Forwarder) serve(ctx context.Context, tasks *sync.WaitGroup, l listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return cmp.Or(context.Cause(ctx), fmt.Errorf("accept connection on %s: %w", l.Addr(), err))
		}
		f.Printf("Handling connection for %d\n", l.port.Local)
		tasks.Go(func() {
			defer conn.Close()
			if err := f.forward(ctx, conn, l.port); err != nil && ctx.Err() == nil {
				f.Warn("forward %d -> %d: %v", l.port.Local, l.port.Remote, err)
			}
		})
	}
}

// forward forwards one connection. An error of the pod does not end the others.
func (f *Forwarder) forward(ctx context.Context, conn net.Conn, p Port) error {
	pod, err := f.Client.DialPort(ctx, f.Pod, f.UID, p.Remote)
	if err != nil {
		if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
			return errors.New("the pod was deleted") // watch ends the command
		}
		return err
	}
	defer pod.Close()
	defer context.AfterFunc(ctx, func() { _ = errors.Join(pod.Close(), conn.Close()) })()
	sent := make(chan error, 1)
	go func() { //nolint:contextcheck // a connection has its own timeouts
		_, err := io.Copy(pod, conn)
		if err == nil {
			err = pod.CloseWrite()
		}
		sent <- err
	}()
	_, err = io.Copy(conn, pod)
	tcp, _ := conn.(*net.TCPConn)
	if err != nil {
		if tcp != nil {
			_ = tcp.SetLinger(0) // the client must see that the data is incomplete
		}
		_ = conn.Close()
		<-sent //nolint:errcheck // the first error counts
		return err
	}
	if tcp != nil {
		_ = tcp.CloseWrite()
	}
	<-sent //nolint:errcheck // after the pod has closed its direction, it may not accept data any more
	return nil
}

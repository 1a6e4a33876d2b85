package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/spec"
)

const (
	// maxForwards is the maximum number of connections to ports of pods, of all clients.
	maxForwards = 512
	// podDialTimeout bounds a connection to a port of a pod.
	podDialTimeout = 10 * time.Second
)

// PodPorts connects to ports of pods.
type PodPorts interface {
	// DialPort connects to a TCP port of the loopback interface of a pod.
	DialPort(ctx context.Context, uid string, pod *spec.Pod, port uint16) (net.Conn, error)
}

// forwardPort connects a WebSocket to a TCP port of a pod, see package channel: both directions are channel [channel.Data]. If the
// connection to the pod fails, the request is not upgraded.
func (s *Server) forwardPort(w http.ResponseWriter, r *http.Request) error {
	if s.o.Ports == nil {
		return failure(http.StatusNotImplemented, "the daemon cannot forward ports")
	}
	if !s.forwards.TryAcquire(1) {
		return failure(http.StatusTooManyRequests, "%d connections are being forwarded", maxForwards)
	}
	defer s.forwards.Release(1)
	pod, err := s.dialPort(r)
	if err != nil {
		return err
	}
	defer pod.Close()
	conn, err := channel.Accept(w, r, channel.Data)
	if refused, ok := errors.AsType[*channel.RefusedError](err); ok {
		return failure(refused.Status, "%s", refused.Message)
	}
	if err != nil {
		return nil // the client has disconnected
	}
	defer conn.Close()
	defer context.AfterFunc(r.Context(), conn.Close)()
	relay(conn, pod) //nolint:contextcheck // a connection has its own timeouts
	return nil
}

// dialPort connects to the port in a request.
func (s *Server) dialPort(r *http.Request) (net.Conn, error) {
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(r.URL.Query().Get("port"), 10, 16)
	if err != nil || port == 0 {
		return nil, invalidField("port", "port=%q: must be between 1 and 65535", r.URL.Query().Get("port"))
	}
	ctx, cancel := context.WithTimeout(r.Context(), podDialTimeout)
	defer cancel()
	conn, err := s.o.Ports.DialPort(ctx, snapshot.Facts.UID, snapshot.Pod, uint16(port))
	if err != nil {
		return nil, failure(http.StatusBadGateway, "connect to port %d of pod %q: %v", port, snapshot.Pod.Name, err)
	}
	return conn, nil
}

// relay copies both directions until both are closed, or one has failed. Each can be closed on its own.
func relay(conn *channel.Conn, pod net.Conn) {
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(pod, conn.Reader(channel.Data))
		if half, ok := pod.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite()
		}
		ended <- err
	}()
	go func() {
		_, err := io.Copy(conn.Writer(channel.Data), pod)
		if err == nil {
			err = conn.Writer(channel.Data).Close()
		}
		ended <- err
	}()
	err := <-ended
	if err == nil {
		err = <-ended
	} else {
		_ = pod.Close()
		defer func() { <-ended }() //nolint:errcheck // the first error counts
	}
	status := channel.Status{Status: channel.StatusSuccess}
	if err != nil {
		status = channel.Status{Status: channel.StatusFailure, Message: err.Error()}
	}
	_ = conn.Finish(status) // also ends the other direction
}

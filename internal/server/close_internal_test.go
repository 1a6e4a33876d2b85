package server

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections within this process.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// TestCloseWithoutRequest closes a server with a connection over which no request came. Package http waits five seconds for one.
func TestCloseWithoutRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Options{})
		listener := make(pipes)
		served := make(chan error, 1)
		go func() { served <- s.Serve(listener) }()
		client, accepted := net.Pipe()
		listener <- accepted
		synctest.Wait()
		start := time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if waited := time.Since(start); waited > 100*time.Millisecond { // how often package http looks
			t.Errorf("it was closed after %v", waited)
		}
		if n, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the client has read %d bytes, error %v", n, err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

package server

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
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

// TestCloseDuringRequest closes a server that has read a part of the second request over a connection: the client gets the response if it
// sends the rest soon, and is disconnected otherwise.
func TestCloseDuringRequest(t *testing.T) {
	const request = "GET /v1/version HTTP/1.1\r\nHost: podstead\r\n\r\n"
	for _, rest := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := New(t.Context(), Options{Log: slog.New(slog.DiscardHandler)})
			listener := make(pipes)
			served := make(chan error, 1)
			go func() { served <- s.Serve(listener) }()
			client, accepted := net.Pipe()
			listener <- accepted
			responses := bufio.NewReader(client)
			send := func(text string) {
				if _, err := io.WriteString(client, text); err != nil {
					t.Error(err)
				}
			}
			receive := func() error {
				r, err := http.ReadResponse(responses, nil)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, r.Body)
				return errors.Join(err, r.Body.Close())
			}
			send(request)
			if err := receive(); err != nil {
				t.Error(err)
			}
			send(request[:10])
			synctest.Wait()
			closed := make(chan error, 1)
			go func() { closed <- s.Close(t.Context()) }()
			synctest.Wait()
			if rest {
				go send(request[10:])
			}
			if err := receive(); (err == nil) != rest {
				t.Errorf("rest %v: %v", rest, err)
			}
			if err := errors.Join(<-closed, client.Close(), <-served); err != nil {
				t.Error(err)
			}
		})
	}
}

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

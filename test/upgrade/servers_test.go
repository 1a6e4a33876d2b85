//go:build e2e

package upgrade

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// servers listen on the host, for the probes of pods with hostNetwork.
type servers struct {
	web      *httptest.Server
	tcp, rpc net.Listener
	requests atomic.Int64 // to web
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func newServers(t *testing.T) *servers {
	t.Helper()
	s := &servers{tcp: listen(t), rpc: listen(t)}
	s.web = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.requests.Add(1) }))
	t.Cleanup(s.web.Close)
	rpc := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(rpc, health.NewServer())
	go func() { _ = rpc.Serve(s.rpc) }()
	t.Cleanup(rpc.Stop)
	go func() {
		for {
			conn, err := s.tcp.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return s
}

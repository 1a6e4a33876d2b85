//go:build e2e

package conformance

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// probeServer is what the probes and hooks of a pod with hostNetwork connect to: servers of the test that are healthy until unhealthy is
// set.
type probeServer struct {
	grpc_health_v1.UnimplementedHealthServer
	t                *testing.T
	unhealthy        atomic.Bool
	plain, encrypted *httptest.Server
	tcp, rpc         net.Listener
	closed           int // a port that is bound, but not listened on

	mu            sync.Mutex
	counts        map[string]int // requests by server
	onRequestFunc func(r *http.Request)
}

// The request that a web server answers with success.
const (
	webPath   = "/healthz?from=podstead"
	webHeader = "X-Test"
	webValue  = "conformance"
	webHost   = "probe.example"
)

func newProbeServer(t *testing.T) *probeServer {
	t.Helper()
	p := &probeServer{t: t, counts: map[string]int{}}
	p.plain = httptest.NewServer(http.HandlerFunc(p.serveHTTP))
	p.encrypted = httptest.NewTLSServer(http.HandlerFunc(p.serveHTTP))
	p.tcp, p.rpc, p.closed = listen(t), listen(t), reservePort(t)
	rpc := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(rpc, p)
	var done sync.WaitGroup
	done.Go(func() { _ = rpc.Serve(p.rpc) })
	done.Go(p.serveTCP)
	t.Cleanup(func() {
		p.plain.Close()
		p.encrypted.Close()
		p.tcp.Close()
		rpc.Stop()
		done.Wait()
	})
	return p
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// reservePort binds a port until the test is over, and does not listen.
func reservePort(t *testing.T) (port int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return at.(*unix.SockaddrInet4).Port
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func (p *probeServer) grpcPort() int   { return portOf(p.rpc) }
func (p *probeServer) tcpPort() int    { return portOf(p.tcp) }
func (p *probeServer) closedPort() int { return p.closed }
func (p *probeServer) httpPort() int   { return portOf(p.plain.Listener) }
func (p *probeServer) httpsPort() int  { return portOf(p.encrypted.Listener) }

// requested holds when a server got at least so many requests.
func (p *probeServer) requested(server string, times int) func() error {
	return func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := p.counts[server]; n < times {
			return fmt.Errorf("%s got %d requests, want %d", server, n, times)
		}
		return nil
	}
}

// onRequest has a function called with each web request before the response.
func (p *probeServer) onRequest(f func(r *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onRequestFunc = f
}

func (p *probeServer) count(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[server]++
}

func (p *probeServer) serveHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	onRequestFunc := p.onRequestFunc
	p.mu.Unlock()
	if onRequestFunc != nil {
		onRequestFunc(r)
	}
	good := !p.unhealthy.Load() && r.URL.RequestURI() == webPath && r.Header.Get(webHeader) == webValue && r.Host == webHost
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	server := "http"
	if r.TLS != nil {
		server = "https"
	}
	p.count(server)
}

func (p *probeServer) serveTCP() {
	for {
		c, err := p.tcp.Accept()
		if err != nil {
			return
		}
		p.count("tcp")
		c.Close()
	}
}

// Check implements the health service for the services "" and "healthy".
func (p *probeServer) Check(_ context.Context, q *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	defer p.count("grpc")
	if s := q.GetService(); s != "" && s != "healthy" {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	answer := grpc_health_v1.HealthCheckResponse_SERVING
	if p.unhealthy.Load() {
		answer = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return &grpc_health_v1.HealthCheckResponse{Status: answer}, nil
}

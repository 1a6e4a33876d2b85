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

// partner is who the probes and hooks of a pod with the machine's network ask: servers of the test, which answer well unless
// they are told to be ill.
type partner struct {
	grpc_health_v1.UnimplementedHealthServer
	t                *testing.T
	ill              atomic.Bool
	plain, encrypted *httptest.Server
	tcp, rpc         net.Listener
	shut             int // a port that is taken, and nobody listens at

	mu     sync.Mutex
	counts map[string]int // how often each was asked
	onWeb  func(r *http.Request)
}

// The request that a web server of a partner answers well, and nothing else.
const (
	webPath   = "/well/known?by=podstead"
	webHeader = "X-Partner"
	webValue  = "somebody"
	webHost   = "partner.example"
)

func newPartner(t *testing.T) *partner {
	t.Helper()
	p := &partner{t: t, counts: map[string]int{}}
	p.plain = httptest.NewServer(http.HandlerFunc(p.serveHTTP))
	p.encrypted = httptest.NewTLSServer(http.HandlerFunc(p.serveHTTP))
	p.tcp, p.rpc, p.shut = listen(t), listen(t), occupy(t)
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

// occupy takes a port until the test is over, and does not listen.
func occupy(t *testing.T) (port int) {
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

func (p *partner) grpcPort() int  { return portOf(p.rpc) }
func (p *partner) tcpPort() int   { return portOf(p.tcp) }
func (p *partner) shutPort() int  { return p.shut }
func (p *partner) httpPort() int  { return portOf(p.plain.Listener) }
func (p *partner) httpsPort() int { return portOf(p.encrypted.Listener) }

// asked holds when a server was asked at least so often.
func (p *partner) asked(server string, times int) func() error {
	return func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := p.counts[server]; n < times {
			return fmt.Errorf("%s was asked %d times, not yet %d", server, n, times)
		}
		return nil
	}
}

// answer has a function called with each web request before it is answered.
func (p *partner) answer(f func(r *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onWeb = f
}

func (p *partner) count(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[server]++
}

func (p *partner) serveHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	onWeb := p.onWeb
	p.mu.Unlock()
	if onWeb != nil {
		onWeb(r)
	}
	good := !p.ill.Load() && r.URL.RequestURI() == webPath && r.Header.Get(webHeader) == webValue && r.Host == webHost
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	server := "http"
	if r.TLS != nil {
		server = "https"
	}
	p.count(server)
}

func (p *partner) serveTCP() {
	for {
		c, err := p.tcp.Accept()
		if err != nil {
			return
		}
		p.count("tcp")
		c.Close()
	}
}

// Check knows the service "" and "well".
func (p *partner) Check(_ context.Context, q *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	defer p.count("grpc")
	if s := q.GetService(); s != "" && s != "well" {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	answer := grpc_health_v1.HealthCheckResponse_SERVING
	if p.ill.Load() {
		answer = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return &grpc_health_v1.HealthCheckResponse{Status: answer}, nil
}

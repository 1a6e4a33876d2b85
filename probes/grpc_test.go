package probes

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// agent is a health server that records the user agent of requests.
type agent struct {
	*health.Server
	userAgent atomic.Value // string
}

func (a *agent) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	a.userAgent.Store(strings.Join(md.Get("user-agent"), ", "))
	switch r.Service {
	case "hang":
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	case "broken":
		return nil, status.Error(codes.Internal, "injected failure")
	}
	return a.Server.Check(ctx, r)
}

// serve runs a gRPC server, with a health service if there is one, and returns its port.
func serve(t *testing.T, address string, a *agent) int32 {
	l, port := listen(t, address)
	s := grpc.NewServer()
	if a != nil {
		grpc_health_v1.RegisterHealthServer(s, a)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return port
}

func TestGRPC(t *testing.T) {
	a := &agent{Server: health.NewServer()}
	a.SetServingStatus("bad", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	a.SetServingStatus("dunno", grpc_health_v1.HealthCheckResponse_UNKNOWN)
	a.SetServingStatus("good", grpc_health_v1.HealthCheckResponse_SERVING)
	port, six, bare := serve(t, "127.0.0.1", a), serve(t, "::1", a), serve(t, "127.0.0.1", nil)
	_, silentPort := listen(t, "127.0.0.1")
	rude, rudePort := listen(t, "127.0.0.1")
	go func() {
		for {
			conn, err := rude.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	for _, test := range []struct {
		name    string
		action  spec.GRPCAction
		address string
		timeout spec.Seconds
		outcome lifecycle.ProbeOutcome
		message string
	}{
		{"no service", spec.GRPCAction{Port: port}, "127.0.0.1", 10, lifecycle.ProbeSuccess, ""},
		{"serving", spec.GRPCAction{Port: port, Service: "good"}, "127.0.0.1", 10, lifecycle.ProbeSuccess, ""},
		{"IPv6", spec.GRPCAction{Port: six}, "::1", 10, lifecycle.ProbeSuccess, ""},
		{
			"not serving",
			spec.GRPCAction{Port: port, Service: "bad"},
			"127.0.0.1", 10,
			lifecycle.ProbeFailure, `service unhealthy (responded with "NOT_SERVING")`,
		},
		{
			"unknown",
			spec.GRPCAction{Port: port, Service: "dunno"},
			"127.0.0.1", 10,
			lifecycle.ProbeFailure, `service unhealthy (responded with "UNKNOWN")`,
		},
		{
			"no such service",
			spec.GRPCAction{Port: port, Service: "none"},
			"127.0.0.1", 10,
			lifecycle.ProbeFailure, "error: health rpc probe failed: rpc error: code = NotFound",
		},
		{
			"broken",
			spec.GRPCAction{Port: port, Service: "broken"},
			"127.0.0.1", 10,
			lifecycle.ProbeFailure, "error: health rpc probe failed: rpc error: code = Internal desc = injected failure",
		},
		{
			"hanging",
			spec.GRPCAction{Port: port, Service: "hang"},
			"127.0.0.1", 2,
			lifecycle.ProbeFailure, "timeout: health rpc did not complete within 2s",
		},
		{
			"no health service",
			spec.GRPCAction{Port: bare},
			"127.0.0.1", 10,
			lifecycle.ProbeFailure,
			"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service",
		},
		{
			"no listener",
			spec.GRPCAction{Port: closedPort},
			"127.0.0.1", 0.2,
			lifecycle.ProbeFailure, "within 200ms: context deadline exceeded",
		},
		{
			"no response",
			spec.GRPCAction{Port: silentPort},
			"127.0.0.1", 0.2,
			lifecycle.ProbeFailure, "timeout: failed to connect service",
		},
		{
			"hung up on",
			spec.GRPCAction{Port: rudePort},
			"127.0.0.1", 1.5,
			lifecycle.ProbeFailure, "within 1.5s: context deadline exceeded",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := prober(nil, nil).Run(t.Context(), target(test.address, &spec.Container{}),
				&spec.Probe{GRPC: &test.action, TimeoutSeconds: test.timeout})
			want(t, got, test.outcome, test.message)
		})
	}
	if by, _ := a.userAgent.Load().(string); !strings.HasPrefix(by, "kube-probe/1.36") {
		t.Errorf("user agent %q", by)
	}
}

package probes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// grpc checks the service named by the probe at the container's gRPC health service, without TLS. SERVING is a success, other
// states are failures. The timeout includes the connection.
func (p *Prober) grpc(ctx context.Context, t Target, g *spec.GRPCAction, timeout time.Duration) lifecycle.ProbeResult {
	host, err := t.host("")
	if err != nil {
		return errored(err)
	}
	address := net.JoinHostPort(host, strconv.Itoa(int(g.Port)))
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithUserAgent(userAgent),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return p.dial(ctx, "tcp", address)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxOutput)),
	)
	if err != nil {
		return failed(fmt.Sprintf("error: failed to connect service at %q: %v", address, err))
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := connect(ctx, conn); err != nil {
		return failed(fmt.Sprintf("timeout: failed to connect service %q within %v: %v", address, timeout, err))
	}
	response, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: g.Service})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return failed("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " +
			status.Convert(err).Message())
	case status.Code(err) == codes.DeadlineExceeded:
		return failed(fmt.Sprintf("timeout: health rpc did not complete within %v", timeout))
	case err != nil:
		return failed(fmt.Sprintf("error: health rpc probe failed: %v", err))
	case response.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING:
		return failed(fmt.Sprintf("service unhealthy (responded with %q)", response.GetStatus()))
	}
	return succeeded()
}

// connect waits for the connection. While the server refuses it, connect retries, as the kubelet does.
func connect(ctx context.Context, conn *grpc.ClientConn) error {
	conn.Connect()
	for {
		switch state := conn.GetState(); state {
		case connectivity.Ready:
			return nil
		case connectivity.Idle: // it was closed again
			conn.Connect()
			fallthrough
		case connectivity.Connecting, connectivity.TransientFailure:
			if !conn.WaitForStateChange(ctx, state) {
				return ctx.Err()
			}
		case connectivity.Shutdown:
			return errors.New("connection was shut down")
		}
	}
}

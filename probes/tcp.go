package probes

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// tcpSocket opens a connection and closes it.
func (p *Prober) tcpSocket(ctx context.Context, t Target, s *spec.TCPSocketAction, timeout time.Duration) lifecycle.ProbeResult {
	host, port, err := t.endpoint(s.Host, s.Port)
	if err != nil {
		return errored(err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := p.dial(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return failed(err.Error())
	}
	_ = conn.Close() // the connection itself is the result
	return succeeded()
}

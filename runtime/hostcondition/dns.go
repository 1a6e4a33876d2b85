package hostcondition

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
)

// resolve returns why a host name does not resolve; empty if it does. The text does not contain what differs between attempts, such as
// ports.
func (h *Host) resolve(ctx context.Context, host string) string {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	addresses, err := h.lookup(ctx, host)
	failed, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil && len(addresses) > 0:
		return ""
	case err == nil, isDNS && failed.IsNotFound:
		return "no such host"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isDNS && failed.IsTimeout:
		return "no answer from the DNS server"
	}
	parts := strings.Split(err.Error(), ": ")
	return parts[len(parts)-1]
}

package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/podstead/podstead/spec"
)

// metricsAddress checks the address of the metrics endpoint. It resolves no names: the daemon starts before the network is up.
func metricsAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("must be HOST:PORT, such as 127.0.0.1:9469")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port %q: must be between 1 and 65535", port)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && host != "localhost" {
		return fmt.Errorf("host %q: must be an IP address or localhost", host)
	}
	return nil
}

// checkMetrics checks the settings of the metrics endpoint together. Metrics name images and pods, and the endpoint has no authentication.
func (c *Config) checkMetrics(file *spec.Decoded) error {
	m := &c.Metrics
	switch {
	case (m.CertFile == "") != (m.KeyFile == ""):
		return conflict(file, "metrics.certFile, metrics.keyFile: ", "set both of metrics.certFile and metrics.keyFile, or none",
			&m.CertFile, &m.KeyFile)
	case m.CertFile != "" && m.Address == "":
		return conflict(file, "metrics.certFile: ", "requires metrics.address", &m.CertFile)
	case m.Address != "" && m.CertFile == "" && !isLoopback(m.Address):
		return conflict(file, fmt.Sprintf("metrics.address = %q: ", m.Address),
			"an address other than loopback requires metrics.certFile and metrics.keyFile", &m.Address)
	}
	return nil
}

// isLoopback reports whether only this host can connect to an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

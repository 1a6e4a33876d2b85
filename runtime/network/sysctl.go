package network

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sysctlPath returns the file of a sysctl below net.
func sysctlPath(name string) string {
	return filepath.Join("/proc/sys/net", filepath.FromSlash(name))
}

// readSysctl reads a sysctl below net, such as ipv4/ip_forward, in the network namespace of the calling thread.
func readSysctl(name string) (string, error) {
	value, err := os.ReadFile(sysctlPath(name))
	return strings.TrimSpace(string(value)), err
}

// setSysctl sets a sysctl below net in the network namespace of the calling thread. It writes only if the value differs,
// since /proc/sys may be read-only.
func setSysctl(name, value string) error {
	old, err := readSysctl(name)
	if err == nil && old == value {
		return nil
	}
	if err == nil {
		err = os.WriteFile(sysctlPath(name), []byte(value), 0)
	}
	if err != nil {
		return fmt.Errorf("set sysctl net.%s to %s: %w", strings.ReplaceAll(name, "/", "."), value, err)
	}
	return nil
}

// hasIPv6 reports whether IPv6 is enabled for new links in the network namespace of the calling thread.
func hasIPv6() bool {
	for _, scope := range []string{"all", "default"} {
		if off, err := readSysctl("ipv6/conf/" + scope + "/disable_ipv6"); err != nil || off != "0" {
			return false
		}
	}
	return true
}

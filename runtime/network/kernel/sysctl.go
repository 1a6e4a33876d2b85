package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SysctlPath returns the file of a sysctl below net.
func SysctlPath(name string) string {
	return filepath.Join("/proc/sys/net", filepath.FromSlash(name))
}

// Sysctl reads a sysctl below net, such as ipv4/ip_forward, in the network namespace of the calling thread.
func Sysctl(name string) (string, error) {
	value, err := os.ReadFile(SysctlPath(name))
	return strings.TrimSpace(string(value)), err
}

// SetSysctl sets a sysctl below net in the network namespace of the calling thread. It writes only if the value differs,
// since /proc/sys may be read-only.
func SetSysctl(name, value string) error {
	old, err := Sysctl(name)
	if err == nil && old == value {
		return nil
	}
	if err == nil {
		err = os.WriteFile(SysctlPath(name), []byte(value), 0)
	}
	if err != nil {
		return fmt.Errorf("set sysctl net.%s to %s: %w", strings.ReplaceAll(name, "/", "."), value, err)
	}
	return nil
}

// HasIPv6 reports whether IPv6 is enabled for new links in the network namespace of the calling thread.
func HasIPv6() bool {
	for _, scope := range []string{"all", "default"} {
		if off, err := Sysctl("ipv6/conf/" + scope + "/disable_ipv6"); err != nil || off != "0" {
			return false
		}
	}
	return true
}

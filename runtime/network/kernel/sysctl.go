package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func SysctlPath(name string) string {
	return filepath.Join("/proc/sys/net", filepath.FromSlash(name))
}

// sysctl reads a setting below net, such as ipv4/ip_forward.
func Sysctl(name string) (string, error) {
	value, err := os.ReadFile(SysctlPath(name))
	return strings.TrimSpace(string(value)), err
}

// SetSysctl makes a setting below net have a value. One that has it is not written: /proc/sys may be read-only.
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

// HasIPv6 reports whether new links of the namespace have IPv6.
func HasIPv6() bool {
	for _, scope := range []string{"all", "default"} {
		if off, err := Sysctl("ipv6/conf/" + scope + "/disable_ipv6"); err != nil || off != "0" {
			return false
		}
	}
	return true
}

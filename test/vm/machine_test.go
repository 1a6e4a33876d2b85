//go:build vm

package vm_test

import (
	"testing"
	"time"
)

// The machine is what the others rely on: cgroup v2 alone, all controllers, systemd.
func TestMachine(t *testing.T) {
	run(t, time.Minute, "sh", "-ec", `uname -r; cat /sys/fs/cgroup/cgroup.controllers; stat -f -c %T /sys/fs/cgroup; systemctl is-system-running --wait
		systemd-analyze; systemctl --failed --no-legend; free -m; df -h /; cat /proc/self/cgroup; ls /dev`)
}

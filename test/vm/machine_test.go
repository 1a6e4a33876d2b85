//go:build vm

package vm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMachine checks that the virtual machine has what the other tests need: cgroup v2 only, with its controllers, systemd, and all
// capabilities.
func TestMachine(t *testing.T) {
	got := strings.Split(strings.TrimSpace(machine.sh(t, `stat -f -c %T /sys/fs/cgroup
		cat /sys/fs/cgroup/cgroup.controllers
		systemctl is-system-running --wait
		grep CapBnd /proc/self/status`)), "\n")
	want := []string{"cgroup2fs", "cpuset cpu io memory hugetlb pids rdma misc", "running", "CapBnd:\t000001ffffffffff"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

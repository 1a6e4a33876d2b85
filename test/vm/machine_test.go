//go:build vm

package vm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The machine has what the other tests are run in it for: cgroup v2 alone with the controllers, systemd, every capability.
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

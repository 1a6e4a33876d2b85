//go:build vm

package vm_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/test/vm"
)

const (
	// resourceTests depend on how the kernel and the init system handle cgroups.
	resourceTests = "TestFieldsResources TestFieldsHugePages TestFieldsLimits TestFieldsInit TestCPULimitThrottles TestPidsLimit TestOOM " +
		"TestOOMPodLimit TestOOMChild TestOOMWithoutDaemon TestProcessInside TestMonitorProtected"
	// securityTests depend on what other hosts often do not have: AppArmor and all capabilities.
	securityTests = "TestFieldsCapabilities TestFieldsPrivileged TestFieldsAppArmor TestExecPrivileges TestIDRangeOfPod"
	// userTests depend on what the kernel supports. With crun, make crun runs those of fields.
	userTests = "TestFieldsUsers TestFieldsGroup TestFieldsGroupsPolicy TestFieldsNonRoot TestFieldsPrivileges TestFieldsProcMount " +
		"TestFieldsSeccomp TestFieldsSysctls TestFieldsHostPIDAndIPC TestFieldsShareProcessNamespace TestUserNamespaceRefused"
	// driverTests depend on how the cgroup driver creates, limits and removes cgroups.
	driverTests = "TestFieldsResources TestFieldsHugePages TestOOM TestExecKillsProcesses TestDaemonKilled TestMonitorProtected"
)

// skipped are cases that wait for timeouts in full: one command that ignores signals and one that leaves processes are enough here.
const skipped = "^TestExecKillsProcesses$/^(sleeps|forks_and|writes|child|daemon)"

// suites are the runtime tests that run in the virtual machine, by cgroup driver and OCI runtime. Each name matches at least one test and
// may be a regular expression.
var suites = []struct{ driver, oci, tests string }{
	{"cgroupfs", "runc", resourceTests + " " + securityTests + " " + userTests},
	{
		"cgroupfs", "crun", "TestFieldsResources TestFieldsHugePages TestFieldsResize TestFieldsLimits TestFieldsInit TestOOM " +
			"TestFieldsCapabilities TestFieldsAppArmor",
	},
	{"systemd", "runc", driverTests + " TestFieldsResize TestStrayWithFiles"},
	{"systemd", "crun", driverTests},
}

// TestRuntime runs tests of package runtime in the virtual machine. They run on other hosts, too.
func TestRuntime(t *testing.T) {
	programs := filepath.Join(repository, "bin")
	files := []string{
		need(t, "tests of runtime", runtimeTests),
		filepath.Join(programs, "containerd-shim-podstead-v1"), filepath.Join(programs, monitor.Name),
		imageArchive("busybox"), imageArchive("testserver"),
	}
	h := newHost(t, tempDir(t), vm.Options{}, files...)
	// What the other tests need: cgroup v2 only, with its controllers, systemd, and all capabilities.
	out, err := h.Run(t.Context(), unpack+"modprobe -a "+drivers+`; stat -f -c %T /sys/fs/cgroup; cat /sys/fs/cgroup/cgroup.controllers
		systemctl is-system-running --wait; grep CapBnd /proc/self/status`)
	want := []string{"cgroup2fs", "cpuset cpu io memory hugetlb pids rdma misc", "running", "CapBnd:\t000001ffffffffff"}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out), "\n")); diff != "" || err != nil {
		t.Fatalf("virtual machine: %v (-want +got):\n%s", err, diff)
	}
	for _, part := range suites {
		t.Run(part.driver+" "+part.oci, func(t *testing.T) {
			var output bytes.Buffer
			err := h.machine.Run(t.Context(), io.MultiWriter(&output, os.Stdout), vm.Command{
				Args: []string{
					payload + "/runtime.test", "-test.v", "-test.timeout=14m", "-test.skip=" + skipped,
					"-test.run=^(" + strings.ReplaceAll(part.tests, " ", "|") + ")$",
				},
				Env: []string{
					"PODSTEAD_TEST_PROGRAMS=" + payload, "PODSTEAD_TEST_CGROUP_DRIVER=" + part.driver,
					"PODSTEAD_ENGINE_RUNTIME=" + part.oci,
				},
				// longer than the tests' own timeout, which reports where they hang
				Timeout: 15 * time.Minute,
			})
			if err != nil {
				t.Error(err)
			}
			for name := range strings.FieldsSeq(part.tests) {
				if !regexp.MustCompile(`(?m)^--- (PASS|FAIL): ` + name + ` `).Match(output.Bytes()) {
					t.Errorf("%s was not run", name)
				}
			}
			if lines := regexp.MustCompile(`(?m)^ *--- SKIP.*`).FindAllString(output.String(), -1); len(lines) > 0 {
				t.Errorf("skipped: %q", lines)
			}
		})
	}
}

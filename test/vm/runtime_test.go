//go:build vm

package vm_test

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/test/vm"
)

const (
	// resourceTests depend on how the kernel and the init system handle cgroups.
	resourceTests = "TestFieldsResources TestCPULimitThrottles TestPidsLimit " +
		"TestOOM TestOOMPodLimit TestOOMChild TestOOMWithoutDaemon TestProcessInside TestShimKilled"
	// securityTests depend on what the kernel supports and on the capabilities of the tests: AppArmor, all capabilities.
	securityTests = "TestFieldsUsers TestFieldsGroup TestFieldsGroupsPolicy TestFieldsNonRoot TestFieldsCapabilities TestFieldsPrivileges TestFieldsPrivileged " +
		"TestFieldsProcMount TestFieldsSeccomp TestFieldsAppArmor TestFieldsSysctls TestExecPrivileges " +
		"TestFieldsHostPIDAndIPC TestFieldsShareProcessNamespace TestIDRangeOfPod TestUserNamespaceRefused"
)

// suites are the runtime tests that run in the virtual machine, by cgroup driver and OCI runtime. Each name matches at least one test and may be a
// regular expression.
var suites = []struct{ driver, oci, tests string }{
	{"cgroupfs", "runc", resourceTests + " " + securityTests},
	{"cgroupfs", "crun", "TestFieldsResources TestOOM " + securityTests},
	{"systemd", "runc", resourceTests + " TestExecKillsProcesses TestDaemonKilled"},
	{"systemd", "crun", resourceTests + " TestExecKillsProcesses TestDaemonKilled"},
}

// TestRuntime runs tests of package runtime in the virtual machine. They run on other hosts, too.
func TestRuntime(t *testing.T) {
	for _, suite := range suites {
		t.Run(suite.driver+" "+suite.oci, func(t *testing.T) {
			var output bytes.Buffer
			err := machine.Run(t.Context(), io.MultiWriter(&output, os.Stdout), vm.Command{
				Args: []string{payload + "/runtime.test", "-test.v", "-test.timeout=14m", "-test.run=^(" + strings.ReplaceAll(suite.tests, " ", "|") + ")$"},
				Env:  []string{"PODSTEAD_TEST_PROGRAMS=" + payload, "PODSTEAD_TEST_CGROUP_DRIVER=" + suite.driver, "PODSTEAD_ENGINE_RUNTIME=" + suite.oci},
				// longer than the tests' own timeout, which reports where they hang
				Timeout: 15 * time.Minute,
			})
			if err != nil {
				t.Error(err)
			}
			for name := range strings.FieldsSeq(suite.tests) {
				if !regexp.MustCompile(`(?m)^--- (PASS|FAIL): ` + name + ` `).Match(output.Bytes()) {
					t.Errorf("%s was not run", name)
				}
			}
			if skipped := regexp.MustCompile(`(?m)^ *--- SKIP.*`).FindAllString(output.String(), -1); len(skipped) > 0 {
				t.Errorf("skipped: %q", skipped)
			}
		})
	}
}

//go:build e2e

package runtime_test

import (
	"fmt"
	"math/bits"
	"os"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/cap"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// ownCaps returns the capabilities of this process as a set, and the name of one that it lacks.
func ownCaps(t *testing.T) (set uint64, absent string) {
	t.Helper()
	status, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer status.Close()
	sets, err := cap.ParseProcPIDStatus(status)
	if err != nil {
		t.Fatal(err)
	}
	set = sets[cap.Effective]
	if i := bits.TrailingZeros64(^set); cap.FromNumber(i) != "" {
		absent = strings.TrimPrefix(cap.FromNumber(i), "CAP_")
	}
	return set, absent
}

// TestFieldsCapabilities tests the bounding, permitted and effective sets: the default set with added and without dropped capabilities. The
// inheritable and ambient sets are empty, so that a user other than root has only the bounding set.
//
// fields: containers[].securityContext.capabilities.{add,drop}
func TestFieldsCapabilities(t *testing.T) {
	own, absent := ownCaps(t)
	const caps = `awk '/^Cap(Inh|Prm|Eff|Bnd|Amb)/ { printf \"%s%s\", s, $2; s = \" \" } END { print \"\" }' /proc/self/status`
	m := newTestHost(t)
	text := strings.NewReplacer("@caps", caps, "@absent", max(absent, "CHOWN")).Replace(capabilitiesFile)
	p := newPod(m, m.parse(text))
	sets := func(has, bound uint64) string { // inheritable, permitted, effective, bounding, ambient
		return fmt.Sprintf("%016x %016x %016[2]x %016[3]x %016[1]x", 0, has, bound)
	}
	all := func(set uint64) string { return sets(set, set) }
	wantLines(t, p.run("default"), all(defaultCaps))
	wantLines(t, p.run("drop-all-add"), all(capNetAdmin), "Operation not permitted")
	wantLines(t, p.run("add-all-drop"), all(own&^capChown))
	wantLines(t, p.run("add"), all(defaultCaps&^capMknod|capNetAdmin), "down")
	wantLines(t, p.run("user"), sets(0, defaultCaps|capNetAdmin))
	if absent != "" {
		_, err := p.begin("absent")
		wantFailure(t, "unavailable capability", err, lifecycle.ReasonCreateConfigError, "capability "+absent+" cannot be added")
	}
}

// TestFieldsPrivileges tests privilege escalation by a setuid program, and a read-only root file system with writable volumes.
//
// fields: containers[].securityContext.{allowPrivilegeEscalation,readOnlyRootFilesystem}
func TestFieldsPrivileges(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(privilegesFile))
	wantLines(t, p.run("default"), "NoNewPrivs:\t0", "written")
	wantLines(t, p.run("limited"), "NoNewPrivs:\t1", "Read-only file system", "Read-only file system", "Read-only file system", "written")
	wantLines(t, p.run("allowed"), "NoNewPrivs:\t0", "written")
	p.run("install")
	wantLines(t, p.run("suid"), "0")
	wantLines(t, p.run("no-suid"), "1")
}

// TestFieldsPrivileged tests that a privileged container has the capabilities of the daemon, all devices, a writable /sys, no masked paths,
// and no seccomp profile.
//
// fields: containers[].securityContext.privileged
func TestFieldsPrivileged(t *testing.T) {
	const device, node = "/dev/kmsg", "c 1 11" // a device that exists on the host only
	own, _ := ownCaps(t)
	m := newTestHost(t)
	p := newPod(m, m.parse(strings.NewReplacer("@device", device, "@node", node).Replace(privilegedFile)))
	hex := fmt.Sprintf("%016x", own)
	wantLines(t, p.run("c"), "CapEff:"+hex, "CapBnd:"+hex, "NoNewPrivs:0", "Seccomp:0", "/sys rw", "/sys/fs/cgroup rw", "0", "mounted",
		device, "1")
	wantLines(t, p.run("not"), "permission denied (are you root?)", "No such file or directory", "Operation not permitted")
}

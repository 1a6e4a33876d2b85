//go:build e2e

package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// resizedFile is a pod of two containers: one whose CPU and memory change, which uses some memory, and another one.
const resizedFile = `
name = "p"
terminationGracePeriodSeconds = 10

[[containers]]
name = "a"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "head -c %[3]s /dev/zero > /dev/shm/used; trap 'exit 0' TERM; while :; do sleep 0.1; done; : marker-a"]
resources = { requests = { cpu = "10m", memory = "1Mi" }, limits = { cpu = "%[1]s", memory = "%[2]s" } }
resizePolicy = [{ resourceName = "cpu", restartPolicy = "%[4]s" }]

[[containers]]
name = "b"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done; : marker-b"]
resources = { requests = { cpu = "10m", memory = "1Mi" }, limits = { cpu = "100m", memory = "32Mi" } }
volumeMounts = [{ name = "cache", mountPath = "/cache" }]

[volumes.cache.emptyDir]
medium = "Memory"
`

// newResized returns a host on which the pod of [resizedFile] runs with CPU and memory limits.
func newResized(t *testing.T, cpu, memory, used string) *supervised {
	s := superviseNew(t)
	if _, err := s.Add(s.parse(fmt.Sprintf(resizedFile, cpu, memory, used, "NotRequired")), state.Owner{}); err != nil {
		t.Fatal(err)
	}
	s.until("running", running(0, "a", "b"))
	s.eventually("container a uses memory", func() (string, bool) {
		g := (&pod{testHost: s.testHost}).groupsOf(s.process("marker-a"))
		usage := cgroup.UsageOf(g.paths[map[bool]string{false: "memory"}[g.unified]]).Memory
		return fmt.Sprintf("%+v", usage), usage != nil && usage.Usage >= 16<<20
	})
	return s
}

// limitsAre waits until the cgroups of container a and of the pod have limits of CPU time and of memory.
func (s *supervised) limitsAre(container, all string) {
	s.Helper()
	s.eventually("limits of container "+container+", of the pod "+all, func() (string, bool) {
		process := s.pid("marker-a")
		if process == 0 {
			return "container a does not run", false
		}
		g := (&pod{testHost: s.testHost}).groupsOf(process)
		is := [2]string{g.limits(false), g.limits(true)}
		return fmt.Sprint(is), strings.HasPrefix(is[0], container) && strings.HasPrefix(is[1], all)
	})
}

// resized returns a condition: no resize is pending, and container a has a memory limit.
func resized(memory string) func(supervisor.Snapshot) bool {
	return func(s supervisor.Snapshot) bool {
		limit := s.Status.ContainerStatuses[0].Resources.Limits["memory"]
		_, pending := resizing(s)
		return !pending && limit.String() == memory
	}
}

// resizing returns the condition of a pending resize.
func resizing(s supervisor.Snapshot) (c lifecycle.Condition, pending bool) {
	for _, c := range s.Status.Conditions {
		if c.Type == lifecycle.PodResizeInProgress {
			return c, true
		}
	}
	return c, false
}

// TestFieldsResize resizes running containers, whose processes stay: up, down, after a restart of the daemon, and below what they use.
//
// fields: containers[].resizePolicy[].{resourceName,restartPolicy}
func TestFieldsResize(t *testing.T) {
	const mi = 1 << 20
	s := newResized(t, "100m", "32Mi", "16777216")
	a, b := s.process("marker-a"), s.process("marker-b")
	limits := func(cpu, container int) (string, string) {
		return fmt.Sprintf("cpu %d memory %d swap %d ", cpu*100, container*mi, container*mi),
			fmt.Sprintf("cpu %d memory %d ", (cpu+100)*100, (container+32)*mi)
	}
	check := func(cpu, memory int) {
		t.Helper()
		container, all := limits(cpu, memory)
		s.limitsAre(container, all)
		now := s.until("resized", running(0, "a", "b"))
		s.eventually("size of the volume in memory", func() (string, bool) {
			ref, _ := now.Facts.LiveRun("b")
			_, output, err := s.Exec(s.ctx(), now.Facts.UID, ref, []string{"df", "-k", "/cache"}, 0, 1000)
			return fmt.Sprint(string(output), err), strings.Contains(string(output), fmt.Sprintf(" %d ", (memory+32)<<10))
		})
		if s.process("marker-a") != a || s.process("marker-b") != b {
			t.Errorf("processes %d and %d, before %d and %d: %+v", s.process("marker-a"), s.process("marker-b"), a, b, now.Status)
		}
	}
	define := func(cpu, memory int, policy string) {
		t.Helper()
		s.redefine(s.parse(fmt.Sprintf(resizedFile, fmt.Sprintf("%dm", cpu), fmt.Sprintf("%dMi", memory), "16777216", policy)))
	}
	check(100, 32)
	define(250, 64, "NotRequired")
	check(250, 64)
	s.until("64Mi", resized("64Mi"))
	define(50, 24, "NotRequired")
	check(50, 24)
	s.until("24Mi", resized("24Mi"))

	t.Run("below usage", func(t *testing.T) {
		define(50, 8, "NotRequired")
		now := s.until("resize fails", func(s supervisor.Snapshot) bool { c, _ := resizing(s); return c.Reason == lifecycle.ReasonError })
		c, _ := resizing(now)
		if !strings.Contains(c.Message, `attempting to set container "a" memory limit (8388608) below current usage (`) {
			t.Errorf("condition %+v", c)
		}
		if limit := now.Status.ContainerStatuses[0].Resources.Limits["memory"]; limit.String() != "24Mi" {
			t.Errorf("status has the limit %s", limit.String())
		}
		check(50, 24)
		// It stays pending with another daemon, which completes it when the memory is free.
		s.leave()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.start()
		s.supervise()
		check(50, 24)
		now, _ = s.Pod("p")
		ref, _ := now.Facts.LiveRun("a")
		if code, output, err := s.Exec(s.ctx(), now.Facts.UID, ref, []string{"rm", "/dev/shm/used"}, 0, 100); code != 0 || err != nil {
			t.Fatalf("code %d, %s, %v", code, output, err)
		}
		check(50, 8)
		s.until("8Mi", resized("8Mi"))
	})

	t.Run("restart of the container", func(t *testing.T) {
		define(150, 64, "RestartContainer")
		container, all := limits(150, 64)
		s.until("a restarted", running(1, "a", "b"))
		s.limitsAre(container, all)
		s.until("64Mi", resized("64Mi"))
		if s.process("marker-b") != b || s.process("marker-a") == a {
			t.Errorf("processes %d and %d, before %d and %d", s.process("marker-a"), s.process("marker-b"), a, b)
		}
	})
}

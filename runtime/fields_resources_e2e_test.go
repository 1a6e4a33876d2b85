//go:build e2e

package runtime_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
)

// resourceFile has a pod and two containers with resources.
const resourceFile = `
resources = %s

[[containers]]
name = "a"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "cat /proc/self/oom_score_adj; echo ready; exec sleep 100000"]
resources = %s

[[containers]]
name = "b"
image = "localhost/podstead/busybox:1"
resources = %s
`

// TestFieldsResources tests the cgroup limits of containers and pods, and their OOM scores.
//
// fields: containers[].resources.{limits,requests}, resources.{limits,requests}
func TestFieldsResources(t *testing.T) {
	const (
		none  = `{}`
		small = `{ limits = { cpu = "250m", memory = "64Mi" } }`
		large = `{ limits = { cpu = "1", memory = "128Mi" } }`
		asks  = `{ requests = { cpu = "100m", memory = "1Mi" } }`
		mem   = `{ limits = { memory = "64Mi" } }`
	)
	host, err := oci.DetectHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const page = 64 << 20
	almost := 1000 - int(1000*page/host.Memory) // OOM score with a request of 64 MiB
	m := newTestHost(t)
	m.restartWith(100)
	for _, test := range []struct {
		name           string
		pod, a, b      string
		container, all string // the limits of the container and of the pod
		shares, sum    uint64
		score          int
	}{
		{"nothing", none, none, none, "cpu max memory max swap max pids max", "cpu max memory max swap max pids 100", 2, 2, 1000},
		{
			"guaranteed", none, small, large, "cpu 25000 memory 67108864 swap 67108864 pids max",
			"cpu 125000 memory 201326592 swap max pids 100", 256, 1280, -997,
		},
		{
			"burstable", none, small, asks, "cpu 25000 memory 67108864 swap 67108864 pids max",
			"cpu max memory max swap max pids 100", 256, 358, almost,
		},
		{
			"a request only", none, asks, small, "cpu max memory max swap max pids max", "cpu max memory max swap max pids 100", 102, 358,
			999,
		},
		{
			"memory everywhere", none, mem, small, "cpu max memory 67108864 swap 67108864 pids max",
			"cpu max memory 134217728 swap max pids 100", 2, 256, almost,
		},
		{
			"of the pod", large, none, none, "cpu 100000 memory 134217728 swap 134217728 pids max",
			"cpu 100000 memory 134217728 swap max pids 100", 1024, 1024, -997,
		},
		{
			"of the pod and a container", large, small, none, "cpu 25000 memory 67108864 swap 67108864 pids max",
			"cpu 100000 memory 134217728 swap max pids 100", 256, 256, almost,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPod(m, m.parse(fmt.Sprintf(resourceFile, test.pod, test.a, test.b)))
			ref := p.serve("a")
			g := p.groups(ref)
			if got := g.limits(false); got != test.container {
				t.Errorf("limits of the container: %q, want %q", got, test.container)
			}
			if got := g.limits(true); got != test.all {
				t.Errorf("limits of the pod: %q, want %q", got, test.all)
			}
			if !g.hasShares(false, test.shares) || !g.hasShares(true, test.sum) {
				t.Errorf("CPU shares are not %d for the container and %d for the pod", test.shares, test.sum)
			}
			if group := g.read(g.dir("memory"), "memory.oom.group"); g.unified != (group == "1") {
				t.Errorf("memory.oom.group is %s", group)
			}
			score := test.score
			if !host.Resource {
				score = max(score, host.OOMScoreAdj)
			}
			wantLines(t, p.log(ref), strconv.Itoa(score), "ready")
			if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// restartWith restarts the runtime with a limit of processes for each pod.
func (m *testHost) restartWith(pids int64) {
	m.Helper()
	if err := m.Close(); err != nil {
		m.Fatal(err)
	}
	m.opts.PidsLimit = pids
	m.start()
}

// A container that exceeds its CPU limit is throttled. The OCI runtime starts it with this limit, which takes long in an emulated machine.
func TestCPULimitThrottles(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	c := sh("while :; do :; done")
	c.Resources.Limits = spec.ResourceList{"cpu": quantity("300m")}
	ref, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	g := p.groups(ref)
	p.eventually("the container to be throttled", func() (string, bool) {
		stat := g.read(g.dir("cpu"), "cpu.stat")
		for line := range strings.Lines(stat) {
			if n, is := strings.CutPrefix(strings.TrimSpace(line), "nr_throttled "); is {
				return stat, n != "0"
			}
		}
		return stat, false
	})
}

// A fork bomb cannot exceed the limit of its pod. Other containers of the pod can start afterwards.
func TestPidsLimit(t *testing.T) {
	const limit = 40
	m := newTestHost(t)
	m.restartWith(limit)
	p := newPod(m, &spec.Pod{})
	bomb, err := p.start(sh("i=0; while [ $i -lt 500 ]; do sleep 100000 & i=$((i+1)); done; echo more than allowed; sleep 100000"))
	if err != nil {
		t.Fatal(err)
	}
	if exit, log := p.wait(bomb), p.log(bomb); exit.Code != 2 || !strings.Contains(log, "can't fork") {
		t.Errorf("exit %+v, output\n%s", exit, log)
	}
	other, err := p.start(sh("echo ready; sleep 100000"))
	if err != nil {
		t.Fatal(err)
	}
	g := p.groups(other)
	if got := g.read(filepath.Dir(g.dir("pids")), "pids.max"); got != strconv.Itoa(limit) {
		t.Errorf("limit of processes of the pod: %s", got)
	}
}

// The monitor and its keeper are not in the cgroup of a pod: the limits of the pod do not apply to them.
func TestCgroupOfMonitor(t *testing.T) {
	m := newTestHost(t)
	m.restartWith(10) // barely enough for the container and the OCI runtime
	p := newPod(m, &spec.Pod{Resources: spec.Resources{Limits: spec.ResourceList{"memory": quantity("32Mi"), "cpu": quantity("10m")}}})
	ref, err := p.start(spec.Container{Command: []string{"sleep", "100000"}})
	if err != nil {
		t.Fatal(err)
	}
	keeper, monitorPID := m.roles()
	g := p.groups(ref)
	pods := map[string]bool{}
	for _, path := range g.paths {
		if strings.Contains(path, p.idOf(ref)) {
			pods[path[:strings.LastIndex(path, "/")]] = true
		}
	}
	if len(pods) == 0 {
		t.Fatalf("the container is in %v", g.paths)
	}
	for _, pid := range []int{keeper, monitorPID} {
		for line := range strings.Lines(m.proc(pid, "cgroup")) {
			path := strings.SplitN(strings.TrimSpace(line), ":", 3)[2]
			for pod := range pods {
				if path == pod || strings.HasPrefix(path, pod+"/") {
					t.Errorf("process %d is in %s, the pod in %s", pid, path, pod)
				}
			}
		}
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
}

// A limit whose controller is not available is refused by admission.
func TestLimitsWithoutControllers(t *testing.T) {
	m := newTestHost(t)
	controllers, err := cgroup.DetectControllers()
	if err != nil {
		t.Fatal(err)
	}
	limited := m.parse(fmt.Sprintf(resourceFile, "{}", `{ limits = { cpu = 1, memory = "1Gi" } }`, "{}"))
	err = m.Admit(limited)
	if held := controllers.Has(cgroup.Memory) && controllers.Has(cgroup.CPU) && controllers.Bandwidth; (err == nil) != held {
		t.Errorf("with %+v: %v", controllers, err)
	}
}

const diskFile = `
[[containers]]
name = "writes"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "%s; sync; echo ready; exec sleep 100000"]
volumeMounts = { v = "/v" }
resources = { limits = { ephemeral-storage = "%s" } }

[[containers]]
name = "other"
image = "localhost/podstead/busybox:1"
resources = { limits = { ephemeral-storage = "4Mi" } }

[[volumes]]
name = "v"
emptyDir = {}
`

// TestFieldsEphemeralStorage tests the limits of the writable layer and the log of a container, and of a pod with its volumes.
//
// fields: containers[].resources.limits
func TestFieldsEphemeralStorage(t *testing.T) {
	m := newTestHost(t)
	for _, test := range []struct{ name, script, limit, want string }{
		{"root", "head -c 3000000 /dev/zero > /file", "1Mi", `Container writes exceeded its local ephemeral storage limit "1Mi". `},
		{"log", "yes 0123456789 | head -n 30000", "1Mi", `Container writes exceeded its local ephemeral storage limit "1Mi". `},
		{
			"volume", "head -c 9000000 /dev/zero > /v/file", "1Mi",
			"Pod ephemeral local storage usage exceeds the total limit of containers 5Mi. ",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPod(m, m.parse(fmt.Sprintf(diskFile, test.script, test.limit)))
			p.serve("writes")
			got, err := p.WaitSandbox(p.ctx(), uid, p.Pod, 1)
			if got != test.want || err != nil {
				t.Errorf("message %q, %v; want %q", got, err, test.want)
			}
			if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// quantity parses a valid quantity.
func quantity(text string) spec.Quantity {
	var q spec.Quantity
	if err := q.UnmarshalJSON([]byte(strconv.Quote(text))); err != nil {
		panic(err)
	}
	return q
}

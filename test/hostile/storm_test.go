//go:build e2e

package hostile

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

const (
	stormTime   = 40 * time.Second // make soak: ten times as long
	stormMemory = 150 << 20        // of the daemon
	// noise is added to the usual time of a start in make soak, and busyNoise otherwise, since other tests run at the same time.
	noise, busyNoise = 5 * time.Second, 30 * time.Second
)

// What the level restricted requires of a pod and of a container. A pod with a user namespace may run as root.
const (
	restrictedPod       = "securityContext = { runAsNonRoot = true, runAsUser = 1000, seccompProfile = { type = \"RuntimeDefault\" } }\n"
	restrictedRoot      = "hostUsers = false\nsecurityContext = { seccompProfile = { type = \"RuntimeDefault\" } }\n"
	restrictedContainer = "securityContext = { allowPrivilegeEscalation = false, capabilities = { drop = [\"ALL\"] } }\n"
)

// stormPods are hostile pods that the level restricted admits, by name.
func stormPods() map[string]string {
	crash := func(name, script string) string { return shell(name, script) + "terminationMessagePolicy = \"File\"\n" }
	backoff := "restartBackoff = { initialSeconds = 0.2, maxSeconds = 1 }\n"
	return map[string]string{
		// Floods of output, with and without newlines; links and FIFOs in a volume that is swapped.
		"floods": restrictedPod + backoff +
			shell("lines", "while :; do yes | head -c 2000000; sleep 0.1; done") +
			shell("line", "while :; do head -c 2000000 /dev/zero | tr '\\0' x; sleep 0.1; done") +
			Play("swap", "stay", "swap /data/d /etc") + restrictedContainer + "volumeMounts = { data = \"/data\" }\n" +
			shell("fifos",
				"while :; do mkfifo /data/f$i; ln -s /proc/self/fd/0 /data/l$i; i=$((i+1)); [ $i -lt 2000 ] || i=0; done 2>/dev/null") +
			"volumeMounts = { data = \"/data\" }\n[[volumes]]\nname = \"data\"\nemptyDir = { sizeLimit = \"64Mi\" }\n",
		// Crash loops with endless termination messages and a large environment.
		"crashes": restrictedPod + backoff +
			crash("message", "head -c 20000000 /dev/zero > /dev/termination-log; exit 1") +
			crash("escape", "printf '\\033[2J\\177\\302\\205%1000000s' x > /dev/termination-log; exit 3") +
			crash("environment", "exit 1") + fmt.Sprintf("env.LARGE = %q\n", strings.Repeat("x", 100<<10)),
		// Processes up to the limit, and commands of probes and hooks that flood, hang, or leave processes.
		"forks": restrictedPod + backoff +
			shell("bomb", "while :; do sleep 5 & done 2>/dev/null; sleep 1000") +
			shell("probes", "sleep 1000") + `
  [containers.readinessProbe]
  exec = { command = ["sh", "-c", "yes"] }
  periodSeconds = 1
  timeoutSeconds = 1
  [containers.livenessProbe]
  exec = { command = ["sh", "-c", "sleep 1000 & sleep 1000"] }
  periodSeconds = 1
  timeoutSeconds = 1
  failureThreshold = 5
`,
		// Root in a user namespace: leases on all files that the daemon writes or reads.
		"leases": restrictedRoot +
			Play("holder", "stay", "lease /etc/hosts", "lease /etc/hostname", "lease /etc/resolv.conf", "lease /dev/termination-log") +
			restrictedContainer + shell("names", "while :; do nslookup none.invalid; done >/dev/null 2>&1"),
	}
}

func shell(name, script string) string {
	return fmt.Sprintf("\n[[containers]]\nname = %q\nimage = %q\ncommand = [\"sh\", \"-c\", %q]\n", name, Intruder, script) +
		restrictedContainer
}

// worker is a pod that is probed, and whose second container restarts once.
const worker = restrictedPod + `restartBackoff = { initialSeconds = 0.1 }
[[containers]]
name = "server"
image = "` + testserver + `"
resources = { requests = { cpu = "500m" } }
` + restrictedContainer + `
  [containers.readinessProbe]
  httpGet = { path = "/whoami", port = 8080 }
  periodSeconds = 0.2
  timeoutSeconds = 30
[[containers]]
name = "restarts"
image = "` + Intruder + `"
command = ["sh", "-c", "mkdir /marks/x && exit 1; exec /bin/intruder stay"]
resources = { requests = { cpu = "100m" } }
` + restrictedContainer + `
volumeMounts = { marks = "/marks" }
[[volumes]]
name = "marks"
emptyDir = {}
`

// cycle runs a worker: it starts, is probed, restarts, and is deleted. It returns how long the start took.
func (f *fixture) cycle(n int) time.Duration {
	f.Helper()
	name, start := fmt.Sprint("worker", n), time.Now()
	f.create(name, worker)
	f.Until(name, "ready", isReady)
	took := time.Since(start)
	f.Until(name, "restarted", func(p *api.Pod) bool {
		return slices.ContainsFunc(p.Status.ContainerStatuses, func(c api.ContainerStatus) bool { return c.RestartCount > 0 && c.Ready })
	})
	f.MustRun("delete", name)
	return took
}

// TestStorm: four hostile pods do at once what the level restricted admits. Other pods start within twice their usual time, are restarted,
// probed and deleted, and the memory of the daemon is bounded.
func TestStorm(t *testing.T) {
	f := &fixture{rig.NewFixture(t, 2*deadline, "testserver", "intruder")}
	f.Env = []string{
		"PODSTEAD_POLICY_POD_SECURITY=restricted", "PODSTEAD_PODS_PIDS_LIMIT=200", "PODSTEAD_CONTAINER_LOG_MAX_SIZE=1Mi",
	}
	f.CheckLeftovers(2*deadline, "daemon", "stop", "--pods")
	f.MustRun("get") // starts the daemon
	daemon, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	var usual, stormy []time.Duration
	for n := range 4 {
		took := f.cycle(n)
		if n > 0 { // the first one unpacks the images
			usual = append(usual, took)
		}
	}
	for name, text := range stormPods() {
		f.create(name, text)
	}
	for end, n := time.Now().Add(time.Duration(rig.Times(t))*stormTime), 10; time.Now().Before(end) || len(stormy) < 3; n++ {
		stormy = append(stormy, f.cycle(n))
	}
	slices.Sort(usual)
	slices.Sort(stormy)
	peak := f.peakMemory(daemon)
	t.Logf("starts usually take %v; in the storm %v; the daemon used at most %d MiB", usual, stormy, peak>>20)
	added := busyNoise
	if rig.Times(t) > 1 {
		added = noise
	}
	median, limit := stormy[len(stormy)/2], max(2*usual[len(usual)/2], usual[len(usual)/2]+added)
	if median > limit {
		t.Errorf("half of the starts took more than %v, want at most %v", median, limit)
	}
	if peak > stormMemory {
		t.Errorf("the daemon used %d MiB, want at most %d", peak>>20, stormMemory>>20)
	}
	if now, err := f.DaemonPID(f.Ctx()); err != nil || now != daemon {
		t.Errorf("PID of the daemon was %d, is %d (%v)", daemon, now, err)
	}
	for name := range stormPods() {
		f.MustRun("delete", name)
	}
}

// peakMemory returns the largest resident memory that a process has had, in bytes.
func (f *fixture) peakMemory(pid int) int64 {
	f.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	f.Check(err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			f.Check(err)
			return kib << 10
		}
	}
	f.Fatal("the kernel does not report the peak memory")
	return 0
}

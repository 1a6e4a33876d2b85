//go:build vm

package vm_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/test/internal/installed"
)

// hungry is a pod without a limit that takes all memory, until the kernel kills it.
const hungry = `
name = "hungry"
imageArchives = ["` + payload + `/busybox.tar"]
restartPolicy = "Never"
[[containers]]
name = "app"
image = "localhost/podstead/busybox:1"
command = ["tail", "/dev/zero"]
`

// TestMonitor: the processes of the monitor have a scope of their own, whose memory is not reclaimed for others. Stops, restarts and
// signals of the service do not reach them, the kernel does not kill them when a pod takes all memory of the slice, and nothing of
// them is left when the service stops without a pod.
func TestMonitor(t *testing.T) {
	m := &monitored{Host: newInstalled(t)}
	m.Sh("mkdir -p /run/data")
	m.Copy("web", installed.Web("web", ""))
	m.Open("web")
	m.Status("web", "1/1 Running")
	m.before, m.processes, m.restarts = m.Look(), m.protected(), m.monitorEvents()

	for _, command := range []string{
		"systemctl stop podstead; systemctl start podstead", "systemctl restart podstead", "systemctl kill podstead",
		"systemctl kill --signal=KILL podstead",
	} {
		m.Sh(command)
		m.kept(command)
	}
	m.starve()

	m.Sh(`podstead delete web; systemctl stop podstead.socket podstead-ro.socket podstead.service`)
	m.Eventually("nothing is left of the monitor", `left=$(pgrep -a 'podstead|containerd' || true
		systemctl list-units --all --plain --no-legend 'podstead-*.scope'; ls -d /sys/fs/cgroup/podstead.slice/podstead-* 2>/dev/null || true)
		echo "$left"; [ -z "$left" ]`)
}

// monitored is a host whose monitor must not be replaced, with the pod web.
type monitored struct {
	*installed.Host
	before    map[string]installed.Seen
	processes []string
	restarts  int // of the monitor, such as on a host that was too slow when it booted
}

// monitorEvents returns how many events the monitor has.
func (m *monitored) monitorEvents() int {
	m.Helper()
	return strings.Count(m.Sh("podstead events"), "Monitor ")
}

// protected waits until the processes of the monitor are in their scope, and returns them: its name, and the PIDs of keeper and monitor.
func (m *monitored) protected() []string {
	m.Helper()
	const scope = `0::/podstead\.slice/(podstead-monitor-\d+\.scope)\n-1000\n`
	want := regexp.MustCompile(`^(\d+)\n` + scope + `(\d+)\n` + scope + `$`)
	m.Eventually("the monitor is in its scope", `for p in $(pgrep -x podstead-monito); do grep -q /podstead-monitor- /proc/$p/cgroup; done`)
	out := m.Sh(`for p in $(pgrep -x podstead-monito); do echo $p; cat /proc/$p/cgroup /proc/$p/oom_score_adj; done`)
	found := want.FindStringSubmatch(out)
	if found == nil || found[2] != found[4] {
		m.Fatalf("PIDs, cgroups and OOM scores of the monitor:\n%s", out)
	}
	protection := fmt.Sprintln(podcgroup.MonitorMemory)
	if got := m.Sh(`cd /sys/fs/cgroup/podstead.slice; cat memory.min ` + found[2] + `/memory.min`); got != protection+protection {
		m.Errorf("protected memory of the slice and of the scope: %q, want %q each", got, protection)
	}
	if got := m.Sh(`cat /proc/$(pgrep -x httpd)/oom_score_adj; podstead exec web -- cat /proc/self/oom_score_adj`); got != "1000\n1000\n" {
		m.Errorf("OOM scores of a container and of a command: %q", got)
	}
	return []string{found[2], found[1], found[3]}
}

// kept waits until the pod is ready, and checks that neither its container nor the monitor was started again. The first command starts a
// daemon that was stopped.
func (m *monitored) kept(what string) {
	m.Helper()
	m.Eventually("the daemon runs after "+what, `podstead get; systemctl is-active podstead`)
	m.Status("web", "1/1 Running")
	if diff := cmp.Diff(m.before, m.Look()); diff != "" {
		m.Errorf("pods after %s (-before +after):\n%s", what, diff)
	}
	if diff := cmp.Diff(m.processes, m.protected()); diff != "" {
		m.Errorf("the monitor after %s (-before +after):\n%s", what, diff)
	}
	if m.monitorEvents() != m.restarts {
		m.Errorf("events after %s:\n%s", what, m.Sh("podstead events"))
	}
}

// starve lets a pod take all memory of the slice.
func (m *monitored) starve() {
	m.Helper()
	m.Sh(`systemctl set-property --runtime podstead.slice MemoryMax=200M`)
	m.Copy("hungry", hungry)
	m.Status("hungry", "0/1 OOMKilled")
	m.Sh("podstead delete hungry")
	m.kept("a pod has taken all memory of the slice")
}

//go:build vm

package vm_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

const lifeFile = `
name = "life"
imageArchives = ["` + payload + `/busybox.tar"]
volumes = [{ name = "data", hostPath = { path = "/root/data", type = "DirectoryOrCreate" } }]
[[initContainers]]
name = "hungry"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "[ -e /data/fed ] && exit; touch /data/fed; exec tail /dev/zero"]
volumeMounts = [{ name = "data", mountPath = "/data" }]
resources = { limits = { memory = "32Mi" } }
[[containers]]
name = "main"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "trap 'echo bye > /data/bye; exit 0' TERM; while :; do sleep 1 & wait; done"]
volumeMounts = [{ name = "data", mountPath = "/data" }]
readinessProbe = { exec = { command = ["test", "-e", "/data/up"] }, periodSeconds = 1, timeoutSeconds = 20 }
livenessProbe = { exec = { command = ["true"] }, periodSeconds = 5, timeoutSeconds = 30 }
`

// service tests the service with cgroups of systemd: an init container is OOM-killed and restarts; the pod has a slice with a scope for its
// container; it survives a crash of its daemon. It is deleted at the end, and no unit of it is left.
func (p *packaged) service() {
	p.Helper()
	others := p.units()
	p.Sh("mkdir -p /root/data; touch /root/data/up")
	p.Copy("life", lifeFile)
	p.Status("life", "1/1 Running")
	before := p.life()
	if want := "1 OOMKilled 137"; before.init != want {
		p.Errorf("restarts and last state of the init container: %q, want %q", before.init, want)
	}
	const more = 2 // a slice and the scope of the container
	if !strings.HasPrefix(before.place, "/podstead.slice/podstead-") || !strings.HasSuffix(before.place, ".scope") ||
		len(p.units()) != len(others)+more {
		p.Errorf("cgroup of the container %s, units %v, without the pod %v, want %d more", before.place, p.units(), others, more)
	}

	const pid = `systemctl show -P MainPID podstead`
	daemon := strings.TrimSpace(p.Sh(pid + `; systemctl kill --signal=KILL --kill-whom=main podstead`))
	p.Eventually("systemd starts the daemon again",
		`now=$(`+pid+`); echo $now; systemctl is-active podstead && [ "$now" != 0 -a "$now" != `+daemon+` ]`)
	p.Status("life", "1/1 Running")
	p.Sh(`systemctl daemon-reload; rm /root/data/up`)
	p.Status("life", "0/1 Running")
	if after := p.life(); after != before {
		p.Errorf("the pod was %+v and is %+v", before, after)
	}
	p.Sh(`podstead delete life; cat /root/data/bye; rm -r /root/data`)
	if diff := cmp.Diff(others, p.units()); diff != "" {
		p.Errorf("units without the pod (-before +after):\n%s", diff)
	}
}

// units returns the slices and scopes of pods.
func (p *packaged) units() []string {
	p.Helper()
	return strings.Fields(p.Sh(`systemctl list-units --all --plain --no-legend 'podstead-*.scope' 'podstead-*.slice' | cut -d ' ' -f 1`))
}

// life is what must not change for a pod when its daemon restarts.
type life struct {
	id, place, pid string
	restarts       int
	init           string // restart count and last state of the init container
}

func (p *packaged) life() life {
	p.Helper()
	// A child that has not executed sleep yet has the same command line.
	text := p.Sh(`pid=$(pgrep -o -f "^sh -c trap 'echo by[e]"); echo $pid; sed -n s/^0:://p /proc/$pid/cgroup; podstead get life -o json`)
	lines := strings.SplitN(text, "\n", 3)
	var pod api.Pod
	if len(lines) != 3 || json.Unmarshal([]byte(lines[2]), &pod) != nil || len(pod.Status.ContainerStatuses) != 1 ||
		len(pod.Status.InitContainerStatuses) != 1 {
		p.Fatalf("the pod: %s", text)
	}
	status, first := pod.Status.ContainerStatuses[0], pod.Status.InitContainerStatuses[0]
	return life{
		pid: lines[0], place: lines[1], id: status.ContainerID, restarts: status.RestartCount,
		init: fmt.Sprintf("%d %s", first.RestartCount, endOf(first.LastState)),
	}
}

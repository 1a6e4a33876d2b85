//go:build vm

package vm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// service is the systemd unit of the daemon, with the systemd cgroup driver.
const service = `[Service]
Type=notify
ExecStart=` + payload + `/podstead daemon --engine-cgroup-driver systemd
Restart=on-failure
RestartSec=200ms
`

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

// TestService: an init container is OOM-killed and restarts; the pod survives a restart of its daemon by systemd; no unit is left at the
// end.
func TestService(t *testing.T) {
	machine.sh(t, `mkdir -p /root/data; cat > /run/systemd/system/podstead.service <<'E'
`+service+`E
cat > /root/life.toml <<'E'
`+lifeFile+`E
touch /root/data/up
systemctl daemon-reload
systemctl start podstead
`+payload+`/keep /root/life.toml`)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(machine.try(t, `journalctl --no-pager -u podstead | tail -n 100; systemctl list-units --all 'podstead*'; systemd-cgls --no-pager`))
		}
	})
	ready := func(what, is string) {
		t.Helper()
		machine.eventually(t, what, `podstead get life > /tmp/life; grep -q ' `+is+` ' /tmp/life || { cat /tmp/life; false; }`)
	}
	ready("the pod is ready by its probe", "1/1")
	before := look(t)
	if want := "1 OOMKilled 137"; before.init != want {
		t.Errorf("restarts and last state of the init container: %q, want %q", before.init, want)
	}
	units := strings.Fields(machine.sh(t, `systemctl list-units --plain --no-legend 'podstead*.scope' 'podstead-*.slice' | cut -d ' ' -f 1`))
	if len(units) != 3 || !strings.HasPrefix(before.place, "/podstead.slice/podstead-") || !strings.HasSuffix(before.place, ".scope") {
		t.Errorf("units %v, cgroup of the container %s, want a slice with two scopes: container and shim", units, before.place)
	}

	daemon := machine.sh(t, `systemctl show -P MainPID podstead`)
	machine.sh(t, `systemctl kill --signal=KILL --kill-whom=main podstead`)
	machine.eventually(t, "systemd starts the daemon again", `now=$(systemctl show -P MainPID podstead); echo $now
		systemctl is-active podstead && [ "$now" != 0 -a "$now" != `+strings.TrimSpace(daemon)+` ]`)
	ready("the new daemon reports the pod", "1/1")
	machine.sh(t, `systemctl daemon-reload; rm /root/data/up`)
	ready("the new daemon's probe fails", "0/1")
	if after := look(t); after != before {
		t.Errorf("the pod was %+v and is %+v", before, after)
	}

	machine.sh(t, `podstead delete life; cat /root/data/bye; systemctl stop podstead; ! systemctl is-failed podstead`)
	machine.eventually(t, "no unit is left", `left=$(systemctl list-units --all --plain --no-legend 'podstead-*'; systemctl --failed --no-legend
		find /sys/fs/cgroup -name '*podstead*' -not -path '*/podstead.slice'
		ip -o link | grep -v ' lo:' || true; nft list tables; pgrep -x podstead || true); echo "$left"; [ -z "$left" ]`)
}

// seen is what must not change for a container when its daemon restarts.
type seen struct {
	id, place, pid string
	restarts       int
	init           string // restart count and last state of the init container
}

func look(t *testing.T) seen {
	t.Helper()
	var pod struct {
		Status struct {
			ContainerStatuses, InitContainerStatuses []struct {
				ContainerID  string
				RestartCount int
				LastState    struct {
					Terminated struct {
						Reason   string
						ExitCode int
					}
				}
			}
		}
	}
	text := machine.sh(t, `podstead get life -o json`)
	if err := json.Unmarshal([]byte(text), &pod); err != nil || len(pod.Status.ContainerStatuses) != 1 || len(pod.Status.InitContainerStatuses) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	status := pod.Status.ContainerStatuses[0]
	first := pod.Status.InitContainerStatuses[0]
	s := seen{id: status.ContainerID, restarts: status.RestartCount}
	s.init = fmt.Sprintf("%d %s %d", first.RestartCount, first.LastState.Terminated.Reason, first.LastState.Terminated.ExitCode)
	s.pid = strings.TrimSpace(machine.sh(t, `pgrep -f '^sh -c trap'`))
	s.place = strings.TrimPrefix(strings.TrimSpace(machine.sh(t, fmt.Sprintf("cat /proc/%s/cgroup", s.pid))), "0::")
	return s
}

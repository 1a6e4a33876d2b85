//go:build e2e

package systemd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/test/internal/installed"
)

const (
	// scripts are those of the packages, whose programs are in /usr/bin. They must start services: the host may have Debian's policy of
	// images.
	scripts = `ln -sf /usr/local/bin/podstead /usr/bin/podstead; rm -f /usr/sbin/policy-rc.d
		script() { sh -e /src/packaging/scripts/"$@"; }
		remove() { script preremove remove; script postremove remove; }
		install() { script postinstall configure "$@"; }
	`
	onDemand = `podstead get; pgrep -f 'on-deman[d]'; `
	// none fails if a process, or an interface of the host, is left of Podstead.
	none = `left=$(pgrep -ax 'podstead|containerd-shim|podstead-monito' || true); echo "$left"; [ -z "$left" ]
		[ -z "$(ip -o link | grep podstead)" ]; `
	// daemonPID prints the process of a daemon that was started on demand.
	daemonPID = `$(pgrep -f 'on-deman[d]')`
)

// TestSockets: whatever the order in which daemons, sockets, the service and the scripts of the package start and end, both sockets are
// served at the end, and one daemon runs.
func TestSockets(t *testing.T) {
	h := host(t)
	const reset = `sockets='podstead.socket podstead-ro.socket'; systemctl unmask --quiet $sockets; systemctl stop $sockets podstead.service
		podstead daemon stop; [ -z "$(pgrep -x podstead)" ]; `
	const served = `
		for socket in podstead podstead-ro; do
			curl -fsS --retry 20 --retry-all-errors --retry-delay 1 --max-time 30 --unix-socket /run/podstead/$socket.sock \
				http://localhost/v1/health || { ls -l /run/podstead; exit 1; }
		done
		podstead get; [ "$(pgrep -x podstead | wc -l)" = 1 ] || { pgrep -ax podstead; exit 1; }`
	for name, order := range map[string]string{
		"on-demand daemon, service enabled":            onDemand + `systemctl enable --now podstead`,
		"on-demand daemon, service":                    onDemand + `systemctl start podstead.service`,
		"on-demand daemon, socket":                     onDemand + `systemctl start podstead.socket`,
		"on-demand daemon, read-only socket":           onDemand + `systemctl start podstead-ro.socket`,
		"on-demand daemon without sockets of systemd":  onDemand + `systemctl mask --quiet $sockets; systemctl start podstead.service`,
		"on-demand daemon killed, service enabled":     onDemand + `kill -9 ` + daemonPID + `; systemctl enable --now podstead`,
		"on-demand daemon, package":                    onDemand + `install`,
		"read-only socket, command":                    `systemctl start podstead-ro.socket; podstead get || true`,
		"service, sockets stopped, service restarted":  `systemctl start podstead; systemctl stop $sockets; systemctl restart podstead`,
		"service, package upgraded":                    `systemctl start podstead.service; script preremove upgrade; install 1`,
		"service, package removed, on-demand, package": `systemctl start podstead.service; remove; ` + onDemand + `install 1`,
	} {
		if out, err := h.Try(scripts + reset + order + served); err != nil {
			state, _ := h.Try(`systemctl --no-pager status podstead.service podstead.socket podstead-ro.socket | tail -60`)
			t.Errorf("%s: %v\n%s\n%s", name, err, out, state)
		}
	}
}

// TestRemoval removes the package and installs it again. Pods stop and start again, and keep everything that they keep at a shutdown of the
// host. Purge removes everything.
func TestRemoval(t *testing.T) {
	h := host(t)
	h.Sh(`[ "$(stat -f -c %T /sys/fs/cgroup)" != tmpfs ] || mount -o remount,ro /sys/fs/cgroup # as systemd does with cgroup v1
		podstead doctor > /tmp/doctor || true; grep '^ok *cgroups ' /tmp/doctor || { cat /tmp/doctor; exit 1; }`)
	const file = `name = "kept"
imageArchives = ["/var/lib/images/busybox.tar"]
volumes = [
	{ name = "disk", emptyDir = {} }, { name = "memory", emptyDir = { medium = "Memory" } },
	{ name = "claim", persistentVolumeClaim = { claimName = "kept-data" } },
]
[[containers]]
name = "app"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "for v in disk memory claim; do echo started >> /$v/starts; done; trap exit TERM; while :; do sleep 0.1; done"]
volumeMounts = { disk = "/disk", memory = "/memory", claim = "/claim" }
`
	h.Copy("kept", file)
	h.Copy("stopped", strings.ReplaceAll(file, "kept", "stopped"))
	h.Status("kept", "1/1 Running")
	h.Status("stopped", "1/1 Running")
	h.Sh(`podstead rollout status kept`)
	h.Copy("kept", "labels.version = \"2\"\n"+file) // in place
	h.Eventually("kept has two generations", `podstead rollout status kept
		[ "$(podstead get kept -o jsonpath='{.metadata.labels.version}')" = 2 ]`)
	h.Sh(`podstead stop stopped`)
	const targets = `podstead rollout history kept | sed -nE 's/^[* ] +([0-9]+) .*/\1/p'`
	before, generations := h.Look(), h.Sh(targets)
	h.Sh(scripts + `remove; ` + none + `[ -e /etc/podstead/pods.d/kept.toml ]
		install 1`)
	h.Status("kept", "1/1 Running")
	h.Status("stopped", `0/1 Stopped`)
	after := h.Look()
	kept := before["kept"]
	kept.ID, kept.Started, kept.Restarts = after["kept"].ID, after["kept"].Started, kept.Restarts+1
	if diff := cmp.Diff(map[string]installed.Seen{"stopped": before["stopped"], "kept": kept}, after); diff != "" {
		t.Errorf("pods after the removal and the next installation (-want +got):\n%s", diff)
	}
	if starts := h.Sh(`podstead exec kept -- cat /disk/starts /memory/starts /claim/starts`); strings.Count(starts, "started") != 6 {
		t.Errorf("records of starts in volumes on disk, in memory, and of a claim:\n%s", starts)
	}
	if after := h.Sh(targets); after != generations || len(strings.Fields(after)) != 2 {
		t.Errorf("generations for rollbacks:\n%s\nbefore:\n%s", after, generations)
	}

	// A daemon that was started on demand and stopped leaves containers, and no socket.
	h.Sh(scripts + `systemctl stop podstead.socket podstead-ro.socket podstead.service; ` + onDemand + `
		podstead wait kept --for=condition=Ready --timeout 60s; podstead daemon stop
		[ ! -e /run/podstead/podstead.sock ]; pgrep -f containerd-shi[m]
		remove > /tmp/removal 2>&1 || { cat /tmp/removal; exit 1; }; grep 'stopping all pods' /tmp/removal; ` + none + `install 1`)
	h.Status("kept", "1/1 Running")

	// A socket without its file is reported, and the hint restores it.
	h.Sh(`sockets() { podstead doctor > /tmp/doctor || true; grep "$1" /tmp/doctor || { cat /tmp/doctor; exit 1; }; }
		sockets '^ok *sockets *of systemd: '; rm /run/podstead/podstead-ro.sock; sockets '^warn *sockets *podstead-ro.socket: .* is missing$'
		systemctl stop podstead-ro.socket podstead.socket podstead.service; systemctl start podstead.service
		sockets '^ok *sockets *of systemd: '`)
	h.Sh(scripts + `remove; script postremove purge
		left=$(ls -d /var/lib/podstead /var/log/podstead /run/podstead /etc/podstead 2>/dev/null || true; grep podstead /proc/self/mountinfo | grep -v ' /src ' || true; ip -o link | grep podstead || true); echo "$left"; [ -z "$left" ]`)
}

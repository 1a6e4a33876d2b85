package installed

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
)

// not is a function of a script that fails if a command succeeds. A script continues after a command with an exclamation mark.
const not = `not() { if "$@"; then echo "succeeded: $*"; exit 1; fi; }
`

// shutdownLog is the file in which pods record their stop. It outlasts a reboot.
const shutdownLog = "/var/lib/stops"

// shutdownDropIn is the directory for settings of the service.
const shutdownDropIn = "/etc/systemd/system/podstead.service.d"

// stopping returns the file of a pod that records its preStop hook and SIGTERM, in a directory that outlasts a reboot. A deaf one ignores
// SIGTERM, and its grace period is longer than the shutdown may take.
func stopping(name string, grace time.Duration, deaf bool) string {
	signal := "echo " + name + " TERM >> /stops/log; exit"
	if deaf {
		grace, signal = time.Hour, "echo "+name+" TERM >> /stops/log"
	}
	return fmt.Sprintf(`name = %[1]q
imageArchives = [%[2]q]
terminationGracePeriodSeconds = %[3]d
volumes = [{ name = "stops", hostPath = { path = %[4]q, type = "DirectoryOrCreate" } }]
[[containers]]
name = "app"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "trap '%[5]s' TERM; while :; do sleep 1 & wait $!; done"]
volumeMounts = [{ name = "stops", mountPath = "/stops" }]
lifecycle.preStop.exec.command = ["sh", "-c", "echo %[1]s preStop >> /stops/log"]
readinessProbe = { exec = { command = ["true"] }, periodSeconds = 1, timeoutSeconds = 60 }
`, name, archive, int(grace.Seconds()), shutdownLog, signal)
}

// Sockets stops the service and lets a client start it: the first request is answered. It removes its pod.
func (h *Host) Sockets() {
	h.Helper()
	h.Sh("mkdir -p " + data)
	h.Copy("kept", Web("kept", ""))
	h.Open("kept")
	h.Status("kept", "1/1 Running")
	before := h.Look()
	h.Sh(not + `systemctl is-active podstead.socket podstead-ro.socket
		[ "$(stat -c '%a %U:%G' /run/podstead/podstead.sock)" = '660 root:podstead' ]
		[ "$(stat -c '%a %U:%G' /run/podstead/podstead-ro.sock)" = '660 root:podstead-ro' ]
		systemctl stop podstead; not systemctl is-active podstead; [ -S /run/podstead/podstead.sock ]`)
	h.same("a start by the socket", before, h.Look())
	h.Sh(not + `systemctl is-active podstead; not pgrep -f 'on-deman[d]'
		podstead daemon stop; not systemctl is-active podstead; not systemctl is-failed podstead`)
	h.same("podstead daemon stop and a start by the socket", before, h.Look())

	// Without the sockets a command starts a daemon on demand, and the sockets replace it.
	h.Sh(not +
		`systemctl stop podstead.socket podstead-ro.socket podstead; podstead get; pgrep -f 'on-deman[d]'; not systemctl is-active podstead
		systemctl start podstead.socket; not pgrep -f 'on-deman[d]'; podstead get; systemctl is-active podstead`)
	h.same("a start of the socket", before, h.Look())
	h.Sh("podstead delete kept")
}

// Shutdown reboots the machine, with a cgroup driver and a shutdown grace period. Pods of units stop before the pods of the daemon, which
// stop in reverse order of their start with their hooks. Those that ignore everything are killed when the shutdown grace period ends. It is
// longer than TimeoutStopSec, which the daemon extends. The pods of the daemon start again, and are deleted at the end.
func (h *Host) Shutdown(driver string, period time.Duration) {
	h.Helper()
	h.Sh(fmt.Sprintf(`mkdir -p %[1]s; printf '[pods]\nshutdownGracePeriod = "%[2]s"\n[engine]\ncgroupDriver = "%[3]s"\n' > /etc/podstead/podstead.toml
		printf '[Service]\nTimeoutStopSec=%[4]d\n' > %[1]s/stop.conf; systemctl daemon-reload; systemctl restart podstead`,
		shutdownDropIn, period, driver, int(period.Seconds()*2/3)))
	pods := []string{"first", "second", "deaf", "last"}
	h.startStopping(pods, 30*time.Second)
	start := time.Now()
	h.Reboot()
	h.Logf("shutdown and boot took %.0f s, with two grace periods of %v", time.Since(start).Seconds(), period)
	h.checkStopped(pods)
	h.Sh("podstead delete --all --force; rm -r " + shutdownDropIn + " /etc/podstead/units.d/unit.toml; systemctl daemon-reload")
}

// Stops reboots the machine. Pods stop in order, as in [Host.Shutdown], but none ignores SIGTERM: no grace period expires. booted is
// called when the machine has booted.
func (h *Host) Stops(booted func()) {
	h.Helper()
	pods := []string{"first", "last"}
	h.startStopping(pods, h.options.Timeout)
	h.Reboot()
	booted()
	h.checkStopped(pods)
	h.Sh("podstead delete " + strings.Join(pods, " ") + "; rm /etc/podstead/units.d/unit.toml")
}

// isDeaf reports whether a pod ignores SIGTERM. The one of the unit does if another one does.
func isDeaf(pod string, pods []string) bool {
	return pod == "deaf" || pod == "unit" && slices.Contains(pods, "deaf")
}

// startStopping starts pods in this order, and then the pod of a unit.
func (h *Host) startStopping(pods []string, grace time.Duration) {
	h.Helper()
	h.Sh(fmt.Sprintf(`mkdir -p %[1]s /etc/podstead/units.d /var/log/journal; rm -f %[1]s/log; journalctl --flush`, shutdownLog))
	for _, pod := range pods {
		h.Copy(pod, stopping(pod, grace, isDeaf(pod, pods)))
		h.Status(pod, "1/1 Running")
	}
	h.Sh("cat > /etc/podstead/units.d/unit.toml <<'E'\n" + stopping("unit", grace, isDeaf("unit", pods)) +
		"E\nsync /etc/podstead/units.d/*; systemctl start podstead@unit; systemctl is-active podstead@unit")
}

// checkStopped checks after a reboot that the pods run again, and in which order they have stopped.
func (h *Host) checkStopped(pods []string) {
	h.Helper()
	want := []string{"unit preStop", "unit TERM"}
	for _, pod := range slices.Backward(pods) {
		want = append(want, pod+" preStop", pod+" TERM")
	}
	for _, pod := range pods {
		h.Status(pod, "1/1 Running")
		h.Sh(`podstead events ` + pod +
			` > /tmp/events; grep 'because of the shutdown of the host' /tmp/events; grep 'requested by the start of the host' /tmp/events`)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(h.Sh("cat "+shutdownLog+"/log")), "\n")); diff != "" {
		h.Errorf("stops (-want +got):\n%s", diff)
	}
	journal := h.Sh(`journalctl --no-pager -b -1 -u podstead -u podstead@unit -o short-monotonic`)
	if strings.Contains(journal, "timed out. ") || !strings.Contains(journal, "the host is shutting down, stopping pods") {
		h.Errorf("journal of the shutdown:\n%s", journal)
	}
}

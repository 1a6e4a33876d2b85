package installed

import (
	"fmt"
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
func stopping(name string, deaf bool) string {
	grace, signal := 30, "echo "+name+" TERM >> /stops/log; exit"
	if deaf {
		grace, signal = 3600, "echo "+name+" TERM >> /stops/log"
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
`, name, archive, grace, shutdownLog, signal)
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
	h.Sh(not + `systemctl stop podstead.socket podstead-ro.socket podstead; podstead get; pgrep -f 'on-deman[d]'; not systemctl is-active podstead
		systemctl start podstead.socket; not pgrep -f 'on-deman[d]'; podstead get; systemctl is-active podstead`)
	h.same("a start of the socket", before, h.Look())
	h.Sh("podstead delete kept")
}

// Shutdown reboots the machine, with a cgroup driver and a shutdown grace period. Pods of units stop before the pods of the daemon, which
// stop in reverse order of their start with their hooks. Those that ignore everything are killed when the shutdown grace period ends. It is
// longer than TimeoutStopSec, which the daemon extends. The pods of the daemon start again, and are deleted at the end.
func (h *Host) Shutdown(driver string, period time.Duration) {
	h.Helper()
	h.Sh(fmt.Sprintf(`mkdir -p %[1]s /etc/podstead/units.d %[2]s; rm -f %[1]s/log
		mkdir -p /var/log/journal; journalctl --flush
		printf '[pods]\nshutdownGracePeriod = "%[3]s"\n[engine]\ncgroupDriver = "%[4]s"\n' > /etc/podstead/podstead.toml
		printf '[Service]\nTimeoutStopSec=%[5]d\n' > %[2]s/stop.conf; systemctl daemon-reload; systemctl restart podstead`,
		shutdownLog, shutdownDropIn, period, driver, int(period.Seconds()*2/3)))
	for _, pod := range []string{"first", "second", "deaf", "last"} {
		h.Copy(pod, stopping(pod, pod == "deaf"))
		h.Status(pod, "1/1 Running")
	}
	h.Sh("cat > /etc/podstead/units.d/unit.toml <<'E'\n" + stopping("unit", true) + "E\nsystemctl start podstead@unit; systemctl is-active podstead@unit")
	start := time.Now()
	h.Reboot()
	h.Logf("shutdown and boot took %.0f s, with two grace periods of %v", time.Since(start).Seconds(), period)
	for _, pod := range []string{"first", "second", "deaf", "last"} {
		h.Status(pod, "1/1 Running")
		h.Sh(`podstead events ` + pod + ` | grep 'because of the shutdown of the host'; podstead events ` + pod + ` | grep 'requested by the start of the host'`)
	}
	want := "unit preStop\nunit TERM\nlast preStop\nlast TERM\ndeaf preStop\ndeaf TERM\nsecond preStop\nsecond TERM\nfirst preStop\nfirst TERM\n"
	if diff := cmp.Diff(want, h.Sh("cat "+shutdownLog+"/log")); diff != "" {
		h.Errorf("stops (-want +got):\n%s", diff)
	}
	journal := h.Sh(`journalctl --no-pager -b -1 -u podstead -u podstead@unit -o short-monotonic`)
	if strings.Contains(journal, "timed out. ") || !strings.Contains(journal, "the host is shutting down, stopping pods") {
		h.Errorf("journal of the shutdown:\n%s", journal)
	}
	h.Sh("podstead delete --all --force; rm -r " + shutdownDropIn + " /etc/podstead/units.d/unit.toml; systemctl daemon-reload")
}

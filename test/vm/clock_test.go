//go:build vm && soak

package vm_test

import (
	"strings"
	"testing"
)

const clockPods = `
cat > /etc/podstead/pods.d/steady.toml <<'E'
name = "steady"
imageArchives = ["` + payload + `/busybox.tar"]
activeDeadlineSeconds = 1000000
terminationGracePeriodSeconds = 0
[[containers]]
name = "main"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo run >> /data/steady; exec sleep 1000000"]
volumeMounts = [{ name = "data", mountPath = "/data" }]
[[volumes]]
name = "data"
hostPath = { path = "/root/clock", type = "DirectoryOrCreate" }
E
cat > /etc/podstead/pods.d/job.toml <<'E'
name = "job"
restartPolicy = "Never"
imageArchives = ["` + payload + `/busybox.tar"]
[[containers]]
name = "main"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo run >> /data/job; echo the result"]
volumeMounts = [{ name = "data", mountPath = "/data" }]
[[volumes]]
name = "data"
hostPath = { path = "/root/clock", type = "DirectoryOrCreate" }
E
`

// TestWallClock: on a host without network and with a wrong clock, pods of the pods directory start. The clock leaps over decades, which
// restarts and collects nothing, and the times of the pods are corrected. A reloaded configuration collects the finished pod, which keeps
// its status and its explanation, and does not run again.
func TestWallClock(t *testing.T) {
	machine := newInstalled(t)
	machine.Sh(`mkdir -p /root/clock; systemctl stop podstead; date -s '1980-01-01 12:00:00'
` + clockPods + `systemctl start podstead`)
	machine.Eventually("the pods run with the clock of 1980", `podstead get > /tmp/get || true; cat /tmp/get
		grep -q 'steady *1/1 *Running' /tmp/get && grep -q 'job *0/1 *Completed' /tmp/get`)
	daemon := machine.Sh(`systemctl show -P MainPID podstead`)
	for _, leap := range []string{"+46 years", "-30 years"} {
		machine.Sh(`date -s '` + leap + `'`)
		for _, pod := range []string{"steady", "job"} {
			machine.Eventually("the times of "+pod+" are corrected after "+leap,
				`created=$(podstead get `+pod+` -o json | sed -n 's/.*"creationTimestamp": *"\([^"]*\)".*/\1/p' | head -n 1)
				age=$(( $(date +%s) - $(date -d "$created" +%s) )); echo "created $created, age $age"; [ "$age" -ge 0 -a "$age" -lt 1800 ]`)
		}
	}
	if now := machine.Sh(`systemctl show -P MainPID podstead`); now != daemon {
		t.Errorf("the daemon was restarted: PID %s, then %s", daemon, now)
	}
	runs := func(when string) {
		t.Helper()
		if got := strings.Join(strings.Fields(machine.Sh(`cat /root/clock/steady /root/clock/job`)), " "); got != "run run" {
			t.Errorf("%s: containers ran %q, want each once", when, got)
		}
	}
	runs("after the leaps")
	if events := machine.Sh(`podstead events`); strings.Contains(events, "old logs of the finished pod") {
		t.Errorf("a leap of the clock collected a pod:\n%s", events)
	}

	machine.Sh(`printf '[pods]\nfinishedPodTTL = "soon"\n' > /etc/podstead/podstead.toml; systemctl reload podstead`)
	machine.Eventually("the invalid file is reported",
		`podstead --config /dev/null events > /tmp/events; tail -n 3 /tmp/events; grep 'Configuration is invalid' /tmp/events | grep -q `+
			`'podstead.toml:2:18'`)
	machine.Sh(`printf '[engine]\nruntime = "runc-other"\n[pods]\nfinishedPodTTL = "1s"\n' > /etc/podstead/podstead.toml; systemctl ` +
		`reload podstead`)
	machine.Eventually("the finished pod is collected", `podstead events > /tmp/events; tail -n 3 /tmp/events
		grep -q 'Configuration reloaded, changed pods.finishedPodTTL' /tmp/events && grep -q 'need a restart of the daemon: engine.runtime' /tmp/events && grep -q 'old logs of the finished pod' /tmp/events`)
	machine.Sh(`systemctl is-active podstead; printf '' > /etc/podstead/podstead.toml; systemctl restart podstead`)
	machine.Eventually("the collected pod keeps its status", `podstead get > /tmp/get || true; cat /tmp/get
		grep -q 'steady *1/1 *Running' /tmp/get && grep -q 'job *0/1 *Completed' /tmp/get && podstead why job`)
	runs("after the collection")
}

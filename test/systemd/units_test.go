//go:build e2e

package systemd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/installed"
)

// unitPod returns the file of a pod with one container.
func unitPod(name, more, script, container string) string {
	return fmt.Sprintf("name = %q\nimageArchives = [\"/var/lib/images/busybox.tar\"]\nterminationGracePeriodSeconds = "+
		"5\n%s\n[[containers]]\nname = \"app\"\n"+
		"image = \"localhost/podstead/busybox:1\"\ncommand = [\"sh\", \"-c\", %q]\n%s\n", name, more, script, container)
}

// serves is a script that runs until it is stopped, and then takes a part of its grace period.
const serves = "trap 'sleep 1; exit 0' TERM; echo serving; while :; do sleep 0.1; done"

// units is a host whose pods are units.
type units struct{ *installed.Host }

func (u *units) write(dir, pod, text string) {
	u.Helper()
	u.Sh("mkdir -p /etc/podstead/" + dir + "; cat > /etc/podstead/" + dir + "/" + pod + ".toml <<'E'\n" + text + "E\nsync /etc/podstead/" +
		dir + "/*")
}

// has runs a script, and requires texts in its output.
func (u *units) has(script string, texts ...string) {
	u.Helper()
	out := u.Sh(script)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			u.Errorf("%s: no %q in\n%s", script, text, out)
		}
	}
}

// TestUnits: a pod is a unit of systemd.
//
// fields: systemd.{after,before,wants,requires,bindsTo,partOf,wantedBy,requiredBy}
func TestUnits(t *testing.T) {
	u := &units{host(t)}
	t.Cleanup(func() {
		if t.Failed() {
			state, _ := u.Try("systemctl list-jobs; systemctl status -n 20 'podstead@*' || true")
			t.Log(state)
		}
	})
	u.write("units.d", "web", unitPod("web", "", serves, ""))
	u.has("systemd-analyze verify podstead@web.service 2>&1; echo verified", "verified")
	u.has("systemctl start podstead@web; podstead get web --no-headers; systemctl is-active podstead@web", "1/1", "Running", "\nactive")
	u.has("systemctl status podstead@web", `Status: "1/1 Running"`)
	u.has("journalctl --sync; systemctl status -n 30 podstead@web", "web-app[", "]: serving", "web/app: Container started")
	u.has("journalctl -u podstead@web -o cat; podstead logs web", "serving", "serving")
	u.daemons()
	u.reload()
	u.failures()
	u.order()
	u.stops()
	u.conflicts()
	u.generated()
}

// daemons: neither the end of the daemon nor a reload of systemd disturbs a unit. Its status follows the pod.
func (u *units) daemons() {
	u.Helper()
	before := u.Look()
	u.Sh("systemctl daemon-reload; systemctl restart podstead; systemctl kill -s KILL podstead")
	u.Eventually("the daemon runs again", "podstead get web --no-headers | grep '1/1 *Running'")
	u.Sh("systemctl stop podstead; systemctl is-active podstead@web; systemctl start podstead; systemctl is-active podstead@web")
	if after := u.Look(); after["web"] != before["web"] {
		u.Errorf("the pod of the unit changed from %+v to %+v", before["web"], after["web"])
	}
	u.Sh("podstead stop web")
	u.Eventually("the status shows the stop", "systemctl status podstead@web | grep 'Status: .*Stopped'")
	u.Sh("systemctl is-active podstead@web; podstead start web")
	u.Eventually("the status shows the start", "systemctl status podstead@web | grep 'Status: \"1/1 Running'")
}

// reload changes a pod to its changed file.
func (u *units) reload() {
	u.Helper()
	u.write("units.d", "web", unitPod("web", "labels = { release = \"2\" }", serves, ""))
	u.has("systemctl reload podstead@web; podstead get web --show-labels --no-headers", "release=2")
	u.write("units.d", "web", unitPod("web", "labels = { release = \"2\" }\nhostname = \"other\"", serves, ""))
	u.has("systemctl reload podstead@web && systemctl is-active podstead@web", "active")
	u.Eventually("the pod has restarted with the new host name", "podstead exec web -- hostname | grep other")
}

// failures: a pod that fails before it is ready fails the start with its reason; one that fails later fails the unit; one that succeeds
// ends it.
func (u *units) failures() {
	u.Helper()
	u.write("units.d", "bad",
		unitPod("bad", "restartPolicy = \"Never\"", "echo cannot open database; exit 7",
			"readinessProbe = { exec = { command = [\"false\"] } }"))
	u.has("systemctl start podstead@bad && echo started; systemctl is-active podstead@bad || systemctl status -n 30 podstead@bad || true",
		"failed", "cannot open database", "code 7")
	u.has("systemctl start podstead@none && echo started; systemctl status podstead@none || true",
		"/etc/podstead/units.d/none.toml does not exist")
	u.write("units.d", "never", unitPod("never", "", serves, "readinessProbe = { exec = { command = [\"false\"] }, periodSeconds = 1 }"))
	u.Sh("mkdir /run/systemd/system/podstead@never.service.d; printf '[Service]\\nTimeoutStartSec=20\\n' " +
		">/run/systemd/system/podstead@never.service.d/time.conf; systemctl daemon-reload")
	u.has("systemctl start podstead@never && echo started; systemctl is-active podstead@never || systemctl status -n 50 "+
		"podstead@never || true",
		"failed", "not ready in time: 0/1 Running", "readiness probe")
	u.Sh("if podstead get never; then exit 1; fi")
	u.write("units.d", "later", unitPod("later", "restartPolicy = \"Never\"", "until [ -e /end ]; do sleep 0.1; done; exit 3", ""))
	u.Sh("systemctl start podstead@later; podstead exec later -- touch /end")
	u.Eventually("the unit failed", `[ "$(systemctl is-active podstead@later)" = failed ]`)
	u.has("systemctl status podstead@later || true", "Result: exit-code", "0/1 Error", "code 3")
	u.has("podstead why later", "code 3")
	u.write("units.d", "job", unitPod("job", "restartPolicy = \"Never\"", "sleep 1", ""))
	u.Sh("systemctl start podstead@job")
	u.Eventually("the unit ended", `[ "$(systemctl is-active podstead@job)" = inactive ]`)
}

// order: a unit that is ordered after a pod starts when the pod is ready.
func (u *units) order() {
	u.Helper()
	u.write("units.d", "slow",
		unitPod("slow", "", serves, "readinessProbe = { exec = { command = [\"test\", \"-e\", \"/ready\"] }, periodSeconds = 1 }"))
	u.Sh(`cat > /etc/systemd/system/after.service <<'E'
[Unit]
Requires=podstead@slow.service
After=podstead@slow.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'podstead get slow --no-headers > /run/after'
E
systemctl start --no-block after`)
	u.Eventually("the pod runs", "podstead exec slow -- true")
	u.has("systemctl is-active after podstead@slow || true", "inactive\nactivating")
	u.has("[ ! -e /run/after ]; podstead exec slow -- touch /ready; systemctl start after; cat /run/after", "1/1 ")
	u.Sh(`systemctl stop podstead@slow; [ "$(systemctl is-active after)" = inactive ]`)
}

// stops: a stop ends the pod within its grace period, and so does the end of the main process. A pod that is deleted ends its unit.
func (u *units) stops() {
	u.Helper()
	u.has("systemctl stop podstead@web; systemctl is-active podstead@web || podstead events", "inactive", "Stopping pod")
	u.Sh("if podstead get web; then exit 1; fi; systemctl start podstead@web; systemctl kill -s KILL podstead@web")
	u.Eventually("the pod is deleted", "! podstead get web")
	u.Sh("systemctl start podstead@web; podstead delete web; [ -e /etc/podstead/units.d/web.toml ]")
	u.Eventually("the unit ended", `[ "$(systemctl is-active podstead@web)" = inactive ]`)
}

// conflicts: a name has one origin.
func (u *units) conflicts() {
	u.Helper()
	u.write("pods.d", "web", unitPod("web", "", serves, ""))
	u.has("systemctl start podstead@web || systemctl status podstead@web || true",
		`pod "web" is defined by /etc/podstead/units.d/web.toml and /etc/podstead/pods.d/web.toml`)
	u.Status("web", "1/1 +Running")
	u.Sh("rm /etc/podstead/pods.d/web.toml")
	u.Eventually("the pod is deleted", "! podstead get web")
	u.Sh("systemctl start podstead@web")
	u.write("pods.d", "web", unitPod("web", "", serves, ""))
	u.Eventually("the file is rejected",
		"podstead describe web | grep 'created by podstead@web.service, so /etc/podstead/pods.d/web.toml is not used'")
	u.Sh("rm /etc/podstead/pods.d/web.toml")
}

// generated: the generator gives pods of the pods directory a place in the boot. Only their units start them.
func (u *units) generated() {
	u.Helper()
	u.write("pods.d", "boot",
		unitPod("boot", "", serves, "")+
			"[systemd]\nafter = [\"first.service\"]\nwants = [\"first.service\"]\nwantedBy = [\"multi-user.target\"]\n")
	u.write("pods.d", "broken", "[systemd]\nafter = [\"no unit\"]\n")
	u.Sh(`cat > /etc/systemd/system/first.service <<'E'
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'sleep 1; true'
E
mkdir /tmp/units; sync`)
	u.has("/usr/local/lib/systemd/system-generators/podstead-generator /tmp/units /tmp/units /tmp/units 2>&1",
		"/etc/podstead/pods.d/broken.toml:2:10: systemd.after[0]: must be the name of a systemd unit")
	u.has("systemctl daemon-reload; systemctl show -p After,Wants,WantedBy podstead@boot; systemd-analyze verify podstead@boot.service "+
		"2>&1; podstead get; "+
		"rm /etc/podstead/pods.d/broken.toml; sync", "first.service", "WantedBy=multi-user.target")
	if _, started := u.Look()["boot"]; started {
		u.Error("the daemon has started a pod that its unit starts")
	}
	u.Reboot()
	u.Eventually("the pod starts at boot", "systemctl is-active podstead@boot && podstead get boot --no-headers | grep '1/1 *Running'")
	u.Sh(`first=$(systemctl show -P ExecMainExitTimestampMonotonic first); pod=$(systemctl show -P ExecMainStartTimestampMonotonic podstead@boot)
		[ "$first" -gt 0 ]; [ "$first" -le "$pod" ]`)
	if seen := u.Look(); len(seen) != 1 {
		u.Errorf("after the boot there are other pods than that of the enabled unit: %+v", seen)
	}
}

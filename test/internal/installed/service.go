package installed

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// none is the file of a pod whose image exists nowhere. The registry is unreachable.
const none = `name = "none"
[[containers]]
name = "app"
image = "registry.invalid/none:1"
`

// Service tests pods that were copied into the pods directory while processes are killed and the service is stopped, restarted and
// upgraded. It leaves the pods web, late and none, of which web and late are ready; late waits for web.
func (h *Host) Service() {
	h.Helper()
	h.Copy("none", none)
	h.Copy("late", Web("late", `waitFor = ["pod:web:ready"]`))
	h.Copy("web", Web("web", ""))
	h.start()
	h.checkStatus()
	h.checkKills()
	h.checkWatchdog()
	h.checkUnit()
}

// start lets the pods start in their order.
func (h *Host) start() {
	h.Helper()
	h.Status("web", "0/1 Running")
	h.Status("late", "0/1 Waiting")
	h.Status("none", "0/1 (ErrImagePull|ImagePullBackOff)")
	h.Sh("podstead why late | grep 'waiting for pod web: not ready'")
	h.Open("web")
	h.Status("late", "0/1 Running")
	h.Open("late")
	h.ready()
	if diff := cmp.Diff("web\nlate\n", h.Sh("cat "+data+"/begun")); diff != "" {
		h.Errorf("starts (-want +got):\n%s", diff)
	}
}

// ready waits until both pods are ready.
func (h *Host) ready() {
	h.Helper()
	h.Status("web", "1/1 Running")
	h.Status("late", "1/1 Running")
}

// checkStatus checks what systemctl and journalctl show to a person.
func (h *Host) checkStatus() {
	h.Helper()
	out := h.Sh(`systemctl is-enabled podstead; systemctl status --no-pager --lines 0 podstead`)
	for _, want := range []string{
		"enabled\n", "podstead.service - Podstead daemon", "Active: active (running)", "/usr/local/bin/podstead daemon",
	} {
		if !strings.Contains(out, want) {
			h.Errorf("systemctl status does not contain %q:\n%s", want, out)
		}
	}
	if out := h.Sh(`journalctl --no-pager -u podstead -p err -o cat; systemctl --failed --no-legend`); out != "" {
		h.Errorf("errors in the journal, and failed units:\n%s", out)
	}
}

// pid is a script that prints the PID of the daemon, holder one that prints that of the monitor, the parent of the containers of a pod, and
// holders one that prints those of the monitor and its keeper. The kernel cuts names.
const (
	pid     = `systemctl show -P MainPID podstead`
	holders = `pgrep -x podstead-monito`
	holder  = `for p in $(pgrep -x sh); do ! grep -qzx POD=%s /proc/$p/environ || sed -n 's/^PPid:\t//p' /proc/$p/status; done`
)

// checkKills kills each process of Podstead, and then all.
func (h *Host) checkKills() {
	h.Helper()
	before := h.Look()
	daemon := h.Sh(pid)
	h.Sh(`kill -9 $(` + pid + `)`)
	h.anotherDaemon(daemon)
	h.same("kill -9 of the daemon", before, h.Look())

	for _, pod := range []string{"web", "late"} {
		before = h.Look()
		h.Sh(`kill -9 $(` + fmt.Sprintf(holder, pod) + `)`)
		h.ready()
		h.same("kill -9 of the monitor", before, h.Look())
	}

	before, daemon = h.Look(), h.Sh(pid)
	h.Sh(`kill -9 $(` + pid + `) $(` + holders + `)`)
	h.anotherDaemon(daemon)
	h.same("kill -9 of everything", before, h.Look())
}

// checkWatchdog freezes the daemon. systemd kills it and starts it again; containers keep running.
func (h *Host) checkWatchdog() {
	h.Helper()
	const dropIn = "/run/systemd/system/podstead.service.d"
	h.Sh(`mkdir -p ` + dropIn + `; printf '[Service]\nWatchdogSec=20s\n' > ` + dropIn +
		`/watchdog.conf; systemctl daemon-reload; systemctl restart podstead`)
	h.ready()
	h.Eventually("systemctl status shows pods",
		`systemctl show -P StatusText podstead | tee /dev/stderr | grep -x '3 pods, 2 ready, 1 not ready: none'`)
	before, daemon := h.Look(), h.Sh(pid)
	h.Sh(`kill -STOP $(` + pid + `)`)
	h.anotherDaemon(daemon)
	h.same("the watchdog has killed a frozen daemon", before, h.Look())
	h.Sh(`journalctl --no-pager -u podstead -o cat | grep 'Watchdog timeout'; rm -r ` + dropIn +
		`; systemctl daemon-reload; systemctl restart podstead`)
	h.ready()
}

// anotherDaemon waits until systemd has started the daemon again, and the pods are ready.
func (h *Host) anotherDaemon(before string) {
	h.Helper()
	h.Eventually("systemd starts the daemon again",
		`systemctl is-active podstead; now=$(`+pid+`); echo $now; [ "$now" != 0 -a "$now" != `+strings.TrimSpace(before)+` ]`)
	h.ready()
}

// same checks that nothing was restarted.
func (h *Host) same(what string, before, after map[string]Seen) {
	h.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		h.Errorf("pods after %s (-before +after):\n%s", what, diff)
	}
}

// checkUnit stops, starts, restarts and upgrades the service. Containers keep running.
func (h *Host) checkUnit() {
	h.Helper()
	before := h.Look()
	running := h.Sh("pgrep -x httpd")
	h.Sh("systemctl stop podstead; ! systemctl is-failed podstead")
	if diff := cmp.Diff(running, h.Sh("pgrep -x httpd")); diff != "" {
		h.Errorf("processes of containers after systemctl stop (-before +after):\n%s", diff)
	}
	h.Sh("systemctl start podstead")
	h.ready()
	h.same("systemctl stop and start", before, h.Look())
	h.Sh("systemctl daemon-reload; systemctl restart podstead")
	h.ready()
	h.same("systemctl restart", before, h.Look())
	h.Sh(h.options.Install)
	h.Sh("readlink /proc/$(" + pid + ")/exe | grep '(deleted)'; systemctl daemon-reload; systemctl restart podstead; readlink /proc/$(" +
		pid + ")/exe | grep -v '(deleted)'")
	h.ready()
	h.same("an upgrade", before, h.Look())
}

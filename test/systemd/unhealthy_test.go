//go:build e2e

package systemd_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/installed"
)

// unhealthyFile is the configuration of a host that may be rebooted once, and that reports it to a receiver which is down at first.
const unhealthyFile = `[reboot]
maxPerDay = 1

[[notify]]
name = "ops"
command = ["/bin/sh", "-c", "test -e /var/lib/receiver && echo $PODSTEAD_POD $PODSTEAD_REASON >>/var/lib/received"]
reasons = ["RebootRequested", "RebootHeldBack"]
pods = ["sick"]
`

// TestUnhealthy: a pod that stays unready is restarted, replaced, and then the host is rebooted, once. Neither the boot nor a power cut
// allows another reboot. The notification of the reboot is sent when its receiver is available, after both.
func TestUnhealthy(t *testing.T) {
	m := machine(t)
	h := install(t, m)
	h.Sh("cat >/etc/podstead/podstead.toml <<'E'\n" + unhealthyFile + "E\nsync /etc/podstead/podstead.toml; systemctl reload podstead")
	h.Copy("well", installed.Web("well", ""))
	h.Status("well", "0/1 Running")
	h.Open("well")
	h.Status("well", "1/1 Running")
	h.Copy("sick", installed.Web("sick", "onUnhealthy = \"reboot\"\nunhealthyAfterSeconds = 3"))

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := m.Rebooted(ctx); err != nil {
		t.Fatal(err)
	}
	events := h.Sh("podstead events sick")
	for _, step := range []string{
		"next step: restart all containers", "next step: replace the pod sandbox", "requesting a reboot of the host",
		"because of the shutdown of the host",
	} {
		before, after, found := strings.Cut(events, step)
		if !found {
			t.Fatalf("no %q after\n%s\nin\n%s", step, before, events)
		}
		events = after
	}
	h.Sh("podstead events well | grep 'because of the shutdown of the host'")
	h.Status("well", "0/1 Running")
	h.Open("well")
	h.Status("well", "1/1 Running")
	const held = `podstead events sick | grep -c 'The host is not rebooted: 1 of at most 1 reboots in 24h of uptime' || true`
	heldAgain := func() {
		t.Helper()
		before := strings.TrimSpace(h.Sh(held))
		h.Eventually("the reboot is held back again", "[ $("+held+") -gt "+before+" ]")
	}
	heldAgain()
	h.Sh("podstead doctor | grep '1 of at most 1 reboots in 24h of uptime'; podstead notify ls | grep 'exit status 1'; sync")
	h.Cut()
	heldAgain()
	if n := strings.TrimSpace(h.Sh("[ ! -e /var/lib/received ]; grep -o '\"pod\":\"sick\"' " +
		"/var/lib/podstead/reboots.json | wc -l")); n != "1" {
		t.Errorf("%s reboots are recorded", n)
	}
	h.Sh("touch /var/lib/receiver")
	h.Eventually("the notification of the reboot", "head -n 1 /var/lib/received | grep -x 'sick RebootRequested'")
}

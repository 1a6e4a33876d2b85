package boot

import (
	"fmt"
	"strings"
	"time"
)

// Broken is a definition that does not become ready.
type Broken struct {
	name string
	// release returns the pod file, with its number.
	release func(number int, within time.Duration) string
	// held: nothing of it can be started, so the pod keeps running and nothing is rolled back.
	held bool
}

// Definitions that are broken.
var (
	BrokenImage = Broken{"an image that does not exist", func(number int, within time.Duration) string {
		return strings.ReplaceAll(release(number, within, "", serves, "true"), "localhost/podstead/busybox:1", "registry.invalid/none:2")
	}, true}
	BrokenReadiness = Broken{"a failing readiness probe", func(number int, within time.Duration) string {
		return release(number, within, "", serves, "false")
	}, false}
	BrokenStart = Broken{"a crash at start", func(number int, within time.Duration) string {
		return release(number, within, "", "exit 3", "true")
	}, false}
	// BrokenReplacement replaces the pod.
	BrokenReplacement = Broken{"a crash at the start of another pod", func(number int, within time.Duration) string {
		return release(number, within, fmt.Sprintf("hostname = \"host-%d\"", number), "exit 3", "true")
	}, false}
)

const serves = "trap exit TERM; while :; do sleep 1 & wait; done"

// release returns a definition of the pod app, which records its number when it starts.
func release(number int, within time.Duration, more, script, probe string) string {
	return fmt.Sprintf(`name = "app"
imageArchives = [%q]
labels = { release = "%d" }
terminationGracePeriodSeconds = 1
restartBackoff = { initialSeconds = 0.1, factor = 1 }
update = { readyWithinSeconds = %v, onFailure = "rollback" }
volumes = [{ name = "data", hostPath = { path = %q, type = "DirectoryOrCreate" } }]
%s
[[containers]]
name = "app"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo app-%[2]d >> /data/begun; %[6]s"]
volumeMounts = [{ name = "data", mountPath = "/data" }]
readinessProbe = { exec = { command = [%[7]q] }, periodSeconds = 1, timeoutSeconds = 60 }
`, archive, number, within.Seconds(), data, more, script, probe)
}

// Rollback tests that a broken definition is rolled back, within about the given time, and is not tried again until the file changes. With
// cuts, the power is cut when the new definition has started, when the rollback has started, and when it is complete.
func (h *Host) Rollback(b Broken, within time.Duration, cuts bool) {
	h.Helper()
	h.Sh("podstead delete app 2>/dev/null || true; rm -f " + data + "/begun")
	h.Copy("app", release(1, within, "", serves, "true"))
	h.Status("app", "1/1 Running")
	h.Eventually("generation 1 is saved", `grep -q '"outcome": *"Ready"' /var/lib/podstead/generations/app.json || { cat /var/lib/podstead/generations/app.json; false; }`)
	before := h.Look()["app"]

	h.Copy("app", b.release(2, within))
	if b.held {
		h.held(b, before, cuts)
	} else {
		h.rolledBack(b, cuts)
	}
	h.Copy("app", release(3, 10*within, "", serves, "true"))
	h.runs(b, 3)
}

// held checks that an update that cannot start leaves the pod as it is, also when the power is cut.
func (h *Host) held(b Broken, before Seen, cuts bool) {
	h.Helper()
	h.happened("Update waits, the pod keeps running")
	if now := h.Look()["app"]; now != before {
		h.Errorf("%s: the pod was %+v, is %+v", b.name, before, now)
	}
	if cuts {
		h.Cut()
	}
	h.runs(b, 1)
}

// rolledBack waits until the first definition is back.
func (h *Host) rolledBack(b Broken, cuts bool) {
	h.Helper()
	h.Eventually(b.name+" runs", `grep app-2 `+data+`/begun`)
	if cuts {
		h.Cut()
	}
	h.happened("Rolling back from generation 2 to 1")
	if cuts {
		h.Cut()
	}
	h.happened("Rolled back, generation 1 is ready")
	h.runs(b, 1)
	h.Sh("podstead get -o wide; podstead why app")
	if cuts {
		h.Cut()
		h.runs(b, 1)
		h.Sh(`! grep app-2 ` + data + `/begun`)
	}
}

// happened waits for an event.
func (h *Host) happened(message string) {
	h.Helper()
	h.Eventually(message, `podstead events app > /tmp/events; cat /tmp/events; grep -q '`+message+`' /tmp/events`)
}

// runs waits until the pod is ready with a definition.
func (h *Host) runs(b Broken, number int) {
	h.Helper()
	h.Eventually(fmt.Sprintf("%s: release %d is ready", b.name, number), fmt.Sprintf(`podstead get app -o json > /tmp/get; grep '"release"' /tmp/get
		grep -q '"release": *"%d"' /tmp/get; podstead get app > /tmp/get; cat /tmp/get; grep -q ' 1/1  *Running ' /tmp/get
		tail -n 1 %s/begun; [ "$(tail -n 1 %[2]s/begun)" = app-%[1]d ]`, number, data))
}

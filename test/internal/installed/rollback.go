package installed

import (
	"fmt"
	"strings"
	"time"
)

// Broken is a definition that does not become ready.
type Broken struct {
	// pod is the name of the pod.
	pod string
	// release returns the pod file, with its number.
	release func(pod string, number int, within time.Duration) string
	// held: nothing of it can be started, so the pod keeps running and nothing is rolled back.
	held bool
}

// Definitions that are broken.
var (
	BrokenImage = Broken{"broken-image", func(pod string, number int, within time.Duration) string {
		return strings.ReplaceAll(release(pod, number, within, "", serves, "true"), "localhost/podstead/busybox:1",
			"registry.invalid/none:2")
	}, true}
	BrokenReadiness = Broken{"broken-readiness", func(pod string, number int, within time.Duration) string {
		return release(pod, number, within, "", serves, "false")
	}, false}
	BrokenStart = Broken{"broken-start", func(pod string, number int, within time.Duration) string {
		return release(pod, number, within, "", "exit 3", "true")
	}, false}
	// BrokenReplacement restarts the pod in a new sandbox.
	BrokenReplacement = Broken{"broken-replacement", func(pod string, number int, within time.Duration) string {
		return release(pod, number, within, fmt.Sprintf("hostname = \"host-%d\"", number), "exit 3", "true")
	}, false}
)

const serves = "trap exit TERM; while :; do sleep 1 & wait; done"

// release returns a definition of a pod, which records its number when it starts.
func release(pod string, number int, within time.Duration, more, script, probe string) string {
	return fmt.Sprintf(`name = %[8]q
imageArchives = [%[1]q]
labels = { release = "%[2]d" }
terminationGracePeriodSeconds = 1
restartBackoff = { initialSeconds = 0.1, factor = 1 }
update = { readyWithinSeconds = %[3]v, onFailure = "rollback" }
volumes = [{ name = "data", hostPath = { path = %[4]q, type = "DirectoryOrCreate" } }]
%[5]s
[[containers]]
name = "app"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo %[8]s-%[2]d >> /data/begun; %[6]s"]
volumeMounts = [{ name = "data", mountPath = "/data" }]
readinessProbe = { exec = { command = [%[7]q] }, periodSeconds = 1, timeoutSeconds = 60 }
`, archive, number, within.Seconds(), data, more, script, probe, pod)
}

// Cuts are when the power is cut.
type Cuts struct {
	Update   bool // when the broken definition has started, or waits
	Rollback bool // when the rollback has started
	Boot     bool // when the first container runs in the boot after that
	After    bool // when it is complete
}

// Rollback tests that a broken definition is rolled back, after at most about the given time, and is not tried again until the file
// changes.
func (h *Host) Rollback(b Broken, within time.Duration, cuts Cuts) {
	h.Helper()
	h.Copy(b.pod, release(b.pod, 1, 10*within, "", serves, "true"))
	h.runs(b, 1)
	h.Eventually("generation 1 is saved",
		`cat /var/lib/podstead/generations/`+b.pod+`.json; grep -q '"outcome": *"Ready"' /var/lib/podstead/generations/`+b.pod+`.json`)
	before := h.Look()[b.pod]

	h.Copy(b.pod, b.release(b.pod, 2, within))
	if b.held {
		h.held(b, before, cuts)
	} else {
		h.rolledBack(b, cuts)
	}
	h.Copy(b.pod, release(b.pod, 3, 10*within, "", serves, "true"))
	h.runs(b, 3)
	h.Sh("podstead delete " + b.pod)
}

// held checks that an update that cannot start leaves the pod as it is, also when the power is cut.
func (h *Host) held(b Broken, before Seen, cuts Cuts) {
	h.Helper()
	h.happened(b, "Update waits, the pod keeps running")
	if now := h.Look()[b.pod]; now != before {
		h.Errorf("%s: the pod was %+v, is %+v", b.pod, before, now)
	}
	if cuts.Update {
		h.Cut()
	}
	h.runs(b, 1)
}

// rolledBack waits until the first definition is back.
func (h *Host) rolledBack(b Broken, cuts Cuts) {
	h.Helper()
	h.Eventually(b.pod+" runs the broken definition", "grep "+b.pod+"-2 "+data+"/begun")
	if cuts.Update {
		h.Cut()
	}
	// A cut may lose the newest events, but not the rollback.
	h.Eventually(b.pod+" is rolled back",
		fmt.Sprintf(`podstead events %[1]s > /tmp/events; podstead get %[1]s -o wide > /tmp/get; cat /tmp/events /tmp/get
		grep -q 'Rolling back from generation 2 to 1' /tmp/events || grep -q '(RolledBack)' /tmp/get`, b.pod))
	if cuts.Rollback {
		h.Cut()
		if cuts.Boot {
			h.Eventually(b.pod+" runs after the boot", "grep "+b.pod+" "+data+"/begun")
			h.Cut()
		}
	} else {
		h.happened(b, "Rolled back, generation 1 is ready")
	}
	h.runs(b, 1)
	h.Eventually(b.pod+" shows the rollback", "podstead get "+b.pod+" -o wide > /tmp/get; cat /tmp/get; grep -q '(RolledBack)' /tmp/get")
	if cuts.After {
		h.Cut()
		h.runs(b, 1)
		h.Sh("! grep " + b.pod + "-2 " + data + "/begun")
	}
}

// happened waits for an event.
func (h *Host) happened(b Broken, message string) {
	h.Helper()
	h.Eventually(message, "podstead events "+b.pod+" > /tmp/events; cat /tmp/events; grep -q '"+message+"' /tmp/events")
}

// runs waits until the pod is ready with a definition.
func (h *Host) runs(b Broken, number int) {
	h.Helper()
	h.Eventually(fmt.Sprintf("%s: release %d is ready", b.pod, number),
		fmt.Sprintf(`podstead get %[1]s -o json > /tmp/get; grep '"release"' /tmp/get
		grep -q '"release": *"%[2]d"' /tmp/get; podstead get %[1]s > /tmp/get; cat /tmp/get; grep -q ' 1/1  *Running ' /tmp/get
		last=$(grep '^%[1]s-' %[3]s/begun | tail -n 1); echo "last begun: $last"; [ "$last" = %[1]s-%[2]d ]`, b.pod, number, data))
}

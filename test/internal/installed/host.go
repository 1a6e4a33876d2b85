// Package installed tests the installed service on a host with systemd: pods start at boot, and outlast killed processes, a reboot, and a
// power cut. The host is a machine of package test/systemd or test/vm; the checks are the same.
//
// It owns no process and no file of the host that runs the tests.
package installed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// Machine is a host that tests can turn off.
type Machine interface {
	// Run runs a script as root until its first command that fails, and returns its output.
	Run(ctx context.Context, script string) (string, error)
	// Reboot runs systemctl reboot, and returns when scripts run again.
	Reboot(ctx context.Context) error
	// Cut cuts the power, and returns when scripts run again. What was not synced is lost.
	Cut(ctx context.Context) error
}

// Options describe a machine.
type Options struct {
	// Install is a script that installs Podstead.
	Install string
	// Enabled: the script also enables and starts the service, as a package does.
	Enabled bool
	// Archive is the path of the image archive of busybox in the machine.
	Archive string
	// Timeout is for a pod to start, and for everything else that is waited for.
	Timeout time.Duration
	// Pause is the least time between two tries of what is waited for (default 100 ms).
	Pause time.Duration
}

// Host is a machine with an installed Podstead, whose service is enabled.
type Host struct {
	*testing.T
	machine Machine
	options Options
}

// The pods use directories of the host: data is cleared at boot.
const (
	data    = "/run/data"
	podsDir = "/etc/podstead/pods.d"
	archive = "/var/lib/images/busybox.tar"
)

// New installs Podstead on a machine that is running, and enables and starts the service.
func New(t *testing.T, machine Machine, o Options) *Host {
	t.Helper()
	h := &Host{T: t, machine: machine, options: o}
	t.Cleanup(func() {
		if t.Failed() {
			state, _ := h.Try(`cat /run/data/begun || true; podstead get -o wide; podstead events | tail -n 50; journalctl --no-pager -u ` +
				`podstead | tail -n 80`)
			t.Log(state) // the machine may be off
		}
	})
	enable := `systemctl daemon-reload; systemctl enable --now podstead`
	if o.Enabled {
		enable = `systemctl is-enabled podstead; systemctl is-active podstead`
	}
	h.Sh(o.Install + `
		mkdir -p /var/lib/images ` + podsDir + `; cp ` + o.Archive + ` ` + archive + `
		` + enable + `; sync`)
	return h
}

// Try runs a script until its first command that fails.
func (h *Host) Try(script string) (string, error) {
	// also works while a failed test collects its logs
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.Context()), h.options.Timeout)
	defer cancel()
	return h.machine.Run(ctx, script)
}

// Sh runs a script, and fails the test if the script fails.
func (h *Host) Sh(script string) string {
	h.Helper()
	out, err := h.Try(script)
	if err != nil {
		h.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return out
}

// Eventually repeats a script until it succeeds. It waits at least as long as the script takes, so that a slow machine can do something
// else.
func (h *Host) Eventually(what, script string) {
	h.Helper()
	for end := time.Now().Add(h.options.Timeout); ; {
		start := time.Now()
		out, err := h.Try(script)
		if err == nil {
			return
		}
		<-time.After(max(cmp.Or(h.options.Pause, 100*time.Millisecond), time.Since(start)))
		if time.Now().After(end) {
			h.Fatalf("timed out waiting for: %s: %v\n%s", what, err, out)
		}
	}
}

// Reboot reboots the machine.
func (h *Host) Reboot() {
	h.Helper()
	h.turn("reboot", h.machine.Reboot)
}

// Cut cuts the power of the machine, and boots it again.
func (h *Host) Cut() {
	h.Helper()
	h.turn("cut power", h.machine.Cut)
}

func (h *Host) turn(what string, do func(context.Context) error) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 3*h.options.Timeout)
	defer cancel()
	if err := do(ctx); err != nil {
		h.Fatalf("%s: %v", what, err)
	}
}

// Copy copies a pod file into the pods directory, as a person does, and syncs it. The name of the file is that of the pod.
func (h *Host) Copy(pod, text string) {
	h.Helper()
	h.Sh("cat > /root/" + pod + ".toml <<'E'\n" + text + "E\ncp /root/" + pod + ".toml " + podsDir + "; sync " + podsDir + "/*")
}

// Open makes the pod ready that Web describes.
func (h *Host) Open(pod string) {
	h.Helper()
	h.Sh("touch " + data + "/" + pod + ".open")
}

// Status waits until `podstead get` shows a pod with these columns, such as "1/1 Running".
func (h *Host) Status(pod, columns string) {
	h.Helper()
	h.Eventually(pod+" is "+columns,
		`podstead get > /tmp/get; cat /tmp/get; grep -qE '^`+pod+" +"+strings.ReplaceAll(columns, " ", " +")+` ' /tmp/get`)
}

// Web returns the file of a pod that records its starts and is ready when [Host.Open] was called. Its container exits at
// SIGTERM: if a machine shuts down without the daemon, systemd waits for 90 s for one that ignores it.
func Web(name, more string) string {
	return fmt.Sprintf(`name = %[1]q
imageArchives = [%[2]q]
terminationGracePeriodSeconds = 1
restartBackoff = { initialSeconds = 0.1, factor = 1 }
%[3]s
volumes = [{ name = "data", hostPath = { path = %[4]q, type = "DirectoryOrCreate" } }]
[[containers]]
name = "app"
image = "localhost/podstead/busybox:1"
env.POD = %[1]q
command = ["sh", "-c", "echo %[1]s >> /data/begun; httpd -f -p 80 & trap 'kill $!; exit' TERM; wait"]
volumeMounts = [{ name = "data", mountPath = "/data" }]
readinessProbe = { exec = { command = ["test", "-e", "/data/%[1]s.open"] }, periodSeconds = 1, timeoutSeconds = 60 }
`, name, archive, more, data)
}

// Seen is what must not change for a pod while its containers keep running.
type Seen struct {
	UID      string
	ID       string // of its first container
	Started  time.Time
	Restarts int
}

// Look returns what runs, by pod.
func (h *Host) Look() map[string]Seen {
	h.Helper()
	text := h.Sh("podstead get -o json 2>/dev/null")
	var list api.PodList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		h.Fatalf("%v\n%s", err, text)
	}
	pods := map[string]Seen{}
	for _, pod := range list.Items {
		seen := Seen{UID: pod.Metadata.UID}
		if i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c api.ContainerStatus) bool { return c.State.Running != nil }); i >= 0 {
			c := pod.Status.ContainerStatuses[i]
			seen.ID, seen.Started, seen.Restarts = c.ContainerID, c.State.Running.StartedAt, c.RestartCount
		}
		pods[pod.Metadata.Name] = seen
	}
	return pods
}

package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/supervisor/schedule"
)

// awaitState waits until a pod meets a condition.
func (h *host) awaitState(t *testing.T, met func(*api.Pod) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for c, err := range h.client.Watch(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if met(&c.Object) {
			return
		}
	}
}

// scheduled writes the file of the pod "job", whose runs must not overlap, and the state of its schedule: runs were started up to a time.
func (h *host) scheduled(t *testing.T, since time.Time, days string) {
	t.Helper()
	cron := fmt.Sprintf("0 3 %s %d *", days, since.Month())
	text := fmt.Sprintf(`restartPolicy = "OnFailure"
schedule = { cron = %q, timeZone = "UTC", concurrencyPolicy = "Forbid" }
terminationGracePeriodSeconds = 10
[[containers]]
name = "c"
image = "i"
command = ["sh", "-c", "trap 'exit 0' TERM; sleep 100000"]
`, cron)
	if err := os.MkdirAll(h.config.Pods.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.config.Pods.Dir, "job.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	states := statefile.NewDir[schedule.State](schedule.Format, filepath.Join(h.config.StateDir, "schedules"))
	if err := states.Make(); err != nil {
		t.Fatal(err)
	}
	if err := states.Save("job", &schedule.State{Pod: "job", Cron: cron, TimeZone: "UTC", Since: since}); err != nil {
		t.Fatal(err)
	}
}

// runs returns the runs of the pod "job", by the state of the pods on the disk.
func (h *host) runs(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.config.StateDir, "pods", "job-*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return names
}

// TestShutdownStartsNoRun shuts down a daemon while a run waits until an earlier one has finished. The earlier one stops with the other
// pods, of which one takes longer: the run that waits does not start meanwhile.
func TestShutdownStartsNoRun(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	restart := func(wait func()) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		result := h.run(ctx, t, false, "1h")
		wait()
		stop()
		await(t, result)
	}
	now := time.Now().UTC()
	since := time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, time.UTC)
	restart(func() { h.awaitRunning(t, h.create(t).Metadata.UID) }) // stops after the run: its sandbox is older
	h.scheduled(t, since, "2")
	first := ""
	restart(func() {
		h.awaitState(t, func(p *api.Pod) bool {
			first = p.Metadata.Name
			s := p.Status.ContainerStatuses
			return strings.HasPrefix(first, "job-") && len(s) > 0 && s[0].Ready
		})
	})
	h.scheduled(t, since, "2,3")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	result := h.run(ctx, t, false, "1h")
	h.awaitState(t, func(p *api.Pod) bool { return p.Metadata.Name == "job" && p.Status.Reason == api.ReasonRunActive })
	if err := h.client.ShutDownDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, result)
	if runs := h.runs(t); len(runs) != 1 || runs[0] != first {
		t.Errorf("runs after the shutdown: %v, want %s", runs, first)
	}
}

package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/daemon/units"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// statusInterval limits how often systemd gets a new status.
	statusInterval = time.Second
	// maxNamed limits the pods that the status names.
	maxNamed = 3
)

// statusLine returns the status for `systemctl status`: how many pods there are, and which are not ready.
func statusLine(pods []supervisor.Snapshot) string {
	var ready, completed int
	var others []string
	for i := range pods {
		switch s := &pods[i].Status; {
		case s.Phase == lifecycle.PhaseSucceeded:
			completed++
		case slices.ContainsFunc(s.Conditions, func(c lifecycle.Condition) bool {
			return c.Type == lifecycle.PodReady && c.Status == "True"
		}):
			ready++
		default:
			others = append(others, pods[i].Pod.Name)
		}
	}
	line := fmt.Sprintf("%d pods, %d ready", len(pods), ready)
	if len(pods) == 1 {
		line = fmt.Sprintf("1 pod, %d ready", ready)
	}
	if completed > 0 {
		line += fmt.Sprintf(", %d succeeded", completed)
	}
	if len(others) > 0 {
		line += fmt.Sprintf(", %d not ready: %s", len(others), strings.Join(others[:min(len(others), maxNamed)], ", "))
		if len(others) > maxNamed {
			line += ", …"
		}
	}
	return line
}

// reportStatus sends the status of pods when it changes, until ctx ends. Pods is [supervisor.Supervisor.Pods], and changed is
// [supervisor.Supervisor.Changed].
func reportStatus(ctx context.Context, pods func() []supervisor.Snapshot, changed func() <-chan struct{}, send func(line string)) {
	last := ""
	units.Changes(ctx, statusInterval, changed, func() {
		if line := statusLine(pods()); line != last {
			send(line)
			last = line
		}
	})
}

package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/view"
)

func TestExplanation(t *testing.T) {
	now := time.Date(2026, 1, 2, 14, 4, 32, 0, time.UTC)
	at := func(hour, minute, second int) time.Time {
		return time.Date(2026, 1, 2, hour, minute, second, 0, time.UTC)
	}
	cause := &api.Cause{Kind: api.CauseLivenessFailed, Container: "app", Failures: 3, Output: "HTTP 500", Time: at(14, 4, 11)}
	for name, test := range map[string]struct {
		explanation api.Explanation
		want        string
	}{
		"ready": {api.Explanation{Pod: "web", Healthy: true, State: api.PodStateReady}, "web is running and ready.\n"},
		"crash loop": {api.Explanation{
			Pod: "web", State: api.PodStateNotReady, Cause: cause, Next: at(14, 5, 12), Restarts: 2,
			Containers: []api.ExplainedContainer{{
				Name: "app", Role: api.RoleApp, Restarts: 2, State: api.ContainerWaiting, Reason: "CrashLoopBackOff", Next: at(14, 5, 12),
				Cause: cause,
				LastExit: &api.ContainerExit{
					Code: 143, Signal: "SIGTERM", Reason: "Error", StartedAt: at(14, 1, 2), FinishedAt: at(14, 4, 12),
				},
				Evidence: &api.Evidence{Run: 2, Log: []string{"bye\x1b[2J"}, Probe: "liveness", ProbeOutput: "HTTP 500"},
				Runs: []api.ExplainedRun{
					{
						Cause: &api.Cause{
							Kind: api.CauseExited, Container: "app", Exit: &api.ContainerExit{Code: 1}, Time: at(14, 1, 0),
						},
						Restarted: true,
					},
					{Cause: cause, Timeline: []api.TimelineEntry{
						{Time: at(14, 4, 11), Message: "Container app failed liveness probe, will be restarted", Count: 1, Seq: 2},
						{Time: at(14, 4, 12), Message: "Container exited with code 143 (Error)", Count: 1, Seq: 3},
					}},
				},
			}},
			Timeline: []api.TimelineEntry{
				{Time: at(14, 0, 0).AddDate(0, 0, -1), Message: "Host has been rebooted\x1b[2J", Count: 3, Seq: 1},
			},
		}, `web restarted twice because its liveness probe failed 3 times (HTTP 500). Next restart in 40s.

Container "app": Waiting: CrashLoopBackOff, next restart at 14:05:12 (in 40s). Restarts: 2.
  Last exit: code 143 (SIGTERM: terminated on request), after 3m10s, at 14:04:12
  Liveness probe: HTTP 500
  Last log lines:
    | bye\x1b[2J
  Earlier restarts:
    14:01:00  It exited with code 1

Timeline:
  2026-01-01 14:00:00  Host has been rebooted\x1b[2J (3 times)
  14:04:11             Container app failed liveness probe, will be restarted
  14:04:12             Container exited with code 143 (Error)
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, view.Explanation(&test.explanation, now)); diff != "" {
				t.Errorf("the report (-want +got):\n%s", diff)
			}
		})
	}
}

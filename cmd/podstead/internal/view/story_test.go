package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/view"
	"github.com/podstead/podstead/supervisor/explain"
)

func TestStory(t *testing.T) {
	now := time.Date(2026, 1, 2, 14, 4, 32, 0, time.Local)
	at := func(hour, minute, second int) time.Time {
		return time.Date(2026, 1, 2, hour, minute, second, 0, time.Local)
	}
	for name, test := range map[string]struct {
		story api.Story
		want  string
	}{
		"nothing to tell": {api.Story{Pod: "web", Well: true, Summary: "runs and is ready"}, "web runs and is ready.\n"},
		"a crash loop": {api.Story{
			Pod: "web", Summary: "is not ready: app waits for its next start (CrashLoopBackOff), after 2 restarts",
			Containers: []explain.Container{{
				Name: "app", Restarts: 2, Now: "It waits for its next start (CrashLoopBackOff).", Next: at(14, 5, 12),
				Told: []explain.Restart{
					{Why: "it exited with 1", Time: at(14, 1, 0), Steps: []explain.Step{{Time: at(14, 1, 0), Text: "it exited with 1"}, {Time: at(14, 1, 2), Text: "it was started again"}}},
					{Why: "the liveness probe failed", Steps: []explain.Step{
						{Time: at(14, 4, 11), Text: "the liveness probe failed 3 times in a row (HTTP 500), so it was told to stop"},
						{Time: at(14, 4, 12), Text: "it exited with 143 (SIGTERM), 400ms after that"},
					}},
				},
			}},
			Steps: []explain.Step{{Time: at(14, 0, 0).AddDate(0, 0, -1), Text: "the machine was restarted\x1b[2J", Seen: 3}},
		}, `web is not ready: app waits for its next start (CrashLoopBackOff), after 2 restarts.

app: Restarts: 2. It waits for its next start (CrashLoopBackOff). The next try is at 14:05:12, in 40s.
  14:01:00  Ended before: it exited with 1.
  14:04:11  The liveness probe failed 3 times in a row (HTTP 500), so it was told to stop.
  14:04:12  It exited with 143 (SIGTERM), 400ms after that.

The pod as a whole:
  2026-01-01 14:00:00  The machine was restarted�[2J (3 times, this is the last).
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, view.Story(&test.story, now)); diff != "" {
				t.Errorf("the story (-want +got):\n%s", diff)
			}
		})
	}
}

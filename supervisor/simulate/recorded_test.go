package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/simulate"
)

// recordedPod is the pod of the tests of this file.
const recordedPod = `name = "web"
terminationGracePeriodSeconds = 20
waitFor = ["network-online"]
[[initContainers]]
name = "init"
image = "init:1"
[[containers]]
name = "app"
image = "app:1"
startupProbe = { exec = ["a"], periodSeconds = 5, failureThreshold = 6 }
livenessProbe = { exec = ["a"], periodSeconds = 5, failureThreshold = 3 }
readinessProbe = { exec = ["b"], periodSeconds = 5, failureThreshold = 2 }
[[containers]]
name = "helper"
image = "helper:1"
`

// recordedEvents are the events of a simulated pod, as a daemon has them.
func recordedEvents(r *simulate.Result) []api.Event {
	var events []api.Event
	for i := range r.Timeline {
		if e := &r.Timeline[i]; e.Pod != "" && e.Kind != "" {
			events = append(events, api.Event{
				Time: time.Unix(1e9, 0).Add(e.At), Kind: e.Kind, Reason: e.Reason, Pod: e.Pod, Container: e.Container, Fields: e.Fields,
			})
		}
	}
	return events
}

// life is what happened to the containers of a pod, for comparison. Times are in seconds.
func life(r *simulate.Result) string {
	var lines []string
	for i := range r.Timeline {
		switch e := &r.Timeline[i]; e.Kind { //nolint:exhaustive // the others follow from these
		case api.EventContainerStarted, api.EventContainerSucceeded, api.EventContainerFailed, api.EventContainerStartFailed,
			api.EventContainerLivenessFailed, api.EventContainerStartupFailed, api.EventHostRebooted, api.EventPodStopped,
			api.EventPodRecovered, api.EventImagePulled:
			at := e.At.Round(time.Second)
			lines = append(lines, fmt.Sprintf("%v %s %s %s %s", at, e.Container, e.Kind, e.Fields["code"], e.Fields["reason"]))
		}
	}
	return strings.Join(lines, "\n")
}

// TestRecorded simulates scenarios, makes a scenario of the events of each, writes and parses it, and simulates that: the same happens.
func TestRecorded(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "for = \"10m\"\n",
		"crashes": `for = "2h"
[[containers]]
name = "app"
pullTakes = "30s"
runs = [
  { lasts = "10m", exitCode = 3 }, { lasts = "1m", oomKilled = true }, { startError = "no such \u007f \\ \"file\"" },
  { times = 4, exitCode = 1 }, {},
]
[[containers]]
name = "init"
runs = [{ lasts = "3s", exitCode = 1 }, { lasts = "2s" }]
`,
		"probes": `for = "2h"
[[containers]]
name = "app"
runs = [{ readyAfter = "60s" }, { readyAfter = "21s", lasts = "20m", exitCode = 1 }, { readyAfter = "11s" }]
probes = [{ probe = "readiness", from = "1h", to = "1h1m", fails = true }]
`,
		"requests": `for = "2h"
[[containers]]
name = "app"
runs = [{ stopTakes = "4s" }, { ignoresStop = true }, {}]
[[events]]
at = "10m"
event = "restart"
container = "app"
[[events]]
at = "20m"
event = "restart"
[[events]]
at = "30m"
event = "stop"
grace = "7s"
[[events]]
at = "40m"
event = "start"
`,
		"host": `for = "2h"
[[containers]]
name = "helper"
runs = [{ stopTakes = "3s" }]
[[conditions]]
condition = "network-online"
metAfter = "15s"
[[events]]
at = "10m"
event = "reboot"
for = "2m"
[[events]]
at = "30m"
event = "powerCut"
for = "30s"
[[events]]
at = "1h"
event = "daemonCrash"
`,
		"registry": `for = "1h"
[[events]]
event = "registryDown"
for = "4m"
`,
	} {
		t.Run(name, func(t *testing.T) {
			pod := mustParse(t, recordedPod)
			s, problems := simulate.Parse("s.toml", []byte(text))
			if s == nil {
				t.Fatal(problems)
			}
			first, err := simulate.Pods([]*spec.Pod{pod}, simulate.Options{Scenario: s})
			if err != nil {
				t.Fatal(err)
			}
			events := recordedEvents(first)
			derived, left := simulate.Recorded(pod, events, events[0].Time.Add(first.For))
			if len(left) > 0 {
				t.Errorf("left out: %q", left)
			}
			file := derived.TOML()
			again, problems := simulate.Parse("again.toml", file)
			if again == nil {
				t.Fatalf("%v\n%s", problems, file)
			}
			second, err := simulate.Pods([]*spec.Pod{pod}, simulate.Options{Scenario: again})
			if err != nil {
				t.Fatalf("%v\n%s", err, file)
			}
			if diff := cmp.Diff(life(first), life(second)); diff != "" {
				t.Errorf("(-first +again):\n%s\n%s", diff, file)
			}
		})
	}
}

package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
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
			api.EventPodRecovered, api.EventImagePulled, api.EventImagePresent:
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
imagePresent = true
runs = [{ stopTakes = "4s", stopExitCode = 0 }, { ignoresStop = true }, {}]
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

// onApp is an event of the container app, with fields and their values in turn.
func onApp(at time.Duration, kind api.EventKind, fields ...string) api.Event {
	e := onWeb(at, kind, fields...)
	e.Container = "app"
	return e
}

// onWeb is an event of the pod.
func onWeb(at time.Duration, kind api.EventKind, fields ...string) api.Event {
	e := api.Event{Time: time.Unix(1e9, 0).Add(at), Kind: kind, Pod: "web", Fields: map[string]string{}}
	for pair := range slices.Chunk(fields, 2) {
		e.Fields[pair[0]] = pair[1]
	}
	return e
}

// appRuns reports whether the container app runs at a time of a simulation.
func appRuns(r *simulate.Result, at time.Duration) bool {
	runs := false
	for i := range r.Timeline {
		switch e := &r.Timeline[i]; {
		case e.At > at:
			return runs
		case e.Kind == api.EventHostRebooted:
			runs = false
		case e.Container != "app":
		case e.Kind == api.EventContainerStarted:
			runs = true
		case e.Kind == api.EventContainerSucceeded || e.Kind == api.EventContainerFailed:
			runs = false
		}
	}
	return runs
}

// TestRecordedEvents makes scenarios of events that no simulation emits, parses them, and simulates the pod.
func TestRecordedEvents(t *testing.T) {
	const (
		minute, day, longest = time.Minute, 24 * time.Hour, 366 * 24 * time.Hour
		hour                 = time.Hour
		old                  = "events from more than 366 days before the end"
		unset                = -1e9 * time.Second // 1970: the time of a host without a battery before its clock is set

		accepted, started, failed = api.EventPodAccepted, api.EventContainerStarted, api.EventContainerFailed
		recovered, rebooted       = api.EventPodRecovered, api.EventHostRebooted
		probe, starts             = api.EventProbeFailed, api.EventPodStartRequested
	)
	stopped := []api.Event{
		onApp(0, started),
		onWeb(10*minute, api.EventNodeShutdown, "by", lifecycle.ByDaemonStop, "grace", "1m0s"),
		onApp(10*minute, api.EventContainerStopping),
		onApp(10*minute+2*time.Second, failed, "code", "143"),
	}
	for name, test := range map[string]struct {
		events     []api.Event
		until      time.Duration   // since the first second of the recorded time
		runs, not  []time.Duration // of the simulation
		has, hasNo string          // of the file
		left       []string
	}{
		"the daemon stops its pods": {
			events: stopped, until: hour, runs: []time.Duration{5 * minute}, not: []time.Duration{15 * minute, hour},
		},
		"the daemon stops its pods and starts": {
			events: slices.Concat(stopped, []api.Event{
				onWeb(20*minute, starts, "by", lifecycle.ByDaemonStart), onWeb(20*minute, recovered), onApp(20*minute, started),
			}),
			until: hour, runs: []time.Duration{5 * minute, 21 * minute, hour}, not: []time.Duration{15 * minute}, hasNo: "daemonCrash",
		},
		"the daemon stops its pods, starts and crashes later": {
			events: slices.Concat(stopped, []api.Event{
				onWeb(20*minute, starts, "by", lifecycle.ByDaemonStart), onWeb(20*minute, recovered), onApp(20*minute, started),
				onWeb(30*minute, recovered),
			}),
			until: hour, runs: []time.Duration{21 * minute, hour}, not: []time.Duration{15 * minute}, has: `at = "29m55s"`,
		},
		"the daemon crashes after a start request": {
			events: []api.Event{
				onApp(0, started), onWeb(10*minute, api.EventPodStopping, "grace", "30s"), onApp(10*minute, api.EventContainerSucceeded),
				onWeb(20*minute, starts, "by", "uid 0"), onWeb(20*minute+2*time.Second, recovered), onApp(20*minute+2*time.Second, started),
			},
			until: hour, runs: []time.Duration{5 * minute, 21 * minute, hour}, not: []time.Duration{15 * minute}, has: `"daemonCrash"`,
		},
		"the first event is the recovery": {
			events: []api.Event{onWeb(0, recovered), onApp(hour, failed, "code", "3"), onApp(hour, started)},
			until:  2 * hour, runs: []time.Duration{minute, 59 * minute, 2 * hour}, has: `lasts = "1h"`,
		},
		"an exit while the daemon does not run": {
			events: []api.Event{
				onApp(0, started), onWeb(20*minute, recovered), onApp(15*minute, failed, "code", "3"), onApp(20*minute, started),
				onApp(40*minute, failed, "code", "4"), onApp(40*minute, started),
			},
			until: hour, runs: []time.Duration{14 * minute, hour}, has: `lasts = "15m"`,
		},
		"the pod started long ago": {
			events: []api.Event{
				onApp(0, started), onWeb(hour, api.EventPodRestartRequested), onApp(hour, failed, "code", "7"), onApp(hour, started),
				onApp(400*day, failed, "code", "3"), onApp(400*day, started),
			},
			until: 401 * day, runs: []time.Duration{minute, 364 * day, longest}, has: `lasts = "8760h"`, hasNo: "exitCode = 7",
			left: []string{old},
		},
		"all is long ago": {
			events: []api.Event{onApp(0, started)}, until: 401 * day, runs: []time.Duration{minute, longest}, left: []string{old},
		},
		"the host was rebooted long ago": {
			events: []api.Event{
				onApp(0, started), onWeb(hour, rebooted), onApp(400*day, started), onApp(400*day+hour, failed, "code", "3"),
				onApp(400*day+hour, started),
			},
			until: 401 * day, runs: []time.Duration{longest}, has: `lasts = "1h"`, left: []string{old},
		},
		"the clock is set after the start": {
			events: []api.Event{
				onApp(unset, api.EventImagePulling), onApp(unset+time.Second, started),
				onApp(0, probe, "probe", "Liveness", "count", "1"), onApp(5*time.Second, probe, "probe", "Liveness", "count", "2"),
				onApp(hour, failed, "code", "3"), onApp(hour, started),
			},
			until: 2 * hour, runs: []time.Duration{minute, longest - 2*hour, longest}, has: `exitCode = 3`, left: []string{old},
		},
		"the clock is set after a boot": {
			events: []api.Event{
				onApp(0, started), onWeb(unset, rebooted), onApp(unset+time.Second, started), onApp(hour, failed, "code", "3"),
				onApp(hour, started),
			},
			until: 2 * hour, runs: []time.Duration{minute, 59 * minute, 2 * hour}, has: `lasts = "59m59s"`,
		},
		"the clock is set back after the first event": {
			events: []api.Event{
				onWeb(0, accepted), onApp(0, api.EventImagePulling),
				onApp(-hour, api.EventImagePullFailed), onApp(minute-hour, api.EventImagePullFailed),
				onApp(2*minute-hour, api.EventImagePulled, "duration", "1s"), onApp(2*minute-hour, started),
				onApp(12*minute-hour, probe, "probe", "Readiness", "count", "1"),
				onApp(13*minute-hour, probe, "probe", "Readiness", "count", "2"),
				onApp(20*minute-hour, failed, "code", "3"), onApp(20*minute-hour, started),
			},
			until: -10 * minute, runs: []time.Duration{5 * minute, 50 * minute}, has: `from = "12m"`,
		},
		"the clock is set back while a container runs": {
			events: []api.Event{
				onApp(0, started), onApp(10*minute, probe, "probe", "Readiness", "count", "1"),
				onApp(-minute, probe, "probe", "Readiness", "count", "2"), onApp(9*minute, failed, "code", "3"), onApp(9*minute, started),
			},
			until: hour, runs: []time.Duration{19 * minute, hour}, has: `lasts = "20m"`,
		},
		"the clock is set back before an exit": {
			events: []api.Event{onApp(0, started), onApp(-hour, failed, "code", "3"), onApp(minute-hour, started)},
			until:  2 * hour, runs: []time.Duration{2 * minute, 2 * hour}, has: `lasts = "0s"`,
		},
		"an update": {
			events: []api.Event{
				onApp(0, started), onWeb(minute, api.EventDefinitionChanged), onApp(minute, api.EventContainerChanged),
				onApp(minute, api.EventContainerSucceeded), onApp(minute, started),
			},
			until: hour, runs: []time.Duration{2 * minute, hour}, has: `event = "restart"`,
			left: []string{"updates (containers that they restarted are restarted on request)"},
		},
		"the image is on the host": {
			events: []api.Event{onApp(0, api.EventImagePresent, "image", "app:1"), onApp(0, started)},
			until:  hour, has: "imagePresent = true",
		},
		"an image of another definition is on the host": {
			events: []api.Event{onApp(0, api.EventImagePresent, "image", "app:0"), onApp(0, started)}, until: hour, hasNo: "imagePresent",
		},
		"another container has pulled the image": {
			events: []api.Event{
				{Time: time.Unix(1e9, 0), Kind: api.EventImagePulling, Container: "helper", Fields: map[string]string{"image": "app:1"}},
				onApp(time.Second, api.EventImagePresent, "image", "app:1"), onApp(time.Second, started),
			},
			until: hour, hasNo: "imagePresent", left: []string{`container "helper", which the pod does not have`},
		},
		"a startup probe is added": {
			events: []api.Event{
				onApp(0, started), onApp(3*time.Second, probe, "probe", "Liveness", "count", "1"),
				onApp(8*time.Second, probe, "probe", "Liveness", "count", "2"),
				onApp(13*time.Second, probe, "probe", "Liveness", "count", "3"),
				onApp(13*time.Second, api.EventContainerLivenessFailed), onApp(14*time.Second, failed, "code", "143"),
				onApp(14*time.Second, started),
			},
			until: hour, runs: []time.Duration{5 * time.Second, 15 * time.Second, hour}, has: `readyAfter = "14s"`, hasNo: "hangsAfter",
		},
		"starts take long": {
			events: []api.Event{
				onWeb(0, api.EventSandboxReady), onApp(0, api.EventImagePresent, "image", "app:1"), onApp(30*time.Second, started),
				onApp(minute, failed, "code", "3"), onApp(minute, api.EventImagePresent, "image", "app:1"),
				onApp(2*minute, started),
			},
			until: hour, runs: []time.Duration{40 * time.Second, 3 * minute, hour},
			not: []time.Duration{20 * time.Second, 90 * time.Second}, has: "startTakes = \"1m\"",
		},
		"the daemon crashes before a start": {
			events: []api.Event{
				onWeb(0, api.EventSandboxReady), onApp(0, api.EventImagePresent, "image", "app:1"), onWeb(5*minute, recovered),
				onApp(5*minute, started),
			},
			until: hour, runs: []time.Duration{6 * minute, hour}, hasNo: "startTakes",
		},
		"the sandbox is lost before a start": {
			events: []api.Event{
				onApp(0, api.EventImagePresent, "image", "app:1"), onWeb(5*minute, api.EventSandboxReady), onApp(5*minute, started),
			},
			until: hour, runs: []time.Duration{6 * minute, hour}, hasNo: "startTakes",
		},
		"the exit code is lost": {
			events: []api.Event{
				onApp(0, started), onApp(minute, api.EventContainerStopping),
				onApp(minute, failed, "code", "137", "reason", string(lifecycle.ReasonStatusUnknown)),
			},
			until: hour, hasNo: "stopExitCode",
		},
		"a pull takes too long for a scenario": {
			events: []api.Event{onApp(0, api.EventImagePulled, "duration", "9000h"), onApp(0, started)},
			until:  hour, has: `pullTakes = "8784h"`,
		},
		"a grace period is too long for a scenario": {
			events: []api.Event{onApp(0, started), onWeb(minute, api.EventPodStopping, "grace", "9000h")},
			until:  hour, not: []time.Duration{hour}, has: `grace = "8784h"`,
		},
		"a probe fails at the end": {
			events: []api.Event{onApp(0, started), onApp(401*day, probe, "probe", "Readiness", "count", "1")},
			until:  401 * day, runs: []time.Duration{longest}, hasNo: "probes", left: []string{old},
		},
		"the host is shut down for a long time": {
			events: []api.Event{
				onApp(0, started), onWeb(hour, api.EventNodeShutdown, "by", lifecycle.ByShutdown), onWeb(longest, rebooted),
				onWeb(longest, recovered), onApp(longest, started),
			},
			until: longest, runs: []time.Duration{minute}, has: `for = "8783h"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := mustParse(t, "name = \"web\"\n[[containers]]\nname = \"app\"\nimage = \"app:1\"\n")
			derived, left := simulate.Recorded(pod, test.events, time.Unix(1e9, 0).Add(test.until))
			if !slices.Equal(left, test.left) {
				t.Errorf("left out: %q, want %q", left, test.left)
			}
			file := string(derived.TOML())
			if !strings.Contains(file, test.has) || test.hasNo != "" && strings.Contains(file, test.hasNo) {
				t.Errorf("must have %s, and not %s:\n%s", test.has, test.hasNo, file)
			}
			s, problems := simulate.Parse("s.toml", []byte(file))
			if s == nil {
				t.Fatalf("%v\n%s", problems, file)
			}
			result, err := simulate.Pods([]*spec.Pod{pod}, simulate.Options{Scenario: s})
			if err != nil {
				t.Fatalf("%v\n%s", err, file)
			}
			for _, at := range test.runs {
				if !appRuns(result, at) {
					t.Errorf("the container does not run at %v:\n%s\n%s", at, life(result), file)
				}
			}
			for _, at := range test.not {
				if appRuns(result, at) {
					t.Errorf("the container runs at %v:\n%s\n%s", at, life(result), file)
				}
			}
		})
	}
}

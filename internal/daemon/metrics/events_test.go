package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestRestartCauses(t *testing.T) {
	failed := func(reason string) event.Event {
		return event.Event{Kind: api.EventContainerFailed, Container: "app", Fields: event.Fields{"reason": reason}}
	}
	of := func(kind api.EventKind) event.Event { return event.Event{Kind: kind, Container: "app"} }
	pod := func(kind api.EventKind) event.Event { return event.Event{Kind: kind} }
	start := of(api.EventContainerStarted)
	for name, test := range map[string]struct {
		events []event.Event
		want   string
	}{
		"first start": {[]event.Event{pod(api.EventPodAccepted), start}, "map[]"},
		"exit": {
			[]event.Event{start, failed("Error"), start, of(api.EventContainerSucceeded), start}, "map[{app Completed}:1 {app Error}:1]",
		},
		"OOM": {[]event.Event{start, failed("OOMKilled"), of(api.EventContainerBackOff), start}, "map[{app OOMKilled}:1]"},
		"liveness probe": {
			[]event.Event{start, of(api.EventContainerLivenessFailed), failed("Error"), start}, "map[{app LivenessProbe}:1]",
		},
		"startup probe": {
			[]event.Event{start, of(api.EventContainerStartupFailed), of(api.EventContainerSucceeded), start}, "map[{app StartupProbe}:1]",
		},
		"changed": {
			[]event.Event{start, of(api.EventContainerChanged), of(api.EventContainerSucceeded), start}, "map[{app DefinitionChanged}:1]",
		},
		"requested": {
			[]event.Event{start, pod(api.EventPodRestartRequested), of(api.EventContainerStopping), of(api.EventContainerSucceeded), start},
			"map[{app Requested}:1]",
		},
		"device unplugged": {[]event.Event{
			start, {Kind: api.EventDeviceRemoved, Container: "app", Fields: event.Fields{"restarts": "true"}}, failed("Error"), start,
		}, "map[{app DeviceRemoved}:1]"},
		"exit after a device was unplugged that is kept": {
			[]event.Event{start, of(api.EventDeviceRemoved), of(api.EventDeviceAdded), failed("Error"), start}, "map[{app Error}:1]",
		},
		"rebooted": {[]event.Event{start, pod(api.EventHostRebooted), start}, "map[{app Rebooted}:1]"},
		"rebooted after a shutdown": {[]event.Event{
			start, pod(api.EventNodeShutdown), failed("Error"), pod(api.EventHostRebooted),
			{Kind: api.EventPodStartRequested, Fields: event.Fields{"by": lifecycle.ByStart}},
			pod(api.EventPodRecovered), start,
		}, "map[{app Rebooted}:1]"},
		"started after a reboot": {[]event.Event{
			start, failed("Error"), pod(api.EventHostRebooted),
			{Kind: api.EventPodStartRequested, Fields: event.Fields{"by": "uid 0"}},
			start,
		}, "map[{app Requested}:1]"},
		"escalated": {
			[]event.Event{start, pod(api.EventPodEscalated), of(api.EventContainerStopping), failed("Error"), start},
			"map[{app Unhealthy}:1]",
		},
		"first start after it": {[]event.Event{pod(api.EventPodStartRequested), start}, "map[]"},
		"exit without restart": {[]event.Event{start, failed("Error")}, "map[]"},
		"other container": {
			[]event.Event{start, {Kind: api.EventContainerFailed, Container: "b", Fields: event.Fields{"reason": "Error"}}, start}, "map[]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFollower(nil)
			for _, e := range test.events {
				e.UID, e.Pod = "u", "web"
				f.handle(&e, true)
			}
			got := "map[]"
			if p := f.recorder.pods["u"]; p != nil {
				got = fmt.Sprint(p.restarts)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func newFollower(list []supervisor.Snapshot) *follower {
	return &follower{NewRecorder(), func(name string) (supervisor.Snapshot, bool) {
		for _, p := range list {
			if p.Pod.Name == name {
				return p, true
			}
		}
		return supervisor.Snapshot{}, false
	}, map[string]*podHistory{}}
}

// TestRestored: events of an earlier daemon are not counted, but they are causes.
func TestRestored(t *testing.T) {
	f := newFollower(nil)
	for i, kind := range []api.EventKind{
		api.EventContainerStarted, api.EventContainerSucceeded, api.EventContainerStarted, api.EventContainerSucceeded,
		api.EventContainerStarted,
	} {
		f.handle(&event.Event{Kind: kind, UID: "u", Pod: "web", Container: "app"}, i == 4)
	}
	if got := fmt.Sprint(f.recorder.pods["u"].restarts); got != "map[{app Completed}:1]" {
		t.Errorf("restarts %s", got)
	}
}

// TestPrune: after missed events, what was counted for pods that do not exist is deleted.
func TestPrune(t *testing.T) {
	f := newFollower(nil)
	for _, uid := range []string{"gone", "here"} {
		f.handle(&event.Event{Kind: api.EventPodAccepted, UID: uid}, true)
		f.recorder.Probe(uid, "app", lifecycle.ProbeLiveness, lifecycle.ProbeError, time.Second)
	}
	f.prune([]supervisor.Snapshot{{Pod: &spec.Pod{Name: "here"}, Facts: lifecycle.Facts{UID: "here"}}})
	if len(f.history) != 1 || f.history["here"] == nil || len(f.recorder.pods) != 1 || f.recorder.pods["here"] == nil {
		t.Errorf("kept %v, %v", f.history, f.recorder.pods)
	}
	if got := fmt.Sprint(f.recorder.pods["here"].probes[probeKey{"app", lifecycle.ProbeLiveness}].results); got != "map[unknown:1]" {
		t.Errorf("results %s", got)
	}
}

func TestDistribution(t *testing.T) {
	d := newDistribution([]float64{1, 2, 5})
	for _, seconds := range []float64{0.5, 1, 1.5, 5, 7} {
		d.observe(seconds)
	}
	if diff := cmp.Diff(map[float64]uint64{1: 2, 2: 3, 5: 4}, d.cumulative()); diff != "" || d.count != 5 || d.sum != 15 {
		t.Errorf("count %d, sum %v (-want +got)\n%s", d.count, d.sum, diff)
	}
}

// TestForget: nothing is kept for a pod that was removed, also if its logs were removed before, which is reported later.
func TestForget(t *testing.T) {
	f := newFollower(nil)
	for _, kind := range []api.EventKind{
		api.EventPodAccepted, api.EventContainerStarted, api.EventContainerFailed, api.EventContainerStarted, api.EventPodRemoved,
		api.EventLogsRemoved,
	} {
		f.handle(&event.Event{Kind: kind, UID: "u", Pod: "web", Container: "app", Fields: event.Fields{"reason": "Error"}}, true)
	}
	if len(f.history) > 0 || len(f.recorder.pods) > 0 {
		t.Errorf("kept: %v, %v", f.history, f.recorder.pods)
	}
}

// TestSizeLabel compares the labels with the boundaries of the kubelet.
func TestSizeLabel(t *testing.T) {
	const mb, gb = 1 << 20, 1 << 30
	for bytes, want := range map[int64]string{
		0: "N/A", 1: "0-10MB", 10*mb - 1: "0-10MB", 10 * mb: "10MB-100MB", 100 * mb: "100MB-500MB", 500 * mb: "500MB-1GB", gb: "1GB-5GB",
		5 * gb:  "5GB-10GB",
		10 * gb: "10GB-20GB", 20 * gb: "20GB-30GB", 30 * gb: "30GB-40GB", 40 * gb: "40GB-60GB", 60 * gb: "60GB-100GB", 100 * gb: "GT100GB",
		900 * gb: "GT100GB",
	} {
		if got := sizeLabel(bytes); got != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
}

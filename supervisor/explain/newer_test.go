package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestProblems: an explanation says that the state of the pod cannot be saved, and what cannot be removed, whatever else the state of the
// pod is.
func TestProblems(t *testing.T) {
	for problem, want := range map[lifecycle.ConditionType]string{
		supervisor.StateNotDurable: " Its state could not be saved, after a restart of the daemon an older state would be used: ",
		supervisor.RemovalFailed:   " Cleanup of the pod is not complete, retrying: ",
	} {
		const message = "write /var/lib/podstead/pods/web.json: no space left on device"
		e := explain.ForPod(&supervisor.Snapshot{
			Pod: &spec.Pod{Name: "web"}, Facts: lifecycle.Facts{UID: "u"},
			Status: lifecycle.Status{Phase: lifecycle.PhaseSucceeded, Conditions: []lifecycle.Condition{
				{Type: problem, Status: "True", Message: message},
			}},
		}, nil, lifecycle.Instant{})
		explain.Render(&e, time.Time{})
		if want += message + "."; !strings.HasSuffix(e.Text, want) || e.Healthy {
			t.Errorf("%s, healthy %v, want the end %s", e.Text, e.Healthy, want)
		}
	}
}

// TestNotUpdated: an explanation says that the volumes of a pod that is ready are not updated.
func TestNotUpdated(t *testing.T) {
	e := explain.ForPod(&supervisor.Snapshot{
		Pod: &spec.Pod{Name: "web"}, Facts: lifecycle.Facts{UID: "u"},
		Status: lifecycle.Status{Phase: lifecycle.PhaseRunning, Conditions: []lifecycle.Condition{
			{Type: lifecycle.PodReady, Status: "True"},
			{Type: supervisor.VolumesNotUpdated, Status: "True", Message: `volume "tls": tls.key is accessible by other users`},
		}},
	}, nil, lifecycle.Instant{})
	explain.Render(&e, time.Time{})
	want := ` Its volumes are not updated, containers keep the last content: volume "tls": tls.key is accessible by other users.`
	if !strings.HasSuffix(e.Text, want) || e.Healthy {
		t.Errorf("%s, healthy %v, want the end %s", e.Text, e.Healthy, want)
	}
}

// TestNotResized: an explanation says why a pod that is ready has not the requests and limits of its definition, if that has failed.
func TestNotResized(t *testing.T) {
	for message, want := range map[string]string{
		"": "web is running and ready.", "cannot decrease memory limits": " Its resize is not complete: cannot decrease memory limits.",
	} {
		e := explain.ForPod(&supervisor.Snapshot{
			Pod: &spec.Pod{Name: "web"}, Facts: lifecycle.Facts{UID: "u"},
			Status: lifecycle.Status{Phase: lifecycle.PhaseRunning, Conditions: []lifecycle.Condition{
				{Type: lifecycle.PodReady, Status: "True"}, {Type: lifecycle.PodResizeInProgress, Status: "True", Message: message},
			}},
		}, nil, lifecycle.Instant{})
		explain.Render(&e, time.Time{})
		if !strings.HasSuffix(e.Text, want) || e.Healthy != (message == "") {
			t.Errorf("%q: %s, healthy %v, want the end %s", message, e.Text, e.Healthy, want)
		}
	}
}

// TestNewerState: the state of a pod whose state file a later version has written is not unknown because of the engine.
func TestNewerState(t *testing.T) {
	e := explain.ForPod(&supervisor.Snapshot{
		Pod: &spec.Pod{Name: "web"}, Facts: lifecycle.Facts{UID: "u"},
		Status: lifecycle.Status{
			Phase: lifecycle.PhaseUnknown, Reason: lifecycle.ReasonNewerState,
			Message: supervisor.NotSupervised +
				"its state file was written by a later version: the file has version 2, at most 1 is supported",
		},
	}, nil, lifecycle.Instant{})
	explain.Render(&e, time.Time{})
	want := "web is in an unknown state because its state file was written by a later version: the file has version 2, at most 1 is " +
		"supported."
	if e.Text != want || e.Cause.Kind != api.CauseNotSupervised || e.State != api.PodStateUnknown {
		t.Errorf("%s (%+v), want %s", e.Text, e.Cause, want)
	}
	if report := explain.Report(&e, time.Time{}); !strings.Contains(report, "hint: ") ||
		!strings.Contains(report, "podstead delete --force web") || strings.Contains(report, "engine") {
		t.Errorf("report:\n%s", report)
	}
}

// TestHostEvents: a restart of the monitor is part of the timeline of a pod that existed then, and other events of the daemon are not.
func TestHostEvents(t *testing.T) {
	at := func(seq uint64, kind api.EventKind, pod string, f event.Fields) event.Event {
		e := event.New(kind, time.Unix(int64(seq), 0), pod, f)
		if e.Seq = seq; pod != "" {
			e.UID = "u"
		}
		return e
	}
	e := explain.ForPod(&supervisor.Snapshot{
		Pod: &spec.Pod{Name: "web"}, Facts: lifecycle.Facts{UID: "u"}, Status: lifecycle.Status{Phase: lifecycle.PhaseRunning},
	}, []event.Event{
		at(1, api.EventMonitorRestarted, "", event.Fields{"cause": "before the pod"}), at(2, api.EventPodRecovered, "web", nil),
		at(3, api.EventConfigReloaded, "", nil), at(4, api.EventMonitorRestarted, "", event.Fields{"cause": "it was killed"}),
	}, lifecycle.Instant{})
	last := len(e.Timeline) - 1
	if last != 1 || e.Timeline[last].Message != "Monitor restarted, containers kept running: it was killed" {
		t.Errorf("timeline %+v", e.Timeline)
	}
}

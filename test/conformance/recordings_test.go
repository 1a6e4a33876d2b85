package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/simulate"
)

// Recordings are the pods of a run of the tests of this package on real containers, with their events: one file for each pod, named after
// its test. Record them again with
//
//	go test -tags e2e ./test/conformance -args -record testdata/recordings
const recordings = "testdata/recordings"

// recordedEvent is a line of a recording.
type recordedEvent struct {
	At        string            `json:"at"` // since the first event
	Kind      api.EventKind     `json:"kind"`
	Container string            `json:"container,omitempty"`
	Fields    map[string]string `json:"fields,omitempty"`
}

// recordedFields are the fields of events that a scenario is made of.
var recordedFields = []string{"by", "code", "condition", "count", "duration", "error", "grace", "image", "probe", "reason"}

// writeRecording writes the recording of a pod.
func writeRecording(path, pod string, events []api.Event, until time.Time) error {
	var lines strings.Builder
	out := json.NewEncoder(&lines)
	start := until
	if len(events) > 0 {
		start = events[0].Time
	}
	at := func(t time.Time) string { return t.Sub(start).Round(time.Millisecond).String() }
	for _, e := range events {
		fields := maps.Clone(e.Fields)
		maps.DeleteFunc(fields, func(name, value string) bool {
			return !slices.Contains(recordedFields, name) || strings.HasPrefix(value, "a client")
		})
		if err := out.Encode(recordedEvent{at(e.Time), e.Kind, e.Container, fields}); err != nil {
			return err
		}
	}
	return os.WriteFile(path, txtar.Format(&txtar.Archive{Comment: []byte(at(until) + "\n"), Files: []txtar.File{
		{Name: "pod.toml", Data: []byte(pod)}, {Name: "events", Data: []byte(lines.String())},
	}}), 0o600)
}

// recording is a file that writeRecording has written.
type recording struct {
	test   string
	pod    *spec.Pod
	events []api.Event
	until  time.Time
}

func readRecording(path string) (r recording, err error) {
	start := time.Unix(1e9, 0)
	after := func(text string) time.Time {
		d, durationErr := time.ParseDuration(text)
		if durationErr != nil {
			err = durationErr
		}
		return start.Add(d)
	}
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return r, err
	}
	r.test = strings.FieldsFunc(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(c rune) bool { return c == '_' || c == '-' })[0]
	r.until = after(strings.TrimSpace(string(archive.Comment)))
	var problems spec.Problems
	if r.pod, problems = spec.Parse(path, archive.Files[0].Data); r.pod == nil {
		return r, problems
	}
	for line := range strings.Lines(string(archive.Files[1].Data)) {
		var e recordedEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return r, err
		}
		r.events = append(r.events, api.Event{Time: after(e.At), Kind: e.Kind, Container: e.Container, Fields: e.Fields})
	}
	return r, err
}

// history has the events of a pod and of each of its containers, by container.
type history map[string][]happened

// happened is an event with its exit code. Failures of probes in a row are one, because a pod keeps only some of them.
type happened struct {
	what string
	at   time.Duration // since the first event
}

func (h history) add(at time.Duration, container string, kind api.EventKind, code string) {
	what := strings.TrimSpace(string(kind) + " " + code)
	if list := h[container]; kind == api.EventProbeFailed && len(list) > 0 && list[len(list)-1].what == what {
		return
	}
	h[container] = append(h[container], happened{what, at})
}

// differs are the recordings that differ from their simulation, with the reason.
var differs = map[string]string{
	"TestDeletedPodFails_image_missing": "in a scenario, an image that must not be pulled is on the host",
	"TestMissingInitImageKeepsPodPending": "in a scenario, a pull fails because of the registry, and succeeds when the registry is" +
		" available; the test imports the image",
	"TestOrphan":                 "the test removes the state of the pod, which no scenario can",
	"TestDeadContainers-dead":    "the container exits shortly before the daemon starts again, and a back-off of 0.1 s ends between",
	"TestProbeHandlers_liveness": "a probe takes 2 s to fail, and fails at once in a scenario",
}

// notRecorded are the tests of the table without a recording, with the reason.
var notRecorded = map[string]string{
	"TestManifests":             "it changes files of a pods directory, which no scenario has",
	"TestPowerLossRestartsPods": "it runs in a virtual machine",
	"TestStorm":                 "many pods and random events",
}

// cut bounds the time before the end of a recording in which the last events may be missing from one of both lists: the test ends at any
// time, and times differ.
const cut = time.Second

// TestRecordings simulates what happened on real containers: each pod with the exit codes, the failing probes, and what was requested,
// stopped or crashed. Each container has the same events in the same order, apart from those within [cut] of the end.
func TestRecordings(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(recordings, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	kept := map[api.EventKind]bool{}
	for _, e := range api.EventEntries() {
		kept[e.Kind] = e.Kept
	}
	recorded, unused := map[string]bool{}, maps.Clone(differs)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		r, err := readRecording(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		recorded[r.test] = true
		delete(unused, name)
		scenario, left := simulate.Recorded(r.pod, r.events, r.until)
		result, err := simulate.Pods([]*spec.Pod{r.pod}, simulate.Options{Scenario: scenario})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		real, simulated := history{}, history{}
		for i := range r.events {
			if e := &r.events[i]; kept[e.Kind] {
				real.add(e.Time.Sub(r.events[0].Time), e.Container, e.Kind, e.Fields["code"])
			}
		}
		for i := range result.Timeline {
			if e := &result.Timeline[i]; e.Pod != "" && kept[e.Kind] {
				simulated.add(e.At, e.Container, e.Kind, e.Fields["code"])
			}
		}
		diff := compare(real, simulated, r.until.Sub(r.events[0].Time)-cut)
		if len(left) > 0 {
			diff += fmt.Sprintf("the scenario leaves out %q\n", left)
		}
		switch reason := differs[name]; {
		case diff != "" && reason == "":
			t.Errorf("%s (-real +simulated):\n%s", name, diff)
		case diff == "" && reason != "":
			t.Errorf("%s is listed as different (%s), and is not", name, reason)
		}
	}
	if len(unused) > 0 {
		t.Errorf("no recordings of %v", slices.Sorted(maps.Keys(unused)))
	}
	missing := maps.Clone(notRecorded)
	for _, row := range Rows() {
		test, _, _ := strings.Cut(row.Test, "/")
		if test != "" && recorded[test] == (notRecorded[test] != "") {
			t.Errorf("%s has a recording: %v; reason for none: %q", test, recorded[test], notRecorded[test])
		}
		delete(missing, test)
	}
	if len(missing) > 0 {
		t.Errorf("no rows for %v", slices.Sorted(maps.Keys(missing)))
	}
}

// compare returns the differences of two histories of a pod until a time.
func compare(real, simulated history, until time.Duration) (diff string) {
	names := maps.Clone(real)
	maps.Copy(names, simulated)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := real[name], simulated[name]
		short := min(len(a), len(b))
		for _, list := range []*[]happened{&a, &b} {
			if l := *list; len(l) > short && l[short].at >= until {
				*list = l[:short]
			}
		}
		if d := cmp.Diff(texts(a), texts(b)); d != "" {
			diff += fmt.Sprintf("[%s] %s", name, d)
		}
	}
	return diff
}

func texts(list []happened) (all []string) {
	for _, h := range list {
		all = append(all, h.what)
	}
	return all
}

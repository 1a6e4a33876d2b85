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
// its test. Make them anew with
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
		maps.DeleteFunc(fields, func(name, value string) bool { // only those that a scenario is made of
			return !slices.Contains([]string{"by", "code", "condition", "count", "duration", "error", "grace", "probe", "reason"}, name) ||
				strings.HasPrefix(value, "a client")
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

// lives are the events of a pod and of each of its containers, with exit codes. Failures of probes in a row are one, because a pod keeps
// only some of them.
type lives map[string][]string

func (l lives) add(container string, kind api.EventKind, code string) {
	line := strings.TrimSpace(string(kind) + " " + code)
	if list := l[container]; kind == api.EventProbeFailed && len(list) > 0 && list[len(list)-1] == line {
		return
	}
	l[container] = append(l[container], line)
}

// differs are the recordings of which a simulation differs, with the reason.
var differs = map[string]string{
	"TestDeletedPodFails_image_missing-deletedpodfails-image-missing": "in a scenario, an image that must not be pulled is on the host",
	"TestMissingInitImageKeepsPodPending": "in a scenario, a pull fails because of the registry, and succeeds when that is back; the" +
		" test imports the image",
	"TestOrphan": "the test removes the state of the pod, which no scenario can",
	"TestStartupProbeGatesLivenessProbe": "a container of which a probe fails after it has started up is taken for one that hangs, and" +
		" its probe has a timeout of 100 s",
	"TestRestartRulesPrecedence_Always": "the restarts have a delay of 0.1 s, so the time that starts take decides how many there are",
	"TestDeadContainers":                "the same, and a start can take longer than the delay",
}

// notRecorded are the tests of the table without a recording, with the reason.
var notRecorded = map[string]string{
	"TestPowerLossRestartsPods": "it runs in a virtual machine",
	"TestStorm":                 "many pods and random events",
}

// TestRecordings simulates what happened on real containers: each pod with the exit codes, the failing probes, and what was requested,
// stopped or crashed. Each container has the same events, one by one, apart from their times: the shorter one of both lists, which the end
// of the test has cut, is the beginning of the longer one, and has half of its events at least.
func TestRecordings(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(recordings, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	kept := map[api.EventKind]bool{}
	for _, e := range api.EventEntries() {
		kept[e.Kind] = e.Kept
	}
	recorded := map[string]bool{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		r, err := readRecording(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		recorded[r.test] = true
		scenario, _ := simulate.Recorded(r.pod, r.events, r.until)
		result, err := simulate.Pods([]*spec.Pod{r.pod}, simulate.Options{Scenario: scenario})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		real, simulated := lives{}, lives{}
		for i := range r.events {
			if e := &r.events[i]; kept[e.Kind] {
				real.add(e.Container, e.Kind, e.Fields["code"])
			}
		}
		for i := range result.Timeline {
			if e := &result.Timeline[i]; e.Pod != "" && kept[e.Kind] {
				simulated.add(e.Container, e.Kind, e.Fields["code"])
			}
		}
		diff := compare(real, simulated)
		switch reason := differs[name]; {
		case diff != "" && reason == "":
			t.Errorf("%s (-real +simulated):\n%s", name, diff)
		case diff == "" && reason != "":
			t.Errorf("%s is listed as different (%s), and is not", name, reason)
		}
	}
	for _, row := range Rows() {
		test, _, _ := strings.Cut(row.Test, "/")
		if test != "" && recorded[test] == (notRecorded[test] != "") {
			t.Errorf("%s has a recording: %v; reason for none: %q", test, recorded[test], notRecorded[test])
		}
	}
}

// compare returns the differences of two lives of a pod.
func compare(real, simulated lives) (diff string) {
	names := maps.Clone(real)
	maps.Copy(names, simulated)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := real[name], simulated[name]
		if n, most := min(len(a), len(b)), max(len(a), len(b)); 2*n >= most {
			a, b = a[:n], b[:n]
		}
		if d := cmp.Diff(a, b); d != "" {
			diff += fmt.Sprintf("[%s] %s", name, d)
		}
	}
	return diff
}

package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func dial(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
}

// read reads lines of output until there are n, or to the end for n < 0.
func (w *world) read(t *testing.T, pod string, q api.OutputQuery, n int) (lines []string, at api.Positions) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at = api.Positions{}
	for l, err := range w.client.Output(ctx, pod, q) {
		if err != nil {
			t.Fatalf("output: %v, after %q", err, lines)
		}
		at.Advance(l)
		lines = append(lines, fmt.Sprintf("%s/%d %s: %s", l.Container, l.Attempt, l.Stream, l.Line))
		if len(lines) == n {
			break
		}
	}
	return lines, at
}

func TestOutputOfAllContainersOverAllRuns(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{})
	w.create(t, file("web", "restartPolicy = \"OnFailure\"\nrestartBackoff = {initialSeconds = 0.1}\n"+
		"[[initContainers]]\nname = \"init\"\nimage = \"i\"\ncommand = [\"sh\", \"-c\", \"echo prepared\"]\n"+
		app("main", "echo one; echo two >&2; sleep 0.5; exit 1")))
	want := []string{"main/0 stdout: one", "main/0 stderr: two", "main/1 stdout: one", "main/1 stderr: two", "main/2 stdout: one"}
	first, at := w.read(t, "web", api.OutputQuery{Follow: true}, 4)
	rest, _ := w.read(t, "web", api.OutputQuery{Follow: true, From: at}, 2)
	// What one container writes is in order; whose line is sent first, nobody says.
	got := append(first, rest...)
	i := slices.Index(got, "init/0 stdout: prepared")
	if i < 0 {
		t.Fatalf("the init container's line is not there: %q", got)
	}
	if diff := cmp.Diff(want, slices.Delete(got, i, i+1)); diff != "" {
		t.Errorf("output, and what follows (-want +got):\n%s", diff)
	}
	got, _ = w.read(t, "web", api.OutputQuery{Runs: api.PreviousRun, Containers: []string{"main"}}, -1)
	if len(got) != 2 {
		t.Errorf("the previous run: %q", got)
	}
	_, _ = w.read(t, "web", api.OutputQuery{Runs: api.NewestRun, Containers: []string{"main"}, Follow: true}, -1) // ends
	for _, err := range w.client.Output(t.Context(), "web", api.OutputQuery{Containers: []string{"other"}}) {
		if !isStatus(err, http.StatusNotFound) {
			t.Errorf("of a container that is not there: %v, want 404", err)
		}
	}
}

// TestPreviousOutput: of a container that waits for its next start the previous run is its newest, of one that runs the one before.
func TestPreviousOutput(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{})
	uid := w.create(t, file("web", "restartPolicy = \"Always\"\nrestartBackoff = { initialSeconds = 300 }\n"+app("loops", "echo over; exit 1")+app("runs", "echo up; sleep 1000"))).Metadata.UID
	w.await(t, uid, "the wait for a start", func(c api.PodChange) bool {
		s := c.Object.Status.ContainerStatuses[0]
		return s.State.Waiting != nil && s.State.Waiting.Reason == lifecycle.ReasonCrashLoopBackOff
	})
	got, _ := w.read(t, "web", api.OutputQuery{Runs: api.PreviousRun, Containers: []string{"loops"}}, -1)
	if diff := cmp.Diff([]string{"loops/1 stdout: over"}, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	for _, err := range w.client.Output(t.Context(), "web", api.OutputQuery{Runs: api.PreviousRun, Containers: []string{"runs"}}) {
		if !isStatus(err, http.StatusNotFound) {
			t.Errorf("of a container that was never restarted: %v, want 404", err)
		}
	}
}

func TestOutputEndsWhenThePodIsAtRest(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{})
	w.create(t, file("web", "restartPolicy = \"Never\"\n"+app("a", "echo a; sleep 0.2; echo b")+app("b", "exit 0")))
	got, _ := w.read(t, "web", api.OutputQuery{Follow: true}, -1)
	if diff := cmp.Diff([]string{"a/0 stdout: a", "a/0 stdout: b"}, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	one := 1
	got, _ = w.read(t, "web", api.OutputQuery{Tail: &one}, -1)
	if diff := cmp.Diff([]string{"a/0 stdout: b"}, got); diff != "" {
		t.Errorf("tail (-want +got):\n%s", diff)
	}
}

// writeLog puts a log with the lines of numbers from first to last in the place of a run's.
func writeLog(t *testing.T, path string, first, last int) {
	t.Helper()
	text := ""
	for i := first; i <= last; i++ {
		stamp := time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339Nano)
		text += fmt.Sprintf("%s stdout F line %d\n", stamp, i)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOutputGoesOnBehindARotation(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{LogDir: filepath.Join(os.TempDir(), "not-used")})
	uid := w.create(t, file("web", "restartPolicy = \"Never\"\n"+app("main", "exit 0"))).Metadata.UID
	w.await(t, uid, "the pod at rest", atRest)
	path := filepath.Join(w.logs, "web_"+uid, "main", "0.log")
	writeLog(t, path, 1, 5)
	_, at := w.read(t, "web", api.OutputQuery{}, 3)
	writeLog(t, path+".1", 3, 5) // the beginning is gone
	writeLog(t, path, 6, 6)
	got, _ := w.read(t, "web", api.OutputQuery{From: at}, -1)
	want := []string{"main/0 stdout: line 4", "main/0 stdout: line 5", "main/0 stdout: line 6"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestOutputThatIsNoText(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{Program: func(*spec.Pod, lifecycle.StartContainer) (fakeruntime.Program, bool) {
		return fakeruntime.Program{Output: []fakeruntime.Line{{Text: "a<\xff>"}}}, true
	}})
	w.create(t, file("web", "restartPolicy = \"Never\"\n"+app("main", "true")))
	n := 0
	for l, err := range w.client.Output(t.Context(), "web", api.OutputQuery{Follow: true}) {
		if n++; err != nil || string(l.Raw) != "a<\xff>" {
			t.Errorf("%+v, %v", l, err)
		}
	}
	if n != 1 {
		t.Errorf("%d lines", n)
	}
}

func TestEvents(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{})
	uid := w.create(t, file("web", "restartPolicy = \"Never\"\n"+app("main", "exit 3"))).Metadata.UID
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	q := &api.EventQuery{Follow: true, UID: uid}
	kinds := func(until string) (list []string) {
		for e, err := range w.client.Events(ctx, q) {
			if err != nil {
				t.Fatalf("events: %v, after %v", err, list)
			}
			q.Advance(e)
			list = append(list, string(e.Kind))
			if string(e.Kind) == until {
				break
			}
		}
		return list
	}
	first := kinds("ContainerFailed")
	if first[0] != "PodAccepted" {
		t.Errorf("events begin with %s", first[0])
	}
	if rest := kinds("PodFailed"); rest[0] == "PodAccepted" {
		t.Errorf("what follows begins again: %v", rest)
	}

	// Another daemon counts anew.
	w.closeServer()
	w.serve(t, "second")
	if again := kinds("PodFailed"); again[0] != "PodAccepted" {
		t.Errorf("of another daemon: %v", again)
	}
	q.Follow = false
	q.Since = time.Now().Add(time.Hour)
	q.Instance = ""
	if none := kinds(""); len(none) > 0 {
		t.Errorf("since the future: %v", none)
	}
}

func TestEventsThatWereMissedAreTold(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{}) // keeps 64
	for i := range 20 {
		uid := w.create(t, file(fmt.Sprintf("pod-%d", i), "restartPolicy = \"Never\"\n"+app("main", "exit 0"))).Metadata.UID
		w.await(t, uid, "the pod at rest", atRest)
	}
	for e, err := range w.client.Events(t.Context(), &api.EventQuery{Instance: "first", After: 1}) {
		if err != nil || e.Kind != api.EventsMissed || e.Fields["missed"] == "" {
			t.Errorf("%+v, %v, want word of events that were missed", e, err)
		}
		break
	}
}

func TestStreamsBreakWhenTheDaemonLeaves(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{})
	w.create(t, file("web", app("main", "echo up; sleep 1000")))
	for l, err := range w.client.Output(t.Context(), "web", api.OutputQuery{Follow: true}) {
		if err != nil {
			if !errors.Is(err, api.ErrUnavailable) {
				t.Errorf("output: %v, want %v", err, api.ErrUnavailable)
			}
			break
		}
		if l.Line != "up" {
			t.Errorf("line %q", l.Line)
		}
		w.closeServer()
	}
	if _, err := w.client.Pods(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("pods: %v, want %v", err, api.ErrUnavailable)
	}
}

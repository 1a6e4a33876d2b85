package server_test

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
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func dial(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
}

// read reads n lines of output, or all lines if n is negative.
func (d *testDaemon) read(t *testing.T, pod string, q client.OutputQuery, n int) (lines []string, at api.Positions) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	at = api.Positions{}
	for l, err := range d.client.Output(ctx, pod, q) {
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

func TestOutputOfAllContainersAndRuns(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.create(t, file("web", "restartPolicy = \"OnFailure\"\nrestartBackoff = {initialSeconds = 0.1}\n"+
		"[[initContainers]]\nname = \"init\"\nimage = \"i\"\ncommand = [\"sh\", \"-c\", \"echo prepared\"]\n"+
		app("main", "echo one; echo two >&2; sleep 0.5; exit 1")))
	want := []string{"main/0 stdout: one", "main/0 stderr: two", "main/1 stdout: one", "main/1 stderr: two", "main/2 stdout: one"}
	first, at := d.read(t, "web", client.OutputQuery{Follow: true}, 4)
	rest, _ := d.read(t, "web", client.OutputQuery{Follow: true, From: at}, 2)
	// The lines of one container are in order. The order between containers is not defined.
	got := append(first, rest...)
	i := slices.Index(got, "init/0 stdout: prepared")
	if i < 0 {
		t.Fatalf("no line of the init container: %q", got)
	}
	if diff := cmp.Diff(want, slices.Delete(got, i, i+1)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	got, _ = d.read(t, "web", client.OutputQuery{Runs: api.PreviousRun, Containers: []string{"main"}}, -1)
	if len(got) != 2 {
		t.Errorf("output of the previous run: %q", got)
	}
	for _, err := range d.client.Output(t.Context(), "web", client.OutputQuery{Containers: []string{"other"}}) {
		if !isStatus(err, http.StatusNotFound) {
			t.Errorf("container that does not exist: %v, want 404", err)
		}
	}
}

// TestPreviousOutput checks that the previous run of a container in back-off is its newest run.
func TestPreviousOutput(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t,
		file("web",
			"restartPolicy = \"Always\"\nrestartBackoff = { initialSeconds = 300 }\n"+app("loops", "echo over; exit 1")+
				app("runs", "echo up; sleep 1000"))).Metadata.UID
	d.await(t, uid, "container in back-off", func(c api.PodChange) bool {
		s := c.Object.Status.ContainerStatuses[0]
		return s.State.Waiting != nil && s.State.Waiting.Reason == api.ReasonCrashLoopBackOff
	})
	got, _ := d.read(t, "web", client.OutputQuery{Runs: api.PreviousRun, Containers: []string{"loops"}}, -1)
	if diff := cmp.Diff([]string{"loops/1 stdout: over"}, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	for _, err := range d.client.Output(t.Context(), "web", client.OutputQuery{Runs: api.PreviousRun, Containers: []string{"runs"}}) {
		if !isStatus(err, http.StatusNotFound) {
			t.Errorf("container without restarts: %v, want 404", err)
		}
	}
}

func TestOutputEndsWhenThePodIsAtRest(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.create(t, file("web", "restartPolicy = \"Never\"\n"+app("a", "echo a; sleep 0.2; echo b")+app("b", "exit 0")))
	got, _ := d.read(t, "web", client.OutputQuery{Follow: true}, -1)
	if diff := cmp.Diff([]string{"a/0 stdout: a", "a/0 stdout: b"}, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	one := 1
	got, _ = d.read(t, "web", client.OutputQuery{Tail: &one}, -1)
	if diff := cmp.Diff([]string{"a/0 stdout: b"}, got); diff != "" {
		t.Errorf("tail (-want +got):\n%s", diff)
	}
}

// writeLog writes a log with numbered lines.
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

func TestOutputContinuesAfterLogRotation(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{LogDir: filepath.Join(os.TempDir(), "not-used")})
	uid := d.create(t, file("web", "restartPolicy = \"Never\"\n"+app("main", "exit 0"))).Metadata.UID
	d.await(t, uid, "pod at rest", atRest)
	path := filepath.Join(d.logs, "web_"+uid, "main", "0.log")
	writeLog(t, path, 1, 5)
	_, at := d.read(t, "web", client.OutputQuery{}, 3)
	writeLog(t, path+".1", 3, 5) // without the first lines
	writeLog(t, path, 6, 6)
	got, _ := d.read(t, "web", client.OutputQuery{From: at}, -1)
	want := []string{"main/0 stdout: line 4", "main/0 stdout: line 5", "main/0 stdout: line 6"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// TestOutputAtPositionWithoutTimes continues after a number of lines, as a client does that has no times.
func TestOutputAtPositionWithoutTimes(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.create(t, file("web", "restartPolicy = \"Never\"\n"+app("main", "echo one; echo two; echo three")))
	got, _ := d.read(t, "web", client.OutputQuery{Follow: true, From: api.Positions{"main": {Lines: 2}}}, -1)
	if diff := cmp.Diff([]string{"main/0 stdout: three"}, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestOutputThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{Program: func(*spec.Pod, lifecycle.StartContainer) (fakeruntime.Program, bool) {
		return fakeruntime.Program{Output: []fakeruntime.Line{{Text: "a<\xff>"}}}, true
	}})
	d.create(t, file("web", "restartPolicy = \"Never\"\n"+app("main", "true")))
	n := 0
	for l, err := range d.client.Output(t.Context(), "web", client.OutputQuery{Follow: true}) {
		if n++; err != nil || string(l.Raw) != "a<\xff>" {
			t.Errorf("%+v, %v", l, err)
		}
	}
	if n != 1 {
		t.Errorf("%d lines", n)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t, file("web", "restartPolicy = \"Never\"\n"+app("main", "exit 3"))).Metadata.UID
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	q := &client.EventQuery{Follow: true, UID: uid}
	kinds := func(until string) (list []string) {
		for e, err := range d.client.Events(ctx, q) {
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
		t.Errorf("first event %s, want PodAccepted", first[0])
	}
	if rest := kinds("PodFailed"); rest[0] == "PodAccepted" {
		t.Errorf("the second call starts with the first event: %v", rest)
	}

	// The position belongs to another instance.
	d.closeServer()
	d.serve(t, "second")
	if all := kinds("PodFailed"); all[0] != "PodAccepted" {
		t.Errorf("events of another instance: %v, want all", all)
	}
	q.Follow = false
	q.Since = time.Now().Add(time.Hour)
	q.Instance = ""
	if none := kinds(""); len(none) > 0 {
		t.Errorf("events since a time in the future: %v", none)
	}
}

func TestEventsMissed(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{}) // keeps 64 events
	for i := range 20 {
		uid := d.create(t, file(fmt.Sprintf("pod-%d", i), "restartPolicy = \"Never\"\n"+app("main", "exit 0"))).Metadata.UID
		d.await(t, uid, "pod at rest", atRest)
	}
	for e, err := range d.client.Events(t.Context(), &client.EventQuery{Instance: "first", After: 1}) {
		if err != nil || e.Kind != api.EventsMissed || e.Fields["missed"] == "" {
			t.Errorf("%+v, %v, want %s", e, err, api.EventsMissed)
		}
		break
	}
}

func TestStreamsFailWhenTheServerCloses(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.create(t, file("web", app("main", "echo up; sleep 1000")))
	for l, err := range d.client.Output(t.Context(), "web", client.OutputQuery{Follow: true}) {
		if err != nil {
			if !errors.Is(err, api.ErrUnavailable) {
				t.Errorf("output: %v, want %v", err, api.ErrUnavailable)
			}
			break
		}
		if l.Line != "up" {
			t.Errorf("line %q", l.Line)
		}
		d.closeServer()
	}
	if _, err := d.client.Pods(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("pods: %v, want %v", err, api.ErrUnavailable)
	}
}

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// newLogged returns a daemon with the pod web, which runs and has the container main, and the path of the log of its first run, which the
// engine does not write.
func newLogged(t *testing.T) (d *testDaemon, log string) {
	t.Helper()
	d = newTestDaemon(t, fakeruntime.Options{LogDir: filepath.Join(t.TempDir(), "not-used")})
	uid := d.create(t, file("web", app("main", "sleep 1000"))).Metadata.UID
	d.await(t, uid, "container ready", ready)
	return d, filepath.Join(d.logs, "web_"+uid, "main", "0.log")
}

// burst appends numbered lines to a log, all with the same time.
func burst(t *testing.T, path string, first, last int) {
	t.Helper()
	text := ""
	for i := first; i <= last; i++ {
		text += fmt.Sprintf("2026-01-01T00:00:00Z stdout F line %d\n", i)
	}
	appendLog(t, path, text)
}

// appendLog appends text to a log.
func appendLog(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// numbered returns lines of the container main, as read returns them.
func numbered(first, last int) (lines []string) {
	for i := first; i <= last; i++ {
		lines = append(lines, fmt.Sprintf("main/0 stdout: line %d", i))
	}
	return lines
}

func TestOutputSince(t *testing.T) {
	t.Parallel()
	d, path := newLogged(t)
	writeLog(t, path, 1, 6)
	since := time.Date(2026, 1, 1, 0, 0, 4, 0, time.UTC)
	two, five := 2, 5
	for name, test := range map[string]struct {
		query  client.OutputQuery
		lines  int // -1: all
		expect []string
	}{
		"all":                {client.OutputQuery{Since: since}, -1, numbered(4, 6)},
		"the newest run":     {client.OutputQuery{Since: since, Runs: api.NewestRun}, -1, numbered(4, 6)},
		"between two lines":  {client.OutputQuery{Since: since.Add(time.Nanosecond)}, -1, numbered(5, 6)},
		"a shorter tail":     {client.OutputQuery{Since: since, Tail: &two}, -1, numbered(5, 6)},
		"a longer tail":      {client.OutputQuery{Since: since, Tail: &five}, -1, numbered(4, 6)},
		"a later time":       {client.OutputQuery{Since: since.Add(time.Hour)}, -1, nil},
		"another zone":       {client.OutputQuery{Since: since.In(time.FixedZone("", 3600))}, -1, numbered(4, 6)},
		"follow":             {client.OutputQuery{Since: since, Follow: true}, 3, numbered(4, 6)},
		"follow with a tail": {client.OutputQuery{Since: since, Follow: true, Tail: &five}, 3, numbered(4, 6)},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := d.read(t, "web", test.query, test.lines)
			if diff := cmp.Diff(test.expect, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOutputSearch checks the search for a text, and the time until which lines are returned.
func TestOutputSearch(t *testing.T) {
	t.Parallel()
	d, path := newLogged(t)
	writeLog(t, path, 1, 12)
	appendLog(t, path, "2026-01-01T00:01:00Z stderr F \xff Größe\n")
	at := time.Date(2026, 1, 1, 0, 0, 4, 0, time.UTC)
	two := 2
	for name, test := range map[string]struct {
		query  client.OutputQuery
		lines  int // -1: all
		expect []string
	}{
		"a text":           {client.OutputQuery{Text: "e 1"}, -1, append(numbered(1, 1), numbered(10, 12)...)},
		"any case":         {client.OutputQuery{Text: "LINE 3"}, -1, numbered(3, 3)},
		"other letters":    {client.OutputQuery{Text: "grÖSSE"}, -1, nil},
		"other characters": {client.OutputQuery{Text: "GRÖ"}, -1, []string{"main/0 stderr: � Größe"}},
		"since":            {client.OutputQuery{Text: "line 1", Since: at}, -1, numbered(10, 12)},
		"after the tail":   {client.OutputQuery{Text: "line", Tail: &two}, -1, numbered(12, 12)},
		"until":            {client.OutputQuery{Until: at}, -1, numbered(1, 4)},
		"between":          {client.OutputQuery{Since: at, Until: at.Add(time.Second)}, -1, numbered(4, 5)},
		"follow":           {client.OutputQuery{Text: "1", Follow: true}, 4, append(numbered(1, 1), numbered(10, 12)...)},
	} {
		t.Run(name, func(t *testing.T) {
			test.query.SearchStopped = func(s api.SearchStopped) { t.Errorf("the search has stopped: %+v", s) }
			got, _ := d.read(t, "web", test.query, test.lines)
			if diff := cmp.Diff(test.expect, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
	// A client that continues after the line it has found gets no line twice.
	q := client.OutputQuery{Text: "line 1", Follow: true, From: api.Positions{}}
	for l, err := range d.client.Output(t.Context(), "web", q) {
		if err != nil {
			t.Fatal(err)
		}
		if q.From.Advance(l); l.Line == "line 10" {
			break
		}
	}
	rest, _ := d.read(t, "web", q, 1)
	if !slices.Equal(rest, numbered(11, 11)) {
		t.Errorf("after line 10: %q", rest)
	}
}

// TestOutputSearchStops checks that the search in each container ends at a bound, also before its next run, and reports where, and that it
// can be continued there until all lines are searched.
func TestOutputSearchStops(t *testing.T) {
	for name, bound := range map[string]struct {
		bytes int64
		time  time.Duration
		lines int // that are searched at a time
	}{
		"bytes": {3 * int64(len("line 1")), time.Hour, 3},
		"time":  {1 << 30, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			server.SetSearchBounds(t, bound.bytes, bound.time)
			var starts atomic.Int32
			d := newTestDaemon(t, fakeruntime.Options{
				LogDir: filepath.Join(t.TempDir(), "not-used"),
				Program: func(_ *spec.Pod, s lifecycle.StartContainer) (fakeruntime.Program, bool) {
					if s.Container == "main" && starts.Add(1) == 1 {
						return fakeruntime.Program{Exit: lifecycle.Exit{Code: 1}}, true
					}
					return fakeruntime.Program{Runs: fakeruntime.Forever}, true
				},
			})
			pod := file("web", "restartBackoff = {initialSeconds = 0.1}\n"+app("main", "true")+app("other", "true"))
			uid := d.create(t, pod).Metadata.UID
			d.await(t, uid, "second run",
				func(c api.PodChange) bool { return c.Object.Status.ContainerStatuses[0].RestartCount == 1 && ready(c) })
			for _, log := range []string{"main/0.log", "main/1.log", "other/0.log"} {
				writeLog(t, filepath.Join(d.logs, "web_"+uid, log), 1, 6)
			}
			var stopped []api.SearchStopped
			q := client.OutputQuery{Text: "line", SearchStopped: func(s api.SearchStopped) { stopped = append(stopped, s) }}
			want := slices.Concat(numbered(1, bound.lines), numbered(1, bound.lines))
			for i := range bound.lines {
				want[bound.lines+i] = strings.Replace(want[i], "main", "other", 1)
			}
			if got, _ := d.read(t, "web", q, -1); !slices.Equal(got, want) {
				t.Errorf("lines %q, want %q", got, want)
			}
			from := time.Date(2026, 1, 1, 0, 0, bound.lines+1, 0, time.UTC)
			if len(stopped) != 2 || stopped[0].Container != "main" || stopped[1].Container != "other" {
				t.Fatalf("%+v", stopped)
			}
			for _, s := range stopped {
				if !s.From.Equal(from) || s.Bytes != int64(6*bound.lines) {
					t.Errorf("%+v", s)
				}
			}
			q.Containers, q.Runs = []string{"other"}, api.NewestRun
			var all []string
			for rounds := 0; len(stopped) > 0 && rounds <= 6; rounds++ {
				stopped = nil
				lines, _ := d.read(t, "web", q, -1)
				all = append(all, lines...)
				if len(stopped) > 0 {
					q.Since = stopped[0].From
				}
			}
			if len(all) != 6 || len(stopped) != 0 {
				t.Errorf("lines %q, %+v", all, stopped)
			}
			q.Text, q.Since, stopped = "", time.Time{}, nil
			if got, _ := d.read(t, "web", q, -1); len(got) != 6 || stopped != nil {
				t.Errorf("without a search: %q, %+v", got, stopped)
			}
		})
	}
}

// TestOutputSearchIsPlaced checks that a client that follows a search knows where it is, although no line matches: after a restart of the
// daemon, lines that were searched are not reported as removed.
func TestOutputSearchIsPlaced(t *testing.T) {
	t.Parallel()
	d, path := newLogged(t)
	writeLog(t, path, 1, 2)
	http := &http.Client{Transport: dial(d.socket), Timeout: testTimeout}
	r, err := http.Get("http://podstead/v1/pods/web/output?follow&grep=line+1")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	for records, found := json.NewDecoder(r.Body), false; ; {
		var got api.OutputRecord
		if err := records.Decode(&got); err != nil {
			t.Fatalf("%v, a line was found: %v", err, found)
		}
		if found && got.Stream == "" && got.Start != nil {
			want := time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC)
			if got.Start.Lines != 2 || !got.Start.Last.Equal(want) || got.Container != "main" {
				t.Errorf("%+v %+v", got, got.Start)
			}
			return
		}
		found = found || got.Stream != ""
	}
}

// TestOutputUntilClockSetBack checks that lines that were written after the clock was set back are not left out.
func TestOutputUntilClockSetBack(t *testing.T) {
	t.Parallel()
	d, path := newLogged(t)
	writeLog(t, path, 1, 6)
	appendLog(t, path, "2026-01-01T00:00:03Z stdout F line 7\n")
	got, _ := d.read(t, "web", client.OutputQuery{Until: time.Date(2026, 1, 1, 0, 0, 4, 0, time.UTC)}, -1)
	if want := append(numbered(1, 4), numbered(7, 7)...); !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

func TestInvalidOutputQuery(t *testing.T) {
	t.Parallel()
	d, _ := newLogged(t)
	http := &http.Client{Transport: dial(d.socket), Timeout: testTimeout}
	for query, want := range map[string]string{
		"sinceTime=yesterday":                   `sinceTime="yesterday": must be a time, such as 2026-01-02T15:04:05Z`,
		"untilTime=now":                         `untilTime="now": must be a time, such as 2026-01-02T15:04:05Z`,
		"follow&untilTime=2026-01-02T15:04:05Z": "untilTime: cannot be combined with follow",
		"grep=" + strings.Repeat("x", 1025):     "grep: must have at most 1024 bytes",
	} {
		r, err := http.Get("http://podstead/v1/pods/web/output?" + query)
		if err != nil {
			t.Fatal(err)
		}
		var e api.Error
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.StatusCode != 400 || e.Message != want {
			t.Errorf("%s: %q, %v", r.Status, e.Message, err)
		}
		_ = r.Body.Close()
	}
}

// TestFollowContinuesAfterTail checks that a client that continues after a part of a log gets the other lines once, although their times
// do not tell them apart.
func TestFollowContinuesAfterTail(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	three := 3
	for name, q := range map[string]client.OutputQuery{
		"tail":            {Tail: &three},
		"since":           {Since: since},
		"since, and tail": {Since: since, Tail: &three},
	} {
		t.Run(name, func(t *testing.T) {
			d, path := newLogged(t)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("2025-12-31T23:59:59Z stdout F old\n2025-12-31T23:59:59Z stdout F older\n"),
				0o644); err != nil {
				t.Fatal(err)
			}
			burst(t, path, 1, 3)
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			q.Follow, q.Runs, q.From = true, api.NewestRun, api.Positions{}
			var got []string
			for i := range 4 {
				if i == 2 {
					burst(t, path, 4, 6)
				}
				lines := 0
				for l, err := range d.client.Output(ctx, "web", q) {
					if err != nil {
						t.Fatal(err)
					}
					q.From.Advance(l)
					got = append(got, fmt.Sprintf("main/%d %s: %s", l.Attempt, l.Stream, l.Line))
					if lines++; lines == 1+i%2 {
						break
					}
				}
			}
			if diff := cmp.Diff(numbered(1, 6), got); diff != "" {
				t.Errorf("output of four requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFollowSendsItsStart checks that a client knows the position of a container that has no lines to show yet.
func TestFollowSendsItsStart(t *testing.T) {
	t.Parallel()
	d, path := newLogged(t)
	burst(t, path, 1, 4)
	http := &http.Client{Transport: dial(d.socket), Timeout: testTimeout}
	r, err := http.Get("http://podstead/v1/pods/web/output?follow&runs=newest&tail=0")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var first struct {
		Container, Stream string
		Start             api.Position
	}
	if err := json.NewDecoder(r.Body).Decode(&first); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if want := (api.Position{Lines: 4, First: at, Last: at}); first.Container != "main" || first.Stream != "" || first.Start != want {
		t.Errorf("first record %+v, want the position %+v of main", first, want)
	}
	burst(t, path, 5, 6) // between two requests
	none := 0
	q := client.OutputQuery{Follow: true, Runs: api.NewestRun, Tail: &none, From: api.Positions{"main": first.Start}}
	got, _ := d.read(t, "web", q, 2)
	if diff := cmp.Diff(numbered(5, 6), got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// TestFollowAfterIncompleteLine checks that a line that is not complete yet is not one of the lines before the tail.
func TestFollowAfterIncompleteLine(t *testing.T) {
	t.Parallel()
	for tail, want := range [][]string{{"e2", "prompt", "e3"}, {"e1", "e2", "prompt", "e3"}} {
		t.Run(fmt.Sprintf("tail %d", tail), func(t *testing.T) {
			d, path := newLogged(t)
			appendLog(t, path, "2026-01-01T00:00:00Z stderr F e0\n2026-01-01T00:00:00Z stdout P pro\n2026-01-01T00:00:01Z stderr F e1\n")
			http := &http.Client{Transport: dial(d.socket), Timeout: testTimeout}
			r, err := http.Get(fmt.Sprintf("http://podstead/v1/pods/web/output?follow&runs=newest&tail=%d", tail))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			records := json.NewDecoder(r.Body)
			var first struct{ Start api.Position }
			if err := records.Decode(&first); err != nil || first.Start.Lines != 2-tail {
				t.Errorf("%v, start %+v, want one after %d lines", err, first.Start, 2-tail)
			}
			appendLog(t, path, "2026-01-01T00:00:02Z stderr F e2\n2026-01-01T00:00:03Z stdout F mpt\n2026-01-01T00:00:04Z stderr F e3\n")
			var got []string
			for len(got) == 0 || got[len(got)-1] != "e3" {
				var l api.Line
				if err := records.Decode(&l); err != nil {
					t.Fatalf("%v, after %q", err, got)
				}
				got = append(got, l.Line)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFollowTailOfTerminatedRun checks that an incomplete line at the end of a run that has terminated is one of the lines of the tail.
func TestFollowTailOfTerminatedRun(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{LogDir: filepath.Join(t.TempDir(), "not-used")})
	uid := d.create(t, file("web", "restartPolicy = \"Never\"\n"+app("main", "exit 0"))).Metadata.UID
	d.await(t, uid, "pod at rest", atRest)
	path := filepath.Join(d.logs, "web_"+uid, "main", "0.log")
	appendLog(t, path, "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:01Z stdout F two\n2026-01-01T00:00:01Z stdout P end\n")
	one := 1
	got, _ := d.read(t, "web", client.OutputQuery{Follow: true, Runs: api.NewestRun, Tail: &one}, -1)
	if diff := cmp.Diff([]string{"main/0 stdout: end"}, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// TestFollowNewestRunOverRestarts checks that later runs follow the newest one, without its tail.
func TestFollowNewestRunOverRestarts(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{Program: func(*spec.Pod, lifecycle.StartContainer) (fakeruntime.Program, bool) {
		return fakeruntime.Program{Runs: fakeruntime.Forever, Output: []fakeruntime.Line{{Text: "one"}, {Text: "two"}}}, true
	}})
	uid := d.create(t, file("web", "restartBackoff = {initialSeconds = 0.1, maxSeconds = 0.1}\n"+app("main", "true"))).Metadata.UID
	crash := func() {
		t.Helper()
		if !d.fake.Crash(uid, "main", lifecycle.Exit{Code: 1}) {
			t.Fatal("the container does not run")
		}
	}
	d.read(t, "web", client.OutputQuery{Follow: true}, 2)
	crash()
	d.read(t, "web", client.OutputQuery{Follow: true, From: api.Positions{"main": {Attempt: 1}}}, 2)
	http := &http.Client{Transport: dial(d.socket), Timeout: testTimeout}
	r, err := http.Get("http://podstead/v1/pods/web/output?follow&runs=newest&tail=0")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var got []string
	for records := json.NewDecoder(r.Body); len(got) < 6; {
		var l api.Line
		if err := records.Decode(&l); err != nil {
			t.Fatalf("%v, after %q", err, got)
		}
		if l.Stream != "" {
			got = append(got, fmt.Sprintf("%d %s", l.Attempt, l.Line))
		}
		if len(got)%2 == 0 {
			crash()
		}
	}
	if diff := cmp.Diff([]string{"2 one", "2 two", "3 one", "3 two", "4 one", "4 two"}, got); diff != "" {
		t.Errorf("lines after two runs (-want +got):\n%s", diff)
	}
}

// TestFollowEndsWithLastRun checks that a request for containers that do not run again ends while another container runs.
func TestFollowEndsWithLastRun(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t, file("web", "restartPolicy = \"OnFailure\"\n"+app("main", "sleep 1000")+app("task", "echo done")+
		"[[initContainers]]\nname = \"migrate\"\nimage = \"i\"\ncommand = [\"sh\", \"-c\", \"echo migrated\"]\n")).Metadata.UID
	d.await(t, uid, "end of task", func(c api.PodChange) bool {
		s := c.Object.Status.ContainerStatuses
		return len(s) == 2 && s[0].State.Running != nil && s[1].State.Terminated != nil
	})
	if _, err := d.client.AddEphemeral(t.Context(), "web", api.EphemeralRequest{
		File: "debug.toml", UID: uid, Text: "name = \"debug\"\nimage = \"i\"\ncommand = [\"sh\", \"-c\", \"echo seen; exit 7\"]\n",
	}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ containers, want []string }{
		"init container":   {[]string{"migrate"}, []string{"migrate/0 stdout: migrated"}},
		"app container":    {[]string{"task"}, []string{"task/0 stdout: done"}},
		"ephemeral":        {[]string{"debug"}, []string{"debug/0 stdout: seen"}},
		"several of a pod": {[]string{"migrate", "task"}, []string{"migrate/0 stdout: migrated", "task/0 stdout: done"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := d.read(t, "web", client.OutputQuery{Containers: test.containers, Runs: api.NewestRun, Follow: true}, -1)
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFollowContinuesInEarlierRun checks that a client misses no lines if a container was restarted between two requests.
func TestFollowContinuesInEarlierRun(t *testing.T) {
	t.Parallel()
	var starts atomic.Int32
	d := newTestDaemon(t, fakeruntime.Options{Program: func(*spec.Pod, lifecycle.StartContainer) (fakeruntime.Program, bool) {
		p := fakeruntime.Program{Output: []fakeruntime.Line{{Text: "one"}, {Text: "two"}}, Exit: lifecycle.Exit{Code: 1}}
		if starts.Add(1) > 1 {
			p.Runs = fakeruntime.Forever
		}
		return p, true
	}})
	uid := d.create(t, file("web", app("main", "true"))).Metadata.UID
	d.await(t, uid, "second run", func(c api.PodChange) bool {
		s := c.Object.Status.ContainerStatuses
		return len(s) == 1 && s[0].RestartCount == 1 && s[0].State.Running != nil
	})
	_, at := d.read(t, "web", client.OutputQuery{}, 1)
	one := 1
	got, _ := d.read(t, "web", client.OutputQuery{Runs: api.NewestRun, Follow: true, Tail: &one, From: at}, 3)
	if diff := cmp.Diff([]string{"main/0 stdout: two", "main/1 stdout: one", "main/1 stdout: two"}, got); diff != "" {
		t.Errorf("output after a position (-want +got):\n%s", diff)
	}
}

// TestSlowFollowerGetsWholeRuns checks that the tail does not apply to runs that start after the request, also if they have output before
// the client has read the run before them.
func TestSlowFollowerGetsWholeRuns(t *testing.T) {
	t.Parallel()
	const lines = 4000 // more than the buffers of a connection hold
	first := fakeruntime.Program{Exit: lifecycle.Exit{Code: 1}}
	for range lines {
		first.Output = append(first.Output, fakeruntime.Line{Text: strings.Repeat("x", 500)})
	}
	followed := make(chan struct{})
	var starts atomic.Int32
	d := newTestDaemon(t, fakeruntime.Options{
		Before: func(ctx context.Context, c fakeruntime.Call) error {
			if c.Method == "StartContainer" {
				select {
				case <-followed:
				case <-ctx.Done():
				}
			}
			return ctx.Err()
		},
		Program: func(*spec.Pod, lifecycle.StartContainer) (fakeruntime.Program, bool) {
			if starts.Add(1) == 1 {
				return first, true
			}
			return fakeruntime.Program{Runs: fakeruntime.Forever, Output: []fakeruntime.Line{{Text: "one"}, {Text: "two"}}}, true
		},
	})
	uid := d.create(t, file("web", app("main", "true"))).Metadata.UID
	http := &http.Client{Transport: dial(d.socket), Timeout: testTimeout}
	r, err := http.Get("http://podstead/v1/pods/web/output?follow&runs=newest&tail=0")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var got [2]int // lines of each run
	for records := json.NewDecoder(r.Body); got[1] < 2; {
		var l api.Line
		if err := records.Decode(&l); err != nil {
			t.Fatalf("%v, after %v lines of each run", err, got)
		}
		if l.Stream == "" {
			close(followed)
			continue
		}
		if got[l.Attempt]++; got == [2]int{1, 0} {
			d.await(t, uid, "second run",
				func(c api.PodChange) bool { return c.Object.Status.ContainerStatuses[0].RestartCount == 1 && ready(c) })
			d.read(t, "web", client.OutputQuery{Runs: api.NewestRun, Follow: true, From: api.Positions{"main": {Attempt: 1}}}, 2)
		}
	}
	if got[0] != lines {
		t.Errorf("%d lines of the first run, want %d", got[0], lines)
	}
}

package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

// answer is the answer to one request: lines, then an error.
type answer struct {
	lines []string
	err   error
	lasts time.Duration // time before the error
}

// logDaemon answers requests for the logs of a pod in order. The last answer is repeated.
type logDaemon struct {
	answers []answer
	stopped error         // of Connect
	outage  time.Duration // of each call of Connect
	queries []client.OutputQuery
}

func (d *logDaemon) Connect(context.Context) error {
	time.Sleep(d.outage)
	return d.stopped
}

func (d *logDaemon) Output(_ context.Context, _ string, q client.OutputQuery) iter.Seq2[api.Line, error] {
	a := d.answers[min(len(d.queries), len(d.answers)-1)]
	q.From = maps.Clone(q.From)
	d.queries = append(d.queries, q)
	return func(yield func(api.Line, error) bool) {
		for _, text := range a.lines {
			if text == "stopped" {
				q.SearchStopped(api.SearchStopped{Container: "app", Bytes: 256 << 20, Seconds: 3.4, From: time.Unix(1e9, 0).UTC()})
				continue
			}
			if text == "skipped" {
				q.Skipped("app", api.Skipped{Lines: 7})
				continue
			}
			if !yield(api.Line{Container: "app", Stream: "stdout", Line: text}, nil) {
				return
			}
		}
		time.Sleep(a.lasts)
		if a.err != nil {
			yield(api.Line{}, a.err)
		}
	}
}

func pod(name string) (p api.Pod) {
	p.Metadata.Name, p.Metadata.UID = name, name+"-uid"
	return p
}

// printed returns the lines that Logs prints, and the number of connections.
func printed(t *testing.T, d *logDaemon, q client.OutputQuery, pods ...api.Pod) (lines []string, connections int, err error) {
	t.Helper()
	err = Logs(t.Context(), LogOptions{
		Daemon: d, Pods: pods, Query: q,
		Line: func(pod string, l api.Line) error {
			lines = append(lines, pod+" "+l.Line)
			if l.Line == "unwritable" {
				return errors.New("disk full")
			}
			return nil
		},
		SearchStopped: func(pod string, s api.SearchStopped) { lines = append(lines, SearchStoppedNotice(pod, s, time.UTC)) },
		Skipped: func(pod, container string, s api.Skipped) {
			lines = append(lines, fmt.Sprintf("%s/%s skipped %d", pod, container, s.Lines))
		},
		Reconnected: func() { connections++ },
	})
	return lines, connections + 1, err
}

var errEOF = fmt.Errorf("%w: unexpected EOF", api.ErrUnavailable)

func TestLogs(t *testing.T) {
	missing := &api.Error{Status: http.StatusNotFound, Message: `no such pod "a"`}
	invalid := &api.Error{Status: http.StatusBadRequest, Message: "invalid"}
	for name, test := range map[string]struct {
		answers     []answer
		stopped     error
		outage      time.Duration
		once        bool // without Follow
		containers  []string
		want        []string
		connections int
		err         string
	}{
		"the end of the pod": {
			answers: []answer{{lines: []string{"1", "2"}}}, want: []string{"a 1", "a 2"}, connections: 1,
		},
		"skipped lines": {
			answers: []answer{{lines: []string{"1", "skipped", "9"}}}, want: []string{"a 1", "a/app skipped 7", "a 9"}, connections: 1,
		},
		"a search that reaches a bound": {
			answers: []answer{{lines: []string{"1", "stopped"}}}, once: true, connections: 1, want: []string{
				"a 1", "a/app: the search stopped after 256Mi (3s), lines from 2001-09-09T01:46:40Z on are not searched",
			},
		},
		"a lost connection": {
			answers: []answer{{[]string{"1"}, errEOF, 0}, {lines: []string{"2"}}}, want: []string{"a 1", "a 2"}, connections: 2,
		},
		"a lost connection without follow": {
			answers: []answer{{[]string{"1"}, errEOF, 0}}, once: true, want: []string{"a 1"}, connections: 1, err: "unexpected EOF",
		},
		"a pod deleted without a connection": {
			answers: []answer{{[]string{"1"}, errEOF, 0}, {err: missing}}, want: []string{"a 1"}, connections: 2,
		},
		"a pod deleted since it was listed": {answers: []answer{{err: missing}}, connections: 1},
		"a pod deleted before it is printed, without follow": {
			answers: []answer{{err: missing}}, once: true, connections: 1, err: "no such pod",
		},
		"a container that does not exist": {
			answers: []answer{{err: missing}}, containers: []string{"none"}, connections: 1, err: "no such pod",
		},
		"an invalid request":             {answers: []answer{{err: errEOF}, {err: invalid}}, connections: 2, err: "invalid"},
		"a daemon stopped with its pods": {answers: []answer{{err: errEOF}}, stopped: &api.StoppedError{}, connections: 1},
		"a daemon that does not start": {
			answers: []answer{{err: errEOF}}, stopped: errors.New("no daemon"), connections: 1, err: "no daemon",
		},
		"a line that cannot be written": {
			answers: []answer{{lines: []string{"unwritable", "2"}}}, want: []string{"a unwritable"}, connections: 1, err: "disk full",
		},
		"a stream that always breaks": {answers: []answer{{err: errEOF}}, connections: 301, err: "unexpected EOF"},
		"streams that break after a long outage": {
			answers: []answer{{err: errEOF}, {err: errEOF}, {lines: []string{"1"}}}, outage: time.Hour, want: []string{"a 1"},
			connections: 3,
		},
		"a stream that breaks during a long outage": {
			answers: []answer{{err: errEOF}, {err: errEOF, lasts: time.Hour}, {err: errEOF}, {}}, connections: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &logDaemon{answers: test.answers, stopped: test.stopped, outage: test.outage}
				lines, connections, err := printed(t, d, client.OutputQuery{Follow: !test.once, Containers: test.containers}, pod("a"))
				if diff := cmp.Diff(test.want, lines); diff != "" {
					t.Errorf("lines (-want +got):\n%s", diff)
				}
				if connections != test.connections {
					t.Errorf("%d connections, want %d", connections, test.connections)
				}
				if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("error %v, want %q", err, test.err)
				}
			})
		})
	}
}

// TestPrintPositions checks that a request after a lost connection continues after the lines that were printed.
func TestPrintPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &logDaemon{answers: []answer{{[]string{"1", "2"}, errEOF, 0}, {}}}
		if _, _, err := printed(t, d, client.OutputQuery{Follow: true}, pod("a")); err != nil {
			t.Fatal(err)
		}
		if n := d.queries[1].From["app"].Lines; len(d.queries) != 2 || n != 2 || d.queries[1].UID != "a-uid" {
			t.Errorf("second query continues after %d lines, want 2: %+v", n, d.queries)
		}
	})
}

// TestLogsInOrder checks that the logs of several pods are printed one after the other, up to the first error.
func TestLogsInOrder(t *testing.T) {
	answers := []answer{{lines: []string{"1"}}, {lines: []string{"2"}, err: errors.New("unreadable")}, {lines: []string{"3"}}}
	d := &logDaemon{answers: answers}
	lines, _, err := printed(t, d, client.OutputQuery{}, pod("b"), pod("a"), pod("c"))
	if diff := cmp.Diff([]string{"b 1", "a 2"}, lines); diff != "" || err == nil {
		t.Errorf("error %v, lines (-want +got):\n%s", err, diff)
	}
}

package ui

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/plain"
)

const (
	// maxLogPods bounds the pods whose logs are merged.
	maxLogPods = 20
	// maxTail bounds the lines of each container before those that follow.
	maxTail = 1000
	// merge is the time for which lines are collected, to be sent in the order of their times.
	merge = 150 * time.Millisecond
	// maxBatch bounds the lines that are collected: a container that writes faster waits for the browser.
	maxBatch = 500
	// maxLine bounds the length of a line, in runes.
	maxLine = 4000
)

// line is a line of a log.
type line struct {
	Pod       string    `json:"pod"`
	Container string    `json:"container"`
	Stream    string    `json:"stream"` // stdout, stderr, or note: a text of this program
	Time      time.Time `json:"time"`
	Text      string    `json:"text"`
}

// batch is a value of the stream of logs.
type batch struct {
	Lines []line `json:"lines"`
}

// logs streams the logs of pods, and what they write from now on: ?pod=NAME&pod=NAME&tail=LINES.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	names := logPods(w, r)
	if names == nil {
		return
	}
	tail, err := strconv.Atoi(r.FormValue("tail"))
	if err != nil || tail < 0 || tail > maxTail {
		refuse(w, http.StatusBadRequest, "tail: must be between 0 and "+strconv.Itoa(maxTail))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	lines := make(chan line)
	var following sync.WaitGroup
	for _, name := range names {
		following.Go(func() {
			m := member{client: s.client, pod: name, lines: lines}
			if err := m.follow(ctx, tail); err != nil && ctx.Err() == nil {
				m.note(ctx, err.Error())
			} else if err == nil {
				m.note(ctx, "the log is complete")
			}
		})
	}
	ended := make(chan struct{})
	go func() { following.Wait(); close(ended) }()
	_ = sendLines(newStream(w), lines, ended) // the browser is gone
}

// logPods returns the pods of a request for logs, each once. If there are none or too many, it refuses the request and returns nil.
func logPods(w http.ResponseWriter, r *http.Request) []string {
	names := r.URL.Query()["pod"]
	if len(names) == 0 || len(names) > maxLogPods {
		refuse(w, http.StatusBadRequest, "pod: between 1 and "+strconv.Itoa(maxLogPods)+" pods are required")
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// sendLines sends lines in batches until all logs are complete.
func sendLines(out *stream, lines <-chan line, ended <-chan struct{}) error {
	if err := out.send(batch{[]line{}}); err != nil { // the page is connected
		return err
	}
	var pending []line
	due := time.NewTimer(time.Hour)
	due.Stop()
	for {
		more := lines
		if len(pending) >= maxBatch {
			more = nil
		}
		select {
		case l := <-more:
			if pending = append(pending, l); len(pending) == 1 {
				due.Reset(merge)
			}
			continue
		case <-due.C:
		case <-ended:
			return errors.Join(flush(out, pending), out.send(map[string]bool{"ended": true}))
		}
		if err := flush(out, pending); err != nil {
			return err
		}
		pending = nil
	}
}

// flush sends lines in the order of their times.
func flush(out *stream, lines []line) error {
	slices.SortStableFunc(lines, func(a, b line) int { return a.Time.Compare(b.Time) })
	return out.send(batch{append([]line{}, lines...)})
}

// member is a pod whose log is followed.
type member struct {
	client *client.Client
	pod    string
	lines  chan<- line
}

// follow sends the lines of the pod until it has terminated or is deleted, also over restarts of the daemon.
func (m *member) follow(ctx context.Context, tail int) error {
	p, err := m.find(ctx)
	if err != nil {
		return err
	}
	return follow.Logs(ctx, follow.LogOptions{
		Daemon: following{m.client}, Pods: []api.Pod{p}, Query: client.OutputQuery{Follow: true, Tail: &tail},
		Line: func(_ string, l api.Line) error {
			return m.send(ctx, line{m.pod, l.Container, l.Stream, l.Time, lineText(&l)})
		},
		Skipped: func(pod, container string, skipped api.Skipped) {
			m.note(ctx, follow.SkippedNotice(pod, container, skipped))
		},
		Reconnected: func() { m.note(ctx, wait.Reconnected) },
	})
}

// find returns the pod. While the daemon is unavailable, it waits.
func (m *member) find(ctx context.Context) (p api.Pod, err error) {
	if err := mayExist(m.pod); err != nil {
		return p, err
	}
	for noted := false; ; noted = true {
		if p, err = m.client.Pod(ctx, m.pod); !errors.Is(err, api.ErrUnavailable) {
			return p, err
		}
		if !noted {
			m.note(ctx, "the daemon is unavailable, retrying")
		}
		if err := reach(ctx, m.client); err != nil {
			return p, err
		}
	}
}

// lineText returns a line of a log for the page: cut, and with escaped hidden characters.
func lineText(l *api.Line) string {
	if l.Raw != nil {
		return cut(string(l.Raw))
	}
	return cut(l.Line)
}

// cut cuts a line, and escapes hidden characters, also bytes that are not UTF-8.
func cut(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxLine {
			return plain.Text(text[:i]) + "…"
		}
	}
	return plain.Text(text)
}

func (m *member) send(ctx context.Context, l line) error {
	select {
	case m.lines <- l:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// note sends a text for people.
func (m *member) note(ctx context.Context, text string) {
	_ = m.send(ctx, line{Pod: m.pod, Stream: "note", Time: time.Now(), Text: plain.Text(text)}) // it fails if the browser is gone
}

// following is the daemon for [follow.Logs].
type following struct{ *client.Client }

// Connect implements [follow.LogDaemon]. It starts no daemon.
func (f following) Connect(ctx context.Context) error { return reach(ctx, f.Client) }

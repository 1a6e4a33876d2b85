package live

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/internal/plain"
)

const (
	// MaxLogPods bounds the pods whose logs are merged.
	MaxLogPods = 20
	// merge is the time for which lines are collected, to be sent in the order of their times.
	merge = 150 * time.Millisecond
	// MaxBatch bounds the lines that are collected: a container that writes faster waits for the screen.
	MaxBatch = 500
	// maxLine bounds the length of a line, in runes.
	maxLine = 4000
)

// Note is the stream of lines that this program adds.
const Note = "note"

// Line is a line of a log.
type Line struct {
	Pod       string    `json:"pod"`
	Container string    `json:"container"`
	Stream    string    `json:"stream"` // stdout, stderr or [Note]
	Time      time.Time `json:"time"`
	Text      string    `json:"text"`
}

// Logs calls show with the last lines of the logs of pods, and with what they write from now on, in the order of their times within a short
// time. It returns nil when all logs are complete, or else the error of show or of the context. Errors of a pod are lines.
func (s *Source) Logs(ctx context.Context, names []string, tail int, show func([]Line) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan Line)
	var following sync.WaitGroup
	panics := make(chan *Panic, len(names))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		following.Go(func() {
			carry(panics, func() {
				m := member{client: s.client, pod: name, lines: lines}
				if err := m.follow(ctx, tail); err != nil && ctx.Err() == nil {
					m.note(ctx, err.Error())
				} else if err == nil {
					m.note(ctx, "the log is complete")
				}
			})
		})
	}
	ended := make(chan struct{})
	go func() { following.Wait(); close(ended) }()
	var pending []Line
	due := time.NewTimer(time.Hour)
	due.Stop()
	for {
		more := lines
		if len(pending) >= MaxBatch {
			more = nil
		}
		select {
		case l := <-more:
			if pending = append(pending, l); len(pending) == 1 {
				due.Reset(merge)
			}
			continue
		case <-due.C:
		case p := <-panics:
			panic(p)
		case <-ended:
			if len(panics) > 0 {
				panic(<-panics)
			}
			return errors.Join(context.Cause(ctx), flush(pending, show))
		}
		if err := flush(pending, show); err != nil {
			return err
		}
		pending = nil
	}
}

// flush shows lines in the order of their times.
func flush(lines []Line, show func([]Line) error) error {
	order.Sort(lines, func(a, b Line) int { return a.Time.Compare(b.Time) })
	return show(lines)
}

// member is a pod whose log is followed.
type member struct {
	client *client.Client
	pod    string
	lines  chan<- Line
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
			return m.send(ctx, LineOf(m.pod, &l))
		},
		Skipped: func(pod, container string, skipped api.Skipped) {
			m.note(ctx, follow.SkippedNotice(pod, container, skipped))
		},
		Reconnected: func() { m.note(ctx, wait.Reconnected) },
	})
}

// find returns the pod. While the daemon is unavailable, it waits.
func (m *member) find(ctx context.Context) (p api.Pod, err error) {
	if err := MayExist(m.pod); err != nil {
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

// LineOf returns a line of a pod for people, see [Line].
func LineOf(pod string, l *api.Line) Line {
	return Line{pod, l.Container, l.Stream, l.Time, lineText(l)}
}

// lineText returns a line of a log: cut, and with escaped hidden characters.
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

func (m *member) send(ctx context.Context, l Line) error {
	select {
	case m.lines <- l:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// note sends a text for people.
func (m *member) note(ctx context.Context, text string) {
	_ = m.send(ctx, Line{Pod: m.pod, Stream: Note, Time: time.Now(), Text: plain.Text(text)}) // it fails if the screen is gone
}

// following is the daemon for [follow.Logs].
type following struct{ *client.Client }

// Connect implements [follow.LogDaemon]. It starts no daemon.
func (f following) Connect(ctx context.Context) error { return reach(ctx, f.Client) }

package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// containerOutput sends the output of one container, run by run.
type containerOutput struct {
	server   *Server
	pod, uid string
	name     string
	query    outputQuery
	lines    chan<- Line
}

func (c *containerOutput) send(ctx context.Context) error {
	from, resume := c.query.from[c.name]
	first, last, err := c.runs(ctx)
	if err != nil {
		return err
	}
	if resume {
		first = max(first, from.Attempt)
	}
	for n := first; last < 0 || n <= last; n++ {
		switch started, err := c.awaitRun(ctx, n); {
		case err != nil:
			return err
		case !started:
			return nil
		}
		position := Position{}
		if n == from.Attempt {
			position = from
		}
		if err := c.sendRun(ctx, n, position); err != nil {
			return err
		}
	}
	return nil
}

// runs returns the restart counts of the first and the last selected run. The last one is -1 for all runs until the pod is at rest.
func (c *containerOutput) runs(ctx context.Context) (first, last int, err error) {
	newest, hasNewest, previous, hasPrevious := -1, false, -1, false
	if s := c.snapshot(); s != nil {
		newest, hasNewest = newestRun(s, c.name)
		previous, hasPrevious = previousRun(s, c.name)
	}
	switch c.query.runs {
	case PreviousRun:
		if !hasPrevious {
			return 0, 0, noPreviousRun(c.name, c.pod)
		}
		return previous, previous, nil
	case NewestRun:
		return max(newest, 0), max(newest, 0), nil
	case AllRuns:
	}
	first, err = c.oldestLog()
	if !c.query.follow && !hasNewest {
		return 0, 0, errors.Join(err, ctx.Err())
	}
	if c.query.follow {
		return first, -1, err
	}
	return first, newest, err
}

// oldestLog returns the restart count of the oldest run whose log is kept.
func (c *containerOutput) oldestLog() (int, error) {
	files, err := crilog.Names(c.dir())
	if err != nil {
		return 0, fmt.Errorf("read logs of container %q: %w", c.name, err)
	}
	oldest := -1
	for _, file := range files {
		name, _, _ := strings.Cut(file, ".")
		if n, err := strconv.Atoi(name); err == nil && (oldest < 0 || n < oldest) {
			oldest = n
		}
	}
	return max(oldest, 0), nil
}

func (c *containerOutput) dir() string {
	return filepath.Join(c.server.o.LogDir, spec.FileName(c.pod)+"_"+c.uid, c.name)
}

// snapshot returns the state of the pod, nil if the pod is deleted.
func (c *containerOutput) snapshot() *supervisor.Snapshot {
	s, ok := c.server.o.Supervisor.Pod(c.pod)
	if !ok || s.Facts.UID != c.uid {
		return nil
	}
	return &s
}

// await waits until cond is met or the context ends.
func (c *containerOutput) await(ctx context.Context, cond func(*supervisor.Snapshot) bool) error {
	for {
		changed := c.server.o.Supervisor.Changed()
		if cond(c.snapshot()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newestRun returns the restart count of the newest run of a container that has, or is about to have, a log.
func newestRun(s *supervisor.Snapshot, container string) (restarts int, found bool) {
	h := s.Facts.Containers[container]
	for _, a := range [...]*lifecycle.Attempt{&h.Newest, &h.Previous} {
		if a.N() > 0 && a.CreateFailed.IsZero() {
			return a.Restarts, true
		}
	}
	return 0, false
}

// previousRun returns the restart count of the run in the lastState of a container.
func previousRun(s *supervisor.Snapshot, container string) (restarts int, found bool) {
	for _, list := range [...][]lifecycle.ContainerStatus{s.Status.InitContainerStatuses, s.Status.ContainerStatuses} {
		for i := range list {
			last := list[i].LastState.Terminated
			if list[i].Name != container || last == nil {
				continue
			}
			h := s.Facts.Containers[container]
			for _, a := range [...]*lifecycle.Attempt{&h.Newest, &h.Previous} {
				if a.ID != "" && strings.HasSuffix(last.ContainerID, a.ID) {
					return a.Restarts, true
				}
			}
		}
	}
	return 0, false
}

func noPreviousRun(container, pod string) error {
	return failure(http.StatusNotFound, "container %q of pod %q has no previous run", container, pod)
}

// awaitRun waits until run n has started. It reports false if the run never starts.
func (c *containerOutput) awaitRun(ctx context.Context, n int) (started bool, err error) {
	err = c.await(ctx, func(s *supervisor.Snapshot) bool {
		if s != nil {
			newest, found := newestRun(s, c.name)
			started = found && newest >= n
		}
		return started || s == nil || s.Settled() || !c.query.follow
	})
	return started, err
}

// logComplete reports whether run n has terminated, so that its log is complete.
func logComplete(s *supervisor.Snapshot, container string, n int) bool {
	if s == nil || s.Settled() {
		return true
	}
	newest := s.Facts.Containers[container].Newest
	return newest.Restarts > n || (newest.Restarts == n && !newest.Exited.IsZero())
}

// sendRun sends the lines of run n after the position. With follow, it returns when the run has terminated.
func (c *containerOutput) sendRun(ctx context.Context, n int, from Position) error {
	o := crilog.ReadOptions{Tail: c.query.tail}
	if from.Lines > 0 {
		o.Tail = 0
	}
	if c.query.follow {
		complete := make(chan struct{})
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			if c.await(waiting, func(s *supervisor.Snapshot) bool { return logComplete(s, c.name, n) }) == nil {
				close(complete)
			}
		}()
		o.Until = complete
	}
	skip := skipper{from: from}
	for e, err := range crilog.Read(ctx, filepath.Join(c.dir(), strconv.Itoa(n)+".log"), o) {
		if err != nil {
			return fmt.Errorf("read log of container %q: %w", c.name, err)
		}
		if skip.skip(e) {
			continue
		}
		l := Line{Container: c.name, Stream: string(e.Stream), Time: e.Time, Attempt: n, Line: string(e.Text)}
		if !utf8.Valid(e.Text) {
			l.Raw = []byte(l.Line)
		}
		select {
		case c.lines <- l:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// skipper skips the lines before a position, by their number. If the start of the log was rotated away since, it skips them by time.
type skipper struct {
	from   Position
	lines  int // read so far
	byTime bool
}

func (s *skipper) skip(e crilog.Entry) bool {
	s.lines++
	if s.lines == 1 {
		s.byTime = !e.Time.Equal(s.from.First)
	}
	if s.byTime {
		return s.from.Lines > 0 && !e.Time.After(s.from.Last)
	}
	return s.lines <= s.from.Lines
}

package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// containerOutput sends what one container of a pod has written, run by run.
type containerOutput struct {
	server   *Server
	pod, uid string
	name     string
	query    outputQuery
	lines    chan<- Line
}

func (c *containerOutput) send(ctx context.Context) error {
	from, known := c.query.from[c.name]
	first, last, err := c.runs(ctx)
	if err != nil {
		return err
	}
	if known {
		first = max(first, from.Attempt)
	}
	for n := first; last < 0 || n <= last; n++ {
		switch begun, err := c.begun(ctx, n); {
		case err != nil:
			return err
		case !begun:
			return nil
		}
		at := Position{}
		if n == from.Attempt {
			at = from
		}
		if err := c.run(ctx, n, at); err != nil {
			return err
		}
	}
	return nil
}

// runs gives the restart counts of the first and of the last run that are wanted; the last is -1 for "until the pod rests".
func (c *containerOutput) runs(ctx context.Context) (first, last int, err error) {
	newest, any, previous, ended := -1, false, -1, false
	if s := c.look(); s != nil {
		newest, any = newestRun(s, c.name)
		previous, ended = previousRun(s, c.name)
	}
	switch c.query.runs {
	case PreviousRun:
		if !ended {
			return 0, 0, noPreviousRun(c.name, c.pod)
		}
		return previous, previous, nil
	case NewestRun:
		return max(newest, 0), max(newest, 0), nil
	case AllRuns:
	}
	first, err = c.oldestLog()
	if !c.query.follow && !any {
		return 0, 0, errors.Join(err, ctx.Err())
	}
	if c.query.follow {
		return first, -1, err
	}
	return first, newest, err
}

// oldestLog is the restart count of the oldest run whose log is kept.
func (c *containerOutput) oldestLog() (int, error) {
	entries, err := os.ReadDir(c.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read logs of container %q: %w", c.name, err)
	}
	oldest := -1
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".")
		if n, err := strconv.Atoi(name); err == nil && (oldest < 0 || n < oldest) {
			oldest = n
		}
	}
	return max(oldest, 0), nil
}

func (c *containerOutput) dir() string {
	return filepath.Join(c.server.o.LogDir, c.pod+"_"+c.uid, c.name)
}

// look returns the pod as it is, nil if it is gone.
func (c *containerOutput) look() *supervisor.Snapshot {
	s, ok := c.server.o.Supervisor.Pod(c.pod)
	if !ok || s.Facts.UID != c.uid {
		return nil
	}
	return &s
}

// await waits until cond is met, or the context ends.
func (c *containerOutput) await(ctx context.Context, cond func(*supervisor.Snapshot) bool) error {
	for {
		changed := c.server.o.Supervisor.Changed()
		if cond(c.look()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newestRun is the restart count of the newest run of a container that has, or is about to have, a log.
func newestRun(s *supervisor.Snapshot, container string) (restarts int, any bool) {
	h := s.Facts.Containers[container]
	for _, a := range [...]*lifecycle.Attempt{&h.Newest, &h.Previous} {
		if a.N() > 0 && a.CreateFailed.IsZero() {
			return a.Restarts, true
		}
	}
	return 0, false
}

// previousRun is the restart count of the run that the status shows as a container's last state.
func previousRun(s *supervisor.Snapshot, container string) (restarts int, known bool) {
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

// begun waits until run n begins, and reports false if it never will.
func (c *containerOutput) begun(ctx context.Context, n int) (begun bool, err error) {
	err = c.await(ctx, func(s *supervisor.Snapshot) bool {
		if s != nil {
			newest, any := newestRun(s, c.name)
			begun = any && newest >= n
		}
		return begun || s == nil || s.AtRest || !c.query.follow
	})
	return begun, err
}

// over reports whether run n has ended, so that its log is complete.
func over(s *supervisor.Snapshot, container string, n int) bool {
	if s == nil || s.AtRest {
		return true
	}
	newest := s.Facts.Containers[container].Newest
	return newest.Restarts > n || (newest.Restarts == n && !newest.Exited.IsZero())
}

// run sends the lines of run n behind the position, until the run is over if that is wanted.
func (c *containerOutput) run(ctx context.Context, n int, from Position) error {
	o := crilog.ReadOptions{Tail: c.query.tail}
	if from.Lines > 0 {
		o.Tail = 0
	}
	if c.query.follow {
		ended := make(chan struct{})
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			if c.await(waiting, func(s *supervisor.Snapshot) bool { return over(s, c.name, n) }) == nil {
				close(ended)
			}
		}()
		o.Until = ended
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

// skipper leaves out the lines that were read before: by their number or, if the beginning of the log has been rotated away
// since, by their time.
type skipper struct {
	from   Position
	seen   int
	byTime bool
}

func (s *skipper) skip(e crilog.Entry) bool {
	s.seen++
	if s.seen == 1 {
		s.byTime = !e.Time.Equal(s.from.First)
	}
	if s.byTime {
		return s.from.Lines > 0 && !e.Time.After(s.from.Last)
	}
	return s.seen <= s.from.Lines
}

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/podstead/podstead/api"
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
	search   *search // nil: all lines
	lines    chan<- api.OutputRecord
	placed   time.Time // when the client was last sent where it is
}

// placeInterval is the interval in which a client that follows a search is sent where the search is, while no line matches: the client
// continues there, and lines before it are not reported as removed.
const placeInterval = time.Second

func (c *containerOutput) send(ctx context.Context) error {
	from, resume := c.query.from[c.name]
	first, last, existing, err := c.runs(ctx)
	if err != nil {
		return err
	}
	if resume {
		first = max(first, from.Attempt)
	}
	for n := first; (last < 0 || n <= last) && !c.search.isStopped(); n++ {
		start, err := c.start(ctx, n, n <= existing)
		if err != nil {
			return err
		}
		if n == first && c.query.follow && !resume {
			if err := c.record(ctx, api.OutputRecord{Line: api.Line{Container: c.name, Attempt: n}, Start: &start}); err != nil {
				return err
			}
		}
		switch started, err := c.awaitRun(ctx, n); {
		case err != nil:
			return err
		case !started:
			return nil
		}
		late := !c.query.follow || n <= existing && start.Lines == 0
		if err := c.sendRun(ctx, n, start, late); err != nil {
			return err
		}
	}
	return nil
}

func (c *containerOutput) record(ctx context.Context, r api.OutputRecord) error {
	begun := time.Now()
	defer func() { c.search.wait(time.Since(begun)) }()
	select {
	case c.lines <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// place sends where a search is that follows.
func (c *containerOutput) place(ctx context.Context, n int, at api.Position) error {
	if c.search == nil || !c.query.follow || time.Since(c.placed) < placeInterval {
		return nil
	}
	c.placed = time.Now()
	at.Attempt = n
	return c.record(ctx, api.OutputRecord{Line: api.Line{Container: c.name, Attempt: n}, Start: &at})
}

// runs returns the restart counts of the first and the last selected run, and of the newest run that exists. The last one is -1 for all
// runs until the pod is at rest. The newest one is -1 if there is none.
func (c *containerOutput) runs(ctx context.Context) (first, last, newest int, err error) {
	hasNewest, previous, hasPrevious := false, -1, false
	if s := c.snapshot(); s != nil {
		newest, hasNewest = newestRun(s, c.name)
		previous, hasPrevious = previousRun(s, c.name)
	}
	if !hasNewest {
		newest = -1
	}
	_, resume := c.query.from[c.name]
	switch {
	case c.query.runs == api.PreviousRun:
		if !hasPrevious {
			return 0, 0, newest, noPreviousRun(c.name, c.pod)
		}
		return previous, previous, newest, nil
	case c.query.runs == api.NewestRun && !c.query.follow:
		return max(newest, 0), max(newest, 0), newest, nil
	case c.query.runs == api.NewestRun && !resume:
		return max(newest, 0), -1, newest, nil
	}
	first, err = c.oldestLog()
	if !c.query.follow && !hasNewest {
		return 0, 0, newest, errors.Join(err, ctx.Err())
	}
	if c.query.follow {
		return first, -1, newest, err
	}
	return first, newest, newest, err
}

// start returns the position in run n that the output starts after. A run of a container that is not followed starts at the beginning,
// since the reader of its log skips to the tail.
func (c *containerOutput) start(ctx context.Context, n int, exists bool) (api.Position, error) {
	from, resume := c.query.from[c.name]
	switch {
	case resume && n == from.Attempt:
		return from, nil
	case resume || !exists || !c.query.follow || c.query.tail == 0:
		return api.Position{Attempt: n}, nil
	}
	// The number of lines before the tail is part of the position, so that it is exact when the client continues. A line that is not
	// complete yet is sent when it is.
	o := crilog.ReadOptions{Complete: !logComplete(c.snapshot(), c.name, n)}
	keep, lines, last := max(c.query.tail, 0), 0, int64(0)
	var first time.Time
	var times []time.Time // of the last lines: those to keep, and the one before
	for e, err := range crilog.Read(ctx, c.log(n), o) {
		if err != nil {
			return api.Position{}, c.readError(err)
		}
		if e.Skipped != nil {
			continue
		}
		if lines++; lines == 1 {
			first = e.Time
		}
		last = e.Number
		if times = append(times, e.Time); len(times)-1 > keep {
			times = times[1:]
		}
	}
	if lines <= keep {
		return api.Position{Attempt: n}, nil
	}
	return api.Position{Attempt: n, Lines: int(last) - keep, First: first, Last: times[0]}, nil
}

func (c *containerOutput) readError(err error) error {
	return fmt.Errorf("read log of container %q: %w", c.name, err)
}

// oldestLog returns the restart count of the oldest run whose log is kept.
func (c *containerOutput) oldestLog() (int, error) {
	oldest := -1
	for _, dir := range c.dirs() {
		files, err := crilog.Names(dir)
		if err != nil {
			return 0, fmt.Errorf("read logs of container %q: %w", c.name, err)
		}
		for _, file := range files {
			name, _, _ := strings.Cut(file, ".")
			if n, err := strconv.Atoi(name); err == nil && (oldest < 0 || n < oldest) {
				oldest = n
			}
		}
	}
	return max(oldest, 0), nil
}

// log returns the path of the log of run n. The runs of a container may have different log drivers.
func (c *containerOutput) log(n int) string {
	name := strconv.Itoa(n) + ".log"
	dirs := c.dirs()
	for _, dir := range dirs[1:] {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return filepath.Join(dirs[0], name)
}

// dirs returns the directories that may contain logs of the container, that of driver file first.
func (c *containerOutput) dirs() []string {
	below := filepath.Join(spec.FileName(c.pod)+"_"+c.uid, c.name)
	dirs := []string{filepath.Join(c.server.o.LogDir, below)}
	if memory := c.server.o.MemoryLogDir; memory != "" {
		dirs = append(dirs, filepath.Join(memory, below))
	}
	return dirs
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
	h := s.Facts.Container(container)
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
			h := s.Facts.Container(container)
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
		return started || s == nil || s.Settled() || !c.query.follow || c.query.runs == api.NewestRun && c.over(s)
	})
	return started, err
}

// over reports whether all selected containers have terminated and none of them runs again. It does not wait for a later sandbox or a
// restart of the pod, which runs completed init containers again.
func (c *containerOutput) over(s *supervisor.Snapshot) bool {
	for _, name := range c.query.containers {
		if s.Facts.Container(name).Newest.Exited.IsZero() || lifecycle.RunsAgain(s.Pod, s.Facts, name) {
			return false
		}
	}
	return true
}

// logComplete reports whether run n has terminated, so that its log is complete.
func logComplete(s *supervisor.Snapshot, container string, n int) bool {
	if s == nil || s.Settled() {
		return true
	}
	newest := &s.Facts.Container(container).Newest
	return newest.Restarts > n || (newest.Restarts == n && !newest.Exited.IsZero())
}

// sendRun sends the lines of run n after the position. With follow, it returns when the run has terminated. A reader that is late, to a run
// that had begun before the request, does not expect the lines that were removed before.
func (c *containerOutput) sendRun(ctx context.Context, n int, from api.Position, late bool) error {
	var o crilog.ReadOptions
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
	} else if from.Lines == 0 {
		o.Tail = c.query.tail
	}
	skip := skipper{from: from}
	next := from.Lines + 1 // the number of the line that the client expects
	for e, err := range crilog.Read(ctx, c.log(n), o) {
		if err != nil {
			return c.readError(err)
		}
		if missed := skip.missed(e, late); missed != nil {
			line := api.Line{Container: c.name, Time: e.Time, Attempt: n}
			if err := c.record(ctx, api.OutputRecord{Line: line, Skipped: missed}); err != nil {
				return err
			}
		}
		if e.Skipped != nil {
			continue
		}
		before := skip.at
		if skip.skip(e) || e.Time.Before(c.query.since) {
			continue
		}
		if !c.query.until.IsZero() && e.Time.After(c.query.until) {
			continue // the clock may have been set back after it
		}
		if stopped := c.search.spend(len(e.Text), e.Time); stopped != nil {
			stopped.Container = c.name
			return c.record(ctx, api.OutputRecord{Line: api.Line{Container: c.name, Time: e.Time, Attempt: n}, SearchStopped: stopped})
		}
		if !c.search.matches(e.Text) {
			if err := c.place(ctx, n, skip.at); err != nil {
				return err
			}
			continue
		}
		r := api.OutputRecord{Line: api.Line{
			Container: c.name, Stream: string(e.Stream), Time: e.Time, Attempt: n, Line: string(e.Text), Partial: e.Partial,
		}}
		if !utf8.Valid(e.Text) {
			r.Raw = []byte(r.Line.Line)
		}
		if skip.at.Lines != next {
			before.Attempt, before.Lines = n, skip.at.Lines-1
			r.Start = &before
		}
		next = skip.at.Lines + 1
		if err := c.record(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// skipper skips the lines before a position, by their number. If the start of the log was rotated away since and the lines are not numbered
// from the start, it skips them by time, unless the position has no times.
type skipper struct {
	from   api.Position
	at     api.Position // after the lines read so far, without Attempt
	byTime bool
}

// missed returns what was removed before it was read: before this entry and, if the log is read from its start or from a position, before
// its first line.
func (s *skipper) missed(e crilog.Entry, late bool) *api.Skipped {
	if e.Skipped != nil {
		return &api.Skipped{Lines: e.Skipped.Lines, Bytes: e.Skipped.Bytes}
	}
	if lines := e.Number - 1 - int64(s.from.Lines); s.at.Lines == 0 && e.Numbered && lines > 0 && !late {
		return &api.Skipped{Lines: lines}
	}
	return nil
}

func (s *skipper) skip(e crilog.Entry) bool {
	if s.at.Lines == 0 {
		s.at.First = e.Time
		s.byTime = !s.from.First.IsZero() && !e.Time.Equal(s.from.First) && !e.Numbered
	}
	s.at.Lines = int(e.Number)
	s.at.Last = e.Time
	if s.byTime {
		return s.from.Lines > 0 && !e.Time.After(s.from.Last)
	}
	return s.at.Lines <= s.from.Lines
}

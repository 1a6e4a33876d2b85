package ui

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/live"
)

const (
	// aroundLines bounds the lines before a time, and those after it.
	aroundLines = 10
	// aroundTime is the longest time between them and that time.
	aroundTime = time.Minute
	// aroundTimeout and maxAround bound the search for them.
	aroundTimeout = 10 * time.Second
	maxAround     = 100_000
)

// around is the lines of a log around a time.
type around struct {
	Lines   []live.Line `json:"lines"`   // oldest first
	Partial bool        `json:"partial"` // not all lines of that time were read
}

// around answers with the lines of a log around a time: ?name=NAME&uid=UID&container=NAME&at=TIME, in milliseconds since 1970. Without a
// container, it has those of all containers.
func (s *Server) around(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("name")
	at, err := milliseconds(r.FormValue("at"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "at: must be a time in milliseconds since 1970")
		return
	}
	if err := live.MayExist(name); err != nil {
		fail(w, err)
		return
	}
	q := client.OutputQuery{UID: r.FormValue("uid"), Since: at.Add(-aroundTime), Until: at.Add(aroundTime)}
	if container := r.FormValue("container"); container != "" {
		q.Containers = []string{container}
	}
	found, err := s.linesAround(r.Context(), name, q, at)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, found)
}

// linesAround reads the lines of a query, and keeps those around a time.
func (s *Server) linesAround(ctx context.Context, name string, q client.OutputQuery, at time.Time) (a around, err error) {
	reading, cancel := context.WithTimeout(ctx, aroundTimeout)
	defer cancel()
	var before, after []live.Line
	read := 0
	at = at.Add(time.Millisecond) // that of an event is cut
	for l, err := range s.client.Output(reading, name, q) {
		if a.Partial = read >= maxAround || reading.Err() != nil && ctx.Err() == nil; a.Partial {
			break
		}
		if err != nil {
			return a, err
		}
		read++
		if l.Time.Before(at) {
			before = insert(before, live.LineOf(name, &l))
			before = before[max(len(before)-aroundLines, 0):]
		} else {
			after = insert(after, live.LineOf(name, &l))
			after = after[:min(len(after), aroundLines)]
		}
	}
	a.Lines = slices.Concat([]live.Line{}, before, after)
	return a, nil
}

// insert inserts a line after those that are not later.
func insert(lines []live.Line, l live.Line) []live.Line {
	i := len(lines)
	for i > 0 && lines[i-1].Time.After(l.Time) {
		i--
	}
	return slices.Insert(lines, i, l)
}

package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
	"github.com/podstead/podstead/cmd/podstead/internal/live"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/internal/plain"
)

const (
	// maxFound bounds the lines of the result of a search.
	maxFound = 1000
	// searchTimeout bounds a search. The daemon also bounds that in each container.
	searchTimeout = time.Minute
)

// found is the result of a search.
type found struct {
	Lines []live.Line `json:"lines"` // the newest, oldest first
	Count int         `json:"count"` // of all lines that were found
	// Notes are why lines are not searched.
	Notes []string `json:"notes"`
}

// search answers with the lines of pods that contain a text, in all runs whose logs are kept: ?pod=NAME&pod=NAME&text=TEXT. There is one
// search at a time.
func (s *Server) search(w http.ResponseWriter, r *http.Request) {
	names, text := logPods(w, r), r.FormValue("text")
	if names == nil {
		return
	}
	if text == "" {
		refuse(w, http.StatusBadRequest, "text: must not be empty")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), searchTimeout)
	defer cancel()
	result := found{Notes: []string{}}
	for _, name := range names {
		if err := s.searchPod(ctx, name, text, localZone(r), &result); err != nil {
			if ctx.Err() != nil {
				err = errors.New("the search takes too long")
			}
			result.Notes = append(result.Notes, plain.Text(fmt.Sprintf("%s: %v", name, err)))
		}
	}
	result.trim()
	answer(w, result)
}

// searchPod adds the lines of a pod. Notes have the time zone.
func (s *Server) searchPod(ctx context.Context, name, text string, zone *time.Location, f *found) error {
	if err := live.MayExist(name); err != nil {
		return err
	}
	select {
	case s.searching <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.searching }()
	q := client.OutputQuery{Text: text, SearchStopped: func(stopped api.SearchStopped) {
		f.Notes = append(f.Notes, follow.SearchStoppedNotice(name, stopped, zone))
	}}
	for l, err := range s.client.Output(ctx, name, q) {
		if err != nil {
			return err
		}
		f.Count++
		if f.Lines = append(f.Lines, live.LineOf(name, &l)); len(f.Lines) >= 2*maxFound {
			f.trim()
		}
	}
	return nil
}

// trim sorts the lines, and keeps the newest.
func (f *found) trim() {
	order.Sort(f.Lines, func(a, b live.Line) int { return a.Time.Compare(b.Time) })
	f.Lines = append([]live.Line{}, f.Lines[max(len(f.Lines)-maxFound, 0):]...)
}

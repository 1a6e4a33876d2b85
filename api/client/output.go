package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/podstead/podstead/api"
)

// OutputQuery selects output of a pod. The zero value selects all output that is kept, of all containers.
type OutputQuery struct {
	UID        string
	Containers []string // none: all
	Runs       api.OutputRuns
	Follow     bool
	Tail       *int // number of lines from the end of each run that exists, unless the container has a position in From; nil: all
	Since      time.Time
	Until      time.Time // zero: no bound; cannot be combined with Follow
	// Text, if not empty, selects lines that contain it, in any case. Without Follow, the daemon bounds the search in each container.
	Text string
	From api.Positions
	// Skipped, if not nil, is called before a line if lines before it were removed before they could be read.
	Skipped func(container string, s api.Skipped)
	// SearchStopped, if not nil, is called after the last line of a container if the search for Text has reached a bound in it.
	SearchStopped func(api.SearchStopped)
}

// Output yields lines of containers. With Follow it returns when the pod is at rest or deleted or, for [api.NewestRun], when none of the
// containers runs again. After an [api.ErrUnavailable] there may be more lines: repeat the call with the positions of the lines that were
// yielded, see [api.Positions.Advance]. If From is not nil, Output adds the positions at which it starts, and corrects them where lines are
// left out, so that the repeated call returns no line twice and none is lost.
func (c *Client) Output(ctx context.Context, pod string, q OutputQuery) iter.Seq2[api.Line, error] {
	v := query("uid", q.UID, "runs", string(q.Runs), "follow", flag(q.Follow), "sinceTime", timestamp(q.Since),
		"untilTime", timestamp(q.Until), "grep", q.Text)
	if len(q.Containers) > 0 {
		v["container"] = q.Containers
	}
	if q.Tail != nil {
		v.Set("tail", strconv.Itoa(*q.Tail))
	}
	if len(q.From) > 0 {
		if text, err := json.Marshal(q.From); err == nil {
			v.Set("from", string(text))
		}
	}
	return func(yield func(api.Line, error) bool) {
		for r, err := range stream[api.OutputRecord](ctx, c, http.MethodGet, podPath(pod)+"/output", v, nil, nil) {
			if r.Start != nil && q.From != nil {
				q.From[r.Container] = *r.Start
			}
			if r.Skipped != nil && q.Skipped != nil {
				q.Skipped(r.Container, *r.Skipped)
			}
			if r.SearchStopped != nil && q.SearchStopped != nil {
				q.SearchStopped(*r.SearchStopped)
			}
			if (err != nil || r.Stream != "") && !yield(r.Line, err) {
				return
			}
		}
	}
}

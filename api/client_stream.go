package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Watch yields every pod as [Added], one change of type [Listed], and then every change, until the context ends or the connection is lost.
func (c *Client) Watch(ctx context.Context) iter.Seq2[PodChange, error] {
	return streamOf[PodChange](ctx, c, "/v1/pods", url.Values{"watch": {"true"}}, nil)
}

// EventQuery selects events. The zero value selects all events that are kept.
type EventQuery struct {
	Follow   bool
	Pod, UID string
	// Labels is a label selector, such as "app=web"; empty: any. The events of deleted pods match only if the daemon still knows their
	// labels.
	Labels string
	Since  time.Time
	// Redact removes the values of the secrets of each pod. If they cannot be read, or the pod was deleted, what its containers, hooks and
	// probes have written is withheld.
	Redact bool
	// Instance and After are the position of the last event that was read. [EventQuery.Advance] updates them.
	Instance string
	After    uint64
}

// Advance marks an event as read. The next call with the query continues after it.
func (q *EventQuery) Advance(e Event) {
	if e.Seq > 0 {
		q.After = e.Seq
	}
}

// Events yields events, oldest first. An event of kind [EventsMissed] stands for events that the daemon no longer keeps. Events sets the
// Instance of the query.
func (c *Client) Events(ctx context.Context, q *EventQuery) iter.Seq2[Event, error] {
	v := url.Values{}
	if q.Follow {
		v.Set("follow", "true")
	}
	if q.Pod != "" {
		v.Set("pod", q.Pod)
	}
	if q.UID != "" {
		v.Set("uid", q.UID)
	}
	if q.Labels != "" {
		v.Set("labelSelector", q.Labels)
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	if q.Redact {
		v.Set("redact", "true")
	}
	if q.Instance != "" {
		v.Set("instance", q.Instance)
		v.Set("after", strconv.FormatUint(q.After, 10))
	}
	return streamOf[Event](ctx, c, "/v1/events", v, func(h http.Header) { q.Instance = h.Get(InstanceHeader) })
}

// OutputQuery selects output of a pod. The zero value selects all output that is kept, of all containers.
type OutputQuery struct {
	UID        string
	Containers []string // none: all
	Runs       OutputRuns
	Follow     bool
	Tail       *int // number of lines from the end of each run that exists, unless the container has a position in From; nil: all
	Since      time.Time
	From       Positions
	// Skipped, if not nil, is called before a line if lines before it were removed before they could be read.
	Skipped func(container string, s Skipped)
}

// Output yields lines of containers. With Follow it returns when the pod is at rest or deleted or, for [NewestRun], when none of the
// containers runs again. After an [ErrUnavailable] there may be more lines: repeat the call with the positions of the lines that were
// yielded, see [Positions.Advance]. If From is not nil, Output adds the positions at which it starts, and corrects them where lines are
// left out, so that the repeated call returns no line twice and none is lost.
func (c *Client) Output(ctx context.Context, pod string, q OutputQuery) iter.Seq2[Line, error] {
	v := url.Values{}
	if q.UID != "" {
		v.Set("uid", q.UID)
	}
	if len(q.Containers) > 0 {
		v["container"] = q.Containers
	}
	if q.Runs != AllRuns {
		v.Set("runs", string(q.Runs))
	}
	if q.Follow {
		v.Set("follow", "true")
	}
	if q.Tail != nil {
		v.Set("tail", strconv.Itoa(*q.Tail))
	}
	if !q.Since.IsZero() {
		v.Set("sinceTime", q.Since.Format(time.RFC3339Nano))
	}
	if len(q.From) > 0 {
		if text, err := json.Marshal(q.From); err == nil {
			v.Set("from", string(text))
		}
	}
	return func(yield func(Line, error) bool) {
		for r, err := range streamOf[OutputRecord](ctx, c, podPath(pod)+"/output", v, nil) {
			if r.Start != nil && q.From != nil {
				q.From[r.Container] = *r.Start
			}
			if r.Skipped != nil && q.Skipped != nil {
				q.Skipped(r.Container, *r.Skipped)
			}
			if (err != nil || r.Stream != "") && !yield(r.Line, err) {
				return
			}
		}
	}
}

// streamOf sends a request and yields the JSON values of the response. An error is the last value. The function onHeader, if it is not nil,
// is called with the header of the response.
func streamOf[T any](ctx context.Context, c *Client, path string, q url.Values, onHeader func(http.Header)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r, err := c.do(ctx, http.MethodGet, path, q, nil)
		if err != nil {
			yield(none, c.unavailable(ctx, err))
			return
		}
		defer r.Body.Close()
		if r.StatusCode >= 300 {
			yield(none, c.readError(ctx, r))
			return
		}
		if onHeader != nil {
			onHeader(r.Header)
		}
		for lines := json.NewDecoder(r.Body); ; {
			var v T
			err := lines.Decode(&v)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(none, c.unavailable(ctx, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

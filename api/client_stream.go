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

// Watch yields every pod as [Added], a change that says [Listed], and then each change, until the context ends or the daemon
// is gone.
func (c *Client) Watch(ctx context.Context) iter.Seq2[PodChange, error] {
	return streamOf[PodChange](ctx, c, "/v1/pods", url.Values{"watch": {"true"}}, nil)
}

// EventQuery says which events are wanted. The zero value is all that are kept.
type EventQuery struct {
	Follow   bool
	Pod, UID string
	Since    time.Time
	// Instance and After are the place after which to go on, as [EventQuery.Advance] keeps it.
	Instance string
	After    uint64
}

// Advance counts an event as read, so that the next call with the query goes on behind it.
func (q *EventQuery) Advance(e Event) {
	if e.Seq > 0 {
		q.After = e.Seq
	}
}

// Events yields events, oldest first. What the daemon no longer keeps is told by one of the kind [EventsMissed]. The query's
// Instance is set to the daemon's.
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
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	if q.Instance != "" {
		v.Set("instance", q.Instance)
		v.Set("after", strconv.FormatUint(q.After, 10))
	}
	return streamOf[Event](ctx, c, "/v1/events", v, func(h http.Header) { q.Instance = h.Get(instanceHeader) })
}

// OutputQuery says which output of a pod is wanted. The zero value is all that is kept of every container.
type OutputQuery struct {
	UID        string
	Containers []string // none: all
	Runs       OutputRuns
	Follow     bool
	Tail       *int // the number of lines at the end of each run's; nil: all
	From       Positions
}

// Output yields lines of containers. If it follows, it ends when the pod is at rest or, of the newest run alone, when that is
// over; an error that is [ErrUnavailable] says that there may be more, behind the positions of what was yielded.
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
	if len(q.From) > 0 {
		if text, err := json.Marshal(q.From); err == nil {
			v.Set("from", string(text))
		}
	}
	return streamOf[Line](ctx, c, podPath(pod)+"/output", v, nil)
}

// streamOf calls and yields one value a line. The last value may be an error.
func streamOf[T any](ctx context.Context, c *Client, path string, q url.Values, head func(http.Header)) iter.Seq2[T, error] {
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
			yield(none, readError(r))
			return
		}
		if head != nil {
			head(r.Header)
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

package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
)

// events sends the events that are kept, oldest first. Parameters: after (a sequence number of the instance), instance, since (a time),
// pod (a name), uid, labelSelector, redact, which removes values of secrets, and follow, which continues with new events.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	follow, err := flag(q, "follow")
	if err != nil {
		return err
	}
	after, err := number(q, "after")
	if err != nil {
		return err
	}
	since, err := timestamp(q, "since")
	if err != nil {
		return err
	}
	labels, err := s.labelFilter(q.Get("labelSelector"))
	if err != nil {
		return err
	}
	redacted, err := isRedacted(r)
	if err != nil {
		return err
	}
	if q.Get("instance") != s.o.Version.Instance && after > s.o.Supervisor.Events().Restored() {
		after = 0 // a sequence number of an unknown instance
	}
	selected := func(e *event.Event) bool {
		return (q.Get("pod") == "" || q.Get("pod") == e.Pod) && (q.Get("uid") == "" || q.Get("uid") == e.UID) && !e.Time.Before(since) &&
			labels.has(e)
	}
	w.Header().Set(api.InstanceHeader, s.o.Version.Instance)
	out := newStream(w)
	send := func(_ context.Context, e api.Event) error { return out.send(e) }
	if redacted || isReadOnly(r) {
		send = func(ctx context.Context, e api.Event) error { return out.send(s.redactEvent(ctx, e)) }
	}
	out.done(s.sendEvents(r, out, send, follow, after, selected))
	return nil
}

func (s *Server) sendEvents(r *http.Request, out *stream, send func(context.Context, api.Event) error, follow bool, after uint64,
	selected func(*event.Event) bool,
) error {
	ring := s.o.Supervisor.Events()
	events, missed := ring.Since(after)
	for following := false; ; following = true {
		if missed > 0 && (after > 0 || following) {
			if err := send(r.Context(), missedEvents(missed)); err != nil {
				return err
			}
		}
		for _, e := range events {
			after = e.Seq
			if !selected(&e) {
				continue
			}
			if err := send(r.Context(), eventOf(&e)); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		if err := out.flush(); err != nil {
			return err
		}
		var err error
		if events, missed, err = ring.Follow(r.Context(), after); err != nil {
			return err
		}
	}
}

func missedEvents(n uint64) api.Event {
	return api.Event{
		Time: time.Now().UTC(), Level: api.EventWarning, Kind: api.EventsMissed, Reason: string(api.EventsMissed),
		Fields: map[string]string{"missed": strconv.FormatUint(n, 10)}, Message: fmt.Sprintf("%d events are no longer kept", n),
	}
}

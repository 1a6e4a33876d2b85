package api

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/podstead/podstead/supervisor/event"
)

// events answers with the events that are kept, oldest first: ?after= a sequence number of the daemon's ?instance=, ?since= a
// time, of ?pod= by name and ?uid=. With ?follow it goes on with those to come.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	follow, err := flag(q, "follow")
	if err != nil {
		s.reply(w, r, nil, err)
		return
	}
	after, err := number(q, "after")
	if err != nil {
		s.reply(w, r, nil, err)
		return
	}
	since, err := moment(q, "since")
	if err != nil {
		s.reply(w, r, nil, err)
		return
	}
	if q.Get("instance") != s.o.Version.Instance && after > s.o.Supervisor.Events().Restored() {
		after = 0 // a number of a daemon that nothing is known of
	}
	wanted := func(e *Event) bool {
		return (q.Get("pod") == "" || q.Get("pod") == e.Pod) && (q.Get("uid") == "" || q.Get("uid") == e.UID) && !e.Time.Before(since)
	}
	w.Header().Set(instanceHeader, s.o.Version.Instance)
	out := newStream(w)
	out.done(s.sendEvents(r, out, follow, after, wanted))
}

// instanceHeader tells which daemon the sequence numbers of events belong to.
const instanceHeader = "Podstead-Instance"

func (s *Server) sendEvents(r *http.Request, out *stream, follow bool, after uint64, wanted func(*Event) bool) error {
	ring := s.o.Supervisor.Events()
	events, missed := ring.Since(after)
	for following := false; ; following = true {
		if missed > 0 && (after > 0 || following) {
			if err := out.send(missedEvents(missed)); err != nil {
				return err
			}
		}
		for _, e := range events {
			after = e.Seq
			if !wanted(&e) {
				continue
			}
			if err := out.send(e); err != nil {
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

func missedEvents(n uint64) Event {
	return Event{
		Time: time.Now().UTC(), Level: event.Warning, Kind: EventsMissed, Reason: string(EventsMissed),
		Fields: map[string]string{"missed": strconv.FormatUint(n, 10)}, Message: fmt.Sprintf("%d events are no longer kept", n),
	}
}

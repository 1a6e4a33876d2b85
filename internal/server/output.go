package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
)

// outputQuery is the query of an output request.
type outputQuery struct {
	containers []string // empty: all
	runs       api.OutputRuns
	follow     bool
	tail       int // of each run that exists; 0: all, -1: none
	since      time.Time
	until      time.Time // zero: no bound
	text       string    // that lines contain; empty: all lines
	from       api.Positions
}

func readOutputQuery(q url.Values, pod *spec.Pod) (o outputQuery, err error) {
	if o.follow, err = flag(q, "follow"); err != nil {
		return o, err
	}
	tail, err := number(q, "tail")
	if err != nil {
		return o, err
	}
	if o.tail = int(tail); q.Has("tail") && tail == 0 {
		o.tail = -1
	}
	if o.since, err = timestamp(q, "sinceTime"); err != nil {
		return o, err
	}
	if o.until, err = timestamp(q, "untilTime"); err != nil {
		return o, err
	}
	if o.follow && !o.until.IsZero() {
		return o, invalidField("untilTime", "untilTime: cannot be combined with follow")
	}
	if o.text = q.Get("grep"); len(o.text) > maxSearchText {
		return o, invalidField("grep", "grep: must have at most %d bytes", maxSearchText)
	}
	o.runs = api.OutputRuns(q.Get("runs"))
	if !slices.Contains([]api.OutputRuns{api.AllRuns, api.NewestRun, api.PreviousRun}, o.runs) {
		return o, invalidField("runs", "runs=%q: must be one of newest, previous", o.runs)
	}
	if text := q.Get("from"); text != "" {
		if err := json.Unmarshal([]byte(text), &o.from); err != nil {
			return o, invalidField("from", "from: %v", err)
		}
	}
	var names []string
	for c := range pod.EveryContainer() {
		names = append(names, c.Name)
	}
	for _, name := range q["container"] {
		if !slices.Contains(names, name) {
			return o, noContainer(pod, name, names)
		}
	}
	if o.containers = order.Unique(q["container"]); len(o.containers) == 0 {
		o.containers = names
	}
	return o, nil
}

// output sends the output of containers. The lines of each container are in order. Without the parameter follow, it sends one container
// after the other. With follow, it continues until the pod is at rest or deleted or, for the newest run, until none of the containers runs
// again or, for the previous run, until the end of its log.
// Parameters: container (repeatable), runs, follow, tail (lines), sinceTime and untilTime (in RFC 3339), grep, from
// ([api.Positions] in JSON) and uid.
func (s *Server) output(w http.ResponseWriter, r *http.Request) error {
	snapshot, err := s.lookUp(r)
	if err != nil {
		return err
	}
	q, err := readOutputQuery(r.URL.Query(), snapshot.Pod)
	if err != nil {
		return err
	}
	for _, name := range q.containers {
		if _, ok := previousRun(&snapshot, name); q.runs == api.PreviousRun && !ok {
			return noPreviousRun(name, snapshot.Pod.Name)
		}
	}
	out := newStream(w)
	out.done(s.sendOutput(r.Context(), out, &snapshot, q))
	return nil
}

func (s *Server) sendOutput(ctx context.Context, out *stream, snapshot *supervisor.Snapshot, q outputQuery) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readers, ctx := errgroup.WithContext(ctx)
	if !q.follow {
		readers.SetLimit(1) // one container after the other
	}
	lines := make(chan api.OutputRecord, 64)
	result := make(chan error, 1)
	go func() {
		for _, name := range q.containers {
			c := containerOutput{
				server: s, pod: snapshot.Pod.Name, uid: snapshot.Facts.UID, name: name, query: q, lines: lines,
				search: newSearch(q.text, !q.follow),
			}
			readers.Go(func() error { return c.send(ctx) })
		}
		result <- readers.Wait()
		close(lines)
	}()
	err := out.copy(lines)
	cancel()
	if readErr := <-result; err == nil {
		err = readErr
	}
	return err
}

// copy sends lines until the channel is closed. It flushes the response whenever no line is available.
func (s *stream) copy(lines <-chan api.OutputRecord) error {
	for {
		var l api.OutputRecord
		var more bool
		select {
		case l, more = <-lines:
		default:
			if err := s.flush(); err != nil {
				return err
			}
			l, more = <-lines
		}
		if !more {
			return nil
		}
		if err := s.send(l); err != nil {
			return err
		}
	}
}

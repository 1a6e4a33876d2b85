package ui

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/podstead/podstead/cmd/podstead/internal/live"
	"github.com/podstead/podstead/internal/timeline"
	"github.com/podstead/podstead/internal/view"
)

// maxTail bounds the lines of each container before those that follow.
const maxTail = 1000

// list is a value of the stream of pods.
type list struct {
	live.List

	Actions bool `json:"actions,omitempty"` // the page may change pods
}

// pods streams the list of pods.
func (s *Server) pods(w http.ResponseWriter, r *http.Request) {
	out := newStream(w)
	_ = s.source.Pods(r.Context(), localZone(r), func(v any) error { // the page sends the request again
		if l, is := v.(live.List); is {
			return out.send(list{l, s.actions})
		}
		return out.send(v)
	})
}

// pod answers with a pod: ?name=NAME.
func (s *Server) pod(w http.ResponseWriter, r *http.Request) {
	d, err := s.source.Pod(r.Context(), r.FormValue("name"), localZone(r))
	if err != nil {
		fail(w, err)
		return
	}
	for i := range d.Events {
		d.Events[i].Fields = nil // they are in the message
	}
	answer(w, d)
}

// timeline answers with the timeline of a pod: ?name=NAME&last=DURATION, or the part from=TIME&to=TIME of it, in milliseconds since 1970.
func (s *Server) timeline(w http.ResponseWriter, r *http.Request) {
	var last time.Duration
	if text := r.FormValue("last"); text != "" {
		var err error
		if last, err = time.ParseDuration(text); err != nil || last <= 0 {
			refuse(w, http.StatusBadRequest, "last: must be a duration greater than 0, such as 1h")
			return
		}
	}
	from, fromErr := milliseconds(r.FormValue("from"))
	to, toErr := milliseconds(r.FormValue("to"))
	isPart := r.FormValue("from") != "" || r.FormValue("to") != ""
	if isPart && (fromErr != nil || toErr != nil || !to.After(from)) {
		refuse(w, http.StatusBadRequest, "from and to: must be two times in milliseconds since 1970, in their order")
		return
	}
	e, events, err := s.source.Explain(r.Context(), r.FormValue("name"))
	if err != nil {
		fail(w, err)
		return
	}
	picture, _ := view.Explained(e, events, last, time.Now().In(localZone(r)))
	if isPart {
		picture = picture.Zoom(from, to)
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(timeline.Inline(picture)) // the client is gone if that fails
}

// milliseconds reads a time in milliseconds since 1970, up to the year 9999.
func milliseconds(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || n > 253402300799999) {
		err = strconv.ErrRange
	}
	return time.UnixMilli(n), err
}

// style answers with the style sheet of timelines.
func style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css")
	_, _ = w.Write([]byte(timeline.Style)) // the client is gone if that fails
}

// batch is a value of the stream of logs.
type batch struct {
	Lines []live.Line `json:"lines"`
}

// logPods returns the pods of a request for logs, each once. If there are none or too many, it refuses the request and returns nil.
func logPods(w http.ResponseWriter, r *http.Request) []string {
	names := r.URL.Query()["pod"]
	if len(names) == 0 || len(names) > live.MaxLogPods {
		refuse(w, http.StatusBadRequest, "pod: between 1 and "+strconv.Itoa(live.MaxLogPods)+" pods are required")
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// logs streams the logs of pods, and what they write from now on: ?pod=NAME&pod=NAME&tail=LINES.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	names := logPods(w, r)
	if names == nil {
		return
	}
	tail, err := strconv.Atoi(r.FormValue("tail"))
	if err != nil || tail < 0 || tail > maxTail {
		refuse(w, http.StatusBadRequest, "tail: must be between 0 and "+strconv.Itoa(maxTail))
		return
	}
	out := newStream(w)
	send := func(lines []live.Line) error { return out.send(batch{append([]live.Line{}, lines...)}) }
	if send(nil) != nil { // the page is connected
		return
	}
	if s.source.Logs(r.Context(), names, tail, send) == nil {
		_ = out.send(map[string]bool{"ended": true}) // the browser is gone if that fails
	}
}

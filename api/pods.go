package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// pods answers with the list of pods or, with ?watch, with a stream of their changes.
func (s *Server) pods(w http.ResponseWriter, r *http.Request) {
	watch, err := flag(r.URL.Query(), "watch")
	if err == nil && watch {
		out := newStream(w)
		out.done(s.watch(r, out))
		return
	}
	list := PodList{Kind: "PodList", APIVersion: "v1", Items: []Pod{}}
	for _, snapshot := range s.o.Supervisor.Pods() {
		list.Items = append(list.Items, podOf(&snapshot))
	}
	s.reply(w, r, list, err)
}

// watch sends what there is, and then every change. What changes back before it could be sent is never seen.
func (s *Server) watch(r *http.Request, out *stream) error {
	type sent struct {
		pod  Pod
		text []byte
	}
	known := map[string]sent{} // by UID
	for first := true; ; first = false {
		changed := s.o.Supervisor.Changed()
		gone := maps.Clone(known)
		var changes []PodChange
		for _, snapshot := range s.o.Supervisor.Pods() {
			pod := podOf(&snapshot)
			text, err := json.Marshal(pod)
			if err != nil {
				return err
			}
			before, seen := known[pod.Metadata.UID]
			delete(gone, pod.Metadata.UID)
			switch {
			case !seen:
				changes = append(changes, PodChange{Added, pod})
			case !bytes.Equal(before.text, text):
				changes = append(changes, PodChange{Modified, pod})
			}
			known[pod.Metadata.UID] = sent{pod, text}
		}
		var deleted []PodChange // first: one that was there before may have the name of another
		for uid, p := range gone {
			delete(known, uid)
			deleted = append(deleted, PodChange{Deleted, p.pod})
		}
		changes = append(deleted, changes...)
		if first {
			changes = append(changes, PodChange{Type: Listed})
		}
		for _, c := range changes {
			if err := out.send(c); err != nil {
				return err
			}
		}
		if err := out.flush(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// lookUp finds the pod that the path names and, if there is ?uid=, only that one of the name.
func (s *Server) lookUp(r *http.Request) (supervisor.Snapshot, error) {
	name, uid := r.PathValue("name"), r.URL.Query().Get("uid")
	snapshot, ok := s.o.Supervisor.Pod(name)
	if !ok || (uid != "" && uid != snapshot.Facts.UID) {
		return supervisor.Snapshot{}, failure(http.StatusNotFound, "no such pod %q", name)
	}
	return snapshot, nil
}

func (s *Server) get(r *http.Request) (any, error) {
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	return podOf(&snapshot), nil
}

// sessionPattern is what a client may call its session.
var sessionPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// create adds a pod. Asked again by the same session for the same, as by a client that lost the answer, it finds it.
func (s *Server) create(r *http.Request) (any, error) {
	var q CreateRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	if !filepath.IsAbs(q.File) {
		return nil, failure(http.StatusBadRequest, "pod file %q: not an absolute path", q.File)
	}
	if q.Session != "" && !sessionPattern.MatchString(q.Session) {
		return nil, failure(http.StatusBadRequest, "session %q: want up to 64 letters, digits and dashes", q.Session)
	}
	pod, found := spec.Accept(q.File, []byte(q.Text))
	if pod == nil {
		return nil, &Error{Status: http.StatusBadRequest, Message: "the pod file is wrong", Problems: problems(found)}
	}
	owner := state.Owner{Session: q.Session, Keep: q.Keep, By: by(r.Context(), r.UserAgent())}
	snapshot, err := s.o.Supervisor.Add(pod, owner)
	if _, taken := errors.AsType[*supervisor.NameTakenError](err); taken && q.Session != "" {
		existing, ok := s.o.Supervisor.Pod(pod.Name)
		if ok && existing.Owner.Session == q.Session && existing.Pod.Hash == pod.Hash {
			snapshot, err = existing, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return Created{Pod: podOf(&snapshot), Warnings: problems(found.Warnings())}, nil
}

func (s *Server) stop(r *http.Request) (any, error) {
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	o := supervisor.StopOptions{UID: snapshot.Facts.UID, By: by(r.Context(), r.UserAgent())}
	if o.Delete, err = flag(q, "delete"); err != nil {
		return nil, err
	}
	if text := q.Get("grace"); text != "" {
		grace, err := time.ParseDuration(text)
		if err != nil || grace < 0 {
			return nil, failure(http.StatusBadRequest, "grace=%q: want a duration such as 30s", text)
		}
		o.Grace = &grace
	}
	if err := s.o.Supervisor.Stop(r.Context(), snapshot.Pod.Name, o); err != nil {
		return nil, err
	}
	return struct{}{}, nil
}

// touch takes a session's sign of life. That the session has no pods is told as 404.
func (s *Server) touch(r *http.Request) (any, error) {
	if id := r.PathValue("id"); !s.o.Supervisor.Touch(id) {
		return nil, failure(http.StatusNotFound, "session %q has no pods", id)
	}
	return struct{}{}, nil
}

func (s *Server) leave(r *http.Request) (any, error) {
	s.o.Leave(by(r.Context(), r.UserAgent()))
	return struct{}{}, nil
}

// flag reads a parameter that is set by being there, as in ?watch or ?watch=true.
func flag(q url.Values, name string) (bool, error) {
	if !q.Has(name) || q.Get(name) == "" {
		return q.Has(name), nil
	}
	v, err := strconv.ParseBool(q.Get(name))
	if err != nil {
		return false, failure(http.StatusBadRequest, "%s=%q: want true or false", name, q.Get(name))
	}
	return v, nil
}

// number reads a parameter that is a count.
func number(q url.Values, name string) (uint64, error) {
	if !q.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 63)
	if err != nil {
		return 0, failure(http.StatusBadRequest, "%s=%q: want a number", name, q.Get(name))
	}
	return n, nil
}

// moment reads a parameter that is a time.
func moment(q url.Values, name string) (time.Time, error) {
	if !q.Has(name) {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, q.Get(name))
	if err != nil {
		return time.Time{}, fmt.Errorf("%w", failure(http.StatusBadRequest, "%s=%q: want a time such as 2026-01-02T15:04:05Z", name, q.Get(name)))
	}
	return t, nil
}

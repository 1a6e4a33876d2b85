package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// pods sends the list of pods. With the parameter watch, it sends a stream of changes. With the parameter redact, which a watch does not
// have, values of secrets are removed from messages.
func (s *Server) pods(w http.ResponseWriter, r *http.Request) error {
	watch, watchErr := flag(r.URL.Query(), "watch")
	redacted, redactErr := isRedacted(r)
	err := errors.Join(watchErr, redactErr)
	switch {
	case err != nil:
	case watch && redacted:
		err = invalidField("redact", "redact and watch cannot be combined")
	case watch:
		out := newStream(w)
		out.done(s.watch(r, out))
		return nil
	}
	list := api.PodList{Kind: "PodList", APIVersion: "v1", Items: s.shown(r, s.list(), redacted)}
	s.reply(w, r, list, err)
	return nil
}

// restPerPod is how long a watch rests after it has looked for changes, for each pod. The changes of all pods are looked for
// whenever one changes: without a rest, a watch needed a quarter of the daemon's CPU time while 200 pods started.
const restPerPod = 100 * time.Microsecond

// watch sends all pods and then every change. A change that is reverted before it is sent is not reported.
func (s *Server) watch(r *http.Request, out *stream) error {
	w := watcher{}
	show := func(ctx context.Context, pods []api.Pod) map[string]bool {
		if !isReadOnly(r) {
			return nil
		}
		unreadable := s.redactPods(ctx, pods)
		visible(r, pods)
		return unreadable
	}
	for first := true; ; first = false {
		changed, filesChanged, schedulesChanged := s.o.Supervisor.Changed(), s.filesChanged(), s.schedulesChanged()
		pods := s.list()
		rest := time.Duration(len(pods)) * restPerPod
		changes, err := w.changes(r.Context(), pods, show)
		if err != nil {
			return err
		}
		if first {
			changes = append(changes, api.PodChange{Type: api.Listed})
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
		case <-time.After(rest):
		case <-r.Context().Done():
			return r.Context().Err()
		}
		select {
		case <-changed:
		case <-filesChanged:
		case <-schedulesChanged:
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// schedulesChanged returns a channel that is closed when a schedule changes; nil: there are none.
func (s *Server) schedulesChanged() <-chan struct{} {
	if s.o.Schedules == nil {
		return nil
	}
	return s.o.Schedules.Changed()
}

// filesChanged returns a channel that is closed when a file of the pods directory changes; nil: there is no pods directory.
func (s *Server) filesChanged() <-chan struct{} {
	if s.o.Files == nil {
		return nil
	}
	return s.o.Files.Changed()
}

// watcher holds the pods that a watch has sent, by UID. A refused file has its name instead.
type watcher map[string]sentPod

type sentPod struct {
	pod      api.Pod
	original [sha256.Size]byte // of the pod before it was changed for the client
	sent     [sha256.Size]byte // of the pod
	withheld bool              // the secrets could not be read
}

// changes returns the changes since the last call. Deletions come first: a new pod can have the name of a deleted one. Only pods that have
// changed are changed for the client with show, which returns the UIDs of those whose secrets cannot be read: the client receives no change
// when the same message is withheld later.
func (w watcher) changes(
	ctx context.Context, pods []api.Pod, show func(context.Context, []api.Pod) map[string]bool,
) ([]api.PodChange, error) {
	removed := maps.Clone(w)
	var changes []api.PodChange
	var originals [][sha256.Size]byte
	changed := pods[:0]
	for _, pod := range pods {
		original, err := digestOf(&pod)
		if err != nil {
			return nil, err
		}
		key := watchKey(&pod)
		last, sent := w[key]
		delete(removed, key)
		if !sent || last.original != original || last.withheld {
			changed, originals = append(changed, pod), append(originals, original)
		}
	}
	withheld := show(ctx, changed)
	for i, pod := range changed {
		key := watchKey(&pod)
		next, err := digestOf(&pod)
		if err != nil {
			return nil, err
		}
		last, sent := w[key]
		switch {
		case !sent:
			changes = append(changes, api.PodChange{Type: api.Added, Object: pod})
		case last.sent != next:
			changes = append(changes, api.PodChange{Type: api.Modified, Object: pod})
		}
		w[key] = sentPod{pod, originals[i], next, withheld[pod.Metadata.UID]}
	}
	var deleted []api.PodChange
	for key, p := range removed {
		delete(w, key)
		deleted = append(deleted, api.PodChange{Type: api.Deleted, Object: p.pod})
	}
	return append(deleted, changes...), nil
}

func watchKey(p *api.Pod) string { return cmp.Or(p.Metadata.UID, "file/"+p.Metadata.Name) }

func digestOf(p *api.Pod) ([sha256.Size]byte, error) {
	text, err := json.Marshal(p)
	return sha256.Sum256(text), err
}

// lookUp returns the pod in the path of a request. With the parameter uid, the pod must have that UID.
func (s *Server) lookUp(r *http.Request) (supervisor.Snapshot, error) {
	name, uid := r.PathValue("name"), r.URL.Query().Get("uid")
	snapshot, ok := s.o.Supervisor.Pod(name)
	if ok && (uid == "" || uid == snapshot.Facts.UID) {
		return snapshot, nil
	}
	if status, scheduled := s.scheduled(name); scheduled && !ok && uid == "" {
		return supervisor.Snapshot{}, notAPod(&status)
	}
	f := s.refusals()[name]
	switch {
	case ok || uid != "" || f == nil:
		return supervisor.Snapshot{}, failure(http.StatusNotFound, "no such pod %q", name)
	case f.absent():
		return supervisor.Snapshot{}, failure(http.StatusConflict, "pod %q does not exist, because its file is not accepted: %s", name,
			f.message)
	}
	return supervisor.Snapshot{}, f.noSuchPod(name)
}

// get returns a pod. With the parameter uid, it also returns the final state of a deleted pod until the session of the pod ends.
func (s *Server) get(r *http.Request) (any, error) {
	name := r.PathValue("name")
	snapshot, err := s.lookUp(r)
	if f := s.refusals()[name]; err != nil && f != nil && f.absent() && !r.URL.Query().Has("uid") {
		return visible(r, []api.Pod{f.pod(name)})[0], nil
	}
	if status, ok := s.scheduled(name); err != nil && ok && !r.URL.Query().Has("uid") {
		return visible(r, []api.Pod{scheduledPod(&status)})[0], nil
	}
	if final, ok := s.o.Supervisor.Final(r.URL.Query().Get("uid")); ok && err != nil && final.Pod.Name == name {
		snapshot, err = final, nil
	}
	if err != nil {
		return nil, err
	}
	return s.redactedPod(r, &snapshot)
}

// sessionPattern is the pattern of session IDs.
var sessionPattern = lazyregexp.New(`^[A-Za-z0-9-]{1,64}$`)

// create creates a pod. If the session has created the same pod before, as when the response was lost, it returns that pod. If a client
// that was killed has created it from the same file, the session takes it over.
func (s *Server) create(r *http.Request) (any, error) {
	var q api.CreateRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	if !filepath.IsAbs(q.File) {
		return nil, invalidField("file", "pod file %q: must be an absolute path", q.File)
	}
	if q.Session != "" && !sessionPattern.MatchString(q.Session) {
		return nil, invalidField("session", "session %q: must be 1 to 64 letters, digits and dashes", q.Session)
	}
	o := spec.Options{Suffix: q.Suffix, Interactive: (*spec.Interactive)(q.Interactive)}
	var pod *spec.Pod
	var found spec.Problems
	err := peerOf(r.Context()).accept(func() *spec.Pod {
		pod, found = o.Accept(q.File, []byte(q.Text))
		return pod
	})
	if err != nil {
		return nil, err
	}
	if pod == nil {
		return nil, &api.Error{Status: http.StatusBadRequest, Message: "the pod file is invalid", Problems: problems(found)}
	}
	if i := q.Interactive; i != nil && !slices.ContainsFunc(pod.Containers, func(c spec.Container) bool { return c.Name == i.Container }) {
		return nil, invalidField("interactive", "container %q: not found in the containers of pod %q", i.Container, pod.Name)
	}
	if q.Unit != "" {
		pod.DefaultLogDriver(s.o.UnitLogDriver)
	}
	owner := state.Owner{Session: q.Session, Keep: q.Keep, By: requester(r), Process: clientProcess(r)}
	switch unit := api.UnitOf(pod.Name); {
	case q.Unit != "" && q.Unit != unit:
		return nil, invalidField("unit", "unit %q: the file defines pod %q, which %s starts", q.Unit, pod.Name, unit)
	case q.Reload:
		return s.reloadUnit(r, &q, pod, found)
	case q.Unit != "":
		owner.Unit, owner.By = q.Unit, q.Unit
	}
	takenOver := false
	snapshot, err := s.o.Supervisor.Add(pod, owner)
	if _, taken := errors.AsType[*supervisor.NameTakenError](err); taken && q.Session != "" {
		existing, ok := s.o.Supervisor.Pod(pod.Name)
		if ok && existing.Owner.Session == q.Session && existing.Pod.Hash == pod.Hash {
			snapshot, err = existing, nil
		} else if existing, ok := s.o.Supervisor.TakeOver(r.Context(), pod, owner); ok {
			snapshot, takenOver, err = existing, true, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return api.Created{Pod: podOf(&snapshot, s.o.HostIPs()), Warnings: problems(found.Warnings()), TakenOver: takenOver}, nil
}

// touch receives a heartbeat of a session. It returns 404 if the session does not exist.
func (s *Server) touch(r *http.Request) (any, error) {
	if id := r.PathValue("id"); !s.o.Supervisor.Touch(id) {
		return nil, failure(http.StatusNotFound, "session %q has no pods", id)
	}
	return struct{}{}, nil
}

func (s *Server) endSession(r *http.Request) (any, error) {
	s.o.Supervisor.EndSession(r.PathValue("id"))
	return struct{}{}, nil
}

func (s *Server) stopDaemon(r *http.Request) (any, error) {
	shutdown, err := flag(r.URL.Query(), "shutdown")
	if err != nil {
		return nil, err
	}
	s.o.StopDaemon(requester(r), shutdown)
	return struct{}{}, nil
}

// flag reads a boolean parameter. Without a value, as in ?watch, it is true.
func flag(q url.Values, name string) (bool, error) {
	if !q.Has(name) || q.Get(name) == "" {
		return q.Has(name), nil
	}
	v, err := strconv.ParseBool(q.Get(name))
	if err != nil {
		return false, invalidField(name, "%s=%q: must be true or false", name, q.Get(name))
	}
	return v, nil
}

// explicit is [flag] for requests that delete or keep something: a parameter without a value, as of a variable that is not set, is refused.
func explicit(q url.Values, name string) (bool, error) {
	if q.Has(name) && q.Get(name) == "" {
		return false, invalidField(name, "%s: must be true or false", name)
	}
	return flag(q, name)
}

// number reads a parameter that is a number, 0 if it is missing.
func number(q url.Values, name string) (uint64, error) {
	if !q.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 63)
	if err != nil {
		return 0, invalidField(name, "%s=%q: must be a non-negative integer", name, q.Get(name))
	}
	return n, nil
}

// timestamp reads a parameter that is a time in RFC 3339, the zero time if it is missing.
func timestamp(q url.Values, name string) (time.Time, error) {
	if !q.Has(name) {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, q.Get(name))
	if err != nil {
		return time.Time{}, invalidField(name, "%s=%q: must be a time, such as 2026-01-02T15:04:05Z", name, q.Get(name))
	}
	return t, nil
}

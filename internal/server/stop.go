package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// stop stops or deletes a pod. The file of a deleted pod is removed first: otherwise the pod would be created again. A file that is refused
// because a pod of a client has the name is kept.
func (s *Server) stop(r *http.Request) (any, error) {
	q := r.URL.Query()
	o := supervisor.StopOptions{By: requester(r)}
	var err error
	if o.Delete, err = flag(q, "delete"); err != nil {
		return nil, err
	}
	keepFile, err := flag(q, "keepFile")
	if err != nil {
		return nil, err
	}
	if text := q.Get("grace"); text != "" {
		grace, err := time.ParseDuration(text)
		if err != nil || grace < 0 {
			return nil, invalidField("grace", "grace=%q: must be a duration, such as 30s", text)
		}
		o.Grace = &grace
	}
	snapshot, err := s.lookUp(r)
	name := r.PathValue("name")
	if status, scheduled := s.scheduled(name); scheduled && err != nil && (!o.Delete || keepFile) && q.Get("uid") == "" {
		return nil, suspendInstead(&status)
	}
	if err != nil && (!o.Delete || q.Get("uid") != "" || !s.hasFile(name)) {
		return nil, err
	}
	_, scheduled := s.scheduled(name)
	d := api.Deletion{}
	exists := err == nil
	if o.Delete && !keepFile && s.o.Files != nil && (!exists || snapshot.Owner.File != "") {
		if d.File, err = s.o.Files.Remove(r.Context(), name); err != nil {
			return nil, err
		}
	}
	if scheduled && d.File != "" {
		if err := s.deleteRuns(r, name, d.File); err != nil {
			e := *asError(err)
			e.Message, e.Hint = err.Error(), "delete them with podstead delete -l "+spec.LabelSchedule+"="+name
			return nil, &e
		}
	}
	if !exists {
		return d, nil
	}
	o.UID = snapshot.Facts.UID
	switch err := s.o.Supervisor.Stop(r.Context(), name, o); {
	case err == nil, d.File != "" && errors.Is(err, supervisor.ErrNotFound):
		return d, nil
	case d.File != "":
		e := *asError(err)
		e.Message = fmt.Sprintf("file %s was removed, but the pod was not deleted: %s", d.File, e.Message)
		return nil, &e
	default:
		return nil, err
	}
}

// hasFile reports whether a file of the pods directory defines a pod.
func (s *Server) hasFile(pod string) bool {
	return s.o.Files != nil && slices.ContainsFunc(s.o.Files.Files(), func(f podfiles.File) bool { return f.Pod == pod })
}

func (s *Server) start(r *http.Request) (any, error) {
	snapshot, err := s.lookUp(r)
	if name := r.PathValue("name"); err != nil && r.URL.Query().Get("uid") == "" {
		if _, scheduled := s.scheduled(name); scheduled {
			run, err := s.o.Schedules.StartNow(name, requester(r))
			return api.Started{Run: run}, err
		}
	}
	if err != nil {
		return nil, err
	}
	if err := s.o.Restarter.Start(r.Context(), snapshot.Pod.Name, snapshot.Facts.UID, requester(r)); err != nil {
		return nil, err
	}
	return s.started(r.Context(), &snapshot, ""), nil
}

func (s *Server) restart(r *http.Request) (any, error) {
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	container := r.URL.Query().Get("container")
	if err := s.o.Restarter.Restart(r.Context(), snapshot.Pod.Name, snapshot.Facts.UID, container, requester(r)); err != nil {
		return nil, err
	}
	return s.started(r.Context(), &snapshot, container), nil
}

// newestTimeout bounds the search for newer images after a restart. A large archive that has changed may have to be read.
const newestTimeout = 10 * time.Second

// started returns which containers of a pod, or whether one of them, could have a newer image. What cannot be read is left out: the pod
// does not need it.
func (s *Server) started(ctx context.Context, p *supervisor.Snapshot, container string) api.Started {
	ctx, cancel := context.WithTimeout(ctx, newestTimeout)
	defer cancel()
	newer, err := s.o.Supervisor.NewerImages(ctx, p.Pod)
	if err != nil || len(newer) == 0 {
		return api.Started{}
	}
	found := api.Started{File: p.Owner.File, Unit: p.Owner.Unit}
	for name := range newer {
		if container == "" || name == container {
			found.NewerImages = append(found.NewerImages, name)
		}
	}
	slices.Sort(found.NewerImages)
	return found
}

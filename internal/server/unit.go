package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// reloadUnit changes the pod of a unit to a new definition. It prepares everything that this needs before anything stops.
func (s *Server) reloadUnit(r *http.Request, q *api.CreateRequest, pod *spec.Pod, found spec.Problems) (any, error) {
	if q.Unit == "" {
		return nil, invalidField("reload", "reload requires a unit")
	}
	existing, ok := s.o.Supervisor.Pod(pod.Name)
	if !ok || existing.Owner.Unit != q.Unit {
		return nil, &api.Error{Status: http.StatusNotFound, Reason: api.ReasonNotFound, Pod: pod.Name, Message: q.Unit + " has no pod"}
	}
	newer, err := s.o.Supervisor.NewerImages(r.Context(), pod)
	if err != nil {
		return nil, err
	}
	staged, err := s.o.Supervisor.Stage(r.Context(), pod, newer, func(string, lifecycle.Progress) {})
	if err != nil {
		return nil, err
	}
	_, err = s.o.Supervisor.Redefine(r.Context(), existing.Facts.UID, pod, staged, existing.Owner)
	if must, ok := errors.AsType[*supervisor.ReplaceError](err); ok {
		return nil, &api.Error{
			Status: http.StatusConflict, Reason: api.ReasonConflict, Pod: pod.Name,
			Message: fmt.Sprintf("change pod %q: the change of %s replaces the pod", pod.Name, must.Changes[0].Path),
			Hint:    "run systemctl restart " + q.Unit,
		}
	}
	if err != nil {
		return nil, err
	}
	if changed, ok := s.o.Supervisor.Pod(pod.Name); ok {
		existing = changed
	}
	return api.Created{Pod: podOf(&existing, s.o.HostIPs()), Warnings: problems(found.Warnings())}, nil
}

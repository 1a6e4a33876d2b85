package server

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// maxConditionMessage is the maximum size of the reason and the message of a condition, in bytes. Both are part of the pod's state.
const maxConditionMessage = 4 << 10

func (s *Server) addEphemeral(r *http.Request) (any, error) {
	var q api.EphemeralRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	c, found := spec.ParseEphemeral(filepath.Base(q.File), []byte(q.Text), snapshot.Pod)
	if c == nil {
		return nil, &api.Error{Status: http.StatusBadRequest, Message: "the ephemeral container is invalid", Problems: problems(found)}
	}
	if err := checkArchives(r, q.ImageArchives); err != nil {
		return nil, err
	}
	c.ImageArchives = q.ImageArchives
	if err := s.o.Supervisor.AddEphemeral(r.Context(), snapshot.Pod.Name, snapshot.Facts.UID, c, requester(r)); err != nil {
		return nil, err
	}
	if snapshot, err = s.lookUp(r); err != nil {
		return nil, err
	}
	return api.Created{Pod: podOf(&snapshot, s.o.HostIPs()), Warnings: problems(found.Warnings())}, nil
}

// checkArchives checks the image archives of an ephemeral container. The daemon reads them later, as root.
func checkArchives(r *http.Request, archives []string) error {
	for i, path := range archives {
		if !filepath.IsAbs(path) {
			return failure(http.StatusBadRequest, "imageArchives[%d]: %q: must be an absolute path", i, path)
		}
	}
	p := peerOf(r.Context())
	if len(archives) == 0 || p.isTrusted() {
		return nil
	}
	e := failure(http.StatusForbidden, "only root can add an image archive, uid %d cannot", p.uid)
	e.Hint = "run the command as root, or use an image of the pod or of a registry"
	return e
}

func (s *Server) setCondition(r *http.Request) (any, error) {
	var q api.ConditionRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	switch {
	case !slices.Contains([]string{"True", "False", "Unknown"}, q.Status):
		return nil, invalidField("status", "status %q: must be one of True, False, Unknown", q.Status)
	case len(q.Message)+len(q.Reason) > maxConditionMessage, !utf8.ValidString(q.Message), !utf8.ValidString(string(q.Reason)):
		return nil, failure(http.StatusBadRequest, "reason and message: must be at most %d bytes of UTF-8", maxConditionMessage)
	}
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	c := lifecycle.SetCondition{Status: q.Status, Reason: lifecycle.Reason(q.Reason), Message: q.Message}
	conditionType := lifecycle.ConditionType(r.PathValue("type"))
	if err := s.o.Supervisor.SetCondition(r.Context(), snapshot.Pod.Name, snapshot.Facts.UID, conditionType, c, requester(r)); err != nil {
		return nil, err
	}
	if snapshot, err = s.lookUp(r); err != nil {
		return nil, err
	}
	return podOf(&snapshot, s.o.HostIPs()), nil
}

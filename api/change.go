package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// maxConditionMessage bounds the reason and the message of a condition, in bytes: both are kept with the pod's state.
const maxConditionMessage = 4 << 10

// EphemeralRequest asks for an ephemeral container in a running pod.
type EphemeralRequest struct {
	// File names the text in what is told of it. Text is TOML, with the keys of a container's table at the top level.
	File string `json:"file"`
	Text string `json:"text"`
	// UID, if set, says which pod of the name.
	UID string `json:"-"`
}

// AddEphemeral adds an ephemeral container to a running pod, and returns the pod that has it. It is never restarted, and stays
// until the pod is deleted. A name that is taken, or a pod that has ended, is an [*Error] of status 409.
func (c *Client) AddEphemeral(ctx context.Context, pod string, q EphemeralRequest) (made Created, err error) {
	return made, c.call(ctx, http.MethodPost, podPath(pod)+"/ephemeral", ofUID(q.UID), q, &made)
}

// ConditionRequest sets a condition of a pod.
type ConditionRequest struct {
	Status  string           `json:"status"` // "True", "False" or "Unknown"
	Reason  lifecycle.Reason `json:"reason,omitempty"`
	Message string           `json:"message,omitempty"`
	// UID, if set, says which pod of the name.
	UID string `json:"-"`
}

// SetCondition sets a condition that one of the pod's readiness gates waits for. The pod is ready when all of them are True and
// its containers are ready. A condition that no gate waits for is an [*Error] of status 404.
func (c *Client) SetCondition(ctx context.Context, pod, conditionType string, q ConditionRequest) (p Pod, err error) {
	return p, c.call(ctx, http.MethodPut, podPath(pod)+"/conditions/"+conditionType, ofUID(q.UID), q, &p)
}

func ofUID(uid string) url.Values {
	if uid == "" {
		return nil
	}
	return url.Values{"uid": {uid}}
}

func (s *Server) addEphemeral(r *http.Request) (any, error) {
	var q EphemeralRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	c, found := spec.ParseEphemeral(filepath.Base(q.File), []byte(q.Text), snapshot.Pod)
	if c == nil {
		return nil, &Error{Status: http.StatusBadRequest, Message: "the container is wrong", Problems: problems(found)}
	}
	if err := s.o.Supervisor.AddEphemeral(r.Context(), snapshot.Pod.Name, snapshot.Facts.UID, c, by(r.Context(), r.UserAgent())); err != nil {
		return nil, err
	}
	if snapshot, err = s.lookUp(r); err != nil {
		return nil, err
	}
	return Created{Pod: podOf(&snapshot), Warnings: problems(found.Warnings())}, nil
}

func (s *Server) setCondition(r *http.Request) (any, error) {
	var q ConditionRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	switch {
	case !slices.Contains([]string{"True", "False", "Unknown"}, q.Status):
		return nil, failure(http.StatusBadRequest, "status %q: want True, False or Unknown", q.Status)
	case len(q.Message)+len(q.Reason) > maxConditionMessage, !utf8.ValidString(q.Message), !utf8.ValidString(string(q.Reason)):
		return nil, failure(http.StatusBadRequest, "reason and message: want up to %d bytes of UTF-8", maxConditionMessage)
	}
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	c := lifecycle.SetCondition{Status: q.Status, Reason: q.Reason, Message: q.Message}
	kind := lifecycle.ConditionType(r.PathValue("type"))
	if err := s.o.Supervisor.SetCondition(r.Context(), snapshot.Pod.Name, snapshot.Facts.UID, kind, c, by(r.Context(), r.UserAgent())); err != nil {
		return nil, err
	}
	if snapshot, err = s.lookUp(r); err != nil {
		return nil, err
	}
	return podOf(&snapshot), nil
}

package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
)

func (s *Server) rollout(r *http.Request) (any, error) {
	if s.o.Files == nil {
		return nil, errNoPodFiles
	}
	name := r.PathValue("name")
	found, err := s.o.Files.Rollout(r.Context(), name)
	f := s.refusals()[name]
	if _, none := errors.AsType[*podfiles.NoRolloutError](err); none && f != nil {
		if _, exists := s.o.Supervisor.Pod(name); !exists { // the file of a new pod is not accepted
			return api.Rollout{
				Pod: name, State: api.RolloutFailed, Message: f.message, FileNewer: true, Generations: []api.Generation{},
			}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return visibleRollout(r, s.rolloutOf(&found, f)), nil
}

func (s *Server) undoRollout(r *http.Request) (any, error) {
	var q api.UndoRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	switch {
	case s.o.Files == nil:
		return nil, errNoPodFiles
	case q.Generation < 0:
		return nil, invalidField("generation", "generation %d: must be at least 1, or 0 for the last one that was ready", q.Generation)
	}
	name := r.PathValue("name")
	found, err := s.o.Files.Undo(r.Context(), name, q.Generation, requester(r))
	if err != nil {
		return nil, err
	}
	return s.rolloutOf(&found, nil), nil // the status of the file may be older
}

// rolloutOf converts the generations of a pod. The refusal is that of its file; nil: there is none.
func (s *Server) rolloutOf(r *podfiles.Rollout, f *refusal) api.Rollout {
	h := r.History
	converted := api.Rollout{Pod: r.Pod, File: r.File, FileNewer: r.Newer || h.Instead != nil || f != nil, Generations: []api.Generation{}}
	if h.Instead != nil && !r.Newer {
		converted.FileGeneration = h.Instead.Failed
	}
	if running := h.Running(); running != nil {
		converted.Running = running.Number
	}
	for i := range h.Generations {
		g := &h.Generations[i]
		converted.Generations = append(converted.Generations, api.Generation{
			Generation: g.Number, Time: seconds(g.Since.Wall), Outcome: g.Outcome, Message: g.Message, By: g.By,
			Digest: g.Digest, Changes: changesOf(g.Changes),
			Kept: g.Definition != nil,
		})
	}
	converted.State, converted.Message = s.progress(r, f)
	return converted
}

// progress returns what became of the newest definition in the file of a pod, and why it is not complete.
func (s *Server) progress(r *podfiles.Rollout, f *refusal) (api.RolloutState, string) {
	h := r.History
	newest, instead := h.Newest(), h.Instead
	switch {
	case f != nil && f.absent():
		return api.RolloutFailed, f.message
	case f != nil && f.waiting && r.Newer:
		return api.RolloutProgressing, f.message
	case f != nil && f.rolledBack && r.Newer && instead == nil: // another replica was rolled back from this definition
		return api.RolloutFailed, f.message
	case r.Newer || newest == nil:
		return s.incomplete(r.Pod, "the newest content of the file does not run yet")
	case instead != nil && instead.By == "":
		return api.RolloutFailed, rolledBack(instead)
	case r.Changing:
		return s.notYet(r.Pod, h.Running().Number)
	case instead != nil, newest.Outcome == api.GenerationReady:
		return s.outcome(r.Pod, h.Running().Number)
	case newest.Outcome == api.GenerationFailed:
		return api.RolloutFailed, fmt.Sprintf("generation %d failed: %s", newest.Number, newest.Message)
	}
	return s.notYet(r.Pod, h.Running().Number)
}

// outcome returns what became of the newest request for a pod whose generation was ready: a restart is one, too, a stop is none.
func (s *Server) outcome(pod string, generation int) (api.RolloutState, string) {
	snapshot, exists := s.o.Supervisor.Pod(pod)
	if exists && !stoppedAt(&snapshot).IsZero() {
		return api.RolloutComplete, ""
	}
	if o := outcomeOf(&snapshot); exists && o.State != api.RolloutProgressing && !o.Settling() {
		return cmp.Or(o.State, api.RolloutComplete), o.Message
	}
	return s.notYet(pod, generation)
}

// notYet is the state of a pod whose generation has to become ready, or has to stay so.
func (s *Server) notYet(pod string, generation int) (api.RolloutState, string) {
	if p, exists := s.o.Supervisor.Pod(pod); exists && p.Outcome.State == lifecycle.OutcomeReady {
		return api.RolloutProgressing, fmt.Sprintf("generation %d is ready and must stay so for %v", generation, p.Facts.Trial.MinReady)
	}
	return s.incomplete(pod, fmt.Sprintf("generation %d is not ready yet", generation))
}

// rolledBack describes a rollback.
func rolledBack(i *podfiles.Instead) string {
	text := fmt.Sprintf("generation %d was rolled back: %s; generation %d ", i.Failed, i.Why, i.Number)
	if i.Completed {
		return text + "runs"
	}
	return text + "is being restored"
}

// incomplete is the state of a pod that has to become ready. A pod that a person has stopped does not.
func (s *Server) incomplete(pod, message string) (api.RolloutState, string) {
	snapshot, exists := s.o.Supervisor.Pod(pod)
	if !exists {
		return api.RolloutProgressing, "the pod is being created"
	}
	p := s.pod(&snapshot)
	if !p.Status.StoppedAt.IsZero() {
		return api.RolloutFailed, "the pod is stopped: start it with podstead start " + pod
	}
	if why := p.Status.Outcome.Message; why != "" {
		message += ": " + why
	}
	return api.RolloutProgressing, message
}

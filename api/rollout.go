package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/podstead/podstead/supervisor/generation"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// RolloutState is what became of the newest definition in the file of a pod.
type RolloutState string

// The states of a rollout.
const (
	RolloutProgressing RolloutState = "Progressing" // the pod is being changed, or has not been ready for its minimum ready time yet
	RolloutComplete    RolloutState = "Complete"    // the pod is ready with it, and has stayed so, or has succeeded
	RolloutFailed      RolloutState = "Failed"      // it failed, was rolled back, or cannot run
)

// GenerationOutcome is what became of a generation.
type GenerationOutcome string

// The outcomes.
const (
	GenerationProgressing GenerationOutcome = "Progressing" // it is not ready yet
	GenerationReady       GenerationOutcome = "Ready"       // it was ready and stayed so, or succeeded
	GenerationFailed      GenerationOutcome = "Failed"      // it failed or was not ready in time, and was kept
	GenerationRolledBack  GenerationOutcome = "RolledBack"  // it failed or was not ready in time, and another generation runs in its place
	GenerationSuperseded  GenerationOutcome = "Superseded"  // the file was changed before it was ready
)

// Rollout is the generations of a pod of the pods directory, and what became of the newest definition in its file.
type Rollout struct {
	Pod  string `json:"pod"`
	File string `json:"file,omitempty"`
	// State is that of the newest definition in the file or, if a person has requested an earlier generation, that of this generation.
	State   RolloutState `json:"state"`
	Message string       `json:"message,omitempty"` // why it is not complete
	// Running is the generation that runs, or is to run; 0: there is none yet.
	Running int `json:"running"`
	// FileNewer reports that the newest content of the file is not what runs: it waits, is not accepted, or was rolled back.
	FileNewer bool `json:"fileNewer,omitempty"`
	// FileGeneration is the generation that the file has and that another one runs in place of; 0: there is none.
	FileGeneration int `json:"fileGeneration,omitempty"`
	// Generations are the definitions that the pod has had, the oldest one first.
	Generations []Generation `json:"generations"`
}

// Generation is one definition that a pod has had.
type Generation struct {
	Generation int               `json:"generation"`
	Time       time.Time         `json:"time"` // when the pod was changed to it
	Outcome    GenerationOutcome `json:"outcome"`
	Message    string            `json:"message,omitempty"` // why it failed
	By         string            `json:"by,omitempty"`      // who requested it
	// Digest is the SHA-256 digest of the text of the pod file.
	Digest string `json:"digest"`
	// Changes are the differences from the definition before. The first generation has none.
	Changes []Change `json:"changes,omitempty"`
	// Kept reports that the definition is kept, so that the pod can return to it.
	Kept bool `json:"kept"`
}

// Find returns a generation; nil: it is not listed.
func (r *Rollout) Find(number int) *Generation {
	for i := range r.Generations {
		if r.Generations[i].Generation == number {
			return &r.Generations[i]
		}
	}
	return nil
}

// RolledBack returns the newest generation if it was rolled back and its file has not been changed since; nil: it was not.
func (r *Rollout) RolledBack() *Generation {
	if len(r.Generations) == 0 || !r.FileNewer {
		return nil
	}
	if newest := &r.Generations[len(r.Generations)-1]; newest.Outcome == GenerationRolledBack && newest.Generation != r.Running {
		return newest
	}
	return nil
}

// UndoRequest requests that a pod returns to an earlier generation.
type UndoRequest struct {
	// Generation is the generation to return to; 0: the last one before the running one that was ready. That of a file that was rolled back
	// is tried again.
	Generation int `json:"generation,omitempty"`
}

// Rollout returns the generations of a pod. If the pod has no file in the pods directory, it returns an [*Error] with status 404.
func (c *Client) Rollout(ctx context.Context, pod string) (r Rollout, err error) {
	return r, c.call(ctx, http.MethodGet, podPath(pod)+"/rollout", nil, nil, &r)
}

// UndoRollout makes a pod return to an earlier generation, and returns before the pod has changed. The file is kept: the pod follows it
// again when it is changed or applied. If the generation cannot run, the error is an [*Error] with status 409.
func (c *Client) UndoRollout(ctx context.Context, pod string, q UndoRequest) (r Rollout, err error) {
	return r, c.call(ctx, http.MethodPost, podPath(pod)+"/rollout/undo", nil, q, &r)
}

func (s *Server) rollout(r *http.Request) (any, error) {
	if s.o.Files == nil {
		return nil, errNoPodFiles
	}
	name := r.PathValue("name")
	found, err := s.o.Files.Rollout(r.Context(), name)
	f := s.refusals()[name]
	if _, none := errors.AsType[*podfiles.NoRolloutError](err); none && f != nil {
		if _, exists := s.o.Supervisor.Pod(name); !exists { // the file of a new pod is not accepted
			return Rollout{Pod: name, State: RolloutFailed, Message: f.message, FileNewer: true, Generations: []Generation{}}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return visibleRollout(r, s.rolloutOf(&found, f)), nil
}

func (s *Server) undoRollout(r *http.Request) (any, error) {
	var q UndoRequest
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
func (s *Server) rolloutOf(r *podfiles.Rollout, f *refusal) Rollout {
	h := r.History
	converted := Rollout{Pod: r.Pod, File: r.File, FileNewer: r.Newer || h.Instead != nil || f != nil, Generations: []Generation{}}
	if h.Instead != nil && !r.Newer {
		converted.FileGeneration = h.Instead.Failed
	}
	if running := h.Running(); running != nil {
		converted.Running = running.Number
	}
	for i := range h.Generations {
		g := &h.Generations[i]
		converted.Generations = append(converted.Generations, Generation{
			Generation: g.Number, Time: seconds(g.Since.Wall), Outcome: GenerationOutcome(g.Outcome), Message: g.Message, By: g.By, Digest: g.Digest, Changes: changesOf(g.Changes),
			Kept: g.Definition != nil,
		})
	}
	converted.State, converted.Message = s.progress(r, f)
	return converted
}

// progress returns what became of the newest definition in the file of a pod, and why it is not complete.
func (s *Server) progress(r *podfiles.Rollout, f *refusal) (RolloutState, string) {
	h := r.History
	newest, instead := h.Newest(), h.Instead
	switch {
	case f != nil && f.absent():
		return RolloutFailed, f.message
	case f != nil && f.waiting && r.Newer:
		return RolloutProgressing, f.message
	case r.Newer || newest == nil:
		return s.incomplete(r.Pod, "the newest content of the file does not run yet")
	case instead != nil && instead.By == "":
		return RolloutFailed, rolledBack(instead)
	case r.Changing:
		return s.notYet(r.Pod, h.Running().Number)
	case instead != nil, newest.Outcome == generation.Ready:
		return s.outcome(r.Pod, h.Running().Number)
	case newest.Outcome == generation.Failed:
		return RolloutFailed, fmt.Sprintf("generation %d failed: %s", newest.Number, newest.Message)
	}
	return s.notYet(r.Pod, h.Running().Number)
}

// outcome returns what became of the newest request for a pod whose generation was ready: a restart is one, too, a stop is none.
func (s *Server) outcome(pod string, generation int) (RolloutState, string) {
	snapshot, exists := s.o.Supervisor.Pod(pod)
	if exists && !stoppedAt(&snapshot).IsZero() {
		return RolloutComplete, ""
	}
	if o := outcomeOf(&snapshot); exists && o.State != RolloutProgressing {
		return cmp.Or(o.State, RolloutComplete), o.Message
	}
	return s.notYet(pod, generation)
}

// notYet is the state of a pod whose generation has to become ready, or has to stay so.
func (s *Server) notYet(pod string, generation int) (RolloutState, string) {
	if p, exists := s.o.Supervisor.Pod(pod); exists && p.Outcome.State == lifecycle.OutcomeReady {
		return RolloutProgressing, fmt.Sprintf("generation %d is ready and must stay so for %v", generation, p.Facts.Trial.MinReady)
	}
	return s.incomplete(pod, fmt.Sprintf("generation %d is not ready yet", generation))
}

// rolledBack describes a rollback.
func rolledBack(i *generation.Instead) string {
	text := fmt.Sprintf("generation %d was rolled back: %s; generation %d ", i.Failed, i.Why, i.Number)
	if i.Completed {
		return text + "runs"
	}
	return text + "is being restored"
}

// incomplete is the state of a pod that has to become ready. A pod that a person has stopped does not.
func (s *Server) incomplete(pod, message string) (RolloutState, string) {
	snapshot, exists := s.o.Supervisor.Pod(pod)
	if !exists {
		return RolloutProgressing, "the pod is being created"
	}
	p := s.pod(&snapshot)
	if !p.Status.StoppedAt.IsZero() {
		return RolloutFailed, "the pod is stopped: start it with podstead start " + pod
	}
	if why := p.Status.Outcome.Message; why != "" {
		message += ": " + why
	}
	return RolloutProgressing, message
}

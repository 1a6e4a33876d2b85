package api

import (
	"time"
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

package api

// Outcome is what applying a pod file does, in the words of kubectl.
type Outcome string

// The outcomes.
const (
	PodCreated    Outcome = "created"
	PodConfigured Outcome = "configured"
	PodUnchanged  Outcome = "unchanged"
	PodPruned     Outcome = "pruned" // its file was removed by a request to prune
)

// ApplyRequest requests that a pod file is written to the pods directory.
type ApplyRequest struct {
	// File is the absolute path of the pod file. Relative paths in the text are relative to its directory.
	File string `json:"file"`
	Text string `json:"text"`
	// DryRun requests the plan only. Nothing is written.
	DryRun bool `json:"dryRun,omitempty"`
	// Create requires that the pod does not exist.
	Create bool `json:"create,omitempty"`
}

// Applied is what applying a pod file has done, or would do.
type Applied struct {
	Pod string `json:"pod"`
	// File is the path in the pods directory.
	File    string   `json:"file"`
	Outcome Outcome  `json:"outcome"`
	Changes []Change `json:"changes,omitempty"`
	// Replaced are other files of the pod in the pods directory, such as one with another extension. They are removed.
	Replaced []string `json:"replaced,omitempty"`
	// Instead is why the pod does not run this definition, although the file has it: it was rolled back, and has not changed since.
	Instead string `json:"instead,omitempty"`
	// Undone is the generation, and the person who requested it by an [UndoRequest], that runs until this definition is carried out.
	Undone string `json:"undone,omitempty"`
	// Unit is the systemd unit that starts the pod; empty: the daemon starts it.
	Unit string `json:"unit,omitempty"`
	// Scheduled reports that the pod is started by its schedule, under other names.
	Scheduled bool `json:"scheduled,omitempty"`
	// SpecHash is the hash of the definition, see [spec.Pod]: that of the pod if it is unchanged, or else that of the file. A pod that has
	// it runs this definition.
	SpecHash string    `json:"specHash,omitempty"`
	Warnings []Problem `json:"warnings,omitempty"`
}

// AppliedList is what applying several pod files would do.
type AppliedList struct {
	Items []Applied `json:"items"`
}

// PruneRequest requests the deletion of pods of the pods directory, with their files.
type PruneRequest struct {
	// Keep are the pods that are not deleted.
	Keep []string `json:"keep,omitempty"`
	// Lost limits the request to pods whose file does not exist, and that no other file defines, as after the loss of the pods directory.
	// No files are removed.
	Lost bool `json:"lost,omitempty"`
	// DryRun requests the list only. Nothing is deleted.
	DryRun bool `json:"dryRun,omitempty"`
}

package api

import (
	"context"
	"errors"
	"net/http"
)

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
	// Undone is the generation, and the person who requested it with [Client.UndoRollout], that runs until this definition is carried out.
	Undone string `json:"undone,omitempty"`
	// Unit is the systemd unit that starts the pod; empty: the daemon starts it.
	Unit string `json:"unit,omitempty"`
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

// Apply writes a pod file to the pods directory, in place of the file that defines the pod. It returns when the file is saved and the pod
// has the definition, is refused or waits for its update, before the pod is ready. It can be repeated. The error of an invalid file is an
// [*Error] with its problems.
func (c *Client) Apply(ctx context.Context, q ApplyRequest) (a Applied, err error) {
	return a, c.call(ctx, http.MethodPost, "/v1/files", nil, q, &a)
}

// Prune deletes pods of the pods directory, and their files. It returns the deleted ones, sorted by name, as [PodPruned]. With an error it
// returns those that were deleted nevertheless.
func (c *Client) Prune(ctx context.Context, q PruneRequest) (list AppliedList, err error) {
	err = c.call(ctx, http.MethodPost, "/v1/files/prune", nil, q, &list)
	if e, ok := errors.AsType[*Error](err); ok {
		list.Items = e.Pruned
	}
	return list, err
}

// SuspendFiles makes the daemon ignore the pods directory, so that pods can be deleted whose files are kept. It is for the end of the
// daemon, and holds for 15 minutes at most.
func (c *Client) SuspendFiles(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/files/suspend", nil, nil, nil)
}

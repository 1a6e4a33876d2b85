package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// PodFiles is the pods directory. [*podfiles.Set] implements it.
type PodFiles interface {
	Files() []podfiles.File
	Changed() <-chan struct{}
	Apply(ctx context.Context, pod *spec.Pod, extension string, text []byte, o podfiles.ApplyOptions) (podfiles.Plan, error)
	Remove(ctx context.Context, pod string) (path string, err error)
	ConfirmLoss(ctx context.Context, keep []string, dryRun bool) (paths map[string]string, err error)
	Suspend()
	Rollout(ctx context.Context, pod string) (podfiles.Rollout, error)
	Undo(ctx context.Context, pod string, to int, by string) (podfiles.Rollout, error)
}

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
	// SpecHash is the hash of the definition, see [spec.Pod]. A pod that has it runs this definition.
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

func (s *Server) suspendFiles(*http.Request) (any, error) {
	if s.o.Files != nil {
		s.o.Files.Suspend()
	}
	return struct{}{}, nil
}

// errNoPodFiles is the error of a server without a pods directory.
var errNoPodFiles = failure(http.StatusNotImplemented, "the daemon has no pods directory")

func (s *Server) apply(r *http.Request) (any, error) {
	var q ApplyRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	switch {
	case s.o.Files == nil:
		return nil, errNoPodFiles
	case !filepath.IsAbs(q.File):
		return nil, invalidField("file", "pod file %q: must be an absolute path", q.File)
	}
	client := peerOf(r.Context())
	pod, found, err := client.accept(q.File, q.Text, spec.Options{})
	if err != nil {
		return nil, err
	}
	if pod == nil {
		return nil, &Error{Status: http.StatusBadRequest, Message: "the pod file is invalid", Problems: problems(found)}
	}
	if err := client.applicable(pod); err != nil {
		return nil, err
	}
	text, err := spec.Relocate(q.File, []byte(q.Text))
	if err != nil {
		return nil, err
	}
	// The relocated text defines the pod: its hash differs, and a generated name is fixed.
	if pod, _, err = client.accept(q.File, string(text), spec.Options{}); err != nil {
		return nil, err
	}
	if pod == nil {
		return nil, errors.New("the pod file is invalid with absolute paths") // unless an env file changed since
	}
	before, _ := s.o.Supervisor.Pod(pod.Name)
	plan, err := s.o.Files.Apply(r.Context(), pod, spec.Extension(q.File, text), text, podfiles.ApplyOptions{DryRun: q.DryRun, Create: q.Create, By: requester(r)})
	if err != nil {
		return nil, err
	}
	if plan.Outcome != podfiles.Unchanged && !q.DryRun {
		s.awaitTaken(r.Context(), &before, plan.Pod, pod.Hash)
	}
	unit := ""
	if pod.Systemd != nil {
		unit = UnitOf(pod.Name)
	}
	return Applied{
		Pod: plan.Pod, File: plan.File, Outcome: Outcome(plan.Outcome), Changes: changesOf(plan.Changes),
		Replaced: plan.Replaced, Instead: plan.Instead, Undone: plan.Undone,
		Unit: unit, SpecHash: pod.Hash, Warnings: problems(found.Warnings()),
	}, nil
}

// takenTimeout bounds the wait for a pod whose file was written. The pods directory may not be readable now.
const takenTimeout = 10 * time.Second

// awaitTaken waits until a pod whose file was written has the definition with this hash by a newer request than before, is refused, or
// waits for its update. As in Kubernetes, the next request of the client finds the definition.
func (s *Server) awaitTaken(ctx context.Context, before *supervisor.Snapshot, pod, hash string) {
	ctx, cancel := context.WithTimeout(ctx, takenTimeout)
	defer cancel()
	waits := func(f podfiles.File) bool {
		return f.Pod == pod && f.SpecHash == hash && !f.Preparing && (f.Refused != nil || f.Reason != "")
	}
	has := func(p *supervisor.Snapshot) bool {
		return p.Pod.Hash == hash && (p.Facts.UID != before.Facts.UID || p.Facts.Trial.N != before.Facts.Trial.N)
	}
	for {
		changed, filesChanged := s.o.Supervisor.Changed(), s.filesChanged()
		if p, exists := s.o.Supervisor.Pod(pod); exists && has(&p) || slices.ContainsFunc(s.o.Files.Files(), waits) {
			return
		}
		select {
		case <-changed:
		case <-filesChanged:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) prune(r *http.Request) (any, error) {
	var q PruneRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	if s.o.Files == nil {
		return nil, errNoPodFiles
	}
	list := AppliedList{Items: []Applied{}}
	var surplus map[string]string
	var err error
	if q.Lost {
		surplus, err = s.o.Files.ConfirmLoss(r.Context(), q.Keep, q.DryRun)
	} else {
		surplus = s.surplus(q.Keep)
	}
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(surplus)) {
		a := Applied{Pod: name, File: surplus[name], Outcome: PodPruned}
		if !q.DryRun && !q.Lost {
			path, err := s.o.Files.Remove(r.Context(), name)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			a.File = cmp.Or(path, a.File)
		}
		list.Items = append(list.Items, a)
	}
	if err := errors.Join(errs...); err != nil {
		e := *asError(err)
		e.Pruned = list.Items
		return nil, &e
	}
	return list, nil
}

// surplus returns the pods of the pods directory that are not in keep, with their files.
func (s *Server) surplus(keep []string) map[string]string {
	surplus := map[string]string{}
	for _, f := range s.o.Files.Files() {
		surplus[f.Pod] = f.Path
	}
	for _, p := range s.o.Supervisor.Pods() {
		if file := p.Owner.File; file != "" && !p.Facts.Stop.Delete {
			surplus[p.Pod.Name] = file
		}
	}
	for _, name := range keep {
		delete(surplus, name)
	}
	return surplus
}

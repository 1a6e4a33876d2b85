package server

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

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// PodFiles is the pods directory. [*podfiles.Set] implements it.
type PodFiles interface {
	Files() []podfiles.File
	Changed() <-chan struct{}
	Apply(ctx context.Context, file *spec.Accepted, o podfiles.ApplyOptions) (podfiles.Plan, error)
	Remove(ctx context.Context, pod string) (path string, err error)
	ConfirmLoss(ctx context.Context, keep []string, dryRun bool) (paths map[string]string, err error)
	Suspend()
	Rollout(ctx context.Context, pod string) (podfiles.Rollout, error)
	Undo(ctx context.Context, pod string, to int, by string) (podfiles.Rollout, error)
}

func (s *Server) suspendFiles(*http.Request) (any, error) {
	if s.o.Files != nil {
		s.o.Files.Suspend()
	}
	if s.o.Schedules != nil {
		s.o.Schedules.Settle()
	}
	return struct{}{}, nil
}

// errNoPodFiles is the error of a server without a pods directory.
var errNoPodFiles = failure(http.StatusNotImplemented, "the daemon has no pods directory")

func (s *Server) apply(r *http.Request) (any, error) {
	var q api.ApplyRequest
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
	var file spec.Accepted
	var found spec.Problems
	var unmovable error
	err := client.accept(func() *spec.Pod {
		file, found, unmovable = spec.AcceptRelocated(q.File, []byte(q.Text))
		return file.Pod
	})
	if err != nil {
		return nil, err
	}
	pod := file.Pod
	if pod == nil {
		return nil, &api.Error{Status: http.StatusBadRequest, Message: "the pod file is invalid", Problems: problems(found)}
	}
	if err := client.applicable(pod); err != nil {
		return nil, err
	}
	if unmovable != nil {
		return nil, unmovable
	}
	before, _ := s.o.Supervisor.Pod(pod.Name)
	plan, err := s.o.Files.Apply(r.Context(), &file, podfiles.ApplyOptions{DryRun: q.DryRun, Create: q.Create, By: requester(r)})
	if err != nil {
		return nil, err
	}
	if plan.Outcome != api.PodUnchanged && !q.DryRun {
		s.awaitTaken(r.Context(), &before, plan.Pod, pod.Hash)
		if err := s.rejected(plan.Pod, pod.Hash); err != nil {
			return nil, err
		}
	}
	unit := ""
	if pod.Systemd != nil {
		unit = api.UnitOf(pod.Name)
	}
	return api.Applied{
		Pod: plan.Pod, File: plan.File, Outcome: plan.Outcome, Changes: changesOf(plan.Changes),
		Replaced: plan.Replaced, Instead: plan.Instead, Undone: plan.Undone,
		Unit: unit, Scheduled: pod.Schedule != nil, SpecHash: cmp.Or(plan.SpecHash, pod.Hash), Warnings: problems(found.Warnings()),
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
		isScheduled := f.Definition != nil && f.Definition.Schedule != nil
		return f.Pod == pod && f.SpecHash == hash && !f.Preparing && (f.Refused != nil || f.Reason != "" || isScheduled)
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

// rejected returns the error of a pod whose file was written, but whose definition with this hash the host rejects. The file is kept: the
// host, its policy or other pods may change.
func (s *Server) rejected(pod, hash string) error {
	for _, f := range s.o.Files.Files() {
		refused, is := errors.AsType[*supervisor.RefusedError](f.Refused)
		if !is || f.Pod != pod || f.SpecHash != hash || f.Reason != api.ReasonRejected {
			continue
		}
		e := rejection(refused)
		e.Hint = "correct the file and apply it again, or remove it from the pods directory with podstead delete " + pod
		if _, exists := s.o.Supervisor.Pod(pod); exists {
			e.Hint = "correct the file and apply it again: the pod keeps its definition"
		}
		return e
	}
	return nil
}

func (s *Server) prune(r *http.Request) (any, error) {
	var q api.PruneRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	if s.o.Files == nil {
		return nil, errNoPodFiles
	}
	list := api.AppliedList{Items: []api.Applied{}}
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
		a := api.Applied{Pod: name, File: surplus[name], Outcome: api.PodPruned}
		if !q.DryRun && !q.Lost {
			_, scheduled := s.scheduled(name)
			path, err := s.o.Files.Remove(r.Context(), name)
			if err == nil && scheduled {
				err = s.deleteRuns(r, name, path)
			}
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

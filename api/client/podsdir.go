package client

import (
	"context"
	"errors"
	"net/http"

	"github.com/podstead/podstead/api"
)

// Apply writes a pod file to the pods directory, in place of the file that defines the pod. It returns when the file is saved and the pod
// has the definition, is refused or waits for its update, before the pod is ready. It can be repeated. The error of an invalid file is an
// [*api.Error] with its problems.
func (c *Client) Apply(ctx context.Context, q api.ApplyRequest) (a api.Applied, err error) {
	return a, c.call(ctx, http.MethodPost, "/v1/files", nil, q, &a)
}

// Prune deletes pods of the pods directory, and their files. It returns the deleted ones, sorted by name, as [api.PodPruned]. With an error
// it returns those that were deleted nevertheless.
func (c *Client) Prune(ctx context.Context, q api.PruneRequest) (list api.AppliedList, err error) {
	err = c.call(ctx, http.MethodPost, "/v1/files/prune", nil, q, &list)
	if e, ok := errors.AsType[*api.Error](err); ok {
		list.Items = e.Pruned
	}
	return list, err
}

// SuspendFiles makes the daemon ignore the pods directory, so that pods can be deleted whose files are kept. It is for the end of the
// daemon, and holds for 15 minutes at most.
func (c *Client) SuspendFiles(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/files/suspend", nil, nil, nil)
}

// Rollout returns the generations of a pod. If the pod has no file in the pods directory, it returns an [*api.Error] with status 404.
func (c *Client) Rollout(ctx context.Context, pod string) (r api.Rollout, err error) {
	return r, c.call(ctx, http.MethodGet, podPath(pod)+"/rollout", nil, nil, &r)
}

// UndoRollout makes a pod return to an earlier generation, and returns before the pod has changed. The file is kept: the pod follows it
// again when it is changed or applied. If the generation cannot run, the error is an [*api.Error] with status 409.
func (c *Client) UndoRollout(ctx context.Context, pod string, q api.UndoRequest) (r api.Rollout, err error) {
	return r, c.call(ctx, http.MethodPost, podPath(pod)+"/rollout/undo", nil, q, &r)
}

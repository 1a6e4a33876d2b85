package runtime

import (
	"context"

	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Attach opens a session with the standard streams of a running container. The request needs no ID of the container. The error is an
// [*attach.Error] if the container is not running or the request cannot be fulfilled, a [lifecycle.FailureNotFound] if it was removed, and
// [attach.ErrNoServer] if its monitor serves no clients.
func (r *Runtime) Attach(ctx context.Context, uid string, ref lifecycle.Ref, request attach.Request) (*attach.Session, error) {
	ctx, cancel := engine.WithTimeout(ctx, engine.CreateTimeout)
	defer cancel()
	request.Container = record.ContainerID(uid, ref)
	c, err := r.client.LoadContainer(ctx, request.Container)
	if err != nil {
		return nil, loadFailure(ctx, err)
	}
	return r.engine.Attach(ctx, record.Info(ctx, c).SandboxID, request)
}

// loadFailure returns the failure of a container that could not be loaded.
func loadFailure(ctx context.Context, err error) error {
	if errdefs.IsNotFound(err) {
		return engine.Failure(ctx, lifecycle.FailureNotFound, "", err)
	}
	return engine.Failure(ctx, lifecycle.FailureUnavailable, "", err)
}

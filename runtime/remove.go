package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// undo takes away a container whose process could not be started, and returns the cause, with what could not be taken
// away.
func (r *Runtime) undo(ctx context.Context, c client.Container, cause error) error {
	ctx, cancel := enginecall.Detached(ctx, enginecall.UndoTimeout)
	defer cancel()
	err := r.end(ctx, c)
	if err == nil {
		err = r.remove(ctx, c)
	}
	if err == nil {
		return cause
	}
	f, ok := errors.AsType[lifecycle.Failure](cause)
	if !ok {
		return errors.Join(cause, err)
	}
	f.Message += " (and what was made of the container is left: " + err.Error() + ")"
	return f
}

// endOlder kills every run of a container that has not ended.
func (r *Runtime) endOlder(ctx context.Context, uid, container string) error {
	list, err := record.Containers(ctx, r.client, uid)
	if err != nil {
		return err
	}
	for _, c := range list {
		info, err := record.Info(ctx, c)
		if err != nil {
			return err
		}
		if info.Labels[record.LabelContainer] != container || info.Labels[record.LabelExit] != "" {
			continue
		}
		if err := r.end(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// RemoveContainer takes away what is left of a run that has ended, and of older ones of its container. One that runs is an error.
func (r *Runtime) RemoveContainer(ctx context.Context, uid string, _ *spec.Pod, ref lifecycle.Ref) error {
	ctx, cancel := enginecall.WithTimeout(ctx, enginecall.RemoveTimeout)
	defer cancel()
	release, err := r.locks.Lock(ctx, uid+"/"+ref.Container)
	if err != nil {
		return err
	}
	defer release()
	if err := r.removeUpTo(ctx, uid, ref); err != nil {
		return enginecall.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("remove container %s: %w", ref.Container, err))
	}
	return nil
}

// removeUpTo takes away the runs of a container up to one.
func (r *Runtime) removeUpTo(ctx context.Context, uid string, ref lifecycle.Ref) error {
	list, err := record.Containers(ctx, r.client, uid)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range list {
		info, err := record.Info(ctx, c)
		if err != nil {
			return err
		}
		run, err := record.Run(info)
		if err == nil && run.Container == ref.Container && run.Attempt <= ref.Attempt {
			err = r.remove(ctx, c)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// remove takes away a container that has ended: its task, its log, its writable layer, and last its record, by which
// the rest is found.
func (r *Runtime) remove(ctx context.Context, c client.Container) error {
	if err := deleteTask(ctx, c); err != nil {
		return err
	}
	info, err := record.Info(ctx, c)
	if err != nil {
		return err
	}
	if err := removeLog(info.Labels[record.LabelLog]); err != nil {
		return err
	}
	if err := r.release(ctx, info.Labels[record.LabelUID], c.ID(), info.Labels[record.LabelContainer]); err != nil {
		return err
	}
	if err := c.Delete(ctx, client.WithSnapshotCleanup); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	r.gone.want()
	return nil
}

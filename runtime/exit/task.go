package exit

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/record"
)

// pollInterval is how often a task is checked that containerd is about to remove.
const pollInterval = 20 * time.Millisecond

// Task returns the task of a container. If [errdefs.IsNotFound] holds for the error, no process of the container is left.
//
// A task whose shim has died cannot be found, although containerd has yet to kill its processes, and may fail to.
// While the shim does not respond, it waits or fails.
func (r *Recorder) Task(ctx context.Context, c client.Container) (client.Task, error) {
	info := record.Info(ctx, c)
	if err := r.shims.AwaitLoaded(ctx, info.SandboxID); err != nil {
		return nil, err
	}
	for range guard.Poll(ctx, pollInterval) {
		task, err := c.Task(ctx, nil)
		if !errdefs.IsNotFound(err) {
			return task, err
		}
		_, pidsErr := r.client.TaskService().ListPids(ctx, &tasks.ListPidsRequest{ContainerID: c.ID()})
		if errdefs.IsNotFound(errgrpc.ToNative(pidsErr)) {
			if err := r.cgroups.Kill(ctx, info.Labels[record.LabelUID], c.ID()); err != nil {
				return nil, err
			}
			return nil, err
		}
	}
	return nil, ctx.Err()
}

// unresponsive reports whether the shim of a container does not respond.
func (r *Recorder) unresponsive(ctx context.Context, c client.Container) bool {
	return r.shims.Unresponsive(record.Info(ctx, c).SandboxID)
}

// Terminate kills a container, and returns when it has exited and its task is deleted. A daemon that was killed may have left a task whose
// exit is recorded. It is no error if there is no such container: a start that failed may remove it at the same time, after its task.
func (r *Recorder) Terminate(ctx context.Context, c client.Container) error {
	if err := r.Settle(ctx, c.ID()); err != nil { // a task that is being deleted cannot be killed
		return err
	}
	task, err := r.Task(ctx, c)
	if err == nil {
		err = Kill(ctx, task)
	}
	if err != nil && !errdefs.IsNotFound(err) && !engine.Unavailable(err) {
		return err
	}
	if _, err := r.Wait(ctx, c); err != nil {
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err
	}
	return DeleteTask(ctx, c)
}

// Kill sends SIGKILL to every process of a container. It is no error if the container has exited.
func Kill(ctx context.Context, task client.Task) error {
	err := task.Kill(ctx, unix.SIGKILL, client.WithKillAll)
	if errdefs.IsNotFound(err) {
		return nil
	}
	// The OCI runtime finds the processes by a cgroup. If that fails, killing the first process kills all: the kernel does so in a PID
	// namespace, and the shim elsewhere. It can also succeed without a process: with cgroup v1, systemd moves the processes of a scope to
	// the devices cgroup of its slice, and runc kills those in the devices cgroup of the scope.
	if err := task.Kill(ctx, unix.SIGKILL); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// DeleteTask deletes the task of a container that has exited, if it exists.
func DeleteTask(ctx context.Context, c client.Container) error {
	task, err := c.Task(ctx, nil)
	if err == nil {
		_, err = task.Delete(ctx)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("delete task: %w", err)
	}
	return nil
}

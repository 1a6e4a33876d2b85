package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// goneInterval is how often is looked for what is about to be gone.
const goneInterval = 20 * time.Millisecond

// exit is how and when a container ended, as its label keeps it.
type exit struct {
	lifecycle.Exit
	At time.Time `json:"at"`
}

// exitOf reads the exit that a container's labels tell, if they do.
func exitOf(labels map[string]string) (exit, bool) {
	text, ok := labels[record.LabelExit]
	if !ok {
		return exit{}, false
	}
	var e exit
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return unknown("the record of its end cannot be read: " + err.Error()), true
	}
	return e, true
}

// unknown is the end of a container of which the engine knows no more than that it ran.
func unknown(why string) exit {
	return exit{lifecycle.Exit{Code: 255, Reason: lifecycle.ReasonUnknown, Message: why}, time.Now()}
}

// lost is the end of a container that has no task and wrote no exit down: it died with its shim, or with the machine.
func (r *Runtime) lost(labels map[string]string) exit {
	if labels[record.LabelBoot] != r.boot {
		return unknown("the machine was restarted")
	}
	return exit{lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonError, Message: "its sandbox was lost"}, time.Now()}
}

// WaitContainer returns when the process has ended. It has no time limit. By then the exit is written down, the task is
// deleted, and the log is complete.
func (r *Runtime) WaitContainer(
	ctx context.Context, uid string, ref lifecycle.Ref,
) (lifecycle.Exit, time.Time, error) {
	ctx = enginecall.Context(ctx)
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if errdefs.IsNotFound(err) {
		e := lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonStatusUnknown, Message: "the container was not found"}
		return e, time.Now(), nil
	}
	if err != nil {
		return lifecycle.Exit{}, time.Time{}, enginecall.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	e, err := r.ended(ctx, c)
	if err != nil {
		return lifecycle.Exit{}, time.Time{}, enginecall.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	return r.withMessage(ctx, c, e.Exit), e.At, nil
}

// ended waits for the end of a container and writes it down.
func (r *Runtime) ended(ctx context.Context, c client.Container) (exit, error) {
	info, err := record.Info(ctx, c)
	if err != nil {
		return exit{}, err
	}
	if e, ok := exitOf(info.Labels); ok {
		return e, nil
	}
	task, err := r.task(ctx, c)
	var e exit
	if err == nil {
		e, err = r.wait(ctx, c, task)
	}
	if errdefs.IsNotFound(err) {
		return r.withoutTask(ctx, c)
	}
	if err != nil {
		return exit{}, err
	}
	killed, err := r.engine.OOMKilled(c.ID())
	if err != nil {
		r.log.WarnContext(ctx, "it is not known whether memory was a container's end", slog.String("container", c.ID()), slog.Any("error", err))
	}
	if killed {
		e.Reason, e.MemoryPeak = lifecycle.ReasonOOMKilled, r.engine.MemoryPeak(c.ID())
	}
	r.settle(ctx, c, e)
	return e, nil
}

// isOver reports whether a run is known to have no process any more.
func (r *Runtime) isOver(ctx context.Context, uid string, ref lifecycle.Ref) bool {
	ctx, cancel := enginecall.WithTimeout(ctx, enginecall.SignalTimeout)
	defer cancel()
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	var task client.Task
	if err == nil {
		task, err = c.Task(ctx, nil)
	}
	var status client.Status
	if err == nil {
		status, err = task.Status(ctx)
	}
	return errdefs.IsNotFound(err) || status.Status == client.Stopped
}

// withoutTask is the exit of a container whose task is gone: the one that somebody wrote down meanwhile, or else its loss.
func (r *Runtime) withoutTask(ctx context.Context, c client.Container) (exit, error) {
	labels, err := c.Labels(ctx)
	if err != nil && !errdefs.IsNotFound(err) {
		return exit{}, err
	}
	if known, ok := exitOf(labels); ok {
		return known, nil
	}
	e := r.lost(labels)
	r.settle(ctx, c, e)
	return e, nil
}

// task returns the task of a container. When it says that there is none, no process of the container is left either.
//
// A task whose shim is dead cannot be found, although containerd is still about to kill its processes, and may fail to.
func (r *Runtime) task(ctx context.Context, c client.Container) (client.Task, error) {
	tick := time.NewTicker(goneInterval)
	defer tick.Stop()
	for {
		task, err := c.Task(ctx, nil)
		if !errdefs.IsNotFound(err) {
			return task, err
		}
		_, pidsErr := r.client.TaskService().ListPids(ctx, &tasks.ListPidsRequest{ContainerID: c.ID()})
		if errdefs.IsNotFound(errgrpc.ToNative(pidsErr)) {
			info, infoErr := record.Info(ctx, c)
			if infoErr != nil {
				return nil, infoErr
			}
			if err := r.cgroups.Kill(ctx, info.Labels[record.LabelUID], c.ID()); err != nil {
				return nil, err
			}
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// wait returns the exit of a task, or an error that [errdefs.IsNotFound] when it was deleted or has died with its shim.
// An error of the wait itself says nothing about the process.
func (r *Runtime) wait(ctx context.Context, c client.Container, task client.Task) (exit, error) {
	done, err := task.Wait(ctx)
	if err != nil {
		return exit{}, err
	}
	status := <-done
	if status.Error() == nil {
		return exitFrom(status.ExitCode(), status.ExitTime()), nil
	}
	if ctx.Err() != nil {
		return exit{}, ctx.Err()
	}
	if _, err := r.task(ctx, c); err != nil {
		return exit{}, err
	}
	return exit{}, fmt.Errorf("wait for container: %w", status.Error())
}

// exitFrom is the exit that a status and a time tell.
func exitFrom(status uint32, at time.Time) exit {
	e := exit{lifecycle.Exit{Code: int(status), Reason: lifecycle.ReasonError}, at}
	if status == 0 {
		e.Reason = lifecycle.ReasonCompleted
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	return e
}

// settle writes an exit down and deletes the task, in this order: who is killed in between finds the exit. An exit is
// none the less true if that fails, on a full disk for example. Until the task is deleted the shim tells it again.
func (r *Runtime) settle(ctx context.Context, c client.Container, e exit) {
	ctx, cancel := enginecall.Detached(ctx, enginecall.RecordExitTimeout)
	defer cancel()
	err := r.writeExit(ctx, c, e)
	if err == nil {
		err = deleteTask(ctx, c)
	}
	if err != nil {
		r.log.WarnContext(ctx, "the end of a container was not settled", slog.String("container", c.ID()), slog.Any("error", err))
	}
}

// deleteTask deletes the task of a container that has ended, if it is there.
func deleteTask(ctx context.Context, c client.Container) error {
	task, err := c.Task(ctx, nil)
	if err == nil {
		_, err = task.Delete(ctx)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("delete task: %w", err)
	}
	return nil
}

func (r *Runtime) writeExit(ctx context.Context, c client.Container, e exit) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := c.SetLabels(ctx, map[string]string{record.LabelExit: string(text)}); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("write exit down: %w", err)
	}
	return nil
}

// end kills a container, and returns when it has ended and its task is deleted. A daemon that was killed may have left a
// task whose exit is written down already.
func (r *Runtime) end(ctx context.Context, c client.Container) error {
	task, err := r.task(ctx, c)
	if err == nil {
		err = kill(ctx, task)
	}
	if err != nil && !errdefs.IsNotFound(err) && !enginecall.Unavailable(err) {
		return err
	}
	if _, err := r.ended(ctx, c); err != nil {
		return err
	}
	return deleteTask(ctx, c)
}

// takeUpExits writes down how containers ended while no engine ran: the engine itself tells it only until its next start.
func (r *Runtime) takeUpExits(ctx context.Context) error {
	for id, away := range r.engine.MissedExits() {
		c, err := r.client.LoadContainer(ctx, id)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		info, err := record.Info(ctx, c)
		if err != nil {
			return err
		}
		if _, known := exitOf(info.Labels); known {
			continue
		}
		e := exitFrom(away.Status, away.At)
		// The exit is on disk before the note that memory was its cause. A shim that was killed in between has written none.
		if away.OOMKilled || r.notedOOM(ctx, c) || r.cgroups.OOMKilled(info.Labels[record.LabelUID], id) {
			e.Reason, e.MemoryPeak = lifecycle.ReasonOOMKilled, max(away.MemoryPeak, r.engine.MemoryPeak(id))
		}
		r.settle(ctx, c, e)
	}
	return nil
}

// notedOOM reports whether the shim of a container that has ended has noted that memory was the cause. A shim that lives may be
// about to: it answers a wait when it has.
func (r *Runtime) notedOOM(ctx context.Context, c client.Container) bool {
	ctx, cancel := enginecall.WithTimeout(ctx, enginecall.RecordExitTimeout)
	defer cancel()
	if task, err := c.Task(ctx, nil); err == nil {
		if done, err := task.Wait(ctx); err == nil {
			<-done // which comes with the end of ctx too
		}
	}
	killed, err := r.engine.OOMKilled(c.ID())
	return err == nil && killed
}

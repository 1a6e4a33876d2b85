// Package exit waits for containers to exit, records how they exited, and kills them.
//
// The exit of a container is stored in a label of its record. It is written before the task is deleted, so that a daemon that is killed
// in between finds it. After a restart of the daemon, [Recorder.Recover] records the exits that happened meanwhile.
package exit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/layout"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Exit is how and when a container exited. Its JSON is the value of [record.LabelExit].
type Exit struct {
	lifecycle.Exit
	At time.Time `json:"at"`
}

// FromLabels reads the exit of a container from its labels. It reports false if the container has no recorded exit.
func FromLabels(labels map[string]string) (Exit, bool) {
	text, ok := labels[record.LabelExit]
	if !ok {
		return Exit{}, false
	}
	var e Exit
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return unknown("cannot read the recorded exit: " + err.Error()), true
	}
	return e, true
}

// FromStatus returns the exit with an exit code and a time. A zero time is now.
func FromStatus(code uint32, at time.Time) Exit {
	e := Exit{lifecycle.Exit{Code: int(code), Reason: lifecycle.ReasonError}, at}
	if code == 0 {
		e.Reason = lifecycle.ReasonCompleted
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	return e
}

// unknown is the exit of a container about which the engine has no information.
func unknown(message string) Exit {
	return Exit{lifecycle.Exit{Code: 255, Reason: lifecycle.ReasonUnknown, Message: message}, time.Now()}
}

// Write stores the exit of a container in its record, if the record exists.
func Write(ctx context.Context, c client.Container, e Exit) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := c.SetLabels(ctx, map[string]string{record.LabelExit: string(text)}); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("record exit: %w", err)
	}
	return nil
}

// OOMReporter reports whether the shim has recorded that a container was OOM-killed.
type OOMReporter interface {
	OOMKilled(id string) (bool, error)
	// MemoryPeak returns the peak memory usage of an OOM-killed container in bytes, 0 if unknown.
	MemoryPeak(id string) int64
}

// Cgroups kills and inspects what a shim has left.
type Cgroups interface {
	Kill(ctx context.Context, uid, id string) error
	OOMKilled(uid, id string) bool
}

// Recorder waits for exits and records them. It is safe for concurrent use.
type Recorder struct {
	client  *client.Client
	oom     OOMReporter
	cgroups Cgroups
	dirs    layout.Dirs
	bootID  string
	log     *slog.Logger
}

// NewRecorder returns a recorder. The boot ID is that of the kernel.
func NewRecorder(c *client.Client, oom OOMReporter, cgroups Cgroups, dirs layout.Dirs, bootID string, log *slog.Logger) *Recorder {
	return &Recorder{client: c, oom: oom, cgroups: cgroups, dirs: dirs, bootID: bootID, log: log}
}

// WaitContainer returns when the process has exited. It has no timeout. By then the exit is recorded, the task is deleted, and the log
// is complete.
func (r *Recorder) WaitContainer(ctx context.Context, uid string, ref lifecycle.Ref) (lifecycle.Exit, time.Time, error) {
	ctx = enginecall.Context(ctx)
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if errdefs.IsNotFound(err) {
		e := lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonStatusUnknown, Message: "the container was not found"}
		return e, time.Now(), nil
	}
	if err != nil {
		return lifecycle.Exit{}, time.Time{}, enginecall.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	e, err := r.Wait(ctx, c)
	if err != nil {
		return lifecycle.Exit{}, time.Time{}, enginecall.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	return r.withMessage(ctx, c, e.Exit), e.At, nil
}

// Wait waits for a container to exit and records the exit. A recorded exit is returned at once.
func (r *Recorder) Wait(ctx context.Context, c client.Container) (Exit, error) {
	info, err := record.Info(ctx, c)
	if err != nil {
		return Exit{}, err
	}
	if e, ok := FromLabels(info.Labels); ok {
		return e, nil
	}
	task, err := r.Task(ctx, c)
	var e Exit
	if err == nil {
		e, err = r.waitTask(ctx, c, task)
	}
	if errdefs.IsNotFound(err) {
		return r.withoutTask(ctx, c)
	}
	if err != nil {
		return Exit{}, err
	}
	killed, err := r.oom.OOMKilled(c.ID())
	if err != nil {
		r.log.WarnContext(ctx, "cannot determine whether a container was OOM-killed", slog.String("container", c.ID()), slog.Any("error", err))
	}
	if killed {
		e.Reason, e.MemoryPeak = lifecycle.ReasonOOMKilled, r.oom.MemoryPeak(c.ID())
	}
	r.record(ctx, c, e)
	return e, nil
}

// Exited reports whether a container is known to have no process.
func (r *Recorder) Exited(ctx context.Context, uid string, ref lifecycle.Ref) bool {
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

// waitTask returns the exit of a task. [errdefs.IsNotFound] holds for the error if the task was deleted or its shim has died. Any other error gives
// no information about the process.
func (r *Recorder) waitTask(ctx context.Context, c client.Container, task client.Task) (Exit, error) {
	done, err := task.Wait(ctx)
	if err != nil {
		return Exit{}, err
	}
	status := <-done
	if status.Error() == nil {
		return FromStatus(status.ExitCode(), status.ExitTime()), nil
	}
	if ctx.Err() != nil {
		return Exit{}, ctx.Err()
	}
	if _, err := r.Task(ctx, c); err != nil {
		return Exit{}, err
	}
	return Exit{}, fmt.Errorf("wait for container: %w", status.Error())
}

// withoutTask returns the exit of a container without a task: the one that was recorded meanwhile, or else that of a lost container.
func (r *Recorder) withoutTask(ctx context.Context, c client.Container) (Exit, error) {
	labels, err := c.Labels(ctx)
	if err != nil && !errdefs.IsNotFound(err) {
		return Exit{}, err
	}
	if recorded, ok := FromLabels(labels); ok {
		return recorded, nil
	}
	e := r.lost(labels)
	r.record(ctx, c, e)
	return e, nil
}

// lost is the exit of a container that has no task and no recorded exit: it died with its shim, or when the host was rebooted.
func (r *Recorder) lost(labels map[string]string) Exit {
	if labels[record.LabelBoot] != r.bootID {
		return unknown("the host was rebooted")
	}
	return Exit{lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonError, Message: "the pod sandbox was lost"}, time.Now()}
}

// record stores an exit and deletes the task, in this order: a daemon that is killed in between finds the exit. An exit is valid even if this
// fails, for example on a full disk. Until the task is deleted, the shim reports the exit again.
func (r *Recorder) record(ctx context.Context, c client.Container, e Exit) {
	ctx, cancel := enginecall.Detached(ctx, enginecall.RecordExitTimeout)
	defer cancel()
	err := Write(ctx, c, e)
	if err == nil {
		err = DeleteTask(ctx, c)
	}
	if err != nil {
		r.log.WarnContext(ctx, "cannot record the exit of a container", slog.String("container", c.ID()), slog.Any("error", err))
	}
}

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

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/protobuf"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/engine"
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

// unobserved is the exit of a container at a time at which neither the monitor nor its keeper was running. The kubelet has this reason and
// exit code for it.
func unobserved(at time.Time) Exit {
	return Exit{lifecycle.Exit{
		Code: 137, Reason: lifecycle.ReasonStatusUnknown, Message: "the container exited while its monitor was not running",
	}, at}
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

// Shims is what the recorder requires of the shims.
type Shims interface {
	// AwaitLoaded waits until the tasks of a sandbox can be found.
	AwaitLoaded(ctx context.Context, sandboxID string) error
	// Unresponsive reports whether the shim of a sandbox does not respond.
	Unresponsive(sandboxID string) bool
	// OOMKilled reports whether the shim has recorded that a container was OOM-killed.
	OOMKilled(id string) (bool, error)
	// MemoryPeak returns the peak memory usage of an OOM-killed container in bytes, 0 if unknown.
	MemoryPeak(id string) int64
	// ExitUnknown reports whether a container has exited and it is not known how.
	ExitUnknown(id string) bool
}

// Cgroups kills and inspects what a shim has left.
type Cgroups interface {
	Kill(ctx context.Context, uid, id string) error
	OOMKilled(uid, id string) bool
}

// Recorder waits for exits and records them. It is safe for concurrent use.
type Recorder struct {
	client     *client.Client
	shims      Shims
	cgroups    Cgroups
	dirs       record.Dirs
	bootID     string
	log        *slog.Logger
	messages   messageReader
	recordings recordings
}

// NewRecorder returns a recorder. The boot ID is that of the kernel.
func NewRecorder(c *client.Client, shims Shims, cgroups Cgroups, dirs record.Dirs, bootID string, log *slog.Logger) *Recorder {
	return &Recorder{client: c, shims: shims, cgroups: cgroups, dirs: dirs, bootID: bootID, log: log}
}

// WaitContainer returns when the process has exited. It has no timeout. By then the exit is recorded and the log is complete, unless that
// takes longer than [reportTimeout]. The task is deleted meanwhile; see [Recorder.Settle].
func (r *Recorder) WaitContainer(ctx context.Context, uid string, ref lifecycle.Ref) (lifecycle.Exit, time.Time, error) {
	ctx = engine.Context(ctx)
	id := record.ContainerID(uid, ref)
	exited, err := r.wait(ctx, id)
	if errdefs.IsNotFound(err) {
		e := lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonStatusUnknown, Message: "the container was not found"}
		return e, time.Now(), nil
	}
	if err != nil {
		return lifecycle.Exit{}, time.Time{}, engine.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	if !exited.within(reportTimeout) {
		r.log.WarnContext(ctx, "recording the exit of a container takes long", slog.String("container", id))
	}
	return r.withMessage(ctx, exited.message, exited.exit.Exit), exited.exit.At, nil
}

// Wait waits for a container to exit and records the exit. A recorded exit is returned at once.
func (r *Recorder) Wait(ctx context.Context, c client.Container) (Exit, error) {
	exited, err := r.wait(ctx, c.ID())
	if err != nil {
		return Exit{}, err
	}
	<-exited.done
	return exited.exit, nil
}

// wait waits for a container to exit, and starts to record the exit. If [errdefs.IsNotFound] holds for the error, there is no such
// container.
//
// A container is waited for by its ID. Its record has its whole OCI spec, which would be kept in memory for as long as it runs. After the
// exit the engine is not asked: a database of which the disk hangs in the middle of a write cannot be read either.
func (r *Recorder) wait(ctx context.Context, id string) (*recording, error) {
	if running := r.recordings.of(id); running != nil {
		return running, nil
	}
	labels, err := r.labels(ctx, id)
	if err != nil {
		return nil, err
	}
	source := r.messageOf(id, labels)
	if e, ok := FromLabels(labels); ok {
		return recorded(e, source), nil
	}
	e, err := r.observe(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.startRecording(ctx, id, e, source), nil
}

func (r *Recorder) startRecording(ctx context.Context, id string, e Exit, source message) *recording {
	return r.recordings.start(id, e, source, func(written func()) {
		_, _ = guard.Call(context.WithoutCancel(ctx), 0, r.log, func(ctx context.Context) (struct{}, error) { // a panic is logged
			r.record(ctx, id, e, written)
			return struct{}{}, nil
		})
	})
}

// labels returns the labels of a container.
func (r *Recorder) labels(ctx context.Context, id string) (map[string]string, error) {
	c, err := r.client.LoadContainer(ctx, id)
	if err != nil {
		return nil, err
	}
	return record.Info(ctx, c).Labels, nil
}

// observe waits for the exit of a container.
func (r *Recorder) observe(ctx context.Context, id string) (Exit, error) {
	err := r.hasTask(ctx, id)
	var e Exit
	if err == nil {
		e, err = r.waitTask(ctx, id)
	}
	if errdefs.IsNotFound(err) {
		return r.withoutTask(ctx, id)
	}
	if err != nil {
		return Exit{}, err
	}
	return r.withCause(ctx, id, e), nil
}

// withCause adds to the exit of a process what else is known.
func (r *Recorder) withCause(ctx context.Context, id string, e Exit) Exit {
	if r.shims.ExitUnknown(id) {
		return unobserved(e.At)
	}
	killed, err := r.shims.OOMKilled(id)
	if err != nil {
		r.log.WarnContext(ctx, "cannot determine whether a container was OOM-killed", slog.String("container", id), slog.Any("error", err))
	}
	if killed {
		e.Reason, e.MemoryPeak = lifecycle.ReasonOOMKilled, r.shims.MemoryPeak(id)
	}
	return e
}

// hasTask is [Recorder.Task] without the task.
func (r *Recorder) hasTask(ctx context.Context, id string) error {
	c, err := r.client.LoadContainer(ctx, id)
	if err == nil {
		_, err = r.Task(ctx, c)
	}
	return err
}

// Exited reports whether a container is known to have no process.
func (r *Recorder) Exited(ctx context.Context, uid string, ref lifecycle.Ref) bool {
	ctx, cancel := engine.WithTimeout(ctx, engine.SignalTimeout)
	defer cancel()
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if err == nil && r.unresponsive(ctx, c) {
		return false
	}
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

// waitTask returns the exit of a task. [errdefs.IsNotFound] holds for the error if the task was deleted or its shim has died. Any other
// error gives no information about the process.
func (r *Recorder) waitTask(ctx context.Context, id string) (Exit, error) {
	status, err := r.client.TaskService().Wait(ctx, &tasks.WaitRequest{ContainerID: id})
	if err == nil {
		return FromStatus(status.ExitStatus, protobuf.FromTimestamp(status.ExitedAt)), nil
	}
	if ctx.Err() != nil {
		return Exit{}, ctx.Err()
	}
	if err := r.hasTask(ctx, id); err != nil {
		return Exit{}, err
	}
	return Exit{}, fmt.Errorf("wait for container: %w", err)
}

// withoutTask returns the exit of a container without a task: the one that was recorded meanwhile, or else that of a lost container.
func (r *Recorder) withoutTask(ctx context.Context, id string) (Exit, error) {
	labels, err := r.labels(ctx, id)
	if err != nil && !errdefs.IsNotFound(err) {
		return Exit{}, err
	}
	if recorded, ok := FromLabels(labels); ok {
		return recorded, nil
	}
	return r.lost(labels), nil
}

// lost is the exit of a container that has no task and no recorded exit: it died with its shim, or when the host was rebooted.
func (r *Recorder) lost(labels map[string]string) Exit {
	if labels[record.LabelBoot] != r.bootID {
		return unknown("the host was rebooted")
	}
	return Exit{lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonError, Message: "the pod sandbox was lost"}, time.Now()}
}

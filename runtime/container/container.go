// Package container creates, starts, signals and removes containers.
//
// A container is named after its pod, its round and its attempt, so that a repeated start finds the container of the first one. Calls for
// one container of a pod are serialised.
//
// It keeps the values of secrets out of what the container engine stores and out of errors, provides the AppArmor and seccomp
// profiles, and mounts the images of image volumes ([ImageVolumes]).
package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/exit"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Config is what a [Service] needs. All fields are required.
type Config struct {
	Client       *client.Client
	Engine       *engine.Engine
	Images       *image.Store
	Snapshotter  string
	Dirs         record.Dirs
	Cgroups      podcgroup.Groups
	Host         oci.Host
	PidsLimit    int64 // processes and threads of each pod; 0: no limit
	BootID       string
	ConfigDir    string        // contains seccomp profiles
	CDIDirs      []string      // contain specifications of the Container Device Interface
	Values       volume.Values // config maps and secrets
	Exits        *exit.Recorder
	Etc          *sandbox.EtcFiles
	Volumes      *sandbox.Volumes
	ImageVolumes *ImageVolumes
	Users        *sandbox.Users
	Network      *sandbox.Network
	AppArmor     AppArmor
	Garbage      *LayerCollector
	Logs         Logs
	// RecursiveReadOnly reports whether an OCI runtime supports recursive options of mounts; "" is that of sandboxes without their own.
	RecursiveReadOnly func(ctx context.Context, program string) bool
}

// Service manages the containers of all pods. It is safe for concurrent use.
type Service struct {
	config    Config
	processes ProcessFiles
	locks     guard.KeyedMutex // by UID and name of the container
	notifier  dirNotifier      // of the directories of devices
}

// New returns the service.
func New(c Config) *Service {
	return &Service{config: c, processes: NewProcessFiles(c.Dirs)}
}

// Find returns the container of a pod with this name, which may be an init container or an ephemeral container.
func Find(pod *spec.Pod, name string) (*spec.Container, error) {
	if c := pod.Container(name); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("pod %s has no container %s", pod.Name, name)
}

// Start creates and starts a container, or finds it. A container that could not be started in time is removed. When the start of the
// process has begun, it is not interrupted when ctx is cancelled.
//
// The failure is [lifecycle.ReasonCreateConfigError] if the container's configuration is invalid on this host, for example a volume that
// does not have its type, and [lifecycle.ReasonCreateContainerError] if the engine cannot create the container. An error of the OCI
// runtime, for example a missing program or a mount that fails, is [lifecycle.ReasonStartError].
func (s *Service) Start(
	ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer,
) (lifecycle.ContainerStarted, error) {
	var none lifecycle.ContainerStarted
	ctx, cancel := engine.WithTimeout(ctx, engine.CreateTimeout)
	defer cancel()
	if err := record.CheckUID(uid); err != nil {
		return none, engine.Refused(ctx, lifecycle.ReasonCreateContainerError, err)
	}
	unlock, err := s.locks.Lock(ctx, uid+"/"+a.Container)
	if err != nil {
		// Another call is still using the container. This is not a failed attempt, and it is retried soon.
		return none, engine.Failure(ctx, lifecycle.FailureUnavailable, "", fmt.Errorf("wait for container %s: %w", a.Container, err))
	}
	defer unlock()
	if s.config.Engine.Unresponsive(record.SandboxID(uid, a.Sandbox)) {
		return none, engine.Failure(ctx, lifecycle.FailureUnavailable, "", engine.ErrUnresponsive)
	}
	c, err := s.adopt(ctx, uid, a.Ref)
	if err == nil && c == nil {
		c, err = s.create(ctx, uid, pod, a)
	}
	if err != nil {
		return none, engine.Refused(ctx, lifecycle.ReasonCreateContainerError, err)
	}
	info := record.Info(ctx, c)
	run, err := record.Run(info)
	if err != nil {
		return none, engine.Refused(ctx, lifecycle.ReasonCreateContainerError, err)
	}
	err = s.startProcess(ctx, pod, c, info.Labels)
	if err == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("started after the timeout: %w", ctx.Err()) // the caller has given up and would not supervise the container
	}
	if err != nil {
		err = startError(ctx, c, pod.Container(a.Container), err)
		err = engine.Failure(ctx, lifecycle.FailureRetry, lifecycle.ReasonStartError, s.redact(ctx, uid, pod, a.Container, err))
		return none, s.undo(ctx, c, withRun(engine.WithArchitectures(err, run.Architecture), run))
	}
	return lifecycle.ContainerStarted{Ref: run.Ref, ID: run.ID, Image: run.Image, ImageID: run.ImageID, Architecture: run.Architecture}, nil
}

// withRun adds the container to the failure of its start.
func withRun(err error, run lifecycle.Run) error {
	f, ok := errors.AsType[lifecycle.Failure](err)
	if !ok {
		return err
	}
	f.Run = lifecycle.Created{ID: run.ID, Image: run.Image, ImageID: run.ImageID, Architecture: run.Architecture}
	return f
}

// redact removes the values of secrets from an error of a container.
func (s *Service) redact(ctx context.Context, uid string, pod *spec.Pod, name string, err error) error {
	c, findErr := Find(pod, name)
	if findErr != nil {
		return err
	}
	ctx, cancel := engine.Detached(ctx, engine.UndoTimeout) // the start may have timed out
	defer cancel()
	return redactError(s.config.Values, s.filesOf(ctx, uid, pod), pod, c, err)
}

// adopt returns the container of a run if it exists and has, or had, a task: created, running or exited. A container without a task was not
// created completely and is removed. So is a container that could not be started, if an earlier daemon did not complete its removal.
func (s *Service) adopt(ctx context.Context, uid string, ref lifecycle.Ref) (client.Container, error) {
	c, err := s.config.Client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info := record.Info(ctx, c)
	if info.Labels[record.LabelUndone] != "" {
		if err := s.removeUndone(ctx, c); err != nil {
			return nil, engine.Failure(ctx, lifecycle.FailureUnavailable, "",
				fmt.Errorf("remove the container of an earlier start: %w", err))
		}
		return nil, nil
	}
	if info.Labels[record.LabelExit] != "" {
		return c, nil
	}
	_, err = s.config.Exits.Task(ctx, c)
	if err == nil {
		return c, nil
	}
	if !errdefs.IsNotFound(err) {
		return nil, err
	}
	return nil, c.Delete(ctx)
}

// startProcess starts the process of a container, unless it was started before.
func (s *Service) startProcess(ctx context.Context, pod *spec.Pod, c client.Container, labels map[string]string) error {
	if labels[record.LabelExit] != "" {
		return nil
	}
	ctx, cancel := engine.Detached(ctx, engine.CreateTimeout)
	defer cancel()
	ids, err := s.config.Users.Find(labels[record.LabelUID], pod)
	if err != nil {
		return err
	}
	task, err := c.Task(ctx, nil)
	if errdefs.IsNotFound(err) {
		task, err = c.NewTask(ctx, engine.Streams{
			Output: s.output(pod, c.ID(), labels), Terminal: labels[record.LabelTerminal] != "",
		}.Creator(), sandbox.TaskOpts(ids)...)
	}
	// An earlier daemon may not have removed these.
	err = errors.Join(err, s.processes.Remove(labels[record.LabelUID], c.ID()),
		s.config.Volumes.Release(ctx, labels[record.LabelUID], c.ID()))
	if err != nil {
		return err
	}
	status, err := task.Status(ctx)
	if err != nil {
		return err
	}
	if status.Status != client.Created {
		return nil
	}
	if own := pod.Container(labels[record.LabelContainer]); own != nil && own.TargetContainerName != "" {
		if err := s.checkTarget(ctx, labels[record.LabelUID], own.TargetContainerName, int(task.Pid())); err != nil {
			return err
		}
	}
	if err := s.completeScore(ctx, c, int(task.Pid())); err != nil {
		return err
	}
	return task.Start(ctx)
}

// stdinOf returns what the shim does with the standard input of a container.
func stdinOf(c *spec.Container) ocibundle.Stdin {
	switch {
	case c.Stdin && c.StdinOnce:
		return ocibundle.OnceStdin
	case c.Stdin:
		return ocibundle.OpenStdin
	}
	return ocibundle.NoStdin
}

// undo removes a container whose process could not be started. It returns cause, with the errors of the removal.
func (s *Service) undo(ctx context.Context, c client.Container, cause error) error {
	ctx, cancel := engine.Detached(ctx, engine.UndoTimeout)
	defer cancel()
	err := s.removeUndone(ctx, c)
	if err == nil {
		return cause
	}
	f, ok := errors.AsType[lifecycle.Failure](cause)
	if !ok {
		return errors.Join(cause, err)
	}
	f.Message += " (and the container could not be removed: " + err.Error() + ")"
	return f
}

// removeUndone kills and deletes a container that could not be started. The label is written before the exit: a daemon that is killed in
// between leaves the exit of a process that was never started. A process that was started is killed first, because a write can wait for the
// disk.
func (s *Service) removeUndone(ctx context.Context, c client.Container) error {
	if task, err := s.config.Exits.Task(ctx, c); err == nil {
		if status, err := task.Status(ctx); err == nil && status.Status == client.Running {
			_ = exit.Kill(ctx, task) // Terminate returns the error
		}
	}
	_, unmarked := c.SetLabels(ctx, map[string]string{record.LabelUndone: "true"})
	if err := s.config.Exits.Terminate(ctx, c); err != nil {
		return errors.Join(unmarked, err)
	}
	return s.Delete(ctx, c)
}

// snapshotter returns the service that holds the writable layers of containers.
func (s *Service) snapshotter() snapshots.Snapshotter {
	return s.config.Client.SnapshotService(s.config.Snapshotter)
}

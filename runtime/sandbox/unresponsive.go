package sandbox

import (
	"context"
	"errors"
	"strconv"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// WatchShim calls report when the shim of a sandbox stops responding, and when it responds again. It returns when the shim has exited
// or ctx ends.
func (s *Service) WatchShim(ctx context.Context, uid string, sandbox int, report func(responds bool)) error {
	return s.config.Engine.WatchShim(engine.Context(ctx), record.SandboxID(uid, sandbox), report)
}

// KillContainer kills the processes of a container whose shim does not respond, by its cgroup. If no container of the sandbox has a
// process then, it kills the shim too, so that the exits are known and a new sandbox can start. It reports whether it did that: a
// container whose shim responds is killed through it.
//
// It does not hold the lock of the pod, unlike KillLocked: a start or a removal of a sandbox holds the lock while it waits for the
// shim, and the death of the shim is what ends that wait. The lock would protect nothing: the ID of a sandbox is never reused, so that no
// other sandbox is killed; two kills of the same shim are the same as one; and the start of a container, which does not hold the lock
// either, fails without the shim and is retried in a new sandbox.
func (s *Service) KillContainer(ctx context.Context, uid string, ref lifecycle.Ref) (killed bool, err error) {
	ctx = engine.Context(ctx)
	c, err := s.config.Client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if err != nil {
		return false, ignoreNotFound(err)
	}
	info := record.Info(ctx, c)
	if !s.config.Engine.Unresponsive(info.SandboxID) {
		return false, nil
	}
	sandbox, err := strconv.Atoi(info.Labels[record.LabelSandbox])
	if err == nil {
		err = s.killContainer(ctx, uid, sandbox, c.ID())
	}
	return true, engine.Failure(ctx, lifecycle.FailureRetry, "", err)
}

func (s *Service) killContainer(ctx context.Context, uid string, sandbox int, id string) error {
	if err := s.config.Cgroups.Kill(ctx, uid, id); err != nil {
		return err
	}
	inside, err := s.containers(ctx, uid, sandbox)
	if err != nil {
		return err
	}
	for _, c := range inside {
		processes, err := proctree.List(s.config.Cgroups.ProcessDir(uid, c.ID()))
		if err != nil || len(processes) > 0 {
			return err
		}
	}
	return s.killUnresponsive(ctx, uid, sandbox, nil)
}

// killUnresponsive kills the containers of a sandbox by their cgroups, and then the shim, if it does not respond.
func (s *Service) killUnresponsive(ctx context.Context, uid string, sandbox int, inside []client.Container) error {
	id := record.SandboxID(uid, sandbox)
	if err := s.config.Engine.CheckShim(ctx, id); !errors.Is(err, engine.ErrUnresponsive) {
		return err
	}
	for _, c := range inside {
		if err := s.config.Cgroups.Kill(ctx, uid, c.ID()); err != nil {
			return err
		}
	}
	if err := s.config.Cgroups.Kill(ctx, uid, id); err != nil { // the process of the sandbox
		return err
	}
	return s.config.Engine.KillShim(ctx, id)
}

// containers returns the containers of a sandbox.
func (s *Service) containers(ctx context.Context, uid string, sandbox int) ([]client.Container, error) {
	list, err := record.Containers(ctx, s.config.Client, uid)
	if err != nil {
		return nil, err
	}
	var inside []client.Container
	for _, c := range list {
		if record.Info(ctx, c).Labels[record.LabelSandbox] == strconv.Itoa(sandbox) {
			inside = append(inside, c)
		}
	}
	return inside, nil
}

func ignoreNotFound(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

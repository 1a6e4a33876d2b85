package container

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/runtime/record"
)

// errTargetExited is the error for a target container that has exited since it was found.
var errTargetExited = errors.New("the container has just exited")

// target is the running container whose process namespace an ephemeral container joins.
type target struct {
	id  string
	pid int
}

// target returns a running container.
func (s *Service) target(ctx context.Context, uid, name string) (target, error) {
	list, err := record.Containers(ctx, s.config.Client, uid)
	if err != nil {
		return target{}, err
	}
	for _, c := range list {
		info := record.Info(ctx, c)
		if info.Labels[record.LabelContainer] != name || info.Labels[record.LabelExit] != "" {
			continue
		}
		task, err := s.config.Exits.Task(ctx, c)
		if err != nil {
			return target{}, fmt.Errorf("find processes of target container %q: %w", name, err)
		}
		return target{id: c.ID(), pid: int(task.Pid())}, nil
	}
	return target{}, fmt.Errorf("target container %q is not running", name)
}

// checkTarget returns an error unless a process that was created, but not started, is in the process namespace of a running container. The
// OCI runtime opens the namespace by the ID of a process, which another process of the host may have by then.
func (s *Service) checkTarget(ctx context.Context, uid, name string, created int) error {
	t, err := s.target(ctx, uid, name)
	if err != nil {
		return err
	}
	if err := inNamespaceOf(s.config.Cgroups.ProcessDir(uid, t.id), t.pid, created); err != nil {
		return fmt.Errorf("join processes of target container %q: %w", name, err)
	}
	return nil
}

// inNamespaceOf returns an error unless a created process is in the process namespace of another process, which is in a cgroup.
func inNamespaceOf(cgroup string, pid, created int) error {
	var want string
	err := proctree.While(cgroup, pid, func() (err error) {
		if want, err = os.Readlink(namespacePath(pid)); err != nil {
			return proctree.ErrExited
		}
		return nil
	})
	if errors.Is(err, proctree.ErrExited) {
		return errTargetExited
	}
	if err != nil {
		return err
	}
	got, err := os.Readlink(namespacePath(created))
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: the process is in another namespace", errTargetExited)
	}
	return nil
}

// namespacePath returns the path of the process namespace of a process.
func namespacePath(pid int) string { return fmt.Sprintf("/proc/%d/ns/pid", pid) }

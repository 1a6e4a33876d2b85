package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/volume"
)

// open opens the newest run of a container.
func (s *Service) open(ctx context.Context, uid, name string) (*container, error) {
	c, info, err := s.newest(ctx, uid, name)
	if err != nil {
		return nil, err
	}
	result := &container{}
	if result.spec, err = c.Spec(ctx); err != nil {
		return nil, fmt.Errorf("read specification: %w", err)
	}
	pod, err := record.Definition(info)
	if err != nil {
		return nil, err
	}
	if result.ids, err = s.config.IDs(uid, pod); err != nil {
		return nil, err
	}
	task, err := s.config.Task(ctx, c)
	if err == nil {
		var status client.Status
		if status, err = task.Status(ctx); err == nil &&
			(status.Status == client.Running || status.Status == client.Paused || status.Status == client.Pausing) {
			if result.root, err = s.openRunning(uid, c.ID(), int(task.Pid())); err != nil {
				return nil, err
			}
			return result, nil
		}
		if err == nil && status.Status == client.Created {
			return nil, &filecopy.Error{Kind: filecopy.Busy, Err: errors.New("the container is being started"), Hint: "try again"}
		}
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return nil, err
	}
	if info.Labels[record.LabelExit] == "" && errdefs.IsNotFound(err) {
		return nil, &filecopy.Error{Kind: filecopy.Busy, Err: errors.New("the container is being started or stopped"), Hint: "try again"}
	}
	paths, err := record.ImageDefined(info)
	if err != nil {
		return nil, err
	}
	pod = volume.WithImageDefined(pod, name, info.ID, paths)
	if err := s.openStopped(ctx, stopped{info: info, uid: uid, name: name, pod: pod}, result); err != nil {
		return nil, err
	}
	return result, nil
}

// newest returns the container with the newest run of this name.
func (s *Service) newest(ctx context.Context, uid, name string) (client.Container, containers.Container, error) {
	list, err := record.Containers(ctx, s.config.Client, uid)
	if err != nil {
		return nil, containers.Container{}, err
	}
	var found client.Container
	var foundInfo containers.Container
	var position []int
	for _, c := range list {
		info := record.Info(ctx, c)
		if info.Labels[record.LabelContainer] != name {
			continue
		}
		run, err := record.Run(info)
		if err != nil {
			return nil, info, err
		}
		if at := []int{run.Round, run.Attempt}; found == nil || slices.Compare(at, position) > 0 {
			found, foundInfo, position = c, info, at
		}
	}
	if found == nil {
		return nil, foundInfo, &filecopy.Error{
			Kind: filecopy.Conflict, Err: errors.New("the container has no files: it was not started, or its files were removed"),
			Hint: "run podstead get to see the state of the pod",
		}
	}
	return found, foundInfo, nil
}

// openRunning opens the root directory of a process of a container.
func (s *Service) openRunning(uid, id string, pid int) (*filecopy.Root, error) {
	var fd int
	err := proctree.While(s.config.ProcessDir(uid, id), pid, func() (err error) {
		fd, err = unix.Open("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return proctree.ErrExited
		}
		return nil
	})
	if err == nil {
		return filecopy.NewRoot(os.NewFile(uintptr(fd), "/")), nil
	}
	if fd > 0 {
		_ = unix.Close(fd)
	}
	if errors.Is(err, proctree.ErrExited) {
		err = &filecopy.Error{Kind: filecopy.Busy, Err: errors.New("the container has just exited"), Hint: "try again"}
	}
	return nil, err
}

package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/exit"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Remove removes a run that has exited, and older runs of its container. A running container is an error.
func (s *Service) Remove(ctx context.Context, uid string, ref lifecycle.Ref) error {
	ctx, cancel := engine.WithTimeout(ctx, engine.RemoveTimeout)
	defer cancel()
	unlock, err := s.locks.Lock(ctx, uid+"/"+ref.Container)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.deleteUpTo(ctx, uid, ref); err != nil {
		return engine.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("remove container %s: %w", ref.Container, err))
	}
	return nil
}

// deleteUpTo deletes the runs of a container up to the attempt of ref.
func (s *Service) deleteUpTo(ctx context.Context, uid string, ref lifecycle.Ref) error {
	list, err := record.Containers(ctx, s.config.Client, uid)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range list {
		info := record.Info(ctx, c)
		run, err := record.Run(info)
		if err == nil && run.Container == ref.Container && run.Attempt <= ref.Attempt {
			if info.Labels[record.LabelUndone] != "" { // its process may exist
				err = s.removeUndone(ctx, c)
			} else {
				err = s.Delete(ctx, c)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Delete deletes a container that has exited: its task, its log, its files, its writable layer, and last its record, by which the rest is
// found. The caller makes sure that no other call uses the container.
func (s *Service) Delete(ctx context.Context, c client.Container) error {
	return s.delete(ctx, c, crilog.Remove)
}

// Collect is Delete, but keeps the log.
func (s *Service) Collect(ctx context.Context, c client.Container) error {
	return s.delete(ctx, c, func(string) error { return nil })
}

func (s *Service) delete(ctx context.Context, c client.Container, removeLog func(path string) error) error {
	if err := s.config.Exits.Settle(ctx, c.ID()); err != nil {
		return err
	}
	if err := exit.DeleteTask(ctx, c); err != nil {
		return err
	}
	info := record.Info(ctx, c)
	if path := info.Labels[record.LabelLog]; path != "" {
		if err := removeLog(path); err != nil {
			return err
		}
	}
	if err := s.release(ctx, info.Labels[record.LabelUID], c.ID(), info.Labels[record.LabelContainer]); err != nil {
		return err
	}
	if err := c.Delete(ctx); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	s.config.Garbage.Request()
	return nil
}

// release removes the files and mounts of a container.
func (s *Service) release(ctx context.Context, uid, id, container string) error {
	err := s.config.Volumes.Release(ctx, uid, id)
	if err == nil {
		err = s.config.Volumes.RemoveImageDefined(ctx, uid, id)
	}
	if e := os.Remove(s.config.Dirs.Message(uid, container, id)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, s.processes.Remove(uid, id))
}

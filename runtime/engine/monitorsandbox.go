package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/shim"
)

// monitorDir is the monitor's state directory in State.
const monitorDir = "monitor"

// openMonitor connects to the monitor.
func (e *Engine) openMonitor(ctx context.Context, a access) error {
	l, err := openLink(ctx, linkOptions{
		Dir: filepath.Join(e.opt.State, monitorDir), Program: e.opt.MonitorPath, Cgroup: e.opt.MonitorCgroup, Place: e.opt.PlaceMonitor,
		Log: e.opt.Log,
	})
	if err != nil {
		return err
	}
	e.link, a.tasks.link, a.tasks.state = l, l, e.opt.State
	if err := e.sweepMonitored(ctx); err != nil { // one process that cannot be killed must not prevent the start
		e.opt.Log.WarnContext(ctx, "cannot remove leftovers of a previous engine", slog.Any("error", err))
	}
	return nil
}

// CloseMonitor closes the connection to the monitor, of which containers cannot be used afterwards. A monitor without containers is shut
// down. [Engine.Close] calls it, too.
func (e *Engine) CloseMonitor() error {
	if e.link == nil {
		return nil
	}
	return e.link.close()
}

// sweepMonitored ends the containers and sandboxes of the monitor that have no record: the metadata was replaced because it was damaged, or
// a start was not undone. It also removes bundles that the monitor does not know.
func (e *Engine) sweepMonitored(ctx context.Context) error {
	ctx, cancel := WithTimeout(ctx, RemoveTimeout)
	defer cancel()
	var errs []error
	sandboxes := e.link.allSandboxes()
	for _, c := range e.link.all() {
		if c.Sandbox == "" { // the process of a sandbox, which may have exited
			if !slices.Contains(sandboxes, c.ID) {
				sandboxes = append(sandboxes, c.ID)
			}
			continue
		}
		_, err := e.client.ContainerService().Get(ctx, c.ID)
		if errdefs.IsNotFound(err) {
			err = e.endMonitored(ctx, c)
		}
		errs = append(errs, err)
	}
	for _, name := range sandboxes {
		_, err := e.client.SandboxStore().Get(ctx, name)
		if errdefs.IsNotFound(err) {
			err = e.link.deleteSandbox(ctx, name)
		}
		errs = append(errs, err)
	}
	dirs, err := filepath.Glob(filepath.Join(e.opt.State, monitoredBundles, "*"))
	for _, dir := range dirs {
		id := filepath.Base(dir)
		if _, known := e.link.get(id); !known && !e.link.hasSandbox(id) {
			errs = append(errs, removeBundle(dir))
		}
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("end containers without a record: %w", err)
	}
	return nil
}

// endMonitored kills a container and deletes it from the monitor.
func (e *Engine) endMonitored(ctx context.Context, c monitor.Container) error {
	err := e.link.ask(ctx, true, func(m *monitor.Client) error {
		return m.Signal(ctx, monitor.Signal{Container: c.ID, Signal: int(unix.SIGKILL), All: true})
	})
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	err = e.link.until(ctx, func() bool {
		c, known := e.link.containers[c.ID]
		return !known || c.Exit != nil
	})
	if err != nil {
		return err
	}
	err = e.link.ask(ctx, true, func(m *monitor.Client) error {
		_, err := m.Delete(ctx, c.ID)
		return err
	})
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	e.link.change(func() { e.link.forget(c.ID, "") })
	return nil
}

// ExitUnknown reports whether a container has exited and it is not known how.
func (e *Engine) ExitUnknown(id string) bool {
	c, ours := e.monitored(id)
	return ours && c.Exit != nil && c.Exit.Unknown
}

// Runs reports whether the monitor runs a container.
func (e *Engine) Runs(id string) bool {
	_, ours := e.monitored(id)
	return ours
}

// RunCommand is [monitor.Client.Run], for a container that the monitor runs. It is not repeated if the monitor is lost: a command may not
// run twice.
func (e *Engine) RunCommand(ctx context.Context, r monitor.Run) (result monitor.RunResult, err error) {
	err = e.link.ask(ctx, false, func(m *monitor.Client) error {
		result, err = m.Run(ctx, r)
		return err
	})
	return result, err
}

// monitored returns the state of a container, and whether the monitor runs it.
func (e *Engine) monitored(id string) (monitor.Container, bool) {
	return e.link.get(id)
}

func sessionOf(c monitor.Container, exec string) int {
	for _, p := range c.Processes {
		if p.ID == exec {
			return p.Session
		}
	}
	return 0
}

// startMonitored creates a sandbox of the monitor: a record, and a process if the options have one.
func (e *Engine) startMonitored(ctx context.Context, id string, o SandboxOptions) (*Sandbox, error) {
	record, err := e.newRecord(id, SandboxOptions{Labels: o.Labels, Spec: o.Spec})
	if err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", id, err)
	}
	record.Sandboxer, record.Runtime.Name = monitorRuntime, monitorRuntime
	if _, err := e.client.SandboxStore().Create(ctx, record); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", id, err)
	}
	var pause *monitor.Create
	if o.Spec != nil {
		pause = &monitor.Create{ID: id, Rootfs: mountsOf(shim.PauseRoot(o.Spec)), PinPID: o.Spec.Annotations[shim.PIDAnnotation]}
		pause.Runtime, err = runtimeOf(record.Runtime.Options)
		if err == nil {
			pause.Bundle, err = makeBundle(e.opt.State, id, record.Spec.GetValue())
		}
	}
	if err == nil {
		e.link.change(func() { e.link.sandboxes[id] = true }) // the exit of its process may be known before the answer
		err = e.link.ask(ctx, false, func(m *monitor.Client) error {
			_, err := m.CreateSandbox(ctx, id, pause)
			return err
		})
	}
	if err != nil {
		undoing, cancel := Detached(ctx, UndoTimeout)
		defer cancel()
		e.link.change(func() { delete(e.link.sandboxes, id) })
		return nil, errors.Join(fmt.Errorf("start sandbox %s: %w", id, err), e.removeSandbox(undoing, id))
	}
	return e.LoadSandbox(ctx, id)
}

// removeMonitored removes a sandbox of the monitor with its record.
func (e *Engine) removeMonitored(ctx context.Context, id string) error {
	if e.link == nil {
		return fmt.Errorf("sandbox %s: the monitor is not available: %w", id, errdefs.ErrUnavailable)
	}
	if err := e.link.deleteSandbox(ctx, id); err != nil {
		return err
	}
	if err := removeBundle(filepath.Join(e.opt.State, monitoredBundles, id)); err != nil {
		return err
	}
	if err := e.client.SandboxStore().Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/ocibundle"
)

// monitorDir is the monitor's state directory in State.
const monitorDir = "monitor"

// MonitorDir returns the state directory of the monitor of an engine with this directory for runtime state.
func MonitorDir(state string) string { return filepath.Join(state, monitorDir) }

// openMonitor connects to the monitor. One that cannot be reached does not prevent the start of the engine, see [Engine.loadMonitored].
func (e *Engine) openMonitor(ctx context.Context, a access) error {
	bundles, err := filepath.Glob(filepath.Join(e.opt.State, monitoredBundles, "*"))
	if err != nil {
		return err
	}
	l, err := openLink(ctx, linkOptions{
		Dir: MonitorDir(e.opt.State), Program: e.opt.MonitorPath, Cgroup: e.opt.MonitorCgroup, Place: e.opt.PlaceMonitor,
		Report: e.opt.ReportMonitor, Log: e.opt.Log, commands: a.tasks.commands,
	})
	if err != nil {
		return err
	}
	e.link, a.tasks.link, a.tasks.state, a.tasks.roots = l, l, e.opt.State, e.opt.Roots
	if !l.isListed() {
		e.unswept = append([]string{}, bundles...)
		return nil
	}
	e.sweepOfMonitor(ctx, bundles)
	return nil
}

// sweepOfMonitor is [Engine.sweepMonitored]. One process that cannot be killed must not prevent the start.
func (e *Engine) sweepOfMonitor(ctx context.Context, bundles []string) {
	if err := e.sweepMonitored(ctx, bundles); err != nil {
		e.opt.Log.WarnContext(ctx, "cannot remove leftovers of a previous engine", slog.Any("error", err))
	}
}

// loadMonitored sets the sandboxes of a monitor that could not be reached aside until it is reached: their containers run, and are not
// known.
func (e *Engine) loadMonitored(ctx context.Context) error {
	if e.unswept == nil {
		return nil
	}
	ctx = Context(ctx)
	records, err := e.client.SandboxStore().List(ctx)
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	var ids []string
	e.aside.mu.Lock()
	defer e.aside.mu.Unlock()
	for _, r := range records {
		if r.Sandboxer == monitorRuntime {
			ids = append(ids, r.ID)
			e.aside.loaded[r.ID] = make(chan struct{})
		}
	}
	e.aside.loaders.Go(func() {
		if e.link.until(ctx, func() bool { return e.link.listed }) != nil {
			return
		}
		e.sweepOfMonitor(ctx, e.unswept)
		for _, id := range ids {
			e.aside.remove(id)
		}
	})
	return nil
}

// CloseMonitor closes the connection to the monitor, of which containers cannot be used afterwards. A monitor without containers is shut
// down. [Engine.Close] calls it, too.
func (e *Engine) CloseMonitor() error {
	if e.link == nil { // it was not started
		return nil
	}
	err := e.link.close()
	if errors.Is(err, unix.EBUSY) { // its cgroup has the monitor of a daemon with other directories
		return nil
	}
	return err
}

// sweepMonitored ends the containers and sandboxes of the monitor that have no record: the metadata was replaced because it was damaged, or
// a start was not undone. It also removes those of the bundles that the monitor does not know.
func (e *Engine) sweepMonitored(ctx context.Context, bundles []string) error {
	ctx, cancel := WithTimeout(ctx, RemoveTimeout)
	defer cancel()
	errs := []error{e.endLostMonitors(ctx), e.restoreMonitored(ctx)}
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
	for _, dir := range bundles {
		id := filepath.Base(dir)
		_, known, err := e.link.find(ctx, e.opt.State, id)
		if err == nil && !known && !e.link.hasSandbox(id) {
			err = removeBundle(dir)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
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

// IsMonitored reports whether a container is, or will be, one of the monitor, by its record.
func IsMonitored(c containers.Container) bool { return c.Runtime.Name == monitorRuntime }

// Runs reports whether the monitor has a container. One that is being created or started is waited for.
func (e *Engine) Runs(ctx context.Context, id string) (bool, error) {
	_, ours, err := e.link.find(ctx, e.opt.State, id)
	return ours, err
}

// IsIdle reports whether a sandbox is with the monitor and has no process, neither of its own nor of a container. The monitor may not have
// recorded an exit yet.
func (s *Sandbox) IsIdle() bool {
	return s.pid == 0 && !slices.ContainsFunc(s.e.link.all(), func(c monitor.Container) bool {
		return (c.Sandbox == s.id || c.ID == s.id) && c.Exit == nil && s.e.hasProcesses(c.ID)
	})
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
	record, err := e.newRecord(id, o)
	if err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", id, err)
	}
	if _, err := e.client.SandboxStore().Create(ctx, record); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", id, err)
	}
	var pause *monitor.Create
	if o.Spec != nil {
		pause = &monitor.Create{ID: id, Rootfs: mountsOf(ocibundle.PauseRoot(o.Spec)), PinPID: o.Spec.Annotations[ocibundle.PIDAnnotation]}
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
	if err == nil {
		e.link.change(func() { // a reconnection meanwhile has replaced what is known; an exit is not forgotten
			if e.link.containers[id].Exit == nil {
				e.link.sandboxes[id] = true
			}
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

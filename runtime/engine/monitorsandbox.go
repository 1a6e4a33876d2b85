package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/errdefs"

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
	return nil
}

// monitored returns the state of a container, and whether the monitor runs it.
func (e *Engine) monitored(id string) (monitor.Container, bool) {
	if e.link == nil {
		return monitor.Container{}, false
	}
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
		pause = &monitor.Create{ID: id, Sandbox: id, Rootfs: mountsOf(shim.PauseRoot(o.Spec)), PinPID: o.Spec.Annotations[shim.PIDAnnotation]}
		pause.Runtime, err = runtimeOf(record.Runtime.Options)
		if err == nil {
			pause.Bundle, err = makeBundle(e.opt.State, id, record.Spec.GetValue())
		}
	}
	if err == nil {
		err = e.link.ask(ctx, false, func(m *monitor.Client) error {
			_, err := m.CreateSandbox(ctx, id, pause)
			return err
		})
	}
	if err != nil {
		undo := e.removeSandbox(context.WithoutCancel(ctx), id)
		return nil, errors.Join(fmt.Errorf("start sandbox %s: %w", id, err), undo)
	}
	e.link.change(func() { e.link.sandboxes[id] = true })
	return e.LoadSandbox(ctx, id)
}

// removeMonitored removes a sandbox of the monitor with its record.
func (e *Engine) removeMonitored(ctx context.Context, id string) error {
	if e.link == nil {
		return fmt.Errorf("sandbox %s: the monitor is not available: %w", id, errdefs.ErrUnavailable)
	}
	err := e.link.ask(ctx, true, func(m *monitor.Client) error { return m.DeleteSandbox(ctx, id) })
	if err != nil {
		return err
	}
	e.link.change(func() {
		delete(e.link.sandboxes, id)
		e.link.forget(id, "")
	})
	if err := os.RemoveAll(filepath.Join(e.opt.State, monitoredBundles, id)); err != nil {
		return err
	}
	if err := e.client.SandboxStore().Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

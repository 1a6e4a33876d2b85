package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/ttrpc"
	"github.com/containerd/typeurl/v2"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/shim"
)

// clearTimeout bounds the wait for what is left of a sandbox to end by itself.
const clearTimeout = 10 * time.Second

// cgroupLabel keeps the place of a sandbox's shim, for its removal.
const cgroupLabel = "podstead.io/shim-cgroup"

// SandboxOptions are what a sandbox is made with. The zero value is usable.
type SandboxOptions struct {
	// Labels are kept with the sandbox's record.
	Labels map[string]string
	// Cgroup is where the sandbox's shim is to live, relative to the root of the cgroup hierarchies. It is made, and
	// removed after the shim has ended; its parents stay. Empty is the cgroup of this process.
	Cgroup string
	// Spec has a process for the sandbox that is to be PID 1 of a namespace for its containers; see [shim.PIDAnnotation]. It
	// lives as long as the shim, and the shim no longer than it. Nil is a sandbox that needs none.
	Spec *specs.Spec
}

// Sandbox is a shim: the process that a pod's containers share. It holds no namespaces.
type Sandbox struct {
	e         *Engine
	id        string
	pid       int
	labels    map[string]string
	createdAt time.Time
}

// StartSandbox starts a shim for a new sandbox. If there is a live sandbox of this ID it is taken as it is; what is
// left of a dead one is cleaned up first.
func (e *Engine) StartSandbox(ctx context.Context, id string, o SandboxOptions) (*Sandbox, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	if s, err := e.LoadSandbox(ctx, id); err == nil {
		return s, nil
	} else if !errdefs.IsNotFound(err) {
		return nil, err
	}
	if err := e.removeSandbox(ctx, id); err != nil {
		return nil, fmt.Errorf("start sandbox %s: clean up the former one: %w", id, err)
	}
	record, err := e.newRecord(id, o)
	if err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", id, err)
	}
	// The record comes first: containerd, should we be killed in between, ends shims without one when it comes back,
	// and ours does not heed it once it is a sandbox.
	store := e.client.SandboxStore()
	if _, err := store.Create(ctx, record); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", id, err)
	}
	err = e.controller.Create(ctx, record, sandbox.WithOptions(e.RuntimeOptions()))
	if err == nil {
		_, err = e.controller.Start(ctx, id)
	}
	if err != nil {
		undo := e.removeSandbox(context.WithoutCancel(ctx), id)
		return nil, errors.Join(fmt.Errorf("start sandbox %s: %w", id, err), undo)
	}
	return e.LoadSandbox(ctx, id)
}

func (e *Engine) newRecord(id string, o SandboxOptions) (sandbox.Sandbox, error) {
	opts := e.RuntimeOptions()
	opts.ShimCgroup = o.Cgroup
	runtime, err := typeurl.MarshalAny(opts)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	process := o.Spec
	if process == nil {
		process = &specs.Spec{Version: specs.Version} // containerd's launcher of shims reads one
	}
	spec, err := typeurl.MarshalAny(process)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	labels := maps.Clone(o.Labels)
	if o.Cgroup != "" {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[cgroupLabel] = o.Cgroup
	}
	now := time.Now().UTC()
	return sandbox.Sandbox{
		ID:        id,
		Labels:    labels,
		Runtime:   sandbox.RuntimeOpts{Name: e.opt.ShimPath, Options: runtime},
		Spec:      spec,
		Sandboxer: sandboxController,
		CreatedAt: now,
		UpdatedAt: now,
	}, nil
}

// LoadSandbox returns a sandbox whose shim is alive, and else an error that [errdefs.IsNotFound].
func (e *Engine) LoadSandbox(ctx context.Context, id string) (*Sandbox, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	record, err := e.client.SandboxStore().Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load sandbox %s: %w", id, err)
	}
	status, err := e.status(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load sandbox %s: %w", id, err)
	}
	return &Sandbox{e: e, id: id, pid: int(status.Pid), labels: record.Labels, createdAt: status.CreatedAt}, nil
}

// status asks the shim. Its error is NotFound where there is none, where it is dead, and where it was started but never
// told to be a sandbox.
func (e *Engine) status(ctx context.Context, id string) (sandbox.ControllerStatus, error) {
	s, err := e.controller.Status(ctx, id, false)
	switch {
	case errors.Is(err, ttrpc.ErrClosed):
		return s, fmt.Errorf("its shim has died: %w", errdefs.ErrNotFound)
	case err != nil:
		return s, errgrpc.ToNative(err)
	case s.Pid == 0:
		return s, fmt.Errorf("it has no shim: %w", errdefs.ErrNotFound)
	}
	return s, nil
}

// RemoveSandbox shuts a sandbox down whose shim may be alive or dead, and forgets it. It is no error if there is none.
// A sandbox that still has containers is refused with an error that [errdefs.IsFailedPrecondition].
func (e *Engine) RemoveSandbox(ctx context.Context, id string) error {
	if err := e.removeSandbox(namespaces.WithNamespace(ctx, Namespace), id); err != nil {
		return fmt.Errorf("remove sandbox %s: %w", id, err)
	}
	return nil
}

func (e *Engine) removeSandbox(ctx context.Context, id string) error {
	store := e.client.SandboxStore()
	record, err := store.Get(ctx, id)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.endShim(ctx, id); err != nil {
		return err
	}
	if err := e.clearPlace(ctx, id, record.Labels[cgroupLabel]); err != nil {
		return err
	}
	if err := store.Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// endShim ends the shim of a sandbox, if there is one, and returns when its process and containerd's memory of it are
// gone.
func (e *Engine) endShim(ctx context.Context, id string) error {
	var p processHandle
	if status, err := e.status(ctx, id); err == nil {
		if p, err = openProcess(int(status.Pid)); err != nil {
			return err
		}
		defer p.close()
	} else if !errdefs.IsNotFound(err) {
		return err
	}
	if err := e.controller.Shutdown(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		// A shim that dies in this moment does not answer. One that still does has refused.
		if _, gone := e.status(ctx, id); gone == nil {
			return err
		}
	}
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("wait for its shim's end: %w", err)
	}
	// containerd notices the death of a shim by itself, cleans up, and only then forgets it.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if s, err := e.controller.Status(ctx, id, false); err == nil && s.Pid == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for its shim to be cleaned up: %w", ctx.Err())
		}
	}
}

// clearPlace removes the cgroup of a shim that has ended. There may be one more, or even one that is still being
// started, which an engine that was killed knew and we do not.
func (e *Engine) clearPlace(ctx context.Context, id, place string) error {
	ctx, cancel := context.WithTimeout(ctx, clearTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := shim.Retire(ctx, e.socketDir(), e.grpcAddress(), id)
		if err == nil && place != "" {
			err = cgroup.Remove(place)
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// ID is the sandbox's ID.
func (s *Sandbox) ID() string { return s.id }

// Pid is the shim's process.
func (s *Sandbox) Pid() int { return s.pid }

// CreatedAt is when the sandbox was made.
func (s *Sandbox) CreatedAt() time.Time { return s.createdAt }

// Labels are those of [SandboxOptions], for reading.
func (s *Sandbox) Labels() map[string]string { return s.labels }

// NewContainer makes the record of a container that is to run under this sandbox's shim.
func (s *Sandbox) NewContainer(ctx context.Context, id string, opts ...client.NewContainerOpts) (client.Container, error) {
	ours := []client.NewContainerOpts{
		client.WithRuntime(s.e.opt.ShimPath, s.e.RuntimeOptions()),
		client.WithSandbox(s.id),
	}
	return s.e.client.NewContainer(namespaces.WithNamespace(ctx, Namespace), id, append(ours, opts...)...)
}

// Wait returns nil when the shim's process has ended, for whatever reason, and else ctx's error.
func (s *Sandbox) Wait(ctx context.Context) error {
	p, err := openProcess(s.pid)
	if err != nil {
		return fmt.Errorf("wait for sandbox %s: %w", s.id, err)
	}
	defer p.close()
	// The process ID could have come to another process. A shim that answers now is the one that was opened.
	if _, err := s.e.LoadSandbox(ctx, s.id); errdefs.IsNotFound(err) {
		return nil
	}
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("wait for sandbox %s: %w", s.id, err)
	}
	return nil
}

// Shutdown is [Engine.RemoveSandbox] of this sandbox.
func (s *Sandbox) Shutdown(ctx context.Context) error { return s.e.RemoveSandbox(ctx, s.id) }

// LogTo has a new task's output written to a log by its shim; see [client.Container.NewTask] and package crilog.
func LogTo(path string, o crilog.Options) cio.Creator { return cio.LogURI(shim.LogURI(path, o)) }

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/ttrpc"
	"github.com/containerd/typeurl/v2"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/cgroup"
)

// cleanupTimeout bounds the cleanup after a shim: its socket and its cgroup.
const cleanupTimeout = 10 * time.Second

// cgroupLabel of a sandbox with a shim is the shim's cgroup, for its removal.
const cgroupLabel = "podstead.io/shim-cgroup"

// runtimeLabel of a sandbox is its own OCI runtime, which its containers have, too.
const runtimeLabel = "podstead.io/oci-runtime"

// SandboxOptions configure a new sandbox. The zero value is usable.
type SandboxOptions struct {
	// Labels are stored in the sandbox's record.
	Labels map[string]string
	// Spec contains a process for the sandbox that becomes PID 1 of a namespace for its containers; see [ocibundle.PIDAnnotation].
	// Nil means no process.
	Spec *specs.Spec
	// Runtime is the name or path of the OCI runtime of the sandbox and of its containers; empty: that of [Engine.SetRuntime].
	Runtime string
}

// Sandbox is a record that the containers of a pod share, and what belongs to it: a process if its options have one, or the shim of an
// earlier version. It holds no namespaces.
type Sandbox struct {
	e         *Engine
	id        string
	pid       int
	labels    map[string]string
	createdAt time.Time
}

// Label returns a label of the sandbox's record; "": it has no such label.
func (s *Sandbox) Label(name string) string { return s.labels[name] }

// StartSandbox starts a sandbox with the monitor. A live sandbox with this ID is returned unchanged. Leftovers of a dead one are removed
// first.
func (e *Engine) StartSandbox(ctx context.Context, id string, o SandboxOptions) (*Sandbox, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	if s, err := e.LoadSandbox(ctx, id); err == nil {
		return s, nil
	} else if !errdefs.IsNotFound(err) {
		return nil, err
	}
	if err := e.removeSandbox(ctx, id); err != nil {
		return nil, fmt.Errorf("start sandbox %s: remove the previous one: %w", id, err)
	}
	return e.startMonitored(ctx, id, o)
}

func (e *Engine) newRecord(id string, o SandboxOptions) (sandbox.Sandbox, error) {
	runtime, err := typeurl.MarshalAny(e.runtimeOptions(o.Runtime))
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	process := o.Spec
	if process == nil {
		process = &specs.Spec{Version: specs.Version} // a record has one
	}
	spec, err := typeurl.MarshalAny(process)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	labels := maps.Clone(o.Labels)
	if o.Runtime != "" {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[runtimeLabel] = o.Runtime
	}
	now := time.Now().UTC()
	return sandbox.Sandbox{
		ID:        id,
		Labels:    labels,
		Runtime:   sandbox.RuntimeOpts{Name: monitorRuntime, Options: runtime},
		Spec:      spec,
		Sandboxer: monitorRuntime,
		CreatedAt: now,
		UpdatedAt: now,
	}, nil
}

// LoadSandbox returns a sandbox whose shim is alive. Otherwise the error satisfies [errdefs.IsNotFound]. It is [ErrUnresponsive] if the
// shim does not respond.
func (e *Engine) LoadSandbox(ctx context.Context, id string) (*Sandbox, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	record, err := e.client.SandboxStore().Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load sandbox %s: %w", id, err)
	}
	if e.link.hasSandbox(id) {
		return &Sandbox{e: e, id: id, labels: record.Labels, createdAt: record.CreatedAt}, nil
	}
	status, err := e.status(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load sandbox %s: %w", id, err)
	}
	return &Sandbox{e: e, id: id, pid: int(status.Pid), labels: record.Labels, createdAt: status.CreatedAt}, nil
}

// status queries the shim. The error is NotFound if there is no shim, if it is dead, or if it started but CreateSandbox never
// reached it. It is [ErrUnresponsive] if the shim does not respond.
func (e *Engine) status(ctx context.Context, id string) (sandbox.ControllerStatus, error) {
	if e.Unresponsive(id) {
		return sandbox.ControllerStatus{}, ErrUnresponsive
	}
	return e.statusWithin(ctx, id, statusTimeout)
}

func (e *Engine) askStatus(ctx context.Context, id string) (sandbox.ControllerStatus, error) {
	s, err := e.controller.Status(ctx, id, false)
	switch {
	case errors.Is(err, ttrpc.ErrClosed):
		return s, fmt.Errorf("shim is dead: %w", errdefs.ErrNotFound)
	case err != nil:
		return s, errgrpc.ToNative(err)
	case s.Pid == 0:
		return s, fmt.Errorf("no shim: %w", errdefs.ErrNotFound)
	}
	return s, nil
}

// RemoveSandbox shuts down a sandbox, whose shim may be alive or dead, and deletes its record. It succeeds if there is no such
// sandbox. If the sandbox has containers, the error satisfies [errdefs.IsFailedPrecondition].
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
	if record.Sandboxer == monitorRuntime {
		return e.removeMonitored(ctx, id)
	}
	if err := e.stopShim(ctx, id); err != nil {
		return err
	}
	if err := e.removeRemains(ctx, id, record.Labels[cgroupLabel]); err != nil {
		return err
	}
	if err := store.Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return removeLinks(e.opt.State)
}

// stopShim stops the shim of a sandbox, if there is one. It returns when the process has exited and containerd has released the
// shim.
func (e *Engine) stopShim(ctx context.Context, id string) error {
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
		// A shim that is just exiting does not answer. A shim that still answers has refused.
		if _, gone := e.status(ctx, id); gone == nil {
			return err
		}
	}
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("wait for shim to exit: %w", err)
	}
	return e.awaitReleased(ctx, id)
}

// awaitReleased waits until containerd has released the shim of a sandbox. containerd detects the exit of a shim by itself, cleans up,
// and releases it last.
func (e *Engine) awaitReleased(ctx context.Context, id string) error {
	for range guard.Poll(ctx, 20*time.Millisecond) {
		if s, err := e.controller.Status(ctx, id, false); err == nil && s.Pid == 0 {
			return nil
		}
	}
	return fmt.Errorf("wait for containerd to clean up shim: %w", ctx.Err())
}

// removeRemains removes the socket and the cgroup of a shim that has exited. It also kills other shims of this ID: a daemon of an earlier
// version that was killed can have left one, possibly still starting, that no record names.
func (e *Engine) removeRemains(ctx context.Context, id, path string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	address, err := containerdshim.CreateSocketAddress(ctx, e.socketDir(), e.grpcAddress(), id, false)
	if err != nil {
		return err
	}
	for range guard.Poll(ctx, 50*time.Millisecond) {
		err = e.killShims(ctx, func(other string) bool { return other == id })
		if err == nil && path != "" {
			err = cgroup.Remove(path)
		}
		if err == nil {
			return ignoreMissing(containerdshim.RemoveSocket(address))
		}
	}
	return err
}

// ID is the sandbox's ID.
func (s *Sandbox) ID() string { return s.id }

// runtimeName is the name of the runtime in the records of the sandbox's containers.
func (s *Sandbox) runtimeName() string {
	if s.pid == 0 {
		return monitorRuntime
	}
	return s.e.opt.ShimPath
}

// Pid is the process ID of the shim, 0 if the sandbox has none: it is with the monitor.
func (s *Sandbox) Pid() int { return s.pid }

// CreatedAt is the creation time of the sandbox.
func (s *Sandbox) CreatedAt() time.Time { return s.createdAt }

// Labels are those of [SandboxOptions]. They must not be modified.
func (s *Sandbox) Labels() map[string]string { return s.labels }

// Runtime is the name or path of the sandbox's own OCI runtime, "": it has that of [Engine.SetRuntime].
func (s *Sandbox) Runtime() string { return s.labels[runtimeLabel] }

// WithUserNamespace is an option of [Sandbox.NewContainer] for a container with a user namespace.
func (s *Sandbox) WithUserNamespace() client.NewContainerOpts {
	return client.WithRuntime(monitorRuntime, s.e.runtimeOptions(cmp.Or(s.Runtime(), s.e.userNamespaces)))
}

// NewContainer creates the record of a container that runs under this sandbox's shim, after what opts create. Garbage is not collected
// meanwhile, so these need no lease as in containerd's client, which writes to the disk twice.
func (s *Sandbox) NewContainer(ctx context.Context, id string, opts ...client.NewContainerOpts) (client.Container, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	release, err := s.e.collector.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	ours := []client.NewContainerOpts{
		client.WithRuntime(s.runtimeName(), s.e.runtimeOptions(s.Runtime())),
		client.WithSandbox(s.id),
	}
	record := containers.Container{ID: id}
	for _, opt := range append(ours, opts...) {
		if err := opt(ctx, s.e.client, &record); err != nil {
			return nil, err
		}
	}
	if _, err := s.e.client.ContainerService().Create(ctx, record); err != nil {
		return nil, err
	}
	return s.e.client.LoadContainer(ctx, id)
}

// Wait returns nil when the shim has exited, for whatever reason, or the error of ctx.
func (s *Sandbox) Wait(ctx context.Context) error {
	if s.pid == 0 {
		return s.e.link.until(ctx, func() bool { return s.e.link.client != nil && !s.e.link.sandboxes[s.id] })
	}
	p, err := openProcess(s.pid)
	if err != nil {
		return fmt.Errorf("wait for sandbox %s: %w", s.id, err)
	}
	defer p.close()
	// The process ID may have been reused before it was opened. If the shim answers now, it is the process that was opened.
	if _, err := s.e.LoadSandbox(ctx, s.id); errdefs.IsNotFound(err) {
		return nil
	}
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("wait for sandbox %s: %w", s.id, err)
	}
	return nil
}

// Shutdown calls [Engine.RemoveSandbox] for this sandbox.
func (s *Sandbox) Shutdown(ctx context.Context) error { return s.e.RemoveSandbox(ctx, s.id) }

package engine

import (
	"context"
	"fmt"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/errdefs"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
)

// registerMounts registers the mount manager, which containerd's client requires.
func registerMounts() {
	registry.Register(&plugin.Registration{
		Type:   plugins.MountManagerPlugin,
		ID:     "none",
		InitFn: func(*plugin.InitContext) (any, error) { return noMounts{}, nil },
	})
}

// noMounts is a mount manager that leaves all mounts to its callers, as containerd's does for the mounts of the snapshotters overlayfs and
// native. That of containerd is for snapshotters whose mounts have to be prepared. It has a database, to which each garbage collection
// writes, and templates, which make the program larger (TestMethodsByName).
type noMounts struct{}

// Activate implements [mount.Manager].
func (noMounts) Activate(context.Context, string, []mount.Mount, ...mount.ActivateOpt) (mount.ActivationInfo, error) {
	return mount.ActivationInfo{}, errdefs.ErrNotImplemented
}

// Deactivate implements [mount.Manager].
func (noMounts) Deactivate(_ context.Context, name string) error { return noMount(name) }

// Info implements [mount.Manager].
func (noMounts) Info(_ context.Context, name string) (mount.ActivationInfo, error) {
	return mount.ActivationInfo{}, noMount(name)
}

// Update implements [mount.Manager].
func (noMounts) Update(_ context.Context, info mount.ActivationInfo, _ ...string) (mount.ActivationInfo, error) {
	return mount.ActivationInfo{}, noMount(info.Name)
}

// List implements [mount.Manager].
func (noMounts) List(context.Context, ...string) ([]mount.ActivationInfo, error) { return nil, nil }

func noMount(name string) error { return fmt.Errorf("mount %q: %w", name, errdefs.ErrNotFound) }

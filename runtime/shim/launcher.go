package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bootapi "github.com/containerd/containerd/api/runtime/bootstrap/v1"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/process"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/runc"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
)

// launcher is containerd's handling of the start of a shim and of the cleanup after a dead one, with two differences; see Start
// and Stop.
type launcher struct {
	containerdshim.Shim
}

// Start starts a shim. With the option ShimCgroup the shim starts in that cgroup: this process, which exits when the shim runs,
// joins it first.
func (l launcher) Start(ctx context.Context, p *bootapi.BootstrapParams) (*bootapi.BootstrapResult, error) {
	var o options.Options
	found, err := p.FindExtension(&o)
	if err != nil {
		return nil, fmt.Errorf("read runtime options: %w", err)
	}
	if found && o.ShimCgroup != "" {
		if err := cgroup.Join(o.ShimCgroup); err != nil {
			return nil, err
		}
		p.Extensions = nil // otherwise containerd moves the shim again, in one hierarchy only
	}
	// The caller has no record of an old shim, but containerd would return one that still listens.
	if err := Retire(ctx, p.GetSocketDir(), p.GetContainerdGrpcAddress(), p.GetInstanceID()); err != nil {
		return nil, err
	}
	return l.Shim.Start(ctx, p)
}

// Stop cleans up after a container without a shim, or after a sandbox. containerd also calls it after every deletion, when
// nothing remains. It does not run runc then, because that takes longer than the rest of the deletion.
func (l launcher) Stop(ctx context.Context, id string) (containerdshim.StopStatus, error) {
	var none containerdshim.StopStatus
	ns, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return none, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return none, err
	}
	bundle := filepath.Join(filepath.Dir(cwd), id)
	o, err := runc.ReadOptions(bundle)
	if err != nil {
		return none, err
	}
	if o != nil {
		root := o.Root
		if root == "" {
			root = process.RuncRoot
		}
		if _, err := os.Stat(filepath.Join(root, ns, id)); !errors.Is(err, os.ErrNotExist) {
			status, err := l.Shim.Stop(ctx, id)
			if err != nil {
				return status, err
			}
			return status, removeRoot(bundle)
		}
	}
	// Without options runc was never called. Without its state directory runc has nothing to clean up.
	if err := mount.UnmountRecursive(filepath.Join(bundle, "rootfs"), 0); err != nil {
		return none, err
	}
	if err := removeRoot(bundle); err != nil {
		return none, err
	}
	if e, err := runc.ReadExitStatus(bundle); err == nil {
		return containerdshim.StopStatus{Pid: e.Pid, ExitStatus: e.Status, ExitedAt: e.Timestamp}, nil
	}
	return containerdshim.StopStatus{ExitStatus: 128 + int(unix.SIGKILL), ExitedAt: time.Now()}, nil
}

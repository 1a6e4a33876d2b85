package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/process"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/runc"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/ocibundle"
)

// cleaner is containerd's cleanup after a dead shim, with a difference; see Stop.
type cleaner struct {
	containerdshim.Shim
}

// Stop cleans up after a container without a shim, or after a sandbox. containerd also calls it after every deletion, when
// nothing remains. It does not run runc then, because that takes longer than the rest of the deletion.
func (c cleaner) Stop(ctx context.Context, id string) (containerdshim.StopStatus, error) {
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
			status, err := c.Shim.Stop(ctx, id)
			if err != nil {
				return status, err
			}
			return status, ocibundle.RemoveRoot(bundle)
		}
	}
	// Without options runc was never called. Without its state directory runc has nothing to clean up.
	if err := mount.UnmountRecursive(filepath.Join(bundle, "rootfs"), 0); err != nil {
		return none, err
	}
	if err := ocibundle.RemoveRoot(bundle); err != nil {
		return none, err
	}
	if e, err := runc.ReadExitStatus(bundle); err == nil {
		return containerdshim.StopStatus{Pid: e.Pid, ExitStatus: e.Status, ExitedAt: e.Timestamp}, nil
	}
	return containerdshim.StopStatus{ExitStatus: 128 + int(unix.SIGKILL), ExitedAt: time.Now()}, nil
}

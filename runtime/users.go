package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"

	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// ownUsers reports whether a pod has a user namespace of its own.
func ownUsers(pod *spec.Pod) bool { return pod.HostUsers != nil && !*pod.HostUsers }

// allocateIDs gives a pod the ids of its users, if it has any of its own.
func (r *Runtime) allocateIDs(uid string, pod *spec.Pod) (idmap.Range, error) {
	if !ownUsers(pod) {
		return idmap.Range{}, nil
	}
	if err := r.openToUsers(false); err != nil {
		return idmap.Range{}, err
	}
	return r.ids.Allocate(uid)
}

// idsOf are the ids that a pod was given, which can be used when it returns.
func (r *Runtime) idsOf(uid string, pod *spec.Pod) (idmap.Range, error) {
	if !ownUsers(pod) {
		return idmap.Range{}, nil
	}
	if err := r.openToUsers(false); err != nil { // each start of the engine closes them
		return idmap.Range{}, err
	}
	return r.ids.Find(uid)
}

// openToUsers lets anybody pass through the folders that lead to the roots of containers, and does not let them see what is there:
// the root of a user namespace is nobody on the way to its own root folder. Folders that are not ours stay as they are, and one
// that cannot be passed through is an error. Where only is asked, nothing is changed.
func (r *Runtime) openToUsers(ask bool) error {
	ours, err := filepath.Abs(r.opts.RunDir)
	if err != nil {
		return fmt.Errorf("open folders to users of pods: %w", err)
	}
	for _, dir := range r.engine.BundleDirs() {
		if err := openTo(dir, ours, ask); err != nil {
			return fmt.Errorf("open folders to users of pods: %w", err)
		}
	}
	return nil
}

// closedError is a folder that is not ours, and that nobody but its owner can pass through.
type closedError struct {
	dir  string
	mode fs.FileMode
}

func (e closedError) Error() string {
	return fmt.Sprintf("nobody but its owner can pass through %s (mode %#o)", e.dir, e.mode)
}

// openTo is openToUsers for one folder, which need not be there yet, and those that it lies in.
func openTo(dir, ours string, ask bool) error {
	const pass = 0o011
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()
		switch own := dir == ours || strings.HasPrefix(dir, ours+"/"); {
		case mode&0o001 != 0, own && ask:
		case !own:
			return closedError{dir, mode}
		default:
			if err := os.Chmod(dir, mode|pass); err != nil {
				return err
			}
		}
	}
	return nil
}

// remapCapability is what a snapshotter says that can id-map.
const remapCapability = "remap-ids"

// canRemap asks the snapshotter whether it can show the layers of images to a pod's own users.
func (r *Runtime) canRemap(ctx context.Context) bool {
	capabilities, err := r.client.GetSnapshotterCapabilities(ctx, r.opts.Images.Snapshotter)
	if err != nil {
		r.log.WarnContext(ctx, "the snapshotter does not say what it can: pods with hostUsers = false are refused", slog.Any("error", err))
	}
	return slices.Contains(capabilities, remapCapability)
}

// admitUsers refuses a pod that cannot have users of its own on this machine.
func (r *Runtime) admitUsers(pod *spec.Pod) error {
	if !ownUsers(pod) {
		return nil
	}
	refusal := lifecycle.Refusal{Reason: lifecycle.ReasonUnexpectedAdmissionError, Field: "hostUsers"}
	if err := netns.CheckUsers(); err != nil {
		refusal.Message, refusal.Cause = err.Error(), err
		refusal.Hint = "sysctl -w user.max_user_namespaces=15000, and the same in /etc/sysctl.d"
		return refusal
	}
	if !r.remaps {
		refusal.Message = "the kernel, or the file system of the images, cannot id-map their layers"
		refusal.Hint = "use Linux 5.19 or later, and a file system that can be id-mapped (ext4, xfs, btrfs) for " + r.opts.StateDir
		return refusal
	}
	if err := r.openToUsers(true); err != nil {
		refusal.Message, refusal.Cause = err.Error(), err
		if closed, is := errors.AsType[closedError](err); is {
			refusal.Hint = "chmod o+x " + closed.dir
		}
		return refusal
	}
	return nil
}

// remapped has a snapshot show the files of an image to a pod's own users.
func remapped(ids idmap.Range) []snapshots.Opt {
	if ids.First == 0 {
		return nil
	}
	return []snapshots.Opt{client.WithUserNSRemapperLabels(ids.Mappings(), ids.Mappings())}
}

// withOwner gives the output of a task to the root of its pod, who may open it anew.
func withOwner(ids idmap.Range) []client.NewTaskOpts {
	if ids.First == 0 {
		return nil
	}
	return []client.NewTaskOpts{client.WithUIDOwner(ids.First), client.WithGIDOwner(ids.First)}
}

// give makes the root of a pod the owner of files that its containers are shown.
func give(ids idmap.Range, files ...string) error {
	if ids.First == 0 {
		return nil
	}
	for _, file := range files {
		if err := os.Lchown(file, int(ids.First), int(ids.First)); err != nil {
			return err
		}
	}
	return nil
}

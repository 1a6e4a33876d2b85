package sandbox

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
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Users prepares the user namespaces of pods (hostUsers = false, KEP-127, and keepID): the IDs of a pod, the permissions of directories on
// the path to its containers, and options of the container engine. It is safe for concurrent use.
type Users struct {
	ranges *namespace.IDRanges
	dirs   record.Dirs
	remaps bool // the snapshotter can id-map
	last   int64
}

// NewUsers returns the user namespaces. Remaps is the result of [CanRemap], and last [oci.Host.LastID].
func NewUsers(dirs record.Dirs, remaps bool, last int64) *Users {
	return &Users{
		ranges: namespace.NewIDRanges(dirs.Users(), "/etc/subuid", "/etc/subgid"),
		dirs:   dirs, remaps: remaps, last: last,
	}
}

// remapCapability is the capability of a snapshotter that can id-map.
const remapCapability = "remap-ids"

// CanRemap reports whether the snapshotter can id-map the layers of images.
func CanRemap(ctx context.Context, c *client.Client, snapshotter string, log *slog.Logger) bool {
	capabilities, err := c.GetSnapshotterCapabilities(ctx, snapshotter)
	if err != nil {
		log.WarnContext(ctx, "cannot read the capabilities of the snapshotter: pods with hostUsers = false are refused",
			slog.Any("error", err))
	}
	return slices.Contains(capabilities, remapCapability)
}

// hasUserNamespace reports whether a pod has a user namespace with a range of IDs.
func hasUserNamespace(pod *spec.Pod) bool { return pod.HostUsers != nil && !*pod.HostUsers }

// Allocate allocates the ID range of a pod. It is zero for a pod without a user namespace.
func (u *Users) Allocate(uid string, pod *spec.Pod) (namespace.IDRange, error) {
	return u.rangeOf(uid, pod, u.ranges.Allocate)
}

// Find returns the ID range that was allocated for a pod. It is zero for a pod without a user namespace.
func (u *Users) Find(uid string, pod *spec.Pod) (namespace.IDRange, error) {
	return u.rangeOf(uid, pod, u.ranges.Find)
}

func (u *Users) rangeOf(uid string, pod *spec.Pod, get func(uid string) (namespace.IDRange, error)) (namespace.IDRange, error) {
	switch {
	case pod.KeepID != nil: // the IDs are those of all pods of the user
		return namespace.IDRange{Kept: uint32(*pod.KeepID), Last: uint32(u.last)}, nil
	case !hasUserNamespace(pod):
		return namespace.IDRange{}, nil
	}
	if err := u.openDirs(false); err != nil {
		return namespace.IDRange{}, err
	}
	return get(uid)
}

// Release releases the ID range of a pod, if it has one.
func (u *Users) Release(uid string) error { return u.ranges.Release(uid) }

// Admit returns a [lifecycle.Refusal] if the pod needs a user namespace that this host does not support, else nil.
func (u *Users) Admit(pod *spec.Pod) error {
	if !hasUserNamespace(pod) {
		return nil
	}
	refusal := lifecycle.Refusal{Reason: lifecycle.ReasonUnexpectedAdmissionError, Field: "hostUsers"}
	if err := namespace.CheckUsers(); err != nil {
		refusal.Message, refusal.Cause = err.Error(), err
		refusal.Hint = "sysctl -w user.max_user_namespaces=15000, and the same in /etc/sysctl.d"
		return refusal
	}
	if !u.remaps {
		refusal.Message = "the kernel or the file system of the images does not support id-mapped mounts"
		refusal.Hint = "use Linux 5.19 or later, and a file system with id-mapped mounts (ext4, xfs, btrfs) for " + u.dirs.State
		return refusal
	}
	if err := u.openDirs(true); err != nil {
		refusal.Message, refusal.Cause = err.Error(), err
		if closed, is := errors.AsType[closedDirError](err); is {
			refusal.Hint = "chmod o+x " + closed.dir
		}
		return refusal
	}
	return nil
}

// openDirs sets the x permission for others on the directories that lead to the root file systems of containers, without the permission to
// list them. On the host, the root of a user namespace is an unprivileged user. The directory of the container engine is not among them:
// see [Users.PlaceRoot]. The mode of a directory outside the directory for runtime
// state is not changed; it is an error if it has no x permission. A dry run changes nothing.
func (u *Users) openDirs(dryRun bool) error {
	run, err := filepath.Abs(u.dirs.Run)
	if err != nil {
		return fmt.Errorf("set permissions for user namespaces: %w", err)
	}
	if err := openDir(record.Dirs{Run: run}.Roots(), run, dryRun); err != nil {
		return fmt.Errorf("set permissions for user namespaces: %w", err)
	}
	return nil
}

// closedDirError reports a directory that only its owner can pass through, and whose mode must not be changed.
type closedDirError struct {
	dir  string
	mode fs.FileMode
}

func (e closedDirError) Error() string {
	return fmt.Sprintf("only the owner can pass through %s (mode %#o)", e.dir, e.mode)
}

// openDir is openDirs for one directory and its parents. The directory may not exist yet.
func openDir(dir, run string, dryRun bool) error {
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
		switch own := dir == run || strings.HasPrefix(dir, run+"/"); {
		case mode&0o001 != 0, own && dryRun:
		case !own:
			return closedDirError{dir, mode}
		default:
			if err := os.Chmod(dir, mode|pass); err != nil {
				return err
			}
		}
	}
	return nil
}

// PlaceRoot sets the path of the root file system of a container or a sandbox that has a user namespace. The shim creates it there.
func (u *Users) PlaceRoot(s *specs.Spec, id string, ids namespace.IDRange) error {
	if ids.First == 0 {
		return nil
	}
	roots, err := filepath.EvalSymlinks(u.dirs.Roots()) // the OCI runtime accepts no symbolic links
	if err == nil {
		roots, err = filepath.Abs(roots)
	}
	if err != nil {
		return fmt.Errorf("find directory for root file systems: %w", err)
	}
	s.Root.Path = filepath.Join(roots, id, "rootfs")
	return nil
}

// SnapshotOpts returns the options of a snapshot that maps the owners of an image's files to the ID range of a pod.
func SnapshotOpts(ids namespace.IDRange) []snapshots.Opt {
	if ids.First == 0 {
		return nil
	}
	return []snapshots.Opt{client.WithUserNSRemapperLabels(ids.Mappings(), ids.Mappings())}
}

// TaskOpts returns the options of a task whose output belongs to the root of its pod, which may reopen it.
func TaskOpts(ids namespace.IDRange) []client.NewTaskOpts {
	if ids.First == 0 {
		return nil
	}
	return []client.NewTaskOpts{client.WithUIDOwner(ids.First), client.WithGIDOwner(ids.First)}
}

// Chown makes the root of a pod the owner of files.
func Chown(ids namespace.IDRange, files ...string) error {
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

package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// labelViewUID is the label of a view with the UID of its pod. Its prefix makes the snapshotter keep it too, so that it survives damage to
// the engine's metadata.
const labelViewUID = "containerd.io/snapshot/" + record.LabelUID

// labelViewReference is the label of a view with the hash of the reference of its volume.
const labelViewReference = "podstead.io/image-volume-reference"

// ImageVolumes mounts the images of image volumes (KEP-4639), read-only, from views of their snapshots, and unmounts them. It is safe for
// concurrent use.
type ImageVolumes struct {
	snapshotter snapshots.Snapshotter
	images      *image.Store
	dirs        record.Dirs
	locks       guard.KeyedMutex // by mount point
}

// NewImageVolumes returns the image volumes of all pods.
func NewImageVolumes(s snapshots.Snapshotter, images *image.Store, dirs record.Dirs) *ImageVolumes {
	return &ImageVolumes{snapshotter: s, images: images, dirs: dirs}
}

// ImageVolumesOf returns the image volumes that a container mounts.
func ImageVolumesOf(pod *spec.Pod, c *spec.Container) []*spec.Volume {
	var list []*spec.Volume
	for i := range pod.Volumes {
		v := &pod.Volumes[i]
		if v.Image != nil && slices.ContainsFunc(c.VolumeMounts, func(m spec.VolumeMount) bool { return m.Name == v.Name }) {
			list = append(list, v)
		}
	}
	return list
}

// Mount mounts the image volumes that a container mounts, and returns their directories by volume. The image of a volume does not change
// until the pod is removed, or the volume has another reference. Then no container may use it.
func (m *ImageVolumes) Mount(
	ctx context.Context, uid string, pod *spec.Pod, c *spec.Container, n oci.Namespaces,
) (map[string]string, error) {
	dirs := map[string]string{}
	for _, v := range ImageVolumesOf(pod, c) {
		dir := filepath.Join(m.dirs.Images(uid), v.Name)
		key := record.Hash("image volume", uid, v.Name)
		scope := m.images.In(pod.ImageArchives...)
		if v.Image.PullPolicy == spec.PullAlways {
			scope = m.images.In() // it was pulled
		}
		if err := m.mount(ctx, uid, dir, key, scope, v.Image.Reference, n); err != nil {
			return nil, fmt.Errorf("volume %q: mount image: %w", v.Name, err)
		}
		dirs[v.Name] = dir
	}
	return dirs, nil
}

// Mounted returns the directories of the image volumes of a container that are mounted, by volume.
func (m *ImageVolumes) Mounted(uid string, pod *spec.Pod, c *spec.Container) (map[string]string, error) {
	dirs := map[string]string{}
	for _, v := range ImageVolumesOf(pod, c) {
		dir := filepath.Join(m.dirs.Images(uid), v.Name)
		mounted, err := isMountPoint(dir)
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w", v.Name, err)
		}
		if mounted {
			dirs[v.Name] = dir
		}
	}
	return dirs, nil
}

func (m *ImageVolumes) mount(ctx context.Context, uid, dir, key string, scope image.Scope, reference string, n oci.Namespaces) error {
	unlock, err := m.locks.Lock(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	mounted, err := isMountPoint(dir)
	if err != nil {
		return err
	}
	if changed, err := m.isOutdated(ctx, key, reference); err != nil {
		return err
	} else if changed {
		if err := unmountImage(dir); err != nil {
			return err
		}
		if err := m.snapshotter.Remove(ctx, key); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		mounted = false
	}
	mounts, err := m.snapshotter.Mounts(ctx, key)
	if mounted && err == nil {
		return nil
	}
	if mounted && errdefs.IsNotFound(err) { // the layers were deleted, because the engine had lost their records
		if err := unmountImage(dir); err != nil {
			return err
		}
	}
	if errdefs.IsNotFound(err) {
		img, imageErr := scope.Ensure(ctx, reference, spec.PullNever, nil)
		if imageErr != nil {
			return imageErr
		}
		opts := append(sandbox.SnapshotOpts(n.IDs), snapshots.WithLabels(map[string]string{
			labelViewUID: uid, labelViewReference: record.Hash(reference), "containerd.io/gc.root": time.Now().UTC().Format(time.RFC3339),
		}))
		mounts, err = m.snapshotter.View(ctx, key, img.Snapshot, opts...)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return mountView(mounts, dir, n)
}

// isOutdated reports whether a view is of an earlier reference of its volume.
func (m *ImageVolumes) isOutdated(ctx context.Context, key, reference string) (bool, error) {
	info, err := m.snapshotter.Stat(ctx, key)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	of, known := info.Labels[labelViewReference]
	return known && of != record.Hash(reference), err
}

// mountView mounts the view of a snapshot. The view of an image with a single layer is a bind mount. For a read-only bind mount, containerd
// (2.4) ignores the ID mapping, therefore this function maps the IDs. With keepID, the IDs are not mapped: an ordinary user cannot do that.
func mountView(mounts []mount.Mount, dir string, n oci.Namespaces) error {
	if n.IDs.First == 0 || len(mounts) != 1 || mounts[0].Type != "bind" {
		return mount.All(mounts, dir)
	}
	users, err := os.Open(n.User)
	if err != nil {
		return err
	}
	defer users.Close()
	return mount.IDMapMountWithAttrs(mounts[0].Source, dir, int(users.Fd()), unix.MOUNT_ATTR_RDONLY, 0)
}

// isMountPoint reports whether a directory is a mount point. The directory may not exist.
func isMountPoint(dir string) (bool, error) {
	mounted, err := mountinfo.Mounted(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return mounted, err
}

// Remove removes the image volumes of a pod: the mounts, which do not exist after a reboot, and the views.
func (m *ImageVolumes) Remove(ctx context.Context, uid string) error {
	if err := removeImageMounts(m.dirs.Images(uid)); err != nil {
		return err
	}
	var views []string
	err := m.snapshotter.Walk(ctx, func(_ context.Context, i snapshots.Info) error {
		views = append(views, i.Name)
		return nil
	}, fmt.Sprintf("labels.%q==%q", labelViewUID, uid))
	for _, name := range views {
		if e := m.snapshotter.Remove(ctx, name); e != nil && !errdefs.IsNotFound(e) {
			err = errors.Join(err, fmt.Errorf("remove view of image: %w", e))
		}
	}
	return err
}

// removeImageMounts unmounts and removes the directories in dir, and dir.
func removeImageMounts(dir string) error {
	if err := unmountImage(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// unmountImage unmounts a directory and what is below it.
func unmountImage(dir string) error {
	if real, err := filepath.EvalSymlinks(dir); err == nil { // the path in the kernel's list of mounts
		dir = real
	}
	if err := volume.Unmount(dir); err != nil {
		return fmt.Errorf("unmount images: %w", err)
	}
	return nil
}

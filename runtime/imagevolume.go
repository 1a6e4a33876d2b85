package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// imageDir is where the image of a volume is mounted, read-only.
func (r *Runtime) imageDir(uid, name string) string {
	return filepath.Join(r.opts.RunDir, "images", uid, name)
}

func viewKey(uid, name string) string { return record.Hash("image volume", uid, name) }

// imageVolumes returns the volumes of images that a container mounts.
func imageVolumes(pod *spec.Pod, c *spec.Container) []*spec.Volume {
	var list []*spec.Volume
	for i := range pod.Volumes {
		v := &pod.Volumes[i]
		if v.Image == nil {
			continue
		}
		for _, m := range c.VolumeMounts {
			if m.Name == v.Name {
				list = append(list, v)
				break
			}
		}
	}
	return list
}

// mountImages mounts the images of the volumes that a container mounts, and returns their folders. An image is what it was
// when the pod first had it, until the pod is removed.
func (r *Runtime) mountImages(ctx context.Context, uid string, pod *spec.Pod, c *spec.Container, n oci.Namespaces) (map[string]string, error) {
	folders := map[string]string{}
	for _, v := range imageVolumes(pod, c) {
		dir := r.imageDir(uid, v.Name)
		if err := r.mountImage(ctx, uid, dir, viewKey(uid, v.Name), v.Image.Reference, n); err != nil {
			return nil, fmt.Errorf("volume %q: mount image: %w", v.Name, err)
		}
		folders[v.Name] = dir
	}
	return folders, nil
}

func (r *Runtime) mountImage(ctx context.Context, uid, dir, key, reference string, n oci.Namespaces) error {
	release, err := r.locks.Lock(ctx, dir)
	if err != nil {
		return err
	}
	defer release()
	if is, err := isMountPoint(dir); err != nil || is {
		return err
	}
	s := r.client.SnapshotService(r.opts.Images.Snapshotter)
	mounts, err := s.Mounts(ctx, key)
	if errdefs.IsNotFound(err) {
		img, imageErr := r.images.Ensure(ctx, reference, spec.PullNever, nil)
		if imageErr != nil {
			return imageErr
		}
		opts := append(remapped(n.IDs), snapshots.WithLabels(map[string]string{
			record.LabelUID: uid, "containerd.io/gc.root": time.Now().UTC().Format(time.RFC3339),
		}))
		mounts, err = s.View(ctx, key, img.Snapshot, opts...)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return mountView(mounts, dir, n)
}

// mountView mounts the view of a snapshot, for the users of a pod. Of a single layer it is a bind mount, whose mapping containerd
// (2.4) forgets where it is read-only.
func mountView(mounts []mount.Mount, dir string, n oci.Namespaces) error {
	if n.User == "" || len(mounts) != 1 || mounts[0].Type != "bind" {
		return mount.All(mounts, dir)
	}
	users, err := os.Open(n.User)
	if err != nil {
		return err
	}
	defer users.Close()
	return mount.IDMapMountWithAttrs(mounts[0].Source, dir, int(users.Fd()), unix.MOUNT_ATTR_RDONLY, 0)
}

// isMountPoint reports whether something is mounted on a folder, which need not be there.
func isMountPoint(dir string) (bool, error) {
	var here, above unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &here)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = unix.Statx(unix.AT_FDCWD, filepath.Dir(dir), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &above)
	}
	return here.Mnt_id != above.Mnt_id, err
}

// removeImages takes away the images of a pod's volumes: the mounts, which a boot has taken away already, and the views.
func (r *Runtime) removeImages(ctx context.Context, uid string) error {
	dir := filepath.Dir(r.imageDir(uid, "x"))
	if real, err := filepath.EvalSymlinks(dir); err == nil { // as the kernel lists it
		dir = real
	}
	if err := volume.Unmount(dir); err != nil {
		return fmt.Errorf("unmount images: %w", err)
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
	s := r.client.SnapshotService(r.opts.Images.Snapshotter)
	var views []string
	err = s.Walk(ctx, func(_ context.Context, i snapshots.Info) error {
		views = append(views, i.Name)
		return nil
	}, fmt.Sprintf("labels.%q==%q", record.LabelUID, uid))
	for _, name := range views {
		if e := s.Remove(ctx, name); e != nil && !errdefs.IsNotFound(e) {
			err = errors.Join(err, fmt.Errorf("remove view of image: %w", e))
		}
	}
	return err
}

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/volume"
)

// DiskUsage is what images, containers and pods have on the disk, in bytes.
type DiskUsage struct {
	image.DiskUsage
	Containers []WritableLayer
	// Claims are the persistent volumes by name, and PodVolumes and Logs the directories of pods by UID.
	Claims, PodVolumes, Logs map[string]int64
	// Journal are the events of pods. State is everything else in the state directory except the container engine.
	Journal, State int64
}

// WritableLayer is the writable layer of a container.
type WritableLayer struct {
	ID, UID, Pod, Container string
	Size                    int64
}

// DiskUsage measures what is on the disk. It walks all directories except those of images.
func (r *Runtime) DiskUsage(ctx context.Context) (u DiskUsage, err error) {
	ctx = engine.Context(ctx)
	list, err := r.client.ContainerService().List(ctx)
	if err != nil {
		return u, fmt.Errorf("list containers: %w", err)
	}
	keys := map[string]bool{}
	for n := range list {
		keys[list[n].SnapshotKey] = true
	}
	if u.DiskUsage, err = r.images.DiskUsage(ctx, keys); err != nil {
		return u, err
	}
	for n := range list {
		c := &list[n]
		if size, ok := u.Writable[c.SnapshotKey]; ok {
			u.Containers = append(u.Containers, WritableLayer{
				ID: c.ID, UID: c.Labels[record.LabelUID], Pod: c.Labels[record.LabelPod], Container: c.Labels[record.LabelContainer],
				Size: size,
			})
		}
	}
	return u, r.measureDirs(ctx, &u)
}

// measureDirs measures the directories of pods, volumes, logs and state.
func (r *Runtime) measureDirs(ctx context.Context, u *DiskUsage) error {
	var errs []error
	add := func(dir string, to map[string]int64, name func(entry string) string) {
		err := measureEach(ctx, dir, func(entry string, bytes int64) { to[name(entry)] += bytes })
		errs = append(errs, err)
	}
	u.Claims, u.Logs, u.PodVolumes = map[string]int64{}, map[string]int64{}, map[string]int64{}
	add(r.dirs.PersistentVolumes(), u.Claims, func(entry string) string { return entry })
	add(r.dirs.Log, u.Logs, afterUnderscore)
	err := measureEach(ctx, r.dirs.Pods(), func(entry string, bytes int64) {
		volumes, err := measure(ctx, filepath.Join(r.dirs.Pod(entry), "volumes"))
		errs = append(errs, err)
		if volumes > 0 {
			u.PodVolumes[entry] = volumes
		}
		u.State += max(0, bytes-volumes)
	})
	errs = append(errs, err)
	entries, err := os.ReadDir(r.dirs.State)
	errs = append(errs, err)
	for _, e := range entries {
		path := filepath.Join(r.dirs.State, e.Name())
		if path == r.dirs.Engine() || path == r.dirs.PersistentVolumes() || path == r.dirs.Pods() {
			continue
		}
		bytes, err := measure(ctx, path)
		errs = append(errs, err)
		if e.Name() == journalDir {
			u.Journal = bytes
		} else {
			u.State += bytes
		}
	}
	return errors.Join(errs...)
}

// journalDir is the name of the directory of the journal in the state directory.
const journalDir = "events"

// measureEach measures what is in a directory, which may not exist.
func measureEach(ctx context.Context, dir string, found func(entry string, bytes int64)) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		bytes, err := measure(ctx, filepath.Join(dir, e.Name()))
		errs = append(errs, err)
		found(e.Name(), bytes)
	}
	return errors.Join(errs...)
}

// afterUnderscore returns the UID at the end of the name of a pod's log directory.
func afterUnderscore(name string) string { return name[strings.LastIndexByte(name, '_')+1:] }

// measure returns the disk usage of a directory or a file. What has been deleted meanwhile has none. The result for a directory that is too
// deep is partial.
func measure(ctx context.Context, path string) (int64, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	bytes := st.Blocks * 512
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		var u volume.TreeUsage
		u, err = volume.DiskUsage(ctx, path)
		bytes = u.Bytes
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, volume.ErrTooDeep) {
		return bytes, nil
	}
	return bytes, err
}

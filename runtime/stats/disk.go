package stats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/snapshots"
	"golang.org/x/sync/semaphore"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

const (
	// maxRequested is the number of pods that are measured at the same time on request. A measurement occupies a thread while its file
	// system does not respond.
	maxRequested = 4
	// keepDisk is how long the result of a requested measurement is kept.
	keepDisk = 10 * time.Minute
)

// Disk is the disk usage of the containers of a pod.
type Disk struct {
	// At is when it was measured; zero: it was not.
	At         time.Time
	Containers map[string]ContainerDisk // by name
	counted    map[string]int64         // what counts for the limits of each container, see [volume.TreeUsage]
	took       time.Duration
}

// ContainerDisk is in bytes. A field is nil if it could not be measured, and [volume.MaxUsage] if a directory tree is too deep.
type ContainerDisk struct {
	Layer *int64 // the files that a running container has changed in its image, and in volumes that the image defines
	Logs  *int64 // of all runs, with rotated files
}

// newestDisks holds the newest measurement of each pod.
type newestDisks struct {
	requested *semaphore.Weighted

	mu      sync.Mutex
	newest  map[string]Disk          // by UID
	running map[string]chan struct{} // closed when the requested measurement is done
}

func newDisks() newestDisks {
	return newestDisks{requested: semaphore.NewWeighted(maxRequested), newest: map[string]Disk{}, running: map[string]chan struct{}{}}
}

func (d *newestDisks) put(uid string, disk Disk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.newest, func(_ string, old Disk) bool { return time.Since(old.At) > keepDisk })
	d.newest[uid] = disk
}

func (d *newestDisks) get(uid string) Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest[uid]
}

func (d *newestDisks) forget(uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.newest, uid)
}

// Disk returns the newest measurement of the containers of a pod. If it is older than the interval, the pod is measured again. If ctx ends
// before that is done, as with many files or a file system that does not respond, Disk returns the older one.
func (m *DiskMonitor) Disk(ctx context.Context, uid string, pod *spec.Pod) Disk {
	newest := m.disks.get(uid)
	if !newest.At.IsZero() && time.Since(newest.At) < pauseAfter(m.interval, newest.took) {
		return newest
	}
	select {
	case <-m.request(context.WithoutCancel(ctx), uid, pod):
	case <-ctx.Done():
	}
	return m.disks.get(uid)
}

// request starts a measurement, unless one is running. The channel is closed when it is done.
func (m *DiskMonitor) request(ctx context.Context, uid string, pod *spec.Pod) <-chan struct{} {
	m.disks.mu.Lock()
	defer m.disks.mu.Unlock()
	if running, ok := m.disks.running[uid]; ok {
		return running
	}
	done := make(chan struct{})
	m.disks.running[uid] = done
	go func() {
		defer func() {
			m.disks.mu.Lock()
			defer m.disks.mu.Unlock()
			delete(m.disks.running, uid)
			close(done)
		}()
		ctx, cancel := context.WithTimeout(ctx, measureDiskTimeout)
		defer cancel()
		if m.disks.requested.Acquire(ctx, 1) != nil {
			return
		}
		defer m.disks.requested.Release(1)
		// Call handles a panic, and waits until the file system responds: the pod is not measured a second time meanwhile.
		_, err := guard.Call(context.WithoutCancel(ctx), 0, m.log,
			func(context.Context) (Disk, error) { return m.measureDisk(ctx, uid, pod) })
		if err != nil {
			m.log.LogAttrs(ctx, slog.LevelDebug, "cannot measure the disk usage of a pod", slog.String("pod", pod.Name),
				slog.Any("error", err))
		}
	}()
	return done
}

// measureDisk measures the containers of a pod. The error reports what cannot be measured; the rest is measured nevertheless.
func (m *DiskMonitor) measureDisk(ctx context.Context, uid string, pod *spec.Pod) (Disk, error) {
	start := time.Now()
	dirs, err := m.find(ctx, uid, pod)
	disk := Disk{Containers: map[string]ContainerDisk{}, counted: map[string]int64{}}
	usage := func(container string, image snapshots.Usage, dirs ...string) *int64 {
		if len(dirs) == 0 {
			return nil
		}
		used, failed := m.volumes.DiskUsage(ctx, uid, dirs...)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("container %s: %w", container, failed))
			return nil
		}
		used = without(used, image)
		disk.counted[container] += used.Counted
		return &used.Bytes
	}
	for name, d := range dirs {
		disk.Containers[name] = ContainerDisk{
			Layer: usage(name, d.image, d.layer...), Logs: usage(name, snapshots.Usage{}, d.logs),
		}
	}
	disk.At, disk.took = time.Now(), time.Since(start)
	m.disks.put(uid, disk)
	return disk, err
}

// without returns the usage of a directory without that of the image whose copy is in it. How many files of the image are smaller than what
// is counted for them is not known: that many small files of the container may not count.
func without(used volume.TreeUsage, image snapshots.Usage) volume.TreeUsage {
	if used.Bytes == volume.MaxUsage {
		return used
	}
	files := max(used.Files-image.Inodes, 0)
	bytes := max(used.Bytes-image.Size, 0)
	counted := max(used.Counted-image.Size-image.Inodes*volume.FileBytes, bytes)
	return volume.TreeUsage{Bytes: bytes, Files: files, Counted: counted}
}

// containerDirectories are what counts as the usage of a container.
type containerDirectories struct {
	logs  string
	layer []string        // and the volumes that the image defines; none: the container is not running
	image snapshots.Usage // of the copy of the image in them; zero: there is none
}

// containerDirs returns the directories of each container. The error reports which are missing.
func (m *DiskMonitor) containerDirs(ctx context.Context, uid string, pod *spec.Pod) (map[string]containerDirectories, error) {
	dirs := map[string]containerDirectories{}
	for _, list := range [][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			dirs[list[i].Name] = containerDirectories{logs: m.dirs.ContainerLogs(uid, pod.Name, list[i].Name)}
		}
	}
	containers, err := record.Containers(ctx, m.client, uid)
	if err != nil {
		return dirs, err
	}
	var missing []error
	for _, c := range containers {
		info := record.Info(ctx, c)
		name := info.Labels[record.LabelContainer]
		d := containerDirectories{logs: m.dirs.ContainerLogs(uid, pod.Name, name)} // also of an ephemeral container
		d.layer, d.image = dirs[name].layer, dirs[name].image
		if info.Labels[record.LabelExit] == "" {
			layer, image, err := m.writableLayer(ctx, info.Snapshotter, info.SnapshotKey)
			volumes, listed := m.volumes.ImageDefinedDirs(uid, c.ID())
			if d.layer = append(volumes, layer); err != nil {
				d.layer = nil
			}
			d.image = image
			missing = append(missing, err, listed)
		}
		dirs[name] = d
	}
	return dirs, errors.Join(missing...)
}

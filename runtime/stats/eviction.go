package stats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// deviceInterval is the time between two checks of the devices of a pod without a limit.
const deviceInterval = 30 * time.Second

// measureDiskTimeout is for one measurement of a pod.
const measureDiskTimeout = 2 * time.Minute

// Volumes measures volumes and directories.
type Volumes interface {
	Usage(ctx context.Context, p volume.Pod) ([]volume.Usage, error)
	DiskUsage(ctx context.Context, uid string, dirs ...string) (volume.TreeUsage, error)
	Failed(ctx context.Context, p volume.Pod) (message string, err error)
	ImageDefinedDirs(uid, run string) ([]string, error)
}

// DiskMonitor measures the disk usage of pods. It is safe for concurrent use.
type DiskMonitor struct {
	client   *client.Client
	volumes  Volumes
	dirs     record.Dirs
	interval time.Duration
	log      *slog.Logger
	disks    newestDisks
	// find is containerDirs, except in tests.
	find func(ctx context.Context, uid string, pod *spec.Pod) (map[string]containerDirectories, error)
}

// NewDiskMonitor returns a monitor that measures each pod at this interval.
func NewDiskMonitor(c *client.Client, volumes Volumes, dirs record.Dirs, interval time.Duration, log *slog.Logger) *DiskMonitor {
	m := &DiskMonitor{client: c, volumes: volumes, dirs: dirs, interval: interval, log: log, disks: newDisks()}
	m.find = m.containerDirs
	return m
}

// Wait returns a message when a pod exceeds a limit, or when the device of a volume has failed. If the pod has neither a limit nor such a
// volume, it returns when ctx ends.
func (m *DiskMonitor) Wait(ctx context.Context, uid string, pod *spec.Pod) (message string, err error) {
	if !MayEnd(pod) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	defer m.disks.forget(uid)
	for {
		start := time.Now()
		message, err := m.measure(ctx, uid, pod)
		if message != "" {
			return message, nil
		}
		if err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "cannot measure the disk usage of a pod", slog.String("pod", pod.Name), slog.Any("error", err))
		}
		interval := m.interval
		if !hasLimit(pod) {
			interval = max(interval, deviceInterval)
		}
		next := time.NewTimer(pauseAfter(interval, time.Since(start)))
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return "", ctx.Err()
		}
	}
}

// pauseAfter returns the time between two measurements. A container that creates more and more files must not keep a processor busy with
// counting them.
func pauseAfter(interval, took time.Duration) time.Duration {
	const factor = 4 // measure at most a fifth of the time
	return max(interval, factor*took)
}

// MayEnd reports whether [DiskMonitor.Wait] may end a pod.
func MayEnd(pod *spec.Pod) bool { return hasLimit(pod) || volume.HasDevice(pod.Mounted()) }

// hasLimit reports whether an emptyDir volume on disk or in huge pages, or a container has a limit.
func hasLimit(pod *spec.Pod) bool {
	for i := range pod.Volumes {
		if e := pod.Volumes[i].EmptyDir; e != nil && e.SizeLimit != nil && e.Medium != "Memory" {
			return true
		}
	}
	limit := pod.Limit(spec.ResourceEphemeralStorage)
	return limit.Sign() > 0
}

// measure returns a message if a device has failed, or if the pod exceeds a limit. The limits are checked in the kubelet's order: volumes,
// pod, containers. The error reports what cannot be measured; the rest is checked nevertheless.
func (m *DiskMonitor) measure(ctx context.Context, uid string, pod *spec.Pod) (message string, err error) {
	ctx, cancel := context.WithTimeout(ctx, measureDiskTimeout)
	defer cancel()
	message, err = m.volumes.Failed(ctx, volume.Pod{UID: uid, Spec: pod.Mounted()})
	if message != "" || !hasLimit(pod) {
		return message, err
	}
	volumes, unmeasured := m.volumes.Usage(ctx, volume.Pod{UID: uid, Spec: pod})
	err = errors.Join(err, unmeasured)
	for _, u := range volumes {
		if message, exceeded := u.Exceeded(); exceeded {
			return message, err
		}
	}
	podLimit := pod.Limit(spec.ResourceEphemeralStorage)
	if podLimit.Sign() <= 0 {
		return "", err
	}
	disk, failed := m.measureDisk(ctx, uid, pod)
	return exceededLimit(pod, volumes, disk.counted), errors.Join(err, failed)
}

// exceededLimit returns the message of a pod that exceeds a limit of ephemeral-storage. The usage of containers is in bytes, by name. As in
// the kubelet, the limit of the pod is the sum of the limits of its containers.
func exceededLimit(pod *spec.Pod, volumes []volume.Usage, containers map[string]int64) string {
	var total int64
	for _, u := range volumes {
		if !u.HugePages {
			total += u.Bytes
		}
	}
	for _, bytes := range containers {
		total += bytes
	}
	podLimit := pod.Limit(spec.ResourceEphemeralStorage)
	if podLimit.CmpInt64(total) < 0 {
		return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", podLimit.String())
	}
	for _, list := range [][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			limit := list[i].Resources.Limits[spec.ResourceEphemeralStorage]
			if limit.Sign() > 0 && limit.CmpInt64(containers[list[i].Name]) < 0 {
				return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", list[i].Name, limit.String())
			}
		}
	}
	return ""
}

// writableLayer returns the directory with the files that a container has changed in its image. Where overlayfs does not work, it has a
// copy of the image, whose usage is returned too.
//
// It is measured like a volume, not by the snapshotter. The snapshotter fails when a file is removed during the measurement, which a
// container could do on purpose.
func (m *DiskMonitor) writableLayer(ctx context.Context, snapshotter, key string) (dir string, image snapshots.Usage, err error) {
	service := m.client.SnapshotService(snapshotter)
	mounts, err := service.Mounts(ctx, key)
	if err != nil {
		return "", image, fmt.Errorf("find writable layer: %w", err)
	}
	for _, mount := range mounts {
		for _, option := range mount.Options {
			if dir, is := strings.CutPrefix(option, "upperdir="); is {
				return dir, image, nil
			}
		}
		if mount.Type != "bind" {
			continue
		}
		info, err := service.Stat(ctx, key)
		if err == nil && info.Parent != "" { // otherwise it is an image without layers
			image, err = service.Usage(ctx, info.Parent)
		}
		if err != nil {
			return "", image, fmt.Errorf("find the usage of the image of a writable layer: %w", err)
		}
		return mount.Source, image, nil
	}
	return "", image, fmt.Errorf("find writable layer of snapshot %s: no directory in %v", key, mounts)
}

package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// usageTimeout is for one measurement of what a pod takes on disk.
const usageTimeout = 2 * time.Minute

// overuse returns a message once the pod takes more disk than it may, and waits for ctx where nothing bounds it. It is the
// kubelet's, for a pod that is evicted.
func (r *Runtime) overuse(ctx context.Context, uid string, pod *spec.Pod) (string, error) {
	if !boundsDisk(pod) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	for {
		begun := time.Now()
		message, err := r.measure(ctx, uid, pod)
		if message != "" {
			return message, nil
		}
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "what a pod takes on disk cannot be measured", slog.String("pod", pod.Name), slog.Any("error", err))
		}
		pause := time.NewTimer(usagePause(r.opts.UsageInterval, time.Since(begun)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return "", ctx.Err()
		}
	}
}

// usagePause is how long no measurement is made after one that took so long. A container makes files without end, and must not
// have a processor kept busy by counting them.
func usagePause(interval, took time.Duration) time.Duration {
	const share = 4 // at most a fifth of the time
	return max(interval, share*took)
}

// boundsDisk reports whether anything of the pod may be too large for what was allowed: an emptyDir, or a container.
func boundsDisk(pod *spec.Pod) bool {
	for i := range pod.Volumes {
		if e := pod.Volumes[i].EmptyDir; e != nil && e.SizeLimit != nil && e.Medium == "" {
			return true
		}
	}
	limit := pod.Limit(spec.ResourceEphemeralStorage)
	return limit.Sign() > 0
}

// measure returns what the pod takes too much of, in the kubelet's order: volumes, the pod as a whole, containers. What cannot
// be measured is in the error; what could be counts all the same.
func (r *Runtime) measure(ctx context.Context, uid string, pod *spec.Pod) (message string, err error) {
	ctx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	volumes, err := r.volumes.Usage(ctx, volume.Pod{UID: uid, Spec: pod})
	for _, u := range volumes {
		if message, exceeded := u.Exceeded(); exceeded {
			return message, err
		}
	}
	whole := pod.Limit(spec.ResourceEphemeralStorage)
	if whole.Sign() <= 0 {
		return "", err
	}
	containers, failed := r.containerDisk(ctx, uid, pod)
	return exceeded(pod, volumes, containers), errors.Join(err, failed)
}

// exceeded is the message of a pod whose containers, or which as a whole, take more than is allowed; containers are their bytes by
// name. As with the kubelet, the limit of the whole is the sum of the limits that there are.
func exceeded(pod *spec.Pod, volumes []volume.Usage, containers map[string]int64) string {
	var total int64
	for _, u := range volumes {
		total += u.Bytes
	}
	for _, bytes := range containers {
		total += bytes
	}
	whole := pod.Limit(spec.ResourceEphemeralStorage)
	if whole.CmpInt64(total) < 0 {
		return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", whole.String())
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

// containerDisk is what each container takes on disk in bytes: what it has written to its root while it runs, and its logs.
func (r *Runtime) containerDisk(ctx context.Context, uid string, pod *spec.Pod) (map[string]int64, error) {
	dirs := map[string][]string{}
	for _, list := range [][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			dirs[list[i].Name] = []string{filepath.Join(r.podLogs(uid, pod.Name), list[i].Name)}
		}
	}
	runs, err := record.Containers(ctx, r.client, uid)
	if err != nil {
		return nil, err
	}
	for _, c := range runs {
		info, err := record.Info(ctx, c)
		if err != nil {
			return nil, err
		}
		name := info.Labels[record.LabelContainer]
		if dirs[name] == nil { // one that was added to the running pod
			dirs[name] = []string{filepath.Join(r.podLogs(uid, pod.Name), name)}
		}
		if info.Labels[record.LabelExit] != "" {
			continue
		}
		layer, err := r.writableLayer(ctx, info.Snapshotter, info.SnapshotKey)
		if err != nil {
			return nil, err
		}
		dirs[name] = append(dirs[name], layer)
	}
	used := map[string]int64{}
	var failed []error
	for name, list := range dirs {
		bytes, err := r.volumes.DiskUsage(ctx, uid, list...)
		if err != nil {
			failed = append(failed, fmt.Errorf("container %s: %w", name, err))
			continue
		}
		used[name] = bytes
	}
	return used, errors.Join(failed...)
}

// writableLayer is the folder that holds what a container has changed of its image's files.
//
// It is measured like a volume, not by the snapshotter: that gives up when a file vanishes while it walks, which a container could
// see to.
func (r *Runtime) writableLayer(ctx context.Context, snapshotter, key string) (string, error) {
	mounts, err := r.client.SnapshotService(snapshotter).Mounts(ctx, key)
	if err != nil {
		return "", fmt.Errorf("find writable layer: %w", err)
	}
	for _, m := range mounts {
		for _, option := range m.Options {
			if dir, is := strings.CutPrefix(option, "upperdir="); is {
				return dir, nil
			}
		}
		if m.Type == "bind" {
			return m.Source, nil // an image without layers
		}
	}
	return "", fmt.Errorf("find writable layer of snapshot %s: no folder in %v", key, mounts)
}

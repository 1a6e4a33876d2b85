package sandbox

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// This file prepares the volumes of pods and keeps their content up to date while the pods run. It also provides the values of the
// downward API.

// refreshTimeout bounds an update before the start of a container, which has engine.CreateTimeout for everything.
const refreshTimeout = 10 * time.Second

// Downward returns the values of the downward API for a pod with these addresses.
func (v *Volumes) Downward(uid string, pod *spec.Pod, ips []string) (*oci.Downward, error) {
	node, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read host name: %w", err)
	}
	d := &oci.Downward{Pod: pod, UID: uid, PodIPs: ips, NodeName: node, HostIPs: HostIPs(), Allocatable: v.host.Allocatable()}
	if pod.HostNetwork {
		d.PodIPs = d.HostIPs
	}
	return d, nil
}

// VolumePod returns the argument for methods of [volume.Set].
func VolumePod(d *oci.Downward) volume.Pod {
	return volume.Pod{
		UID: d.UID, Spec: d.Pod, Field: d.Field,
		Resource: func(container, name string, divisor *spec.Quantity) (string, error) {
			return d.Resource(container, &spec.ResourceFieldRef{Resource: name, Divisor: divisor})
		},
	}
}

// Volumes are the volumes of all pods. It is safe for concurrent use.
type Volumes struct {
	*volume.Set
	host     Host
	index    *Index
	interval time.Duration

	mu      sync.Mutex
	stale   map[string]string // why the volumes of a pod are not updated, by UID
	changed chan struct{}     // closed when stale changes
}

// NewVolumes returns the volumes in set. Those of the pods in index are updated at this interval.
func NewVolumes(set *volume.Set, host Host, index *Index, interval time.Duration) *Volumes {
	return &Volumes{Set: set, host: host, index: index, interval: interval, changed: make(chan struct{})}
}

// PreparePod prepares the volumes that containers of a pod mount. As in the kubelet, files of the downward API do not contain addresses,
// therefore they do not need the network. No container of the pod may be running if its definition has changed.
func (v *Volumes) PreparePod(ctx context.Context, uid string, pod *spec.Pod) error {
	if err := v.DiscardMemory(ctx, volume.Pod{UID: uid, Spec: pod}); err != nil {
		return err
	}
	return v.prepare(ctx, uid, pod.Mounted())
}

// PrepareContainer prepares the volumes that a container mounts. They are there, unless the container is the first one that mounts them and
// was added or changed after the start of the pod.
func (v *Volumes) PrepareContainer(ctx context.Context, uid string, pod *spec.Pod, c *spec.Container) error {
	return v.prepare(ctx, uid, pod.MountedBy(c))
}

// CheckMemory returns an error if the files of a volume in memory do not fit into the size that [Volumes.ResizeMemory] would give it.
func (v *Volumes) CheckMemory(ctx context.Context, uid string, pod *spec.Pod) error {
	return v.Set.CheckMemory(ctx, volume.Pod{UID: uid, Spec: pod.Mounted()})
}

// ResizeMemory gives the volumes in memory that containers of a pod mount the size that follows from the limits of the pod. The error is
// that the files of a volume do not fit.
func (v *Volumes) ResizeMemory(ctx context.Context, uid string, pod *spec.Pod) error {
	pod = pod.Mounted()
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v spec.Volume) bool {
		return v.EmptyDir == nil || v.EmptyDir.Medium != "Memory"
	})
	return v.prepare(ctx, uid, pod)
}

func (v *Volumes) prepare(ctx context.Context, uid string, pod *spec.Pod) error {
	if len(pod.Volumes) == 0 {
		return nil
	}
	d, err := v.Downward(uid, pod, nil)
	if err != nil {
		return err
	}
	return v.Prepare(ctx, VolumePod(d))
}

// Run updates the volumes of running pods when their config maps, secrets or definitions change, until ctx ends. If an update fails, the
// volume keeps its content. An update that fails twice in a row is reported by [Volumes.Watch]: a program that replaces several files one
// after the other is not a failure.
func (v *Volumes) Run(ctx context.Context) {
	before := map[string]bool{}
	for range guard.Every(ctx, v.interval) {
		failed, stale := map[string]bool{}, map[string]string{}
		for uid := range v.index.All() {
			err := v.update(ctx, uid, engine.CreateTimeout)
			if ctx.Err() != nil {
				return
			}
			if failed[uid] = err != nil; err != nil && before[uid] {
				stale[uid] = err.Error()
			}
		}
		before = failed
		v.report(stale)
	}
}

// report wakes [Volumes.Watch].
func (v *Volumes) report(stale map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !maps.Equal(v.stale, stale) {
		v.stale = stale
		close(v.changed)
		v.changed = make(chan struct{})
	}
}

// Watch calls report with why the volumes of a pod are not updated; empty: they are. It calls it at once, and when that changes. It returns
// when ctx ends.
func (v *Volumes) Watch(ctx context.Context, uid string, report func(stale string)) error {
	for reported, first := "", true; ; first = false {
		v.mu.Lock()
		stale, changed := v.stale[uid], v.changed
		v.mu.Unlock()
		if first || stale != reported {
			reported = stale
			report(stale)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Refresh updates the volumes of a pod before a container starts, whose definition is newer than the one that updates have used. A volume
// that cannot be updated keeps its content, as in [Volumes.Run], which reports the error. A source that does not respond delays the start
// by refreshTimeout.
func (v *Volumes) Refresh(ctx context.Context, uid string, pod *spec.Pod) error {
	v.index.Update(uid, pod)
	if err := v.update(ctx, uid, refreshTimeout); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// update updates the volumes of a pod. The definition is that in the index when no other update of the pod runs: an update that was delayed
// must not restore the content of an older definition.
func (v *Volumes) update(ctx context.Context, uid string, timeout time.Duration) error {
	p, exists := v.index.Get(uid)
	if !exists || !p.Pod.HasContent() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := v.Update(ctx, uid, func() (volume.Pod, error) {
		if now, exists := v.index.Get(uid); exists {
			p = now
		}
		d, err := v.Downward(uid, p.Pod.Mounted(), nil)
		if err != nil {
			return volume.Pod{}, err
		}
		return VolumePod(d), nil
	})
	return err
}

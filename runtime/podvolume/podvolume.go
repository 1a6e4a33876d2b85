// Package podvolume prepares the volumes of pods and keeps their content up to date while the pods run. It also provides the values of the
// downward API.
package podvolume

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/layout"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/podindex"
	"github.com/podstead/podstead/runtime/podnet"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// Downward returns the values of the downward API for a pod with these addresses.
func Downward(dirs layout.Dirs, uid string, pod *spec.Pod, ips []string) (*oci.Downward, error) {
	node, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read host name: %w", err)
	}
	d := &oci.Downward{Pod: pod, UID: uid, PodIPs: ips, NodeName: node, HostIPs: podnet.HostIPs(), Allocatable: allocatable(dirs)}
	if pod.HostNetwork {
		d.PodIPs = d.HostIPs
	}
	return d, nil
}

// allocatable returns the resources of the host, all of which are available to pods.
func allocatable(dirs layout.Dirs) spec.ResourceList {
	list := spec.ResourceList{"cpu": *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI)}
	var memory unix.Sysinfo_t
	if unix.Sysinfo(&memory) == nil {
		list["memory"] = *resource.NewQuantity(int64(memory.Totalram)*int64(memory.Unit), resource.BinarySI) // no host has more
	}
	var disk unix.Statfs_t
	if unix.Statfs(dirs.State, &disk) == nil {
		list["ephemeral-storage"] = *resource.NewQuantity(int64(disk.Blocks)*disk.Bsize, resource.BinarySI) // no host has more
	}
	return list
}

// Pod returns the argument for methods of [volume.Set].
func Pod(d *oci.Downward) volume.Pod {
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
	dirs     layout.Dirs
	index    *podindex.Index
	interval time.Duration
	log      *slog.Logger
}

// New returns the volumes in set. Those of the pods in index are updated at this interval.
func New(set *volume.Set, dirs layout.Dirs, index *podindex.Index, interval time.Duration, log *slog.Logger) *Volumes {
	return &Volumes{Set: set, dirs: dirs, index: index, interval: interval, log: log}
}

// PreparePod prepares the volumes of a pod. As in the kubelet, files of the downward API do not contain addresses, therefore they do not
// need the network.
func (v *Volumes) PreparePod(ctx context.Context, uid string, pod *spec.Pod) error {
	if len(pod.Volumes) == 0 {
		return nil
	}
	d, err := Downward(v.dirs, uid, pod, nil)
	if err != nil {
		return err
	}
	return v.Prepare(ctx, Pod(d))
}

// Run updates the volumes of running pods when their config maps and secrets change, until ctx ends. If an update fails, the volume keeps its
// content. The error is logged when it differs from that of the last update.
func (v *Volumes) Run(ctx context.Context) {
	tick := time.NewTicker(v.interval)
	defer tick.Stop()
	logged := map[string]string{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		failed := map[string]string{}
		for uid, p := range v.index.All() {
			if err := v.update(ctx, uid, p.Pod); err != nil && ctx.Err() == nil {
				failed[uid] = err.Error()
				if logged[uid] != err.Error() {
					v.log.WarnContext(ctx, "cannot update the volumes of a pod", slog.String("pod", p.Pod.Name), slog.Any("error", err))
				}
			}
		}
		logged = failed
	}
}

func (v *Volumes) update(ctx context.Context, uid string, pod *spec.Pod) error {
	if !hasContent(pod) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, enginecall.CreateTimeout)
	defer cancel()
	d, err := Downward(v.dirs, uid, pod, nil)
	if err == nil {
		_, err = v.Update(ctx, Pod(d))
	}
	return err
}

// hasContent reports whether a volume of the pod may change while it runs.
func hasContent(pod *spec.Pod) bool {
	for i := range pod.Volumes {
		if v := &pod.Volumes[i]; v.ConfigMap != nil || v.Secret != nil || v.Projected != nil {
			return true
		}
	}
	return false
}

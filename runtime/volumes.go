package runtime

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
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// downwardOf is what a pod is told of itself.
func (r *Runtime) downwardOf(uid string, pod *spec.Pod, ips []string) (*oci.Downward, error) {
	node, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the machine's name: %w", err)
	}
	d := &oci.Downward{Pod: pod, UID: uid, PodIPs: ips, NodeName: node, HostIPs: r.hostIPs(), Allocatable: r.allocatable()}
	if pod.HostNetwork {
		d.PodIPs = d.HostIPs
	}
	return d, nil
}

// allocatable is what the machine has for its pods: all of it.
func (r *Runtime) allocatable() spec.ResourceList {
	list := spec.ResourceList{"cpu": *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI)}
	var memory unix.Sysinfo_t
	if unix.Sysinfo(&memory) == nil {
		list["memory"] = *resource.NewQuantity(int64(memory.Totalram)*int64(memory.Unit), resource.BinarySI) //nolint:gosec // no machine has more
	}
	var disk unix.Statfs_t
	if unix.Statfs(r.opts.StateDir, &disk) == nil {
		list["ephemeral-storage"] = *resource.NewQuantity(int64(disk.Blocks)*disk.Bsize, resource.BinarySI) //nolint:gosec // nor disk
	}
	return list
}

// volumePod is a pod as the package of volumes wants it.
func volumePod(d *oci.Downward) volume.Pod {
	return volume.Pod{
		UID: d.UID, Spec: d.Pod, Field: d.Field,
		Resource: func(container, name string, divisor *spec.Quantity) (string, error) {
			return d.Resource(container, &spec.ResourceFieldRef{Resource: name, Divisor: divisor})
		},
	}
}

// prepareVolumes makes the volumes of a pod. Files of the downward API tell no addresses (the kubelet's rule), so they do not
// wait for the network.
func (r *Runtime) prepareVolumes(ctx context.Context, uid string, pod *spec.Pod) error {
	if len(pod.Volumes) == 0 {
		return nil
	}
	d, err := r.downwardOf(uid, pod, nil)
	if err != nil {
		return err
	}
	return r.volumes.Prepare(ctx, volumePod(d))
}

// refresh writes the volumes of running pods anew whose config maps and secrets have changed, until ctx ends. What fails
// keeps what it had; it is told once for as long as it fails in the same way.
func (r *Runtime) refresh(ctx context.Context) {
	tick := time.NewTicker(r.opts.RefreshInterval)
	defer tick.Stop()
	told := map[string]string{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		failed := map[string]string{}
		for uid, p := range r.index.All() {
			if err := r.refreshPod(ctx, uid, p.Pod); err != nil && ctx.Err() == nil {
				failed[uid] = err.Error()
				if told[uid] != err.Error() {
					r.log.WarnContext(ctx, "volumes are not up to date", slog.String("pod", p.Pod.Name), slog.Any("error", err))
				}
			}
		}
		told = failed
	}
}

func (r *Runtime) refreshPod(ctx context.Context, uid string, pod *spec.Pod) error {
	if !hasContent(pod) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, enginecall.CreateTimeout)
	defer cancel()
	d, err := r.downwardOf(uid, pod, nil)
	if err == nil {
		_, err = r.volumes.Update(ctx, volumePod(d))
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

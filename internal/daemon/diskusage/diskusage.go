// Package diskusage implements the API's system: it measures what Podstead has on the disk, tells what nothing uses, and removes that on
// request. It owns no state.
package diskusage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/images"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// Disk measures the disk. *runtime.Runtime implements it.
type Disk interface {
	DiskUsage(ctx context.Context) (runtime.DiskUsage, error)
}

// Pods are the pods and the persistent volumes of the host. [*supervisor.Supervisor] implements it.
type Pods interface {
	images.FinishedPods
	Pods() []supervisor.Snapshot
	Planned() []*spec.Pod
	Volumes(ctx context.Context) ([]supervisor.Volume, error)
	RemoveVolume(ctx context.Context, name string) error
}

// Files are the files of the pods directory and the generations. *podfiles.Set implements it.
type Files interface {
	Claimants(ctx context.Context, settle bool) (list []*spec.Pod, unknown *podfiles.Unknown, err error)
}

// Ages are those of images. [*images.Collector] implements it.
type Ages interface {
	Unused() map[string]time.Duration
	Limits() images.Limits
}

// System implements [server.System]. All fields are required. It is safe for concurrent use.
type System struct {
	Disk   Disk
	Images images.HostImages
	Pods   Pods
	Files  Files
	Ages   Ages
	// Dir is the state directory.
	Dir string
}

// survey is what is on the disk, and what uses it.
type survey struct {
	runtime.DiskUsage
	images   images.Facts
	finished []supervisor.Finished
	// leftover are the UIDs of finished.
	leftover map[string]bool
	volumes  []api.VolumeUsage
	unknown  *podfiles.Unknown // why there may be more users of volumes; nil: there are none
}

// survey looks at the disk. With settle, it waits for pod files that may be half-written.
func (s *System) survey(ctx context.Context, settle bool) (v survey, err error) {
	if v.images, err = s.Images.Facts(ctx); err != nil {
		return v, err
	}
	v.finished, v.leftover = s.Pods.Finished(), map[string]bool{}
	for n := range v.finished {
		v.leftover[v.finished[n].Facts.UID] = true
	}
	if v.DiskUsage, err = s.Disk.DiskUsage(ctx); err != nil {
		return v, err
	}
	v.volumes, v.unknown, err = s.claims(ctx, v.Claims, settle)
	return v, err
}

// claims returns the persistent volumes with the pods, pod files and generations that use them.
func (s *System) claims(ctx context.Context, sizes map[string]int64,
	settle bool,
) (list []api.VolumeUsage, unknown *podfiles.Unknown, err error) {
	users := map[string][]string{}
	add := func(volume, pod string) {
		if !slices.Contains(users[volume], pod) {
			users[volume] = append(users[volume], pod)
		}
	}
	definitions, unknown, err := s.Files.Claimants(ctx, settle)
	if err != nil {
		return nil, nil, err
	}
	for _, pod := range append(definitions, s.Pods.Planned()...) {
		for n := range pod.Volumes {
			if claim := pod.Volumes[n].PersistentVolumeClaim; claim != nil {
				add(claim.ClaimName, pod.Name)
			}
		}
	}
	volumes, err := s.Pods.Volumes(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range volumes {
		for _, pod := range v.Pods {
			add(v.Name, pod)
		}
		slices.Sort(users[v.Name])
		list = append(list, api.VolumeUsage{Name: v.Name, Pods: users[v.Name], Size: sizes[v.Name]})
	}
	return list, cmp.Or(unknown, s.undefined()), nil
}

// undefined returns why the volumes of a pod are not known; nil: those of all pods are.
func (s *System) undefined() *podfiles.Unknown {
	pods := s.Pods.Pods()
	for n := range pods {
		if pods[n].Undefined() {
			name := pods[n].Pod.Name
			return &podfiles.Unknown{
				Cause: fmt.Sprintf("the definition of pod %q is not known", name),
				Hint:  "see the reason with podstead why " + name + ", or delete the pod",
			}
		}
	}
	return nil
}

// DiskUsage implements [server.System].
func (s *System) DiskUsage(ctx context.Context) (api.DiskUsage, error) {
	u := api.DiskUsage{Images: []api.ImageUsage{}, Containers: []api.ContainerUsage{}, Volumes: []api.VolumeUsage{}}
	v, err := s.survey(ctx, false)
	if err != nil {
		return u, failure("measure disk usage", err)
	}
	if u.Filesystem, err = s.filesystem(); err != nil {
		return u, failure("measure disk usage", err)
	}
	ages := s.Ages.Unused()
	parts := v.partition()
	for n := range v.images.Images {
		w := &v.images.Images[n]
		_, requested := v.images.Claimed(w, images.Respect{image.Person})
		usage := api.ImageUsage{Names: w.Names, Used: v.images.Used(w), Requested: requested, Unused: int64(ages[w.ID] / time.Second)}
		usage.Size, usage.Shared = v.sizes(parts[n], parts)
		u.Images = append(u.Images, usage)
	}
	for _, c := range v.Containers {
		u.Containers = append(u.Containers,
			api.ContainerUsage{Pod: c.Pod, Container: c.Container, ID: c.ID, Size: c.Size, Active: !v.leftover[c.UID]})
	}
	order.Sort(u.Containers, func(a, b api.ContainerUsage) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container), cmp.Compare(a.ID, b.ID))
	})
	u.Volumes = append(u.Volumes, v.volumes...)
	u.Items = v.items(parts)
	return u, nil
}

// filesystem returns the usage of the file system of the state directory.
func (s *System) filesystem() (api.Filesystem, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(s.Dir, &stat); err != nil {
		return api.Filesystem{}, &fs.PathError{Op: "statfs", Path: s.Dir, Err: err}
	}
	limits := s.Ages.Limits()
	used := disk.BlockBytes(&stat, stat.Blocks-stat.Bfree)
	return api.Filesystem{
		Path: s.Dir, Size: used + disk.BlockBytes(&stat, stat.Bavail), Used: used, Inodes: int64(stat.Files),
		InodesUsed:  int64(stat.Files - stat.Ffree),
		HighPercent: limits.High, LowPercent: limits.Low,
	}, nil
}

// failure returns the response for an error.
func failure(operation string, err error) error {
	if _, ok := errors.AsType[*api.Error](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	return &api.Error{Status: http.StatusInternalServerError, Message: operation + ": " + err.Error()}
}

package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// Volumes mounts the volumes of a container that is not running, for a copy of its files, and returns the mounts in the order in which they
// are nested. Nothing is created in a volume. A volume that is not available, such as one in memory after a reboot of the host, is left
// out; missing has the errors by mount path.
//
// Copy identifies the copy among those of the pod. Users is the path of a user namespace with the IDs of the pod; "": that of the host. The
// caller calls release when it has copied the mounts.
func (s *Service) Volumes(
	ctx context.Context, uid string, pod *spec.Pod, name, copy, users string,
) (mounts []specs.Mount, missing map[string]error, release func() error, err error) {
	c, err := Find(pod, name)
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := s.config.Volumes.Downward(uid, pod, s.config.Network.IPs(uid))
	if err != nil {
		return nil, nil, nil, err
	}
	images, err := s.config.ImageVolumes.Mounted(uid, pod, c)
	if err != nil {
		return nil, nil, nil, err
	}
	request := volume.Request{
		Images: images, UserNamespace: users, Existing: true, RecursiveReadOnly: s.config.RecursiveReadOnly(ctx, ""),
	}
	variables, variablesErr := oci.Resolve(c, d, newSecretSnapshot(s.config.Values, s.filesOf(ctx, uid, pod), c))
	if variablesErr == nil {
		request.Variables = variables.Map()
	}
	var runs []string
	release = func() (err error) {
		for _, run := range runs {
			err = errors.Join(err, s.config.Volumes.Release(context.WithoutCancel(ctx), uid, run))
		}
		return err
	}
	missing = map[string]error{}
	for i, m := range c.VolumeMounts {
		if m.SubPathExpr != "" && variablesErr != nil {
			missing[path.Join("/", m.MountPath)] = variablesErr
			continue
		}
		single := *c
		single.VolumeMounts = []spec.VolumeMount{m}
		request.Container, request.Run = &single, fmt.Sprintf("%s.%d", copy, i)
		list, err := s.config.Volumes.Mounts(ctx, sandbox.VolumePod(d), request)
		if err != nil {
			missing[path.Join("/", m.MountPath)] = err // a copy of its files is refused
			continue
		}
		runs, mounts = append(runs, request.Run), append(mounts, list...)
	}
	order.Sort(mounts, func(a, b specs.Mount) int {
		return cmp.Compare(strings.Count(a.Destination, "/"), strings.Count(b.Destination, "/"))
	})
	if err := ctx.Err(); err != nil {
		return nil, nil, nil, errors.Join(err, release())
	}
	return mounts, missing, release, nil
}

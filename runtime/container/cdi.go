package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	runtimespec "github.com/opencontainers/runtime-spec/specs-go"
	library "tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/specs-go"

	"github.com/podstead/podstead/internal/cdi"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// hookTimeout is the timeout of a hook in seconds whose specification sets none. It is shorter than [engine.CreateTimeout].
const hookTimeout = 30

// completeCDI adds what the devices of the Container Device Interface need that a container names. Their specifications are read each time.
func (s *Service) completeCDI(ctx context.Context, n *creation, in *oci.Input) error {
	var found []*cdi.Device
	var registry *cdi.Registry
	for i := range in.Container.Devices {
		d := &in.Container.Devices[i]
		if d.CDI == "" {
			continue
		}
		if registry == nil {
			registry = cdi.Read(ctx, s.config.CDIDirs)
		}
		device, err := registry.Find(d.CDI)
		switch {
		case err == nil:
			found = append(found, device)
		case errors.Is(err, cdi.ErrNoDevice) && d.Optional:
		case errors.Is(err, cdi.ErrNoDevice):
			return engine.Refused(ctx, lifecycle.ReasonDeviceMissing, err)
		default:
			return err
		}
	}
	if len(found) == 0 {
		return nil
	}
	edits, err := cdi.Merge(found)
	if err != nil {
		return err
	}
	for _, d := range edits.DeviceNodes {
		granted, err := cdiNode(d)
		if errors.Is(err, fs.ErrNotExist) || err == nil && granted.Source == "" && in.User != "" { // it is mounted
			return engine.Refused(ctx, lifecycle.ReasonDeviceMissing,
				fmt.Errorf("device node %s of a CDI device does not exist", cmp.Or(d.HostPath, d.Path)))
		}
		if err != nil {
			return err
		}
		if err := besideOthers(in, &granted); err != nil {
			return err
		}
		in.Granted = append(in.Granted, granted)
	}
	for _, m := range edits.Mounts {
		mount := runtimespec.Mount{Destination: m.ContainerPath, Source: m.HostPath, Type: m.Type, Options: slices.Clone(m.Options)}
		if cdi.IsBind(m) {
			mount.Type = "bind"
			if !slices.Contains(m.Options, "bind") && !slices.Contains(m.Options, "rbind") {
				mount.Options = append(mount.Options, "rbind")
			}
		}
		in.DeviceMounts = append(in.DeviceMounts, mount)
	}
	in.DeviceEnv = edits.Env
	n.edits = edits
	return nil
}

// besideOthers returns an error if the path of a node is that of another device, or in a volume, where the node would be made.
func besideOthers(in *oci.Input, d *oci.Device) error {
	for i := range in.Granted {
		if o := &in.Granted[i]; o.Path == d.Path && (o.Type != d.Type || o.Major != d.Major || o.Minor != d.Minor) {
			return fmt.Errorf("device node %s of a CDI device is that of another device of the container", d.Path)
		}
	}
	for i := range in.Container.VolumeMounts {
		if m := &in.Container.VolumeMounts[i]; strings.HasPrefix(d.Path+"/", strings.TrimSuffix(path.Join("/", m.MountPath), "/")+"/") {
			return fmt.Errorf("device node %s of a CDI device is in the volume %s", d.Path, m.Name)
		}
	}
	return nil
}

// cdiNode returns a device node of a specification. What it does not set is as on the host, except for the owner: that is the user of the
// container, see [applyEdits].
func cdiNode(d *specs.DeviceNode) (oci.Device, error) {
	kind := d.Type
	if kind == "u" {
		kind = "c"
	}
	n, err := deviceNode(cmp.Or(d.HostPath, d.Path), d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && cdi.IsComplete(d):
		n.Path = d.Path
	case err != nil:
		return oci.Device{}, fmt.Errorf("device node %s of a CDI device: %w", d.Path, err)
	case kind != "" && kind != n.Type && !cdi.IsComplete(d):
		return oci.Device{}, fmt.Errorf("device node %s of a CDI device: has the type %s, not %s", d.Path, n.Type, d.Type)
	}
	if cdi.IsComplete(d) {
		n.Type, n.Major, n.Minor = kind, d.Major, d.Minor
	}
	if d.FileMode != nil {
		mode := d.FileMode.Perm()
		n.FileMode = &mode
	}
	n.UID, n.GID = d.UID, d.GID
	switch d.Permissions {
	case "":
		n.Access = "rwm"
	case library.NoPermissions:
	default:
		n.Access = d.Permissions
	}
	return n.Device, nil
}

// applyEdits changes a specification as CDI devices need it, except for what [oci.Spec] does: nodes, mounts and variables. The user of the
// container is known by now.
func applyEdits(s *runtimespec.Spec, e *specs.ContainerEdits) error {
	user := &s.Process.User
	for i := range s.Linux.Devices {
		d := &s.Linux.Devices[i]
		if d.UID == nil && user.UID > 0 {
			d.UID = &user.UID
		}
		if d.GID == nil && user.GID > 0 {
			d.GID = &user.GID
		}
	}
	rest := library.ContainerEdits{ContainerEdits: &specs.ContainerEdits{IntelRdt: e.IntelRdt, AdditionalGIDs: e.AdditionalGIDs}}
	for _, h := range e.Hooks {
		hook := *h
		if hook.Timeout == nil {
			hook.Timeout = new(int)
			*hook.Timeout = hookTimeout
		}
		rest.Hooks = append(rest.Hooks, &hook)
	}
	return rest.Apply(s)
}

// presentCDI reports whether a container can have a device, for the watch of one that waits for it: by a node that is always the same.
func (s *Service) presentCDI(ctx context.Context, d *spec.Device) []node {
	if _, err := cdi.Read(ctx, s.config.CDIDirs).Find(d.CDI); errors.Is(err, cdi.ErrNoDevice) {
		return nil
	}
	return []node{{Device: oci.Device{LinuxDevice: runtimespec.LinuxDevice{
		Path: d.CDI, FileMode: new(fs.FileMode), UID: new(uint32), GID: new(uint32),
	}}}}
}

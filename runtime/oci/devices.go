package oci

import (
	"fmt"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Device is a device of the host for a container, with its path in the container.
type Device struct {
	specs.LinuxDevice
	Source string // the path of its node on the host
	Access string // what the container may do: some of rwm; empty: nothing
}

// addDevices gives a container the devices that it names. A privileged container has all devices of the host: it gets those that have
// another path there.
func addDevices(s *specs.Spec, in *Input) {
	for i := range in.Granted {
		d := &in.Granted[i]
		switch {
		case slices.ContainsFunc(s.Linux.Devices, func(has specs.LinuxDevice) bool { return has.Path == d.Path }),
			slices.ContainsFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == d.Path }):
			// The path exists: another entry names the directory. Their permissions add up.
		case in.User != "": // OCI runtimes cannot make nodes in a user namespace: they mount the node of the same path of the host
			s.Mounts = append(s.Mounts, specs.Mount{
				Destination: d.Path, Type: "bind", Source: d.Source, Options: []string{"bind", "rprivate", "nosuid", "noexec"},
			})
		default:
			s.Linux.Devices = append(s.Linux.Devices, d.LinuxDevice)
		}
		if !Privileged(in.Container) && d.Access != "" {
			s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{
				Allow: true, Type: d.Type, Major: &d.Major, Minor: &d.Minor, Access: d.Access,
			})
		}
	}
}

// addDeviceMounts adds the mounts of devices, each before the mounts below it, such as a volume. It returns an error if something else is
// mounted there.
func addDeviceMounts(s *specs.Spec, in *Input) error {
	for i := range in.DeviceMounts {
		m := &in.DeviceMounts[i]
		for k := range s.Mounts {
			if s.Mounts[k].Destination == m.Destination {
				return fmt.Errorf("mount %s of a CDI device: the container has another mount there", m.Destination)
			}
		}
		at := slices.IndexFunc(s.Mounts, func(has specs.Mount) bool { return isBelow(has.Destination, m.Destination) })
		if at < 0 {
			at = len(s.Mounts)
		}
		s.Mounts = slices.Insert(s.Mounts, at, *m)
	}
	return nil
}

package spec

import (
	"path"
	"slices"
	"strings"
)

// DeviceMountHint is what a person can do about a device that a container mounts and must not open.
const DeviceMountHint = "set devices in the container, with the path of the device, in place of the volume"

// notDevices are the paths below /dev that are not devices, or that every container may open.
var notDevices = slices.Concat(runtimeDevices, []string{"/dev/hugepages", "/dev/log", "/dev/shm"})

// DeviceMounts returns the mounts of a container by which it sees a device of the host that it has no right to open: a hostPath with the
// type of a device, or below /dev. A privileged container may open all devices. A container with the path in devices has the right.
func (p *Pod) DeviceMounts(c *Container) []VolumeMount {
	if privileged(c) {
		return nil
	}
	var found []VolumeMount
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		at := slices.IndexFunc(p.Volumes, func(v Volume) bool { return v.Name == m.Name })
		if at < 0 || p.Volumes[at].HostPath == nil {
			continue
		}
		s := p.Volumes[at].HostPath
		host := path.Join(s.Path, m.SubPath)
		below := func(dir string) bool { return host == dir || strings.HasPrefix(host, dir+"/") }
		isDevice := s.Type == HostPathCharDevice || s.Type == HostPathBlockDevice || s.Type == "" && strings.HasPrefix(host, "/dev/")
		given := slices.ContainsFunc(c.Devices, func(d Device) bool {
			return d.CDI == "" && (below(d.Path) || strings.HasPrefix(d.Path, host+"/"))
		})
		if isDevice && !given && !slices.ContainsFunc(notDevices, below) {
			found = append(found, *m)
		}
	}
	return found
}

// deviceMounts warns of devices that a container mounts and has no right to open.
func (v *validator) deviceMounts(c *Container) {
	for _, m := range v.pod.DeviceMounts(c) {
		i := slices.IndexFunc(c.VolumeMounts, func(own VolumeMount) bool { return own.MountPath == m.MountPath })
		v.warnHint(&c.VolumeMounts[i].MountPath, DeviceMountHint,
			"the container cannot open devices of the volume: a volume gives no right to a device")
	}
}

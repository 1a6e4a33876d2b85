package spec

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/parser"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// Device gives a container a device of the host, or those in a directory, as they are when the container is created.
type Device struct {
	// Absolute path on the host: a device node, a directory with some, or a symbolic link, such as one in `/dev/serial/by-id`. Required,
	// unless `cdi` is set.
	Path string `json:"path,omitempty"`
	// Name of a device of the Container Device Interface, `VENDOR/CLASS=NAME`, such as `nvidia.com/gpu=all`. A specification of the host
	// has it, which is read when the container starts, and which sets everything except for `optional`.
	CDI string `json:"cdi,omitempty"`
	// Absolute path in the container, in `/dev`, unique in the container. Default: `path`.
	ContainerPath string `json:"containerPath,omitempty"`
	// `r` to read, `w` to write. `m`, to create nodes, is allowed for all devices of the host. Default: `rwm`.
	Permissions string `json:"permissions,omitempty"`
	// Start the container without the device if it does not exist. Default: false: the container waits for it.
	Optional bool `json:"optional,omitempty"`
	// What happens to a running container when the device is unplugged, or a directory has none left. `restart` stops the container, which
	// starts again when the device is back. With `keep` it runs on. Default: `restart`, or `keep` for an optional device.
	OnRemove DeviceRemoval `json:"onRemove,omitempty"`
}

// DeviceRemoval is what happens to a container whose device is unplugged.
type DeviceRemoval string

// The values of [Device.OnRemove].
const (
	DeviceRestart DeviceRemoval = "restart"
	DeviceKeep    DeviceRemoval = "keep"
)

// Name returns the path, or the name of a CDI device.
func (d *Device) Name() string { return cmp.Or(d.CDI, d.Path) }

// Restarts reports whether a running container is restarted when the device is unplugged; never for a CDI device. By default a container
// without which it would not have been started does not run on without it either.
func (d *Device) Restarts() bool {
	return d.CDI == "" && (d.OnRemove == DeviceRestart || d.OnRemove == "" && !d.Optional)
}

// InContainer returns the absolute path of the device in the container.
func (d *Device) InContainer() string {
	if d.ContainerPath != "" {
		return path.Clean(d.ContainerPath)
	}
	return path.Clean(d.Path)
}

// Access returns the permissions of the container, rwm by default.
func (d *Device) Access() string {
	if d.Permissions == "" {
		return "rwm"
	}
	return d.Permissions
}

// dockerDevice matches HOST:CONTAINER[:PERMISSIONS] and HOST:PERMISSIONS, the notation of Docker. Names of devices have colons, too.
var dockerDevice = lazyregexp.New(`^(/[^"]*?)(?::(/[^:"]*))?(?::([rwm]+))?$`)

// devices expands the elements of devices that are strings: paths, and names of CDI devices.
func (x *expander) devices(list *node) {
	for _, n := range items(list) {
		if n.kind != kindString {
			continue
		}
		text, _ := n.value.(string)
		if m := dockerDevice.FindStringSubmatch(text); m != nil && m[1] != text {
			fields := []string{"path = " + strconv.Quote(m[1])}
			for i, name := range []string{"containerPath", "permissions"} {
				if m[i+2] != "" {
					fields = append(fields, name+" = "+strconv.Quote(m[i+2]))
				}
			}
			x.fail(n, "Invalid value: "+quote(text)+": must be a path", "write { "+strings.Join(fields, ", ")+" }")
			continue
		}
		key := "path"
		if parser.IsQualifiedName(text) {
			key = "cdi"
		}
		n.toTable()
		n.putPairs([]pair{{key, text}})
	}
}

func (v *validator) devices(c *Container) {
	paths, names := unique{}, unique{}
	for i := range c.Devices {
		d := &c.Devices[i]
		if d.CDI != "" {
			v.cdiDevice(d, names)
			continue
		}
		v.required(d, "path", d.Path == "")
		if d.Path == "" {
			continue
		}
		if !path.IsAbs(d.Path) {
			v.badHint(&d.Path, devicePathHint(d.Path), "Invalid value: %s: must be an absolute path", quote(d.Path))
			continue
		}
		v.permissions(&d.Permissions)
		oneOf(v, &d.OnRemove, DeviceRestart, DeviceKeep)
		field := &d.ContainerPath
		if d.ContainerPath == "" {
			field = &d.Path
		}
		switch at := d.InContainer(); {
		case !strings.HasPrefix(at, "/dev/"):
			v.badHint(field, "set "+v.format.word("containerPath", "/dev/"+path.Base(at)),
				"Invalid value: %s: must be below /dev in the container", quote(*field))
		case paths.seen(at):
			v.duplicate(field, *field)
		default:
			v.besideRuntime(field, at)
			v.besideMounts(c, field, at)
		}
	}
}

// cdiDevice checks a device of the Container Device Interface.
func (v *validator) cdiDevice(d *Device, names unique) {
	if _, _, _, err := parser.ParseQualifiedName(d.CDI); err != nil {
		v.bad(&d.CDI, "Invalid value: %s: must be VENDOR/CLASS=NAME, such as nvidia.com/gpu=all", quote(d.CDI))
	} else if names.seen(d.CDI) {
		v.duplicate(&d.CDI, d.CDI)
	}
	const forbidden = "Forbidden: may not be specified when cdi is set"
	for _, field := range []*string{&d.Path, &d.ContainerPath, &d.Permissions} {
		if *field != "" {
			v.bad(field, forbidden)
		}
	}
	if d.OnRemove != "" {
		v.bad(&d.OnRemove, forbidden)
	}
}

// devicePathHint tells how to write the name of a CDI device; it may be empty.
func devicePathHint(text string) string {
	if strings.Contains(text, "=") && strings.Contains(text, "/") {
		return "write a CDI device as VENDOR/CLASS=NAME, such as nvidia.com/gpu=all"
	}
	return ""
}

// permissions checks the permissions of a device.
func (v *validator) permissions(field *string) {
	seen := ""
	for _, c := range *field {
		if !strings.ContainsRune("rwm", c) || strings.ContainsRune(seen, c) {
			v.invalid(field, *field, `must be one or more of the letters r, w and m, such as "rw"`)
			return
		}
		seen += string(c)
	}
}

// besideRuntime reports a device at or below a path that the OCI runtime sets up.
func (v *validator) besideRuntime(field *string, at string) {
	own := append([]string{"/dev/shm"}, runtimeDevices...)
	if i := slices.IndexFunc(own, func(of string) bool { return atOrBelow(at, of) }); i >= 0 {
		v.bad(field, "Forbidden: %s is set up by the OCI runtime", own[i])
	}
}

// besideMounts reports a device in a volume: its node would be created in the volume.
func (v *validator) besideMounts(c *Container, field *string, at string) {
	for i := range c.VolumeMounts {
		if m := path.Join("/", c.VolumeMounts[i].MountPath); atOrBelow(at, m) || atOrBelow(m, at) {
			v.bad(field, "Forbidden: %s is where the volume %s is mounted", quote(at), quote(c.VolumeMounts[i].Name))
		}
	}
}

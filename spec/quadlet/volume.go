package quadlet

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/parser"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

const (
	startsEmpty   = "volumes start empty: files of the image at the path are not copied into them"
	emptyHint     = "copy the files in an entry of initContainers if the program needs them"
	mountOnHost   = "mount it on the host, and write the path: Volume=/PATH:..."
	optionNotHere = "mount options cannot be chosen"
)

// mount adds a volume with the name or one like it, and mounts it. A path that is a mount point already keeps it.
func (m *member) mount(p *pod, v spec.Volume, at spec.VolumeMount) {
	if slices.ContainsFunc(m.VolumeMounts, func(o spec.VolumeMount) bool { return o.MountPath == at.MountPath }) {
		return
	}
	base := podName(v.Name)
	if base == "" {
		base = "volume"
	}
	base = numberable(base)
	v.Name = base
	kind, err := json.Marshal(v)
	known := p.names[string(kind)]
	if known == "" || err != nil || v.EmptyDir != nil {
		v.Name = numbered(p.lastVolumes, base, func(name string) bool {
			return slices.ContainsFunc(p.Volumes, func(o spec.Volume) bool { return o.Name == name })
		})
		p.Volumes = append(p.Volumes, v)
		p.names[string(kind)] = v.Name
		known = v.Name
	}
	v.Name = known
	at.Name = v.Name
	m.VolumeMounts = append(m.VolumeMounts, at)
}

// numberable returns a name that is short enough for a number.
func numberable(name string) string { return strings.Trim(name[:min(len(name), 55)], "-") }

// numbered returns a name, or if it is taken the name with the next number. last has the last number of each name.
func numbered(last map[string]int, name string, taken func(name string) bool) string {
	for {
		next := name
		if last[name]++; last[name] > 1 {
			next = fmt.Sprintf("%s-%d", name, last[name])
		}
		if !taken(next) {
			return next
		}
	}
}

// inMemory mounts a tmpfs.
func (m *member) inMemory(p *pod, target string) {
	v := spec.Volume{Name: strings.Trim(target, "/"), EmptyDir: &spec.EmptyDirVolume{Medium: "Memory"}}
	m.mount(p, v, spec.VolumeMount{MountPath: target})
}

func takeVolume(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		parts := strings.SplitN(text, ":", 3)
		source, target, options := "", parts[0], ""
		if len(parts) > 1 {
			source, target = parts[0], parts[1]
		}
		if len(parts) > 2 {
			options = parts[2]
		}
		if !path.IsAbs(target) {
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be [SOURCE:]PATH[:OPTIONS] with an absolute path", "")
			continue
		}
		at := spec.VolumeMount{MountPath: path.Clean(target)}
		v, file := c.sealed(x, source)
		if at.SubPath = file; file == "" {
			var ok bool
			if v, ok = c.source(x, e, source, target); !ok {
				continue
			}
		}
		c.mountOptions(e, strings.Split(options, ","), &at, &v)
		for _, m := range x.containers() {
			m.mount(x.pod, v, at)
		}
	}
}

var volumeName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// source returns what Volume= or Mount= names: a unit, a path or a volume of Podman. An empty name is an anonymous volume.
func (c *converter) source(x *scope, e entry, source, target string) (spec.Volume, bool) {
	switch {
	case source == "":
		return spec.Volume{Name: strings.Trim(target, "/"), EmptyDir: &spec.EmptyDirVolume{}}, true
	case strings.HasSuffix(source, ".volume"):
		u := c.byName[source]
		if u == nil { // as Podman names it without VolumeName=
			c.ignore(e, "unit "+strconv.Quote(clip(source))+
				" is not among those that are converted: the volume has its name", "pass it too")
			return c.claim(e, strings.TrimSuffix(source, ".volume")), true
		}
		return c.volume(e, u)
	case filepath.IsAbs(source) || strings.HasPrefix(source, "."):
		p := c.path(x.unit, e, source)
		name := filepath.Base(p)
		if name == "/" {
			name = "root"
		}
		return spec.Volume{Name: name, HostPath: &spec.HostPathVolume{Path: p}}, true
	case !volumeName.MatchString(source):
		c.problem(e, "invalid value: "+strconv.Quote(clip(source))+": must be a path, a unit or the name of a volume", "")
		return spec.Volume{}, false
	}
	return c.claim(e, source), true
}

func (c *converter) claim(e entry, name string) spec.Volume {
	c.ignoreOnce(e, startsEmpty, emptyHint)
	if name = podName(name); name == "" {
		c.problem(e, "invalid value: the name of the volume has none of the characters a-z and 0-9", "")
	}
	return spec.Volume{Name: name, PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: name}}
}

// volume returns the volume of a .volume unit.
func (c *converter) volume(e entry, u *unit) (spec.Volume, bool) {
	get := func(key string) (entry, string) {
		found, has := u.last("Volume", key)
		if !has {
			return found, ""
		}
		return found, c.text(u, found)
	}
	_, name := get("VolumeName")
	if name == "" {
		name = u.base
	}
	driverAt, driver := get("Driver")
	deviceAt, device := get("Device")
	kindAt, kind := get("Type")
	optionsAt, options := get("Options")
	_, image := get("Image")
	switch {
	case driver == "image":
		return spec.Volume{Name: name, Image: &spec.ImageVolume{Reference: c.image(driverAt, image)}}, true
	case driver != "" && driver != "local":
		c.problem(driverAt, "not supported: "+claimsOnly+" of the host", mountOnHost)
		return spec.Volume{}, false
	case kind == "tmpfs" || kind == "" && device == "tmpfs":
		v := spec.Volume{Name: name, EmptyDir: &spec.EmptyDirVolume{Medium: "Memory"}}
		c.mountOptions(optionsAt, strings.Split(strings.TrimPrefix(options, "o="), ","), &spec.VolumeMount{}, &v)
		return v, true
	case slices.Contains(strings.Split(options, ","), "bind") || kind == "none" || kind == "bind":
		if !filepath.IsAbs(device) {
			c.problem(deviceAt, "invalid value: Device= must be an absolute path", "")
			return spec.Volume{}, false
		}
		return spec.Volume{Name: name, HostPath: &spec.HostPathVolume{Path: filepath.Clean(device)}}, true
	case kind != "" || device != "":
		at := kindAt
		if kind == "" {
			at = deviceAt
		}
		c.problem(at, "not supported: "+claimsOnly+", not file systems that are mounted", mountOnHost)
		return spec.Volume{}, false
	}
	if copies, has := u.last("Volume", "Copy"); has {
		if value, _ := parseBool(c.text(u, copies)); !value {
			c.once[startsEmpty] = true
		}
	}
	return c.claim(e, name), true
}

// mountOptions takes the options of a mount.
func (c *converter) mountOptions(e entry, options []string, at *spec.VolumeMount, v *spec.Volume) {
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		switch strings.TrimSpace(key) {
		case "", "rw", "z", "Z", "relabel", "private", "rprivate", "copy", "nocopy", "bind", "rbind", "consistency", "notmpcopyup",
			"tmpcopyup", "notmpfs", "tmpfs":
			// SELinux labels are not set, and the rest is so here
		case "ro", "readonly":
			at.ReadOnly = value != "false"
		case "rslave", "slave":
			at.MountPropagation = "HostToContainer"
		case "rshared", "shared":
			at.MountPropagation = "Bidirectional"
		case "bind-propagation":
			c.mountOptions(e, []string{value}, at, v)
		case "size", "tmpfs-size":
			if v.EmptyDir == nil {
				c.lose(e, optionNotHere+": "+clip(o), "")
				continue
			}
			q, err := parseSize(value)
			if err != nil {
				c.lose(e, "the size "+strconv.Quote(clip(value))+" is not read: it "+err.Error(), "")
				continue
			}
			v.EmptyDir.SizeLimit = &q
		case "mode", "tmpfs-mode":
			c.tmpfsMode(e, value, v)
		case "subpath":
			at.SubPath = strings.Trim(value, "/")
		case "noexec", "nosuid", "nodev":
			c.ignoreOnce(e, optionNotHere+": noexec, nosuid, nodev", "")
		case "exec", "suid", "dev":
		case "U", "chown":
			c.lose(e, "the owner of files is not changed", "set fsGroup in the pod file")
		default:
			c.lose(e, optionNotHere+": "+clip(o), "")
		}
	}
}

// tmpfsMode sets the mode of a tmpfs.
func (c *converter) tmpfsMode(e entry, value string, v *spec.Volume) {
	mode, err := strconv.ParseUint(value, 8, 31)
	switch {
	case v.EmptyDir == nil:
		c.lose(e, optionNotHere+": mode="+clip(value), "")
	case err != nil || mode > 0o1777:
		c.lose(e, "the mode "+strconv.Quote(clip(value))+" is not read: it must be an octal number of at most 1777", "")
	case mode != 0o777:
		v.EmptyDir.Mode = new(int32(mode))
	}
}

func takeTmpfs(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		target, options, _ := strings.Cut(text, ":")
		if !path.IsAbs(target) {
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be an absolute path", "")
			continue
		}
		c.tmpfs(x, e, target, strings.Split(options, ","))
	}
}

func (c *converter) tmpfs(x *scope, e entry, target string, options []string) {
	v := spec.Volume{Name: strings.Trim(target, "/"), EmptyDir: &spec.EmptyDirVolume{Medium: "Memory"}}
	at := spec.VolumeMount{MountPath: path.Clean(target)}
	c.mountOptions(e, options, &at, &v)
	x.member.mount(x.pod, v, at)
}

func takeShmSize(c *converter, x *scope, list []entry) {
	e, text := c.last(x, list)
	q, err := parseSize(text)
	if err != nil {
		c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": "+err.Error(), "")
		return
	}
	if q.Sign() == 0 {
		c.lose(e, "/dev/shm has a limit", "write a size, such as 1g")
		return
	}
	if x.member == nil || len(x.members) == 1 {
		x.ShmSize = &q
		return
	}
	v := spec.Volume{Name: "shm", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory", SizeLimit: &q}}
	for _, m := range x.containers() {
		m.mount(x.pod, v, spec.VolumeMount{MountPath: "/dev/shm"})
	}
}

func takeMount(c *converter, x *scope, list []entry) {
	for _, e := range list {
		text := c.text(x.unit, e)
		fields, err := csv.NewReader(strings.NewReader(text)).Read()
		if err != nil {
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be type=TYPE[,OPTION...]", "")
			continue
		}
		kind, source, target := "volume", "", ""
		var options []string
		for _, f := range fields {
			key, value, _ := strings.Cut(f, "=")
			switch key {
			case "type":
				kind = value
			case "source", "src":
				source = value
			case "target", "destination", "dst":
				target = value
			default:
				options = append(options, f)
			}
		}
		if !path.IsAbs(target) {
			c.problem(e, "invalid value: target= must be an absolute path", "")
			continue
		}
		at := spec.VolumeMount{MountPath: path.Clean(target)}
		var v spec.Volume
		ok := true
		switch kind {
		case "bind":
			if source == "" || !filepath.IsAbs(source) && !strings.HasPrefix(source, ".") {
				c.problem(e, "invalid value: source= must be a path", "")
				continue
			}
			v, ok = c.source(x, e, source, target)
		case "volume":
			v, ok = c.source(x, e, source, target)
		case "tmpfs", "ramfs":
			c.tmpfs(x, e, target, options)
			continue
		case "image":
			v = spec.Volume{Name: "image", Image: &spec.ImageVolume{Reference: c.image(e, source)}}
			options = slices.DeleteFunc(options, func(o string) bool { return o == "rw=false" || o == "readwrite=false" })
		default:
			c.lose(e, "mounts of the type "+strconv.Quote(clip(kind))+" are not supported", "")
			continue
		}
		if ok {
			c.mountOptions(e, options, &at, &v)
			x.member.mount(x.pod, v, at)
		}
	}
}

// takeSecret mounts secrets of Podman, or sets variables to them. Here a secret is a directory with a file for each key.
func takeSecret(c *converter, x *scope, list []entry) {
	for _, e := range list {
		fields := strings.Split(c.text(x.unit, e), ",")
		key := fields[0]
		name := podName(key)
		kind, target := "mount", ""
		var mode *int32
		for _, f := range fields[1:] {
			option, value, _ := strings.Cut(f, "=")
			switch option {
			case "type":
				kind = value
			case "target":
				target = value
			case "mode":
				n, err := strconv.ParseUint(value, 8, 31)
				if err != nil || n > 0o777 {
					c.problem(e, "invalid value: mode= must be an octal number, such as 0400", "")
					continue
				}
				m := int32(n)
				mode = &m
			case "uid", "gid":
				if value != "0" {
					c.lose(e, "files of secrets belong to root", "set runAsUser or fsGroup in the pod file")
				}
			default:
				c.problem(e, "invalid value: unknown option "+strconv.Quote(clip(option)), "")
			}
		}
		if name == "" {
			c.problem(e, "invalid value: the name of the secret is empty", "")
			continue
		}
		c.ignoreOnce(e, "the value of the secret "+strconv.Quote(clip(key))+" is not copied from Podman",
			fmt.Sprintf("write it to the file secrets/%s/%s in /etc/podstead or, without root, in ~/.config/podstead, with the mode 0600",
				name, clip(key)))
		if kind == "env" {
			if target == "" {
				target = key
			}
			ref := &spec.KeyRef{Name: name, Key: key}
			x.member.setEnv(spec.EnvVar{Name: target, ValueFrom: &spec.EnvVarSource{SecretKeyRef: ref}})
			continue
		}
		if kind != "mount" {
			c.problem(e, "invalid value: type= must be mount or env", "")
			continue
		}
		if target == "" {
			target = key
		}
		if !path.IsAbs(target) {
			target = "/run/secrets/" + target
		}
		v := spec.Volume{Name: "secret-" + name, Secret: &spec.SecretVolume{
			SecretName: name, Items: []spec.KeyToPath{{Key: key, Path: key}}, DefaultMode: mode,
		}}
		x.member.mount(x.pod, v, spec.VolumeMount{MountPath: path.Clean(target), SubPath: key, ReadOnly: true})
	}
}

// takeDevice reads [-]PATH[:PATH-IN-CONTAINER[:PERMISSIONS]], or the name of a CDI device, as podman run --device. A device with a hyphen
// is optional.
func takeDevice(c *converter, x *scope, list []entry) {
	c.allWords(x, list, func(e entry, word string) {
		text, optional := strings.CutPrefix(word, "-")
		if parser.IsQualifiedName(text) {
			x.member.Devices = append(x.member.Devices, spec.Device{CDI: text, Optional: optional})
			return
		}
		parts := strings.Split(text, ":")
		d := spec.Device{Path: parts[0], Optional: optional}
		if len(parts) == 2 && !strings.HasPrefix(parts[1], "/") {
			parts = []string{parts[0], "", parts[1]}
		}
		if len(parts) > 1 && parts[1] != parts[0] {
			d.ContainerPath = parts[1]
		}
		if len(parts) > 2 && parts[2] != d.Access() {
			d.Permissions = parts[2]
		}
		switch {
		case len(parts) > 3:
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": must be PATH[:PATH[:PERMISSIONS]]", "")
		case !path.IsAbs(d.Path):
			c.lose(e, "devices have an absolute path or a CDI name", "write an absolute path, or a CDI device such as nvidia.com/gpu=all")
		case !strings.HasPrefix(d.InContainer(), "/dev/"):
			c.lose(e, "the path of a device in the container is below /dev", "write another path")
		default:
			x.member.Devices = append(x.member.Devices, d)
		}
	})
}

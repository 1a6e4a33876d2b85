package converter

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/spec"
)

// mounts adds the volumes of a container to its pod.
func (c *converter) mounts(w *pod, at []string, s *types.ContainerSpec, container *spec.Container) {
	for i := range s.Volumes {
		c.mount(w, append(slices.Clone(at), "volumes", strconv.Itoa(i)), &s.Volumes[i], container)
	}
	for _, text := range s.Tmpfs {
		c.tmpfs(w, append(slices.Clone(at), "tmpfs"), text, container)
	}
	if s.ShmSize > 0 && !w.ofPod(at) {
		size := inBytes(s.ShmSize)
		w.mountNew(container, spec.VolumeMount{Name: "shm", MountPath: "/dev/shm"}, memory(&size))
	}
	for i := range s.Secrets {
		f := types.FileReferenceConfig(s.Secrets[i])
		object := types.FileObjectConfig(c.p.Secrets[f.Source])
		target := cmp.Or(f.Target, f.Source)
		if !path.IsAbs(target) {
			target = "/run/secrets/" + target
		}
		c.file(w, append(slices.Clone(at), "secrets", strconv.Itoa(i)), "secret", &f, &object, target, container)
	}
	for i := range s.Configs {
		f := types.FileReferenceConfig(s.Configs[i])
		object := types.FileObjectConfig(c.p.Configs[f.Source])
		target := cmp.Or(f.Target, "/"+f.Source)
		if !path.IsAbs(target) {
			target = "/" + target
		}
		c.file(w, append(slices.Clone(at), "configs", strconv.Itoa(i)), "config", &f, &object, target, container)
	}
}

func memory(size *resource.Quantity) spec.Volume {
	return spec.Volume{EmptyDir: &spec.EmptyDirVolume{Medium: "Memory", SizeLimit: size}}
}

// mountNew mounts a volume that no other container mounts.
func (w *pod) mountNew(container *spec.Container, m spec.VolumeMount, v spec.Volume) {
	m.Name = w.volumeName(m.Name, nil)
	v.Name = m.Name
	w.Volumes = append(w.Volumes, v)
	container.VolumeMounts = append(container.VolumeMounts, m)
}

// mountShared mounts a volume that others may mount too.
func (w *pod) mountShared(container *spec.Container, m spec.VolumeMount, v spec.Volume) {
	m.Name = w.volumeName(m.Name, &v)
	if v.Name = m.Name; !slices.ContainsFunc(w.Volumes, func(other spec.Volume) bool { return other.Name == v.Name }) {
		w.Volumes = append(w.Volumes, v)
	}
	container.VolumeMounts = append(container.VolumeMounts, m)
}

// volumeName returns a name that no volume has, or that of the same volume.
func (w *pod) volumeName(text string, same *spec.Volume) string {
	const limit = 55
	base := compose.DNSName(text)
	base = strings.Trim(base[:min(len(base), limit)], "-")
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		i := slices.IndexFunc(w.Volumes, func(v spec.Volume) bool { return v.Name == name })
		if i < 0 || same != nil && w.Volumes[i].String() == same.String() {
			return name
		}
	}
}

func (c *converter) mount(w *pod, at []string, v *types.ServiceVolumeConfig, container *spec.Container) {
	m := spec.VolumeMount{MountPath: v.Target, ReadOnly: v.ReadOnly}
	switch v.Type {
	case types.VolumeTypeBind:
		m.Name = filepath.Base(v.Source)
		m.MountPropagation = c.propagation(at, v.Bind)
		w.mountShared(container, m, c.hostPath(v.Source, v.Bind == nil || bool(v.Bind.CreateHostPath)))
	case types.VolumeTypeVolume:
		if v.Volume != nil {
			m.SubPath = v.Volume.Subpath
		}
		if v.Source == "" {
			m.Name = filepath.Base(v.Target)
			w.mountNew(container, m, spec.Volume{EmptyDir: &spec.EmptyDirVolume{}})
			return
		}
		m.Name = v.Source
		w.mountShared(container, m, c.named(at, v.Source))
	case types.VolumeTypeTmpfs:
		var size *resource.Quantity
		if v.Tmpfs != nil && v.Tmpfs.Size > 0 {
			size = new(inBytes(v.Tmpfs.Size))
		}
		m.Name = filepath.Base(v.Target)
		volume := memory(size)
		switch {
		case v.Tmpfs == nil || v.Tmpfs.Mode == 0:
		case v.Tmpfs.Mode <= 0o1777:
			volume.EmptyDir.Mode = new(int32(v.Tmpfs.Mode))
		default:
			c.drop(append(slices.Clone(at), "tmpfs", "mode"), fmt.Sprintf("the mode %#o of tmpfs", v.Tmpfs.Mode))
		}
		w.mountNew(container, m, volume)
	case types.VolumeTypeImage:
		if v.Image != nil {
			m.SubPath = v.Image.SubPath
		}
		m.Name, m.ReadOnly = filepath.Base(v.Target), true
		w.mountShared(container, m, spec.Volume{Image: &spec.ImageVolume{Reference: v.Source}})
	default:
		c.refuse(at, fmt.Sprintf("volumes of type %s are not supported", quote(v.Type)), "use a named volume or a path")
	}
}

func (c *converter) propagation(at []string, b *types.ServiceVolumeBind) string {
	if b == nil {
		return ""
	}
	switch b.Propagation {
	case "", types.PropagationRPrivate, types.PropagationPrivate:
		return ""
	case types.PropagationRSlave, types.PropagationSlave:
		return "HostToContainer"
	case types.PropagationRShared, types.PropagationShared:
		return "Bidirectional"
	}
	c.lose(at, fmt.Sprintf("propagation %s is not supported", quote(b.Propagation)), "")
	return ""
}

// hostPath returns a volume with a path of the host. Below the directory of the project, the path is relative, as a pod file there has it.
// A directory that is missing is created, as by Compose.
func (c *converter) hostPath(source string, create bool) spec.Volume {
	h := &spec.HostPathVolume{Path: source}
	if info, err := os.Stat(source); create && (err != nil || info.IsDir()) {
		h.Type = spec.HostPathDirectoryOrCreate
	}
	if relative, err := filepath.Rel(c.q.Dir, source); err == nil && filepath.IsLocal(relative) {
		h.Path = "./" + relative
		if relative == "." {
			h.Path = "."
		}
	}
	return spec.Volume{HostPath: h}
}

// claimName is the name of a persistent volume: PROJECT-NAME, as PROJECT_NAME of Compose, since names have no underscores.
func claimName(v *types.VolumeConfig) string { return compose.DNSName(v.Name) }

// named returns a volume of the project.
func (c *converter) named(at []string, key string) spec.Volume {
	v, ok := c.p.Volumes[key]
	if !ok {
		c.refuse(at, "there is no volume "+quote(key), "")
		return spec.Volume{}
	}
	for _, other := range sortedKeys(c.p.Volumes) {
		if o := c.p.Volumes[other]; o.Name != v.Name && claimName(&o) == claimName(&v) {
			c.refuse([]string{"volumes", max(key, other)}, fmt.Sprintf("volumes %s and %s have the same name %s here",
				min(key, other), max(key, other), claimName(&v)), "set the name of one of them")
		}
	}
	options := v.DriverOpts
	kind, device := options["type"], options["device"]
	switch {
	case len(options) == 0:
		return spec.Volume{PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: claimName(&v)}}
	case slices.Contains(strings.Split(options["o"], ","), "bind") || slices.Contains(strings.Split(options["o"], ","), "rbind"):
		if !filepath.IsAbs(device) {
			device = filepath.Join(c.q.Dir, device)
		}
		return c.hostPath(device, false)
	case kind == "tmpfs":
		var size *resource.Quantity
		for option := range strings.SplitSeq(options["o"], ",") {
			if text, ok := strings.CutPrefix(option, "size="); ok {
				size = parseBytes(text)
			}
		}
		return memory(size)
	}
	c.lose([]string{"volumes", key, "driver_opts"}, fmt.Sprintf("file systems of type %s are not mounted", quote(kind)),
		"mount it on the host, and use its path")
	return spec.Volume{PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: claimName(&v)}}
}

// tmpfs mounts PATH[:OPTIONS].
func (c *converter) tmpfs(w *pod, at []string, text string, container *spec.Container) {
	target, options, _ := strings.Cut(text, ":")
	volume := memory(nil)
	for option := range strings.SplitSeq(options, ",") {
		value, isSize := strings.CutPrefix(option, "size=")
		octal, isMode := strings.CutPrefix(option, "mode=")
		mode, err := strconv.ParseUint(octal, 8, 31)
		switch n := parseBytes(value); {
		case option == "" || option == "rw":
		case isSize && n != nil:
			volume.EmptyDir.SizeLimit = n
		case isMode && err == nil && mode <= 0o1777:
			volume.EmptyDir.Mode = new(int32(mode))
		default:
			c.drop(at, fmt.Sprintf("the option %s of tmpfs", quote(option)))
		}
	}
	w.mountNew(container, spec.VolumeMount{Name: path.Base(target), MountPath: target}, volume)
}

// objectName returns the name of an inline secret or config map. Names that have only other characters, such as a_b and a-b, get a number.
func (w *pod) objectName(kind, source string) string {
	names := w.objects[kind]
	if names == nil {
		names = map[string]string{}
		w.objects[kind] = names
	}
	const limit = 55
	base := compose.DNSName(source)
	for n, name := 1, base; ; name = fmt.Sprintf("%s-%d", strings.TrimRight(base[:min(len(base), limit)], "-"), n) {
		if other, taken := names[name]; !taken || other == source {
			names[name] = source
			return name
		}
		n++
	}
}

// file mounts a secret or a config: the file itself, as Compose does, or an inline value.
func (c *converter) file(
	w *pod, at []string, kind string, f *types.FileReferenceConfig, object *types.FileObjectConfig, target string,
	container *spec.Container,
) {
	if object.External || object.Driver != "" || object.TemplateDriver != "" {
		return // the table of keys reports it
	}
	m := spec.VolumeMount{Name: kind + "-" + f.Source, MountPath: target, ReadOnly: true}
	if object.File != "" {
		if f.Mode != nil {
			c.drop(append(slices.Clone(at), "mode"), "the file keeps its mode, as without Swarm")
		}
		v := c.hostPath(object.File, false)
		v.HostPath.Type = spec.HostPathFile
		if info, err := os.Stat(object.File); err == nil && info.IsDir() {
			v.HostPath.Type = spec.HostPathDirectory
		}
		w.mountShared(container, m, v)
		return
	}
	text := object.Content
	if object.Environment != "" {
		value, ok := c.p.Environment[object.Environment]
		if !ok {
			c.refuse(at, fmt.Sprintf("environment variable %s is not set", quote(object.Environment)), "set it, or write it into .env")
			return
		}
		text = value
	}
	const key = "value"
	name := w.objectName(kind, f.Source)
	item := spec.KeyToPath{Key: key, Path: key}
	if f.Mode != nil {
		item.Mode = new(int32(*f.Mode & 0o777))
	}
	m.SubPath = key
	items := []spec.KeyToPath{item}
	if kind == "secret" {
		if !slices.ContainsFunc(w.secrets, func(s secret) bool { return s.Name == name }) {
			w.secrets = append(w.secrets, secret{Name: name, Data: map[string]string{key: text}})
		}
		w.mountShared(container, m, spec.Volume{Secret: &spec.SecretVolume{SecretName: name, Items: items}})
		return
	}
	if !slices.ContainsFunc(w.ConfigMaps, func(s spec.ConfigMap) bool { return s.Name == name }) {
		w.ConfigMaps = append(w.ConfigMaps, spec.ConfigMap{Name: name, Data: map[string]string{key: text}})
	}
	w.mountShared(container, m, spec.Volume{ConfigMap: &spec.ConfigMapVolume{Name: name, Items: items}})
}

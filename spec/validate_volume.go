package spec

import (
	"path"
	"slices"
	"strings"
)

func (v *validator) volumes() {
	names := unique{}
	for i := range v.pod.Volumes {
		vol := &v.pod.Volumes[i]
		v.requiredName(vol, "name", &vol.Name, dnsLabel)
		if vol.Name != "" && names.seen(vol.Name) {
			v.duplicate(&vol.Name, vol.Name)
		}
		v.atMostOne(vol, "emptyDir", "hostPath", "persistentVolumeClaim", "configMap", "secret", "projected", "downwardAPI", "image")
		v.volumeSource(vol)
	}
}

func (v *validator) volumeSource(vol *Volume) {
	if s := vol.EmptyDir; s != nil {
		if s.InHugePages() {
			if _, err := v.pod.PageSizeOf(s); err != nil {
				v.badHint(&s.Medium, "set limits of a container such as hugepages-2Mi", "%v", err)
			}
		} else if s.Medium != "" && s.Medium != "Memory" {
			v.unsupportedValue(&s.Medium, s.Medium, []string{"", "Memory", MediumHugePages, MediumHugePages + "-2Mi"})
		}
		v.modeUpTo(s.Mode, 0o1777)
	}
	if s := vol.HostPath; s != nil {
		v.hostPath(s)
	}
	if s := vol.PersistentVolumeClaim; s != nil {
		v.requiredName(s, "claimName", &s.ClaimName, dnsSubdomain)
	}
	if s := vol.ConfigMap; s != nil {
		v.requiredName(s, "name", &s.Name, dnsSubdomain)
		v.keyFiles(s.Items, s.DefaultMode, v.keysOf(v.configMaps, s.Name, s.Optional), unique{})
	}
	if s := vol.Secret; s != nil {
		v.requiredName(s, "secretName", &s.SecretName, dnsSubdomain)
		v.keyFiles(s.Items, s.DefaultMode, v.keysOf(v.secrets, s.SecretName, s.Optional), unique{})
	}
	if s := vol.Projected; s != nil {
		v.projected(s)
	}
	if s := vol.DownwardAPI; s != nil {
		v.mode(s.DefaultMode)
		v.downwardFiles(s.Items, unique{})
	}
	if s := vol.Image; s != nil {
		v.required(s, "reference", s.Reference == "")
		v.image(&s.Reference)
		oneOf(v, &s.PullPolicy, PullAlways, PullIfNotPresent, PullNever)
	}
}

func (v *validator) hostPath(s *HostPathVolume) {
	v.required(s, "path", s.Path == "")
	// A relative path is joined and cleaned already. Check the text of an absolute one.
	if n := v.at[&s.Path]; n != nil && n.kind == kindString {
		if text, ok := n.value.(string); ok && path.IsAbs(text) && slices.Contains(strings.Split(text, "/"), "..") {
			v.invalid(&s.Path, text, noBackstep)
		}
	}
	oneOf(v, &s.Type, HostPathDirectoryOrCreate, HostPathDirectory, HostPathFileOrCreate, HostPathFile,
		HostPathSocket, HostPathCharDevice, HostPathBlockDevice)
}

func (v *validator) projected(s *ProjectedVolume) {
	v.mode(s.DefaultMode)
	paths := unique{}
	for i := range s.Sources {
		src := &s.Sources[i]
		v.exactlyOne(src, "configMap", "secret", "downwardAPI")
		if k := src.ConfigMap; k != nil {
			v.keyProjection(k, v.configMaps, paths)
		}
		if k := src.Secret; k != nil {
			v.keyProjection(k, v.secrets, paths)
		}
		if src.DownwardAPI != nil {
			v.downwardFiles(src.DownwardAPI.Items, paths)
		}
	}
}

func (v *validator) keyProjection(k *KeyProjection, inline map[string][]string, paths unique) {
	v.requiredName(k, "name", &k.Name, dnsSubdomain)
	v.keyFiles(k.Items, nil, v.keysOf(inline, k.Name, k.Optional), paths)
}

// keysOf returns the keys of an inline object. It returns nil if they are not
// known or may be absent.
func (v *validator) keysOf(inline map[string][]string, name string, optional bool) []string {
	keys, known := inline[name]
	if !known || optional {
		return nil
	}
	return append(slices.Clone(keys), "") // never nil; required reports an empty key
}

func (v *validator) keyFiles(items []KeyToPath, mode *int32, keys []string, paths unique) {
	v.mode(mode)
	for i := range items {
		item := &items[i]
		v.required(item, "key", item.Key == "")
		v.required(item, "path", item.Path == "")
		v.key(&item.Key, keys)
		v.file(&item.Path, paths)
		v.mode(item.Mode)
	}
}

// key checks that an inline object has a key. With nil keys it checks nothing.
func (v *validator) key(field *string, keys []string) {
	if keys != nil && !slices.Contains(keys, *field) {
		v.notFound(field, "key", *field, keys)
	}
}

func (v *validator) file(field *string, paths unique) {
	v.relativePath(field)
	if name, _, _ := strings.Cut(*field, "/"); strings.HasPrefix(name, "..") && name != ".." {
		v.invalid(field, *field, "must not start with '..'") // the names of the volume's own files
	}
	if *field != "" && paths.seen(path.Clean(*field)) {
		v.duplicate(field, *field)
	}
}

func (v *validator) mode(m *int32) { v.modeUpTo(m, 0o777) }

func (v *validator) modeUpTo(m *int32, limit int32) {
	if m != nil && (*m < 0 || *m > limit) {
		hint := "write octal numbers with 0o, such as 0o644"
		if v.format == formatJSON {
			hint = "write octal numbers in decimal, such as 420 for 0o644"
		}
		v.badHint(m, hint, "must be a number between 0 and 0o%o (octal), both inclusive", limit)
	}
}

func (v *validator) downwardFiles(items []DownwardFile, paths unique) {
	for i := range items {
		item := &items[i]
		v.required(item, "path", item.Path == "")
		v.file(&item.Path, paths)
		v.mode(item.Mode)
		v.exactlyOne(item, "fieldRef", "resourceFieldRef")
		if item.FieldRef != nil {
			v.fieldRef(item.FieldRef, volumeFields)
		}
		if ref := item.ResourceFieldRef; ref != nil {
			v.required(ref, "containerName", ref.ContainerName == "")
			v.resourceFieldRef(ref)
		}
	}
}

func (v *validator) mounts(c *Container) {
	paths, places := unique{}, unique{}
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		v.required(m, "name", m.Name == "")
		if _, ok := v.sources[m.Name]; !ok && m.Name != "" {
			known := make([]string, 0, len(v.sources))
			for name := range v.sources {
				known = append(known, name)
			}
			slices.Sort(known)
			v.notFound(&m.Name, "volume", m.Name, known)
		}
		v.required(m, "mountPath", m.MountPath == "")
		v.mountPath(&m.MountPath, paths, places)
		if !privileged(c) && !v.isOwnHostPath(m) {
			v.outsideKernel(&m.MountPath)
		}
		v.relativePath(&m.SubPath)
		v.relativePath(&m.SubPathExpr)
		if m.SubPath != "" && m.SubPathExpr != "" {
			v.bad(&m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
		}
		chosen(v, &m.MountPropagation, "None", "HostToContainer", "Bidirectional")
		if m.MountPropagation == "Bidirectional" && !privileged(c) {
			v.bad(&m.MountPropagation, "Forbidden: Bidirectional mount propagation is available only to privileged containers")
		}
		if m.MountPropagation == "Bidirectional" && v.pod.HostUsers != nil && !*v.pod.HostUsers {
			// Mounts do not propagate out of a mount namespace that a user namespace owns (mount_namespaces(7)).
			v.bad(&m.MountPropagation, "Forbidden: Bidirectional mount propagation is not available when hostUsers is false")
		}
		v.recursiveReadOnly(m)
	}
	v.nestedDevices(c)
}

func privileged(c *Container) bool {
	s := c.SecurityContext
	return s != nil && s.Privileged != nil && *s.Privileged
}

// mountPath checks a path of a mount. As in the Pod API, only the same text is a duplicate, not the same place.
func (v *validator) mountPath(field *string, paths, places unique) {
	if *field != "" && !path.IsAbs(*field) {
		v.warn(field, "is relative, mounted at %s", path.Join("/", *field))
	}
	switch p := *field; {
	case p == "":
	case strings.Contains(p, ":"):
		v.invalid(field, p, "must not contain ':'")
	case path.Join("/", p) == "/":
		v.invalid(field, p, "must not be the root directory of the container")
	case paths.seen(p):
		v.invalid(field, p, "must be unique")
	case places.seen(path.Join("/", p)):
		v.warn(field, "hides the volume that is mounted at %s before", path.Join("/", p))
	}
}

func (v *validator) recursiveReadOnly(m *VolumeMount) {
	chosen(v, &m.RecursiveReadOnly, "Disabled", "IfPossible", "Enabled")
	if m.RecursiveReadOnly != "IfPossible" && m.RecursiveReadOnly != "Enabled" {
		return
	}
	if !m.ReadOnly {
		v.bad(&m.RecursiveReadOnly, "Forbidden: may only be specified when readOnly is true")
	}
	if m.MountPropagation != "" && m.MountPropagation != "None" {
		v.bad(&m.RecursiveReadOnly, "Forbidden: may only be specified when mountPropagation is None or not specified")
	}
}

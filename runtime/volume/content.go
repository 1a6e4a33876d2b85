package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// isContent reports whether the files of a volume come from config maps, secrets or fields of the pod.
func isContent(v *spec.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil
}

// prepareContent writes a volume. If its sources are missing, files that were written before stay.
func (s *Set) prepareContent(p Pod, v *spec.Volume) error {
	if err := s.mountFiles(p.UID); err != nil {
		return err
	}
	dir := s.path(p.UID, v)
	content, err := collect(s.values, p, v)
	if err != nil && written(dir) {
		return nil
	}
	if err == nil {
		_, err = Writer{GID: p.fsGroup()}.Write(dir, content)
	}
	return err
}

// updateContent rewrites a volume that was written before. It holds the lock of the pod only while it writes. Content that arrives after
// the end of ctx is not written: the pod may have another definition by then.
func (s *Set) updateContent(ctx context.Context, p Pod, v *spec.Volume) (changed bool, err error) {
	dir := s.path(p.UID, v)
	if !written(dir) {
		return false, nil
	}
	content, err := collect(s.values, p, v)
	if err != nil {
		return false, err
	}
	return withPod(ctx, s, p.UID, func(ctx context.Context) (bool, error) {
		if ctx.Err() != nil || !written(dir) {
			return false, ctx.Err()
		}
		return Writer{GID: p.fsGroup()}.Write(dir, content)
	})
}

// mountFiles mounts the pod's tmpfs for written volumes. Secrets never reach a disk, and files do not survive a reboot,
// after which their sources may have changed.
func (s *Set) mountFiles(uid string) error {
	return ensureTmpfs(s.filesDir(uid), unix.MS_NOSUID|unix.MS_NODEV, "mode=0700")
}

// missingObject is the error of a missing config map or secret.
type missingObject struct{ kind, name string }

func (m missingObject) Error() string { return fmt.Sprintf("%s %q not found", m.kind, m.name) }

// Is makes missingObject an fs.ErrNotExist.
func (m missingObject) Is(target error) bool { return target == fs.ErrNotExist }

// collector collects the files of one volume.
type collector struct {
	values Values
	pod    Pod
	mode   fs.FileMode // the default mode of files
	files  Files
}

// collect returns the files of a volume, or all errors of its sources.
func collect(values Values, p Pod, v *spec.Volume) (Files, error) {
	c := collector{values: values, pod: p, files: Files{}}
	var err error
	switch {
	case v.ConfigMap != nil:
		c.mode = defaultMode(v.ConfigMap.DefaultMode)
		err = c.addConfigMap(v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		c.mode = defaultMode(v.Secret.DefaultMode)
		err = c.addSecret(v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.DownwardAPI != nil:
		c.mode = defaultMode(v.DownwardAPI.DefaultMode)
		err = c.addFields(v.DownwardAPI.Items)
	case v.Projected != nil:
		c.mode = defaultMode(v.Projected.DefaultMode)
		err = c.addSources(v.Projected.Sources)
	}
	return c.files, err
}

func defaultMode(mode *int32) fs.FileMode {
	if mode == nil {
		return 0o644
	}
	return fs.FileMode(*mode) & fs.ModePerm
}

// addSources adds the files of a projected volume. Later sources override earlier ones with the same path.
func (c *collector) addSources(list []spec.Projection) error {
	var failed errorList
	for _, source := range list {
		var err error
		switch {
		case source.ConfigMap != nil:
			err = c.addConfigMap(source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional)
		case source.Secret != nil:
			err = c.addSecret(source.Secret.Name, source.Secret.Items, source.Secret.Optional)
		case source.DownwardAPI != nil:
			err = c.addFields(source.DownwardAPI.Items)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed.err()
}

func (c *collector) addConfigMap(name string, items []spec.KeyToPath, optional bool) error {
	values, err := c.values.ConfigMap(c.pod.Spec, name)
	if err = sourceError("configmap", name, optional, err); err != nil {
		return err
	}
	return c.addKeys("configmap references non-existent config key: %s", values, items, optional)
}

func (c *collector) addSecret(name string, items []spec.KeyToPath, optional bool) error {
	values, err := c.values.Secret(c.pod.Spec, name)
	if err = sourceError("secret", name, optional, err); err != nil {
		return err
	}
	return c.addKeys("references non-existent secret key: %s", values, items, optional)
}

// sourceError converts an error of Values. It is nil if an optional object is missing.
func sourceError(kind, name string, optional bool, err error) error {
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err // it names the object
	case optional:
		return nil
	}
	return missingObject{kind, name}
}

// addKeys adds the items, or without items, all values by key.
func (c *collector) addKeys(missing string, values map[string][]byte, items []spec.KeyToPath, optional bool) error {
	if len(items) == 0 {
		for key, value := range values {
			c.files[key] = File{Content: value, Mode: c.mode}
		}
		return nil
	}
	for _, item := range items {
		value, ok := values[item.Key]
		switch {
		case ok:
			c.files[path.Clean(item.Path)] = File{Content: value, Mode: c.itemMode(item.Mode)}
		case !optional:
			return fmt.Errorf(missing, item.Key)
		}
	}
	return nil
}

func (c *collector) itemMode(mode *int32) fs.FileMode {
	if mode == nil {
		return c.mode
	}
	return defaultMode(mode)
}

// addFields adds files of the downward API.
func (c *collector) addFields(items []spec.DownwardFile) error {
	var failed errorList
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = c.pod.Field(item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			ref := item.ResourceFieldRef
			value, err = c.pod.Resource(ref.ContainerName, ref.Resource, ref.Divisor)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("downward API file %q: %w", item.Path, err))
			continue
		}
		c.files[path.Clean(item.Path)] = File{Content: []byte(value), Mode: c.itemMode(item.Mode)}
	}
	return failed.err()
}

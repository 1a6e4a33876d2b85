package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/atomicwriter"
	"github.com/podstead/podstead/runtime/volume/mountpoint"
	"github.com/podstead/podstead/spec"
)

// isContent says that a volume is written by us, from config maps, secrets and fields.
func isContent(v *spec.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil
}

// prepareContent writes a volume. What was written before stays if its sources cannot be had any more.
func (s *Set) prepareContent(p Pod, v *spec.Volume) error {
	if err := s.mountFiles(p.UID); err != nil {
		return err
	}
	dir := s.path(p.UID, v)
	content, err := collect(s.values, p, v)
	if err != nil && atomicwriter.Written(dir) {
		return nil
	}
	if err == nil {
		_, err = atomicwriter.Writer{GID: p.fsGroup()}.Write(dir, content)
	}
	return err
}

// updateContent writes a volume anew, if it has been written before.
func (s *Set) updateContent(p Pod, v *spec.Volume) (changed bool, err error) {
	dir := s.path(p.UID, v)
	if !atomicwriter.Written(dir) {
		return false, nil
	}
	content, err := collect(s.values, p, v)
	if err != nil {
		return false, err
	}
	return atomicwriter.Writer{GID: p.fsGroup()}.Write(dir, content)
}

// mountFiles makes the tmpfs of a pod that its written volumes lie on: secrets never reach a disk, and what is written
// from a source is gone after a boot, when the source may say something else.
func (s *Set) mountFiles(uid string) error {
	return mountpoint.EnsureTmpfs(s.filesDir(uid), unix.MS_NOSUID|unix.MS_NODEV, "mode=0700")
}

// missingObject is a config map or secret that is not there (yet).
type missingObject struct{ kind, name string }

func (m missingObject) Error() string { return fmt.Sprintf("%s %q not found", m.kind, m.name) }

// Is makes it an fs.ErrNotExist.
func (m missingObject) Is(target error) bool { return target == fs.ErrNotExist }

// collector collects the files of one volume.
type collector struct {
	values Values
	pod    Pod
	mode   fs.FileMode // of files whose item gives none
	files  atomicwriter.Files
}

// collect returns the files of a volume, or every problem of its sources.
func collect(values Values, p Pod, v *spec.Volume) (atomicwriter.Files, error) {
	c := collector{values: values, pod: p, files: atomicwriter.Files{}}
	var err error
	switch {
	case v.ConfigMap != nil:
		c.mode = defaultMode(v.ConfigMap.DefaultMode)
		err = c.configMap(v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		c.mode = defaultMode(v.Secret.DefaultMode)
		err = c.secret(v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.DownwardAPI != nil:
		c.mode = defaultMode(v.DownwardAPI.DefaultMode)
		err = c.fields(v.DownwardAPI.Items)
	case v.Projected != nil:
		c.mode = defaultMode(v.Projected.DefaultMode)
		err = c.sources(v.Projected.Sources)
	}
	return c.files, err
}

func defaultMode(mode *int32) fs.FileMode {
	if mode == nil {
		return 0o644
	}
	return fs.FileMode(*mode) & fs.ModePerm
}

// sources collects those of a projected volume. Of two files with one path the later source's counts.
func (c *collector) sources(list []spec.Projection) error {
	var failed problems
	for _, source := range list {
		var err error
		switch {
		case source.ConfigMap != nil:
			err = c.configMap(source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional)
		case source.Secret != nil:
			err = c.secret(source.Secret.Name, source.Secret.Items, source.Secret.Optional)
		case source.DownwardAPI != nil:
			err = c.fields(source.DownwardAPI.Items)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed.err()
}

func (c *collector) configMap(name string, items []spec.KeyToPath, optional bool) error {
	values, err := c.values.ConfigMap(c.pod.Spec, name)
	if err = explain("configmap", name, optional, err); err != nil {
		return err
	}
	return c.keys("configmap references non-existent config key: %s", values, items, optional)
}

func (c *collector) secret(name string, items []spec.KeyToPath, optional bool) error {
	values, err := c.values.Secret(c.pod.Spec, name)
	if err = explain("secret", name, optional, err); err != nil {
		return err
	}
	return c.keys("references non-existent secret key: %s", values, items, optional)
}

// explain says what an error of Values means for a volume; the absence of something optional is none.
func explain(kind, name string, optional bool, err error) error {
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %q: %w", kind, name, err)
	case optional:
		return nil
	}
	return missingObject{kind, name}
}

// keys puts values where the items say, or, without items, each at the path of its key.
func (c *collector) keys(missing string, values map[string][]byte, items []spec.KeyToPath, optional bool) error {
	if len(items) == 0 {
		for key, value := range values {
			c.files[key] = atomicwriter.File{Content: value, Mode: c.mode}
		}
		return nil
	}
	for _, item := range items {
		value, ok := values[item.Key]
		switch {
		case ok:
			c.files[path.Clean(item.Path)] = atomicwriter.File{Content: value, Mode: c.itemMode(item.Mode)}
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

// fields collects files of the downward API.
func (c *collector) fields(items []spec.DownwardFile) error {
	var failed problems
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
		c.files[path.Clean(item.Path)] = atomicwriter.File{Content: []byte(value), Mode: c.itemMode(item.Mode)}
	}
	return failed.err()
}

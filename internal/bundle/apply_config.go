package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/spec"
)

// objectDir returns the directory of a config map or a secret, and the modes of it and its files.
func (t *Transaction) objectDir(o Object) (dir string, dirMode, fileMode fs.FileMode) {
	if o.Kind == "secret" {
		return filepath.Join(t.config.ConfigDir, "secrets", o.Name), 0o700, 0o600
	}
	return filepath.Join(t.config.ConfigDir, "configmaps", o.Name), 0o755, 0o644
}

// checkConfig checks that the config maps and secrets of the bundle can be written.
func (t *Transaction) checkConfig() error {
	for _, o := range t.Bundle.Objects() {
		dir, _, _ := t.objectDir(o)
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			return fmt.Errorf("%s %q: %s is not a directory", o.Kind, o.Name, dir)
		}
		if link := filepath.Join(dir, configsource.DataLink); isPresent(link) {
			return &Error{
				Err: fmt.Errorf("%s %q: %s exists: the values are read from where it leads, and other software replaces them",
					o.Kind, o.Name, link),
				Hint: fmt.Sprintf("update the %s with that software, and create the bundle without it, or remove %s", o.Kind, dir),
			}
		}
		for errors.Is(unix.Access(dir, unix.F_OK), unix.ENOENT) {
			dir = filepath.Dir(dir)
		}
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return &Error{
				Err:  fmt.Errorf("write %s %q: %w", o.Kind, o.Name, &fs.PathError{Op: "write", Path: dir, Err: err}),
				Hint: "run the command as root",
			}
		}
	}
	return nil
}

// isPresent reports whether a path exists. A symbolic link may lead nowhere.
func isPresent(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// writeConfig writes the config maps and secrets. Each of them has exactly the keys of the bundle afterwards.
func (t *Transaction) writeConfig() error {
	for _, o := range t.Bundle.Objects() {
		if err := t.writeObject(o); err != nil {
			return fmt.Errorf("write %s %q: %w", o.Kind, o.Name, err)
		}
	}
	return nil
}

func (t *Transaction) writeObject(o Object) error {
	dir, dirMode, fileMode := t.objectDir(o)
	earlier, existed, err := t.earlierValues(o)
	if err != nil {
		return err
	}
	t.undo = append(t.undo, func(context.Context) error {
		if !existed {
			return os.RemoveAll(dir)
		}
		return replaceFiles(dir, earlier, fileMode)
	})
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	values := map[string][]byte{}
	for _, key := range o.Keys {
		values[key] = t.Bundle.Value(o, key)
	}
	return replaceFiles(dir, values, fileMode)
}

// earlierValues returns the values that a config map or a secret of the host has, and whether there is one.
func (t *Transaction) earlierValues(o Object) (values map[string][]byte, existed bool, err error) {
	source := configsource.Source{Dir: t.config.ConfigDir}
	read := source.ConfigMap
	if o.Kind == "secret" {
		read = source.Secret
	}
	values, err = read(&spec.Pod{}, o.Name)
	if _, missing := errors.AsType[*configsource.NotFoundError](err); missing {
		return nil, false, nil
	}
	return values, err == nil, err
}

// replaceFiles makes the keys of a directory those of a map. Each is replaced at once. Files that are not keys are kept.
func replaceFiles(dir string, values map[string][]byte, mode fs.FileMode) error {
	var keys []string
	for key, value := range values {
		if err := atomicfile.Write(filepath.Join(dir, key), value, mode); err != nil {
			return err
		}
		keys = append(keys, key)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() && configsource.IsKey(e.Name()) && !slices.Contains(keys, e.Name()) {
			if err := atomicfile.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

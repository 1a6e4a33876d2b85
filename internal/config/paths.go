package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
)

// OwnPaths returns the daemon's directories and its socket, as configured and with all links resolved.
func (c *Config) OwnPaths() []string {
	var paths []string
	for _, path := range []string{c.StateDir, c.RunDir, c.LogDir, c.Socket, c.ReadOnlySocket} {
		if path == "" || path == NoSocket {
			continue
		}
		for _, path := range []string{path, Resolve(path)} {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// Resolve returns a path with all links resolved. What does not exist is kept as it is.
func Resolve(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		return filepath.Join(Resolve(filepath.Dir(path)), filepath.Base(path))
	}
	if err != nil {
		return path // reported where it is used
	}
	return real
}

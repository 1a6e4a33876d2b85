package ocibundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/mount"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// This file places the mount points of root file systems outside of bundles, for containers in a user namespace.

// placeRoot moves the mount point of a root file system out of the bundle, if the path in the specification ends in the ID of the container
// and "rootfs": to the directory "rootfs" of a directory of its own, which only the group of the user namespace's root can enter. On the
// host, that root is an unprivileged user, and the directories of the engine are closed to it. The bundle keeps a symbolic link, which
// containerd follows.
func placeRoot(bundle string) error {
	text, err := os.ReadFile(filepath.Join(bundle, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the OCI runtime reports what is missing
	}
	var spec struct {
		Root  *specs.Root `json:"root"`
		Linux struct {
			GIDMappings []specs.LinuxIDMapping `json:"gidMappings"`
		} `json:"linux"`
	}
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		return fmt.Errorf("read specification: %w", err)
	}
	if spec.Root == nil || !isPlace(spec.Root.Path, filepath.Base(bundle)) {
		return nil
	}
	if err := makeRoot(spec.Root.Path, groupOf(spec.Linux.GIDMappings)); err != nil {
		return fmt.Errorf("create mount point of root file system: %w", err)
	}
	link := filepath.Join(bundle, "rootfs")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(spec.Root.Path, link)
}

// isPlace reports whether the path of a root file system is a mount point of ours. Any other absolute path is a directory with files.
func isPlace(root, id string) bool {
	return filepath.IsAbs(root) && filepath.Base(filepath.Dir(root)) == id && filepath.Base(root) == "rootfs"
}

// groupOf returns the group of the root of a user namespace.
func groupOf(mappings []specs.LinuxIDMapping) int {
	for _, m := range mappings {
		if m.ContainerID == 0 {
			return int(m.HostID)
		}
	}
	return 0
}

func makeRoot(root string, group int) error {
	if err := unplace(root); err != nil { // left by a creation that was interrupted
		return err
	}
	dir := filepath.Dir(root)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(root, 0o711); err != nil {
		return err
	}
	if err := os.Lchown(dir, -1, group); err != nil {
		return err
	}
	return os.Chmod(dir, 0o710)
}

// RemoveRoot unmounts a root file system and removes its mount point, if it is not in the bundle. It succeeds if there is none.
func RemoveRoot(bundle string) error {
	root, err := os.Readlink(filepath.Join(bundle, "rootfs"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EINVAL) {
		return nil // the bundle was removed, or it has a directory
	}
	if err != nil {
		return fmt.Errorf("remove mount point of root file system: %w", err)
	}
	return unplace(root)
}

// unplace removes a mount point that makeRoot has created. It deletes no files: a directory with a file is an error.
func unplace(root string) error {
	if err := mount.UnmountRecursive(root, 0); err != nil {
		return fmt.Errorf("unmount root file system: %w", err)
	}
	for _, dir := range []string{root, filepath.Dir(root)} {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove mount point of root file system: %w", err)
		}
	}
	return nil
}

// SweepRoots removes the mount points outside of bundles, by the directory that contains them, of containers that have no bundle: a
// deletion was interrupted.
func SweepRoots(dir string, hasBundle func(id string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !hasBundle(e.Name()) {
			errs = append(errs, unplace(filepath.Join(dir, e.Name(), "rootfs")))
		}
	}
	return errors.Join(errs...)
}

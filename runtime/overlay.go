package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/plugins/snapshots/overlay/overlayutils"
	"golang.org/x/sys/unix"
)

// The snapshotters.
const (
	overlay = "overlayfs"
	native  = "native" // copies all files of an image for each container
)

// ErrOverlay is that overlayfs does not work for an engine that has layers of it, as after its directory was moved.
var ErrOverlay = errors.New("the images and containers are layers of overlayfs")

// selectSnapshotter returns the snapshotter of an engine, and why it is not that of overlayfs. The engine keeps the one that it has layers
// of: its containers are in them. Layers returns their directory, and try is [tryOverlay]. An engine with layers also starts while
// overlayfs cannot be tried, as on a full disk.
func selectSnapshotter(
	dir string, layers func(snapshotter string) string, try func(dir string) (reason string, err error),
) (name, reason string, err error) {
	has := map[string]bool{}
	for _, s := range []string{overlay, native} {
		entries, err := os.ReadDir(layers(s))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		has[s] = len(entries) > 0
	}
	switch reason, err := try(dir); {
	case has[overlay] && reason != "":
		return "", "", fmt.Errorf("%w: %s", ErrOverlay, reason)
	case has[overlay]:
		return overlay, "", nil
	case has[native] && err != nil:
		return native, "overlayfs cannot be tried: " + err.Error(), nil
	case err != nil:
		return "", "", err
	case reason != "":
		return native, reason, nil
	case has[native]:
		return native, "the images were unpacked while overlayfs did not work", nil
	}
	return overlay, "", nil
}

// tryOverlay returns why overlayfs does not work in a directory: as the kernel mounts it, or since directories that a container replaces
// show their old files, for want of extended attributes. The error is that it cannot be tried.
func tryOverlay(dir string) (reason string, err error) {
	userXAttr, err := overlayutils.NeedsUserXAttr(dir)
	if err != nil {
		return "", err
	}
	const lower, upper, work, merged = "lower", "upper", "work", "merged"
	tmp := filepath.Join(dir, "overlay")
	target := filepath.Join(tmp, merged)
	clear := func() error { // also what a daemon that was killed has left
		if err := mount.UnmountAll(target, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.RemoveAll(tmp)
	}
	if err := clear(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, clear()) }()
	for _, name := range []string{filepath.Join(lower, "dir"), upper, work, merged} {
		if err := os.MkdirAll(filepath.Join(tmp, name), 0o700); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(tmp, lower, "dir/old"), nil, 0o600); err != nil {
		return "", err
	}
	options := []string{
		"lowerdir=" + filepath.Join(tmp, lower), "upperdir=" + filepath.Join(tmp, upper), "workdir=" + filepath.Join(tmp, work),
	}
	if userXAttr {
		options = append(options, "userxattr")
	}
	if err := (&mount.Mount{Type: "overlay", Source: "overlay", Options: options}).Mount(target); err != nil {
		return reasonOf(fmt.Errorf("overlayfs cannot be mounted: %w", err))
	}
	replaced := filepath.Join(target, "dir")
	const noAttributes = "overlayfs cannot replace a directory: the file system has no extended attributes"
	err = errors.Join(os.RemoveAll(replaced), os.Mkdir(replaced, 0o700))
	switch {
	case errors.Is(err, unix.EIO) && !hasAttributes(filepath.Join(tmp, upper), userXAttr): // of overlayfs itself (ovl_set_opaque)
		return noAttributes, nil
	case err != nil:
		return reasonOf(fmt.Errorf("overlayfs cannot replace a directory: %w", err))
	}
	switch _, err := os.Stat(filepath.Join(replaced, "old")); {
	case err == nil:
		return noAttributes, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	return "", nil
}

// hasAttributes reports whether overlayfs can set its attributes in a directory.
func hasAttributes(dir string, user bool) bool {
	name := "trusted.overlay.podstead"
	if user {
		name = "user.overlay.podstead"
	}
	err := unix.Lsetxattr(dir, name, []byte("y"), 0)
	return err == nil || errors.Is(err, unix.EIO)
}

// reasonOf returns the text of an error of overlayfs. What the host lacks at present, such as disk space, is an error instead.
func reasonOf(err error) (reason string, other error) {
	for _, lacks := range []error{unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EIO} {
		if errors.Is(err, lacks) {
			return "", err
		}
	}
	return err.Error(), nil
}

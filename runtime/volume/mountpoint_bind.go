package volume

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// bindMount bind-mounts an open file or directory at target, which it creates. With MS_REC, mounts below it are included.
func bindMount(fd int, target string, recursive uintptr) error {
	if err := makeTarget(fd, target); err != nil {
		return err
	}
	if err := unix.Mount(fdPath(fd), target, "", unix.MS_BIND|recursive, ""); err != nil {
		return fmt.Errorf("bind mount: %w", err)
	}
	return nil
}

// makeTarget creates a file or directory as mount point for an open file or directory.
func makeTarget(fd int, target string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.Mkdir(target, 0o700)
	}
	return os.WriteFile(target, nil, 0o600)
}

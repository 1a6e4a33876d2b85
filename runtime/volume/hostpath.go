package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// checkHostPath creates a host path or checks its type. Symbolic links are followed, since they belong to the host.
func checkHostPath(v *spec.HostPathVolume) error {
	info, err := os.Stat(v.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	if missing {
		if created, err := createHostPath(v); created || err != nil {
			return err
		}
	}
	mode := fs.ModeIrregular
	if !missing {
		mode = info.Mode()
	}
	return checkType(v, mode, missing)
}

// checkType compares the mode of a host path with its type.
func checkType(v *spec.HostPathVolume, mode fs.FileMode, missing bool) error {
	is, want := false, ""
	switch v.Type {
	case spec.HostPathUnset:
		return nil
	case spec.HostPathDirectory, spec.HostPathDirectoryOrCreate:
		is, want = mode.IsDir(), "directory"
	case spec.HostPathFile, spec.HostPathFileOrCreate:
		is, want = mode.IsRegular(), "file"
	case spec.HostPathSocket:
		is, want = mode.Type() == fs.ModeSocket, "socket file"
	case spec.HostPathCharDevice:
		is, want = mode.Type() == fs.ModeDevice|fs.ModeCharDevice, "character device"
	case spec.HostPathBlockDevice:
		is, want = mode.Type() == fs.ModeDevice, "block device"
	}
	switch {
	case is:
		return nil
	case missing:
		return fmt.Errorf("hostPath type check failed: %s is not a %s: it does not exist", v.Path, want)
	}
	return fmt.Errorf("hostPath type check failed: %s is not a %s", v.Path, want)
}

// createHostPath creates a missing host path if its type allows that. Without a type it creates a directory, like
// containerd. It does not create the parent directory of a file.
func createHostPath(v *spec.HostPathVolume) (created bool, err error) {
	switch v.Type {
	case spec.HostPathUnset, spec.HostPathDirectoryOrCreate:
		err = os.MkdirAll(v.Path, 0o755)
	case spec.HostPathFileOrCreate:
		var f *os.File
		// A container may have created it meanwhile and hold it.
		if f, err = os.OpenFile(v.Path, os.O_CREATE|os.O_RDONLY|unix.O_NONBLOCK, 0o644); err == nil {
			err = f.Close()
		}
	case spec.HostPathDirectory, spec.HostPathFile, spec.HostPathSocket, spec.HostPathCharDevice, spec.HostPathBlockDevice:
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create hostPath: %w", err)
	}
	return true, nil
}

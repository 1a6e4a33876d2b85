package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/podstead/podstead/spec"
)

// checkHostPath makes a path of the machine, or checks what is there, as its type says. Symbolic links are followed: they
// are the machine's.
func checkHostPath(v *spec.HostPathVolume) error {
	info, err := os.Stat(v.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	if missing {
		if made, err := makeHostPath(v); made || err != nil {
			return err
		}
	}
	mode := fs.ModeIrregular
	if !missing {
		mode = info.Mode()
	}
	return checkType(v, mode, missing)
}

// checkType holds what is at a host path against its type.
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

// makeHostPath makes a host path that is not there, if its type allows it. Without a type it becomes a folder, as with
// containerd. The folder of a file is not made.
func makeHostPath(v *spec.HostPathVolume) (made bool, err error) {
	switch v.Type {
	case spec.HostPathUnset, spec.HostPathDirectoryOrCreate:
		err = os.MkdirAll(v.Path, 0o755)
	case spec.HostPathFileOrCreate:
		var f *os.File
		if f, err = os.OpenFile(v.Path, os.O_CREATE|os.O_RDONLY, 0o644); err == nil {
			err = f.Close()
		}
	case spec.HostPathDirectory, spec.HostPathFile, spec.HostPathSocket, spec.HostPathCharDevice, spec.HostPathBlockDevice:
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("make hostPath: %w", err)
	}
	return true, nil
}

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// Readable returns why volumes of a pod could not be set up by [Set.Prepare] at present: sources of files that are missing, and host paths
// that are missing or of another type. It changes nothing. The UID of the pod may be empty.
func (s *Set) Readable(ctx context.Context, p Pod) error {
	var failed errorList
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		err := ctx.Err()
		switch {
		case err != nil:
		case v.HostPath != nil:
			err = s.findHostPath(v.HostPath)
		case isContent(v):
			_, err = collect(s.values, p, v)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("volume %q: %w", v.Name, err))
		}
	}
	return failed.err()
}

// findHostPath checks the type of a host path. One that prepareHostPath creates may be missing.
func (s *Set) findHostPath(v *spec.HostPathVolume) error {
	info, err := s.statHostPath(v)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil:
		return checkType(v, info.Mode(), false)
	case !missing:
		return fmt.Errorf("hostPath type check failed: %w", err)
	case v.Type == spec.HostPathUnset, v.Type == spec.HostPathDirectoryOrCreate, v.Type == spec.HostPathFileOrCreate:
		return nil
	}
	return checkType(v, fs.ModeIrregular, true)
}

func (s *Set) statHostPath(v *spec.HostPathVolume) (fs.FileInfo, error) {
	if !s.confined() {
		return os.Stat(v.Path)
	}
	fd, err := s.openBelowAllowed(filepath.Clean(v.Path))
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return os.Stat(fdPath(fd))
}

package runtime

import (
	"errors"
	"fmt"

	"github.com/podstead/podstead/runtime/volume"
)

// isolateMounts makes the directories that contain the mounts of pods unbindable: pinned namespaces, root file systems, volumes. Otherwise
// a host path that contains the run directory would copy them, and neither a pod's namespaces nor the directories could be removed while
// the copies exist. The mounts last until releaseMounts finds nothing mounted in them.
//
// It returns the directories by their resolved paths, also those before an error.
func isolateMounts(dirs ...string) (unbindable []string, err error) {
	for _, dir := range dirs {
		real, err := volume.EnsureUnbindable(dir)
		if err != nil {
			return unbindable, fmt.Errorf("isolate mounts of pods: %w", err)
		}
		unbindable = append(unbindable, real)
	}
	return unbindable, nil
}

// releaseMounts undoes isolateMounts for directories without mounts of pods.
func releaseMounts(unbindable []string) error {
	var errs []error
	for _, dir := range unbindable {
		errs = append(errs, volume.ReleaseUnbindable(dir))
	}
	return errors.Join(errs...)
}

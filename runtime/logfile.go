package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

func (r *Runtime) logPath(uid, pod string, a lifecycle.StartContainer) string {
	return filepath.Join(r.podLogs(uid, pod), a.Container, strconv.Itoa(a.Restarts)+".log")
}

func (r *Runtime) podLogs(uid, pod string) string { return filepath.Join(r.opts.LogDir, pod+"_"+uid) }

// removeLog removes a log and its rotated files.
func removeLog(path string) error {
	rotated, err := filepath.Glob(path + ".*")
	if err != nil || path == "" {
		return err
	}
	var errs []error
	for _, file := range append(rotated, path) {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTime is the timeout for removing what killed tests have left.
const sweepTime = time.Minute

// InDir calls run with TMPDIR set to a new directory, and returns its exit code; it is not 0 if the directory is not empty afterwards.
// The directory's name is the prefix, which must be short because of socket paths, and the PID. This finds the directories of killed
// tests, which are removed first. cleanup removes what a [Rig] does not know in such a directory; it may be nil.
func InDir(prefix string, cleanup func(dir string) error, run func() int) int {
	dir := filepath.Join(os.TempDir(), prefix+strconv.Itoa(os.Getpid()))
	err := errors.Join(sweepDirs(prefix, cleanup), os.Mkdir(dir, 0o755), os.Setenv("TMPDIR", dir)) // containers need access to parts of it
	status := 1
	if err == nil {
		status = run()
		err = removeEmpty(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test directory:", err)
		return max(status, 1)
	}
	return status
}

// removeEmpty removes a directory in which nothing is left but what [isInterrupted]. The error lists what is.
func removeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if !isInterrupted(entry.Name()) {
			err = errors.Join(err, fmt.Errorf("left behind: %s", path))
			continue
		}
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return err
	}
	return os.Remove(dir)
}

// isInterrupted reports whether a temporary file has a name that containerd and runc use for a moment: for trials of overlay mounts, and
// for the process of an exec. They remain if the daemon or the shim is killed at that moment.
func isInterrupted(name string) bool {
	return strings.HasPrefix(name, "ovl-idmapped") || strings.HasPrefix(name, "runc-process")
}

// sweepDirs removes the directories of processes that do not exist any more.
func sweepDirs(prefix string, cleanup func(dir string) error) error {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	for _, dir := range left {
		pid, numberErr := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), prefix))
		if numberErr != nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		err = errors.Join(err, Sweep(ctx, dir))
		if cleanup != nil {
			err = errors.Join(err, cleanup(dir))
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

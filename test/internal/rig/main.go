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
		err = errors.Join(removeProbes(dir), os.Remove(dir)) // fails if something is left
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test directory:", err)
		return max(status, 1)
	}
	return status
}

// removeProbes removes the empty directories in which containerd tries overlay mounts. A daemon that is killed at that moment leaves one.
func removeProbes(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, "ovl-idmapped*"))
	for _, probe := range left {
		err = errors.Join(err, os.Remove(probe))
	}
	return err
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

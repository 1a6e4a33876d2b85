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

// sweepTime is for what tests that were killed have left.
const sweepTime = time.Minute

// InFolder calls run with all temporary files of this process below a folder of its own, and returns its status, which is a
// failure where the folder is not empty afterwards. The folder's name is a prefix, short since the paths of sockets are, and
// the process: so what tests have left that were killed is found, and cleared away first. Of a folder that is about to go,
// clearing is asked to undo what a [Rig] does not know; it may be nil.
func InFolder(prefix string, clearing func(dir string) error, run func() int) int {
	dir := filepath.Join(os.TempDir(), prefix+strconv.Itoa(os.Getpid()))
	err := errors.Join(sweepFolders(prefix, clearing), os.Mkdir(dir, 0o755), os.Setenv("TMPDIR", dir)) // containers see parts of it
	status := 1
	if err == nil {
		status = run()
		err = os.Remove(dir) // it is empty, or something is left
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test folder:", err)
		return max(status, 1)
	}
	return status
}

// sweepFolders clears away the folders of processes that are gone.
func sweepFolders(prefix string, clearing func(dir string) error) error {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	for _, dir := range left {
		pid, numberErr := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), prefix))
		if numberErr != nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		err = errors.Join(err, Sweep(ctx, dir))
		if clearing != nil {
			err = errors.Join(err, clearing(dir))
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

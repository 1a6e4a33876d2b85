package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/podstead/podstead/runtime/volume/mountpoint"
	"github.com/podstead/podstead/runtime/volume/tree"
)

// Release unmounts what was mounted for a run of a container. The run must have ended, or never have begun; it is no error
// if there is nothing.
func (s *Set) Release(ctx context.Context, uid, run string) error {
	if err := checkName("run", run); err != nil {
		return err
	}
	_, err := do(ctx, s, uid, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.release(ctx, uid, run)
	})
	return err
}

func (s *Set) release(ctx context.Context, uid, run string) error {
	return clearDir(ctx, filepath.Join(s.subPathsDir(uid), run))
}

// clearDir unmounts and removes a folder of ours. It stays if something is still mounted in it.
func clearDir(ctx context.Context, dir string) error {
	if _, err := os.Lstat(dir); err != nil {
		return tree.Ignore(err, fs.ErrNotExist)
	}
	if err := mountpoint.Unmount(dir); err != nil {
		return err
	}
	return tree.Remove(ctx, dir)
}

// Teardown takes away the volumes of a pod, none of whose containers may run any more. Paths of the machine, persistent
// volumes, and what a link in a volume leads to stay as they are. It is no error if there is nothing; what it could not
// finish a further call does.
func (s *Set) Teardown(ctx context.Context, uid string) error {
	_, err := do(ctx, s, uid, func(ctx context.Context) (struct{}, error) {
		err := errors.Join(clearDir(ctx, s.runDir(uid)), clearDir(ctx, s.diskDir(uid)))
		if err != nil {
			return struct{}{}, fmt.Errorf("take away volumes: %w", err)
		}
		return struct{}{}, nil
	})
	return err
}

// UIDs lists the pods of which there are volumes, sorted. Those of a pod that nobody knows any more are torn down.
func (s *Set) UIDs(ctx context.Context) ([]string, error) {
	return alone(ctx, &s.locks, "the pods", func(context.Context) ([]string, error) {
		var uids []string
		for _, parent := range []string{s.opts.RunDir, s.opts.DataDir} {
			entries, err := os.ReadDir(parent)
			if err != nil {
				return nil, fmt.Errorf("list volumes: %w", err)
			}
			for _, e := range entries {
				if checkName("pod UID", e.Name()) != nil {
					continue // it is not ours
				}
				_, err := os.Lstat(s.diskDir(e.Name()))
				if parent == s.opts.RunDir || err == nil {
					uids = append(uids, e.Name())
				}
			}
		}
		slices.Sort(uids)
		return slices.Compact(uids), nil
	})
}

// Unmount unmounts a folder and everything below it, for volumes that are not of this package: what a container has mounted there
// leaves its peers first, so that no mount of the machine goes with it. The path must hold no symbolic link. It is no error if
// nothing is mounted.
func Unmount(dir string) error { return mountpoint.Unmount(dir) }

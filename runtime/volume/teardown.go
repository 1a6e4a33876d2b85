package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Release unmounts the mounts of a container run. A container that has been created keeps its copies of them. It is no error if
// there are none.
func (s *Set) Release(ctx context.Context, uid, run string) error {
	if err := checkName("run", run); err != nil {
		return err
	}
	_, err := withPod(ctx, s, uid, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.release(ctx, uid, run)
	})
	return err
}

func (s *Set) release(ctx context.Context, uid, run string) error {
	return clearDir(ctx, filepath.Join(s.subPathsDir(uid), run))
}

// clearDir unmounts everything in a directory and removes it. It is not removed if a mount is left.
func clearDir(ctx context.Context, dir string) error {
	if _, err := os.Lstat(dir); err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	if err := unmountTree(dir); err != nil {
		return err
	}
	return RemoveTree(ctx, dir)
}

// Teardown removes the volumes of a pod. None of its containers may be running. Host paths, persistent volumes and
// targets of links are not changed. It is no error if there are none. A repeated call completes an interrupted one.
func (s *Set) Teardown(ctx context.Context, uid string) error {
	_, err := withPod(ctx, s, uid, func(ctx context.Context) (struct{}, error) {
		err := errors.Join(clearDir(ctx, s.runDir(uid)), clearDir(ctx, s.diskDir(uid)))
		if err != nil {
			return struct{}{}, fmt.Errorf("remove volumes: %w", err)
		}
		return struct{}{}, nil
	})
	return err
}

// UIDs returns the UIDs of all pods with volumes, sorted. The caller tears down those of unknown pods.
func (s *Set) UIDs(ctx context.Context) ([]string, error) {
	return exclusive(ctx, &s.locks, "the pods", func(context.Context) ([]string, error) {
		var uids []string
		for _, parent := range []string{s.opts.RunDir, s.opts.DataDir} {
			entries, err := os.ReadDir(parent)
			if err != nil {
				return nil, fmt.Errorf("list volumes: %w", err)
			}
			for _, e := range entries {
				if checkName("pod UID", e.Name()) != nil {
					continue // not a pod
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

// Unmount unmounts a directory and everything below it, for volumes of other packages. Mounts are made private first, so
// that no mount of the host is unmounted by propagation. The path must not contain symbolic links. It is no error if
// nothing is mounted.
func Unmount(dir string) error { return unmountTree(dir) }

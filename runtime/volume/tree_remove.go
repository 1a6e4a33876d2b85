package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxOpenDirs bounds the directories that are open during a removal. Deeper ones are moved up.
const maxOpenDirs = 64

// RemoveTree removes a directory tree, a file or a link, also if it is immutable or append-only. It does not follow links. A mount below is
// an error and is left alone. The tree may have any depth. It is no error if the path does not exist.
func RemoveTree(ctx context.Context, path string) error {
	parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer unix.Close(parent)
	r := remover{top: -1}
	if err := r.remove(ctx, parent, filepath.Base(path), 0); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// remover removes one tree.
type remover struct {
	top   int // descriptor of the root
	moved int // number of directories moved up
}

func (r *remover) remove(ctx context.Context, parent int, name string, depth int) error {
	err := unix.Unlinkat(parent, name, 0)
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return ignore(err, fs.ErrNotExist)
	}
	fd, opened := unix.Openat2(parent, name, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: resolveEntry,
	})
	switch {
	case errors.Is(opened, fs.ErrNotExist):
		return nil
	case errors.Is(opened, unix.EXDEV):
		return errors.New("a file system is mounted in it")
	case errors.Is(opened, unix.ENOTDIR), errors.Is(opened, unix.ELOOP):
		if unprotectEntry(parent, name) {
			err = unix.Unlinkat(parent, name, 0)
		}
		return ignore(err, fs.ErrNotExist) // not a directory
	case opened != nil:
		return opened
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	if depth == 0 {
		r.top = fd
	}
	unprotect(fd)
	if err := r.empty(ctx, dir, depth); err != nil {
		return err
	}
	return ignore(unix.Unlinkat(parent, name, unix.AT_REMOVEDIR), fs.ErrNotExist)
}

// empty removes the entries of a directory. It reads from the start until nothing is left, since removals can hide
// entries.
func (r *remover) empty(ctx context.Context, dir *os.File, depth int) error {
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(512)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if depth >= maxOpenDirs {
				err = r.moveUp(int(dir.Fd()), name)
			} else {
				err = r.remove(ctx, int(dir.Fd()), name, depth+1)
			}
			if err != nil {
				return err
			}
		}
	}
}

// moveUp moves an entry to the root of the tree, where it is removed later.
func (r *remover) moveUp(parent int, name string) error {
	for {
		r.moved++
		to := ".deep-" + strconv.Itoa(r.moved)
		err := unix.Renameat2(parent, name, r.top, to, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EPERM) && unprotectEntry(parent, name) {
			continue
		}
		if !errors.Is(err, fs.ErrExist) {
			return ignore(err, fs.ErrNotExist)
		}
	}
}

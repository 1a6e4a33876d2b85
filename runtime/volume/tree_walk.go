package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// maxDepth bounds the depth of a walk, which keeps one descriptor open for each level.
const maxDepth = 512

// ErrTooDeep means that a tree has more than maxDepth levels.
var ErrTooDeep = fmt.Errorf("more than %d directory levels", maxDepth)

// How an entry of a directory is opened: without following links and without crossing mounts.
const (
	openEntry    = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	resolveEntry = unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH
)

// visitFunc is called with an O_PATH descriptor of an entry and its status.
type visitFunc func(fd int, stat *unix.Stat_t) error

// walk visits all entries of a directory tree, the content of a directory before the directory itself. Entries that
// disappear are skipped. It follows no links and crosses no mounts, whatever other processes do to the tree.
func walk(ctx context.Context, dir string, visit visitFunc) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	defer unix.Close(fd)
	if err := walkAt(ctx, fd, visit, 0); err != nil {
		return fmt.Errorf("walk %s: %w", dir, err)
	}
	return nil
}

// walkAt walks an open entry.
func walkAt(ctx context.Context, fd int, visit visitFunc, depth int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		if depth > maxDepth {
			return ErrTooDeep
		}
		if err := walkInside(ctx, fd, visit, depth); err != nil {
			return err
		}
	}
	return visit(fd, &stat)
}

func walkInside(ctx context.Context, fd int, visit visitFunc, depth int) error {
	dir, err := openDir(fd)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(512)
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) { // the directory may be removed concurrently
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			entry, err := unix.Openat2(fd, name, &unix.OpenHow{Flags: openEntry, Resolve: resolveEntry})
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EXDEV) {
				continue
			}
			if err != nil {
				return err
			}
			err = walkAt(ctx, entry, visit, depth+1)
			unix.Close(entry)
			if err != nil {
				return err
			}
		}
	}
}

// openDir opens a directory for reading, given an O_PATH descriptor.
func openDir(fd int) (*os.File, error) {
	reading, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(reading), "."), nil
}

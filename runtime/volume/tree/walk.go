package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// MaxDepth is how many folders below each other are walked: one descriptor is open for each.
const MaxDepth = 512

// ErrTooDeep is the error of a walk through more than MaxDepth folders in each other.
var ErrTooDeep = fmt.Errorf("there are more than %d folders in each other", MaxDepth)

// The ways to open an entry of a folder: the entry itself, whatever it is, and never that of another mount.
const (
	openEntry    = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	resolveEntry = unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH
)

// visitor is told of an entry by a descriptor that was opened with O_PATH, and its state.
type visitor func(fd int, stat *unix.Stat_t) error

// walk visits everything below a folder and then the folder itself, a folder always after what is in it. What vanishes
// meanwhile is left out. It follows no link and enters no other mount, whatever others do with the tree at the time.
func walk(ctx context.Context, dir string, visit visitor) error {
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

// walkAt walks from an entry, which fd stands for.
func walkAt(ctx context.Context, fd int, visit visitor, depth int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		if depth > MaxDepth {
			return ErrTooDeep
		}
		if err := walkInside(ctx, fd, visit, depth); err != nil {
			return err
		}
	}
	return visit(fd, &stat)
}

func walkInside(ctx context.Context, fd int, visit visitor, depth int) error {
	dir, err := openDir(fd)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(512)
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) { // the folder itself may be removed while it is read
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

// openDir opens a folder, given by a descriptor, for reading.
func openDir(fd int) (*os.File, error) {
	reading, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(reading), "."), nil
}

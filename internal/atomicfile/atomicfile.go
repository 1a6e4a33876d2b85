// Package atomicfile writes files atomically: after a crash a file has either the old or the new content. With [Write], for
// persistent files, this includes power failure, and the new content is on disk when the call returns. The package keeps no
// state. All durable files of Podstead are written with it.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// prefix marks the temporary files of this package, so that leftovers of a crash can be identified.
const prefix = ".podstead-tmp-"

// Write replaces the content of the file at path. The file's directory must exist and be on the same file system. Write blocks
// until data and name are on disk, which can take arbitrarily long on a slow or hanging disk.
func Write(path string, data []byte, mode fs.FileMode) error {
	if err := write(path, data, mode, (*os.File).Sync); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// WriteAs is [Write] for a file of another user and group.
func WriteAs(path string, data []byte, mode fs.FileMode, uid, gid int) error {
	if err := write(path, data, mode, func(f *os.File) error { return errors.Join(f.Chown(uid, gid), f.Sync()) }); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// WriteOrdered is like [Write] for a file that may have the old content after a power failure, until the file system has written the name.
func WriteOrdered(path string, data []byte, mode fs.FileMode) error {
	return write(path, data, mode, (*os.File).Sync)
}

// WriteVolatile is like [Write] for a file that must survive only a crash of its writer. It does not wait for the disk.
func WriteVolatile(path string, data []byte, mode fs.FileMode) error {
	return write(path, data, mode, func(*os.File) error { return nil })
}

func write(path string, data []byte, mode fs.FileMode, sync func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), prefix+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, causeOf(err))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(causeOf(err), ignore(os.Remove(f.Name()), fs.ErrNotExist)))
		}
	}()
	if err := fill(f, data, mode, sync); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// causeOf returns the error of the kernel in an error that names the temporary file.
func causeOf(err error) error {
	if e, is := errors.AsType[*fs.PathError](err); is {
		return e.Err
	}
	if e, is := errors.AsType[*os.LinkError](err); is {
		return e.Err
	}
	return err
}

// fill writes, syncs and closes f.
func fill(f *os.File, data []byte, mode fs.FileMode, sync func(*os.File) error) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = sync(f)
	}
	return errors.Join(err, f.Close())
}

// Remove removes the file at path durably. It succeeds if the file does not exist.
func Remove(path string) error {
	if err := ignore(os.Remove(path), fs.ErrNotExist); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir syncs a directory, so that changes of its entries are durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// Sweep removes the temporary files that a crash left in a directory. There must be no other writers in the directory.
func Sweep(dir string) error { return sweep(dir, prefix) }

// SweepOf removes the temporary files that a crash left of the file at path. The directory may have other writers, the file may
// not. A missing directory is not an error.
func SweepOf(path string) error {
	return ignore(sweep(filepath.Dir(path), prefix+filepath.Base(path)+"-"), fs.ErrNotExist)
}

// HasTemporary reports whether there is a temporary file of the file at path.
func HasTemporary(path string) (bool, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return false, ignore(err, fs.ErrNotExist)
	}
	of := prefix + filepath.Base(path) + "-"
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), of) }), nil
}

func sweep(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("remove temporary files: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func ignore(err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return err
}

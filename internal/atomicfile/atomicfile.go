// Package atomicfile writes files that a crash leaves whole: either the old content or the new one. With [Write], which is
// for what lasts, that holds for a loss of power too, and the new content is there once the call has returned. It owns no file and keeps no state; every durable file of ours goes through it.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// prefix marks the temporary files of this package, so that those of a crash can be told from other files.
const prefix = ".podstead-tmp-"

// Write replaces the content of the file at path. The file's folder must exist and be on one file system with it. It
// blocks until the data and the name are on the disk, which a slow or hanging disk can make arbitrarily long.
func Write(path string, data []byte, mode fs.FileMode) error {
	if err := write(path, data, mode, (*os.File).Sync); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// WriteVolatile is [Write] for a file that only has to survive its writer: it waits for no disk.
func WriteVolatile(path string, data []byte, mode fs.FileMode) error {
	return write(path, data, mode, func(*os.File) error { return nil })
}

func write(path string, data []byte, mode fs.FileMode, sync func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), prefix+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(err, ignore(os.Remove(f.Name()), fs.ErrNotExist)))
		}
	}()
	if err := fill(f, data, mode, sync); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
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

// Remove takes the file at path away, durably. A file that is not there is no error.
func Remove(path string) error {
	if err := ignore(os.Remove(path), fs.ErrNotExist); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// Sweep takes away the temporary files that a crash has left in a folder. Nobody else may be writing there.
func Sweep(dir string) error { return sweep(dir, prefix) }

// SweepOf takes away the temporary files that a crash has left of the file at path, in a folder that others write to as well.
// Nobody else may be writing that file. A folder that does not exist has none.
func SweepOf(path string) error {
	return ignore(sweep(filepath.Dir(path), prefix+filepath.Base(path)+"-"), fs.ErrNotExist)
}

func sweep(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
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

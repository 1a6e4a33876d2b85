package crilog

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// DiskFile is a file in a directory of the layout <dir>/<pod>/<container>/<n>.log with its rotated files.
type DiskFile struct {
	Pod, Container, Name string
	Size                 int64 // allocated on the disk, in bytes
	Modified             time.Time
	id                   fileID
}

// Log returns the path of the log that the file belongs to, relative to the directory.
func (f *DiskFile) Log() string {
	stem, _, _ := strings.Cut(f.Name, ".log.")
	return filepath.Join(f.Pod, f.Container, strings.TrimSuffix(stem, ".log")+".log")
}

// Current reports whether the file is the one that a running container writes to. Others are rotated files.
func (f *DiskFile) Current() bool { return strings.HasSuffix(f.Name, ".log") }

// Temporary reports whether the file is being written by [TrimMatching] or by the compression of a rotated file.
func (f *DiskFile) Temporary() bool {
	_, suffix, rotated := strings.Cut(f.Name, ".log.")
	_, err := strconv.Atoi(suffix)
	return rotated && err != nil
}

// DiskFiles returns all files in a directory of logs, of containers that exist and of those that were removed. It follows no links, and
// leaves out what is not a regular file.
func DiskFiles(dir string) (files []DiskFile, err error) {
	err = visit(dir, func(_ *directory, pod string) error {
		return visit(filepath.Join(dir, pod), func(_ *directory, container string) error {
			return visit(filepath.Join(dir, pod, container), func(d *directory, name string) error {
				var stat unix.Stat_t
				err := unix.Fstatat(d.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
				if errors.Is(err, fs.ErrNotExist) || err == nil && checkRegular(&stat) != nil {
					return nil // rotated meanwhile, or not a log
				}
				if err != nil {
					return &fs.PathError{Op: "stat", Path: filepath.Join(d.path, name), Err: err}
				}
				files = append(files, DiskFile{
					Pod: pod, Container: container, Name: name, Size: stat.Blocks * 512,
					Modified: time.Unix(stat.Mtim.Unix()), id: idOf(&stat),
				})
				return nil
			})
		})
	})
	return files, err
}

// RemoveDiskFile removes a file that [DiskFiles] has found in a directory. It reports false if another file has its name now, because the
// log was rotated meanwhile.
func RemoveDiskFile(dir string, f *DiskFile) (removed bool, err error) {
	d, err := walk(filepath.Join(dir, f.Pod, f.Container), false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLink) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer d.close()
	id, err := d.stat(f.Name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && id != f.id {
		return false, nil
	}
	if err == nil {
		err = unix.Unlinkat(d.fd, f.Name, 0)
	}
	if err != nil {
		return false, &fs.PathError{Op: "remove", Path: filepath.Join(d.path, f.Name), Err: err}
	}
	return true, nil
}

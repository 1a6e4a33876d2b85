package crilog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A container may have a volume on the directory of logs, and may put anything in the place of a log or of a directory. Therefore no
// link is followed: the kernel refuses a directory whose path has one, and a file is opened by its name in its directory.

var (
	errLink       = errors.New("is a symbolic link")
	errNotRegular = errors.New("not a regular file")
)

// maxFiles bounds the numbers of rotated files, since a container may have put a file there.
const maxFiles = 1000

// directory is the open directory of a log. The files of the log are opened, renamed and removed by their names in it.
type directory struct {
	fd   int
	path string
}

// openDirectory opens a directory by its absolute path, which must not contain symbolic links. Others than the user of this process,
// which is root, must not be able to write to the directory. With create, it creates what is missing.
func openDirectory(path string, create bool) (*directory, error) {
	d, err := walk(path, create)
	if err != nil {
		return nil, err
	}
	if err := d.checkOwner(); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// walk is openDirectory for directories of any owner.
func walk(path string, create bool) (*directory, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("open %q: path must be absolute", path)
	}
	path = filepath.Clean(path)
	fd, err := openPath(path)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := createIn(filepath.Dir(path), filepath.Base(path)); err != nil {
			return nil, err
		}
		fd, err = openPath(path)
	}
	if errors.Is(err, unix.ELOOP) {
		err = errLink
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &directory{fd, path}, nil
}

// createIn creates a directory in a directory that is created if necessary. It is no error if another process creates it first.
func createIn(dir, name string) error {
	d, err := walk(dir, true)
	if err != nil {
		return err
	}
	defer d.close()
	if err := unix.Mkdirat(d.fd, name, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "create directory", Path: filepath.Join(dir, name), Err: err}
	}
	return nil
}

// checkOwner returns an error if others can write to the directory.
func (d *directory) checkOwner() error {
	var stat unix.Stat_t
	if err := unix.Fstat(d.fd, &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}
	if owner := os.Geteuid(); int(stat.Uid) != owner || stat.Mode&0o022 != 0 {
		return &fs.PathError{Op: "open", Path: d.path, Err: fmt.Errorf(
			"directory must be writable by its owner only, and owned by uid %d (owner %d, mode %04o)", owner, stat.Uid, stat.Mode&0o7777)}
	}
	return nil
}

func (d *directory) close() { _ = unix.Close(d.fd) }

// open opens a regular file. It does not wait for a FIFO or for a process that holds a lease.
func (d *directory) open(name string, flags int) (*os.File, error) {
	_, err := d.stat(name) // first, since opening a device may have an effect
	if err != nil && (flags&unix.O_CREAT == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	path := filepath.Join(d.path, name)
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o640)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var stat unix.Stat_t
	if err = unix.Fstat(fd, &stat); err == nil {
		err = checkRegular(&stat)
	}
	if err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY && stat.Nlink > 1 {
		err = fmt.Errorf("file has %d links", stat.Nlink) // it may be any file of the same file system
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// removeAll removes an entry and what is in it. The descriptor of the directory cannot be replaced by a link, and links below are not
// followed.
func (d *directory) removeAll(name string) error {
	fd := fmt.Sprintf("/proc/self/fd/%d", d.fd)
	err := os.RemoveAll(fd + "/" + name)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		e.Path = d.path + strings.TrimPrefix(e.Path, fd)
	}
	return err
}

// fileID identifies a file while it exists.
type fileID struct{ dev, ino uint64 }

// stat identifies a file, which must be a regular one.
func (d *directory) stat(name string) (fileID, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(d.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		err = checkRegular(&stat)
	}
	if err != nil {
		return fileID{}, &fs.PathError{Op: "open", Path: filepath.Join(d.path, name), Err: err}
	}
	return idOf(&stat), nil
}

// free reports whether no entry has a name.
func (d *directory) free(name string) (bool, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(d.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "stat", Path: filepath.Join(d.path, name), Err: err}
	}
	return false, nil
}

func idOf(stat *unix.Stat_t) fileID { return fileID{uint64(stat.Dev), stat.Ino} } //nolint:unconvert // 32 bits wide elsewhere

// identify identifies an open file.
func identify(f *os.File) (fileID, error) {
	var stat unix.Stat_t
	raw, err := f.SyscallConn()
	if err != nil {
		return fileID{}, err
	}
	var statErr error
	err = raw.Control(func(fd uintptr) { statErr = unix.Fstat(int(fd), &stat) })
	return idOf(&stat), errors.Join(err, statErr)
}

// checkRegular refuses what is not a regular file.
func checkRegular(stat *unix.Stat_t) error {
	switch {
	case stat.Mode&unix.S_IFMT == unix.S_IFLNK:
		return errLink
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return errNotRegular
	}
	return nil
}

// oldestFile returns the number of the oldest rotated file of the log with this name, 0 if there is none.
func (d *directory) oldestFile(name string) (int, error) {
	names, err := d.names()
	oldest := 0
	for _, entry := range names {
		if suffix, ok := strings.CutPrefix(entry, name+"."); ok {
			if n, err := strconv.Atoi(suffix); err == nil && n <= maxFiles {
				oldest = max(oldest, n)
			}
		}
	}
	return oldest, err
}

// names returns the names of all files in the directory.
func (d *directory) names() ([]string, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer f.Close()
	return f.Readdirnames(-1)
}

// Names returns the names of the files in a directory of logs, in no order. It follows no links. A missing directory has no files.
func Names(dir string) ([]string, error) {
	d, err := openDirectory(dir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.close()
	return d.names()
}

// openPath opens a directory without access to its content. The error is ELOOP if any component of the path is a link.
func openPath(path string) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat2(unix.AT_FDCWD, path,
			&unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	})
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

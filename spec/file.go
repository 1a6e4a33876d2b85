package spec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// errNotRegular reports a file that is not on a disk.
var errNotRegular = errors.New("not a regular file")

// kernelFiles are the file systems whose regular files are not: reading them can
// block, have effects, or not end, as for /proc/kmsg.
var kernelFiles = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC,
	unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.SELINUX_MAGIC,
	unix.DEVPTS_SUPER_MAGIC,
}

// OpenFile opens a file that a user has named, and follows links. It never
// blocks, and returns an error for everything but a regular file: devices, FIFOs,
// sockets, directories and files of the kernel.
func OpenFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		if errors.Is(err, unix.ENXIO) { // a socket
			err = &os.PathError{Op: "open", Path: path, Err: errNotRegular}
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err == nil {
		err = checkFileSystem(f)
	}
	if err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

func checkFileSystem(f *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return err
	}
	if slices.Contains(kernelFiles, int64(st.Type)) { //nolint:unconvert // of another type on other architectures
		return errNotRegular
	}
	return nil
}

// ReadFile reads a file of at most limit bytes as [OpenFile] opens it. A larger
// file is an error.
func ReadFile(path string, limit int64) ([]byte, os.FileInfo, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d bytes", limit)}
	}
	return text, info, err
}

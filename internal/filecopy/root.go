package filecopy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Errors of paths. They are wrapped in an [fs.PathError].
var (
	// ErrCovered means that the path leads to a file system that is excluded by [Root.Exclude].
	ErrCovered = errors.New("file is in a mount that exists only while the container runs")
	// ErrKernel means that the path leads to a file system whose files are not data, such as /proc and /sys.
	ErrKernel = errors.New("file is in a file system of the kernel")
	// ErrNotRegular means that a file is neither a regular file nor a directory.
	ErrNotRegular = errors.New("not a regular file or directory")
)

const (
	// maxLinks is the kernel's limit of symbolic links in a path (MAXSYMLINKS).
	maxLinks = 40
	// maxRaces bounds how often a path is resolved again because a rename interfered, which the kernel reports as EAGAIN.
	maxRaces = 1000
	// maxPath is the kernel's limit of a path (PATH_MAX).
	maxPath = 4096
)

// Root is a directory whose files belong to an attacker, who can change every name while it is resolved. It is safe for concurrent use,
// except for Exclude.
//
// The kernel resolves each path below the root (openat2 with RESOLVE_IN_ROOT, openat2(2)): absolute links and ".." start at the root, and
// links of /proc are not followed. A file is opened without effects first (O_PATH). Only if it is a regular file or a directory is it
// opened for reading, by the descriptor and not by its name. A FIFO, a socket or a device is never opened.
type Root struct {
	dir      *os.File
	excludes bool
	excluded uint64 // the device of a file system
}

// NewRoot returns the root for a directory. It takes the file over. It can be opened with O_PATH.
func NewRoot(dir *os.File) *Root { return &Root{dir: dir} }

// Exclude excludes the file system with a device number (st_dev). A path that leads to it gives [ErrCovered], whether its file exists or
// not.
func (r *Root) Exclude(device uint64) { r.excludes, r.excluded = true, device }

// Close closes the directory.
func (r *Root) Close() error { return r.dir.Close() }

// Open opens the file at a path. Symbolic links are followed below the root, also the last element.
func (r *Root) Open(path string) (*File, error) { return r.open(path, 0) }

// OpenLink is [Root.Open], but does not follow the last element if it is a symbolic link. A path with a slash at the end follows it.
func (r *Root) OpenLink(path string) (*File, error) { return r.open(path, unix.O_NOFOLLOW) }

func (r *Root) open(path string, flags int) (*File, error) {
	if path == "" || strings.ContainsRune(path, 0) || len(path) >= maxPath {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.EINVAL}
	}
	f, err := openat2(r, r.dir, path, flags, unix.RESOLVE_IN_ROOT)
	if errors.Is(err, fs.ErrNotExist) && r.excludes && r.leadsToExcluded(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrCovered}
	}
	return f, err
}

// leadsToExcluded reports whether the nearest directory of a path that exists is in the excluded file system.
func (r *Root) leadsToExcluded(path string) bool {
	for {
		parent, _ := splitPath(path)
		if len(parent) >= len(path) {
			return false
		}
		f, err := openat2(r, r.dir, parent, 0, unix.RESOLVE_IN_ROOT)
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return errors.Is(err, ErrCovered)
		}
		path = strings.TrimRight(parent, "/")
	}
}

// Locate returns the directory and the name of the file at a path, after it has followed the last element as far as it is a symbolic link.
// The file need not exist, but its directory must. The name is "." if the path is that of the root or ends with "." or "..". The last
// result is the path whose last element is no link.
func (r *Root) Locate(path string) (dir *File, name, located string, err error) {
	for range maxLinks {
		parent, name := splitPath(path)
		dir, err := r.Open(parent)
		if err != nil {
			return nil, "", "", err
		}
		if name == "." {
			return dir, name, path, nil
		}
		target, err := dir.readLink(name)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, fs.ErrNotExist) {
			return dir, name, path, nil
		}
		_ = dir.Close()
		if err != nil {
			return nil, "", "", err
		}
		if path = target; !strings.HasPrefix(target, "/") {
			path = strings.TrimSuffix(parent, "/") + "/" + target
		}
	}
	return nil, "", "", &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
}

// splitPath divides a path into the directory and the last element, "." for a path that has none. It removes nothing else: the element
// before ".." can be a link.
func splitPath(path string) (dir, name string) {
	trimmed := strings.TrimRight(path, "/")
	i := strings.LastIndexByte(trimmed, '/')
	dir, name = trimmed[:i+1], trimmed[i+1:]
	if name == "" || name == "." || name == ".." {
		return "/" + trimmed, "."
	}
	return "/" + strings.TrimLeft(dir, "/"), name
}

// File is a file that was opened without effects. A directory can be searched. It must be closed.
type File struct {
	*os.File
	Stat unix.Stat_t
	root *Root
}

// openat2 opens a path without effects and checks its file system.
func openat2(root *Root, dir *os.File, path string, flags int, resolve uint64) (*File, error) {
	how := unix.OpenHow{Flags: uint64(unix.O_PATH | unix.O_CLOEXEC | flags), Resolve: unix.RESOLVE_NO_MAGICLINKS | resolve}
	var fd int
	err := error(unix.EAGAIN)
	for i := 0; i < maxRaces && (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)); i++ {
		fd, err = unix.Openat2(int(dir.Fd()), path, &how)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := &File{File: os.NewFile(uintptr(fd), path), root: root}
	if err := f.check(); err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// kernelFileSystems are file systems whose files are interfaces of the kernel: a size that is not that of the content, reads with
// effects, and content that depends on who reads, which is the daemon.
var kernelFileSystems = map[int64]bool{
	unix.PROC_SUPER_MAGIC: true, unix.SYSFS_MAGIC: true, unix.CGROUP_SUPER_MAGIC: true, unix.CGROUP2_SUPER_MAGIC: true,
	unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true, unix.SECURITYFS_MAGIC: true, unix.BPF_FS_MAGIC: true, unix.NSFS_MAGIC: true,
	unix.SELINUX_MAGIC: true, unix.PSTOREFS_MAGIC: true, unix.EFIVARFS_MAGIC: true, unix.AUTOFS_SUPER_MAGIC: true,
	0x62656570: true, // configfs
	0x19800202: true, // mqueue
}

// check reads the attributes of the file, and returns an error if its file system is excluded.
func (f *File) check() error {
	if err := unix.Fstat(int(f.Fd()), &f.Stat); err != nil {
		return err
	}
	if f.root.excludes && uint64(f.Stat.Dev) == f.root.excluded { //nolint:unconvert // other architectures have another type
		return ErrCovered
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return err
	}
	if kernelFileSystems[int64(s.Type)] { //nolint:unconvert // other architectures have another type
		return ErrKernel
	}
	return nil
}

func (f *File) kind() uint32 { return f.Stat.Mode & unix.S_IFMT }

// IsDir reports whether the file is a directory.
func (f *File) IsDir() bool { return f.kind() == unix.S_IFDIR }

// IsRegular reports whether the file is a regular file.
func (f *File) IsRegular() bool { return f.kind() == unix.S_IFREG }

// IsLink reports whether the file is a symbolic link.
func (f *File) IsLink() bool { return f.kind() == unix.S_IFLNK }

// Lookup opens an entry of a directory. It does not follow symbolic links.
func (f *File) Lookup(name string) (*File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return openat2(f.root, f.File, name, unix.O_NOFOLLOW, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
}

// checkName returns an error if a name is not that of an entry of a directory.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("file name %q: %w", name, unix.EINVAL)
	}
	return nil
}

// Link returns the target of a symbolic link.
func (f *File) Link() (string, error) { return f.readLink("") }

func (f *File) readLink(name string) (string, error) {
	buffer := make([]byte, maxPath)
	n, err := unix.Readlinkat(int(f.Fd()), name, buffer)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(buffer[:n]), nil
}

// Read opens a regular file or a directory for reading. The result must be closed too.
func (f *File) Read() (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NONBLOCK
	switch f.kind() {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		flags |= unix.O_DIRECTORY
	default:
		return nil, &fs.PathError{Op: "open", Path: f.Name(), Err: ErrNotRegular}
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: f.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

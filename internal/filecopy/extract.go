package filecopy

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/plain"
)

// Attributes are those that an extracted file gets.
type Attributes struct {
	UID, GID int // as chown(2) takes them; -1: of the process
	Mode     uint32
	ModTime  time.Time // zero: now
	// Extended are the extended attributes, see [Extended].
	Extended map[string]string
}

// Extractor creates the files of a tar stream in a directory.
//
// It follows no symbolic link below the directory: an element of a name that is one is an error, also if it was swapped in during the copy.
// A file is written under a temporary name and then renamed, so that an existing file is replaced and never written, and a link that an
// entry creates is never used by the next one. Existing directories are kept. Temporary files that a killed process has left in the
// directories of the stream are removed.
type Extractor struct {
	Dir *File
	// Attributes returns the attributes for an entry. An error ends the copy.
	Attributes func(*tar.Header) (Attributes, error)
	Warn       Warn
	// Start is called with the first entry, and may set Dir and Prefix; nil: nothing.
	Start func(*tar.Header) error
	// Prefix replaces the first element of each name, if Rebase is set. It can be empty.
	Rebase bool
	Prefix []string
	// Root sets the attributes of the destination to those of its entry. Otherwise they are not changed.
	Root bool

	set      *Attributes // of the destination, when its files exist; nil: they are kept
	unproven int64       // bytes that were written since the free space was measured
	searched bool        // the destination, for leftovers
	open     []openDir   // the directories of the last entry, outermost first
}

// openDir is a directory whose files are being created. Its attributes are set when the last of them exists: it may be read-only.
type openDir struct {
	name string
	file *File
	set  *Attributes // nil: it existed before
}

// Copied is the extent of a copy.
type Copied struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Extract creates the files of a stream. After an error, the files before it exist.
func (x *Extractor) Extract(ctx context.Context, stream io.Reader) (done Copied, err error) {
	defer func() {
		if err = errors.Join(err, x.leave(0)); err == nil && x.set != nil {
			err = (&openDir{file: x.Dir, set: x.set}).apply()
		}
	}()
	for r := tar.NewReader(stopper{ctx, stream}); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, fmt.Errorf("read archive: %w", err)
		}
		if done.Files == 0 && x.Start != nil {
			if err := x.Start(header); err != nil {
				return done, err
			}
		}
		if done.Files++; done.Files > maxFiles {
			return done, fmt.Errorf("archive has more than %d files", maxFiles)
		}
		n, err := x.entry(header, stopper{ctx, r}) // the reader makes the zeros of a hole without reading the stream
		if done.Bytes += n; err != nil {
			return done, err
		}
	}
}

func (x *Extractor) entry(h *tar.Header, data io.Reader) (size int64, err error) {
	names, err := elements(h.Name)
	if err != nil {
		return 0, err
	}
	if x.Rebase && len(names) > 0 {
		names = slices.Concat(x.Prefix, names[1:])
	}
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink, tar.TypeGNUSparse:
	case tar.TypeXGlobalHeader:
		return 0, nil
	default:
		x.Warn("%q left out: not a regular file, directory or link", h.Name)
		return 0, nil
	}
	attributes, err := x.Attributes(h)
	if err != nil {
		return 0, fmt.Errorf("create %q: %w", h.Name, err)
	}
	if len(names) == 0 { // the destination, whose attributes are not changed
		if h.Typeflag != tar.TypeDir {
			return 0, fmt.Errorf("archive entry %q: must be a directory", h.Name)
		}
		if x.Root {
			x.set = &attributes
		}
		return 0, nil
	}
	last := len(names) - 1
	if h.Typeflag == tar.TypeDir {
		last++
	}
	if !x.searched {
		x.searched = true
		removeLeftovers(x.Dir)
	}
	dir, err := x.enter(names[:last])
	if err == nil && h.Typeflag == tar.TypeDir {
		if d := &x.open[last-1]; d.set != nil { // this copy has created it
			d.set = &attributes
		}
		return 0, nil
	}
	if err == nil {
		size, err = x.create(dir, names[last], h, data, attributes)
	}
	if err != nil {
		return size, fmt.Errorf("create %q: %w", h.Name, err)
	}
	return size, nil
}

// enter opens the directory with these elements below the destination, and creates it if necessary.
func (x *Extractor) enter(names []string) (*File, error) {
	same := 0
	for same < len(names) && same < len(x.open) && x.open[same].name == names[same] {
		same++
	}
	if err := x.leave(same); err != nil {
		return nil, err
	}
	dir := x.Dir
	if same > 0 {
		dir = x.open[same-1].file
	}
	for _, name := range names[same:] {
		err := unix.Mkdirat(int(dir.Fd()), name, 0o700)
		created := err == nil
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		next, err := dir.Lookup(name)
		if err != nil {
			return nil, err
		}
		if !next.IsDir() {
			_ = next.Close()
			if next.IsLink() {
				return nil, fmt.Errorf("%q is a symbolic link, which is not followed below the destination", name)
			}
			return nil, fmt.Errorf("%q exists and is not a directory", name)
		}
		x.open = append(x.open, openDir{name: name, file: next})
		if dir = next; !created {
			removeLeftovers(next)
		} else {
			set, err := x.Attributes(&tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755})
			if err != nil {
				return nil, err
			}
			x.open[len(x.open)-1].set = &set
		}
	}
	return dir, nil
}

// leave closes the directories from the n-th and sets their attributes.
func (x *Extractor) leave(n int) error {
	var errs []error
	for len(x.open) > n {
		d := x.open[len(x.open)-1]
		x.open = x.open[:len(x.open)-1]
		if d.set != nil {
			if err := d.apply(); err != nil {
				errs = append(errs, fmt.Errorf("create %q: %w", d.name, err))
			}
		}
		errs = append(errs, d.file.Close())
	}
	return errors.Join(errs...)
}

func (d *openDir) apply() error {
	f, err := d.file.Read()
	if err != nil {
		return err
	}
	defer f.Close()
	return d.set.apply(f)
}

// create creates a file that is not a directory under a temporary name and renames it.
func (x *Extractor) create(dir *File, name string, h *tar.Header, data io.Reader, a Attributes) (size int64, err error) {
	fd := int(dir.Fd())
	if err := x.room(fd, 0); err != nil {
		return 0, err
	}
	if old, err := dir.Lookup(name); err == nil {
		isDir := old.IsDir()
		_ = old.Close()
		if isDir {
			return 0, errors.New("it exists and is a directory")
		}
	}
	temporary := temporaryPrefix + rand.Text()
	switch h.Typeflag {
	case tar.TypeSymlink:
		if err = unix.Symlinkat(h.Linkname, fd, temporary); err == nil {
			err = a.applyLink(dir, temporary)
		}
	case tar.TypeLink:
		err = x.link(h.Linkname, fd, temporary)
	default:
		size, err = x.writeFile(fd, temporary, data, h.Size, a)
	}
	if err == nil {
		err = unix.Renameat(fd, temporary, fd, name)
		if errors.Is(err, unix.EBUSY) {
			err = errors.New("it is a mount point: the file cannot be replaced")
		}
		_ = unix.Unlinkat(fd, temporary, 0) // rename(2) does nothing if both are the same file
	}
	if err != nil {
		_ = unix.Unlinkat(fd, temporary, 0)
	}
	return size, err
}

// link creates a hard link to a regular file that exists below the destination.
func (x *Extractor) link(target string, fd int, temporary string) error {
	names, err := elements(target)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("hard link to %q: must be a file", target)
	}
	f := x.Dir
	for i, name := range names {
		next, err := f.Lookup(name)
		if err != nil {
			return fmt.Errorf("hard link to %q: %w", target, err)
		}
		defer next.Close()
		if i == len(names)-1 && !next.IsRegular() {
			return fmt.Errorf("hard link to %q: must be a regular file", target)
		}
		if i == len(names)-1 {
			// The name can be exchanged with a link since, which linkat does not follow.
			return unix.Linkat(int(f.Fd()), name, fd, temporary, 0)
		}
		f = next
	}
	return nil
}

// writeFile creates a file, leaves blocks of zeros sparse, and removes nothing after an error.
func (x *Extractor) writeFile(dir int, name string, data io.Reader, size int64, a Attributes) (written int64, err error) {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return 0, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { err = errors.Join(err, f.Close()) }()
	_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // see removeLeftovers
	if err := x.writeSparse(f, data, size, &written); err != nil {
		return written, err
	}
	return written, a.apply(f)
}

func (x *Extractor) writeSparse(f *os.File, data io.Reader, size int64, written *int64) error {
	if err := f.Truncate(size); err != nil { // more than the file system can have
		return plain.WithoutPath(err)
	}
	block := make([]byte, 64<<10)
	for *written < size {
		n, err := io.ReadFull(data, block[:min(int64(len(block)), size-*written)])
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if !isZero(block[:n]) {
			if err := x.room(int(f.Fd()), int64(n)); err != nil {
				return err
			}
			if _, err := f.WriteAt(block[:n], *written); err != nil {
				return plain.WithoutPath(err)
			}
		}
		*written += int64(n)
	}
	return nil
}

const (
	// measured is how many bytes are written before the free space is measured again. An inode counts as one block.
	measured, inodeBytes = 1 << 20, 4096
	// keptFree and keptShare are how much of a file system a copy leaves free: the smaller one.
	keptFree, keptShare = 256 << 20, 100
)

// room reports an error if the file system of a descriptor is nearly full. A copy that fills a disk stops what else writes to it.
func (x *Extractor) room(fd int, bytes int64) error {
	x.unproven += bytes + inodeBytes
	if x.unproven < measured {
		return nil
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return fmt.Errorf("measure free space: %w", err)
	}
	free, total := disk.BlockBytes(&fs, fs.Bavail), disk.BlockBytes(&fs, fs.Blocks)
	if total > 0 && free-x.unproven < min(keptFree, total/keptShare) {
		return fmt.Errorf("stopped before the file system is full, %d MiB are free: %w", free>>20, unix.ENOSPC)
	}
	x.unproven = 0
	return nil
}

func isZero(block []byte) bool {
	return len(block) == 0 || block[0] == 0 && bytes.Equal(block[1:], block[:len(block)-1])
}

// apply sets the attributes of an open file. chown(2) clears the setuid bit, so the mode follows it.
func (a Attributes) apply(f *os.File) error {
	fd := int(f.Fd())
	if a.UID >= 0 || a.GID >= 0 {
		if err := unix.Fchown(fd, a.UID, a.GID); err != nil {
			return fmt.Errorf("set owner: %w", err)
		}
	}
	if err := unix.Fchmod(fd, a.Mode); err != nil {
		return fmt.Errorf("set permissions: %w", err)
	}
	for name, value := range a.Extended {
		if err := unix.Fsetxattr(fd, name, []byte(value), 0); err != nil {
			return fmt.Errorf("set extended attribute %s: %w", name, err)
		}
	}
	if a.ModTime.IsZero() {
		return nil
	}
	t, err := unix.TimeToTimespec(a.ModTime)
	times := []unix.Timespec{t, t}
	if err != nil { // a time that the system cannot represent is not kept
		times = []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_OMIT}}
	}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), times, 0); err != nil {
		return fmt.Errorf("set modification time: %w", err)
	}
	return nil
}

// applyLink sets the owner and the time of a symbolic link. If the name was exchanged with another file since, it changes nothing.
func (a Attributes) applyLink(dir *File, name string) error {
	link, err := dir.Lookup(name)
	if err != nil {
		return err
	}
	defer link.Close()
	if !link.IsLink() {
		return errors.New("replaced by another process during the copy")
	}
	if a.UID >= 0 || a.GID >= 0 {
		if err := unix.Fchownat(int(link.Fd()), "", a.UID, a.GID, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("set owner: %w", err)
		}
	}
	if t, err := unix.TimeToTimespec(a.ModTime); err == nil && !a.ModTime.IsZero() {
		return unix.UtimesNanoAt(int(link.Fd()), "", []unix.Timespec{t, t}, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}

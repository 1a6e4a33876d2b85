package filecopy

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth is the maximum depth of a tree: a copy holds one descriptor for each level.
	maxDepth = 512
	// maxFiles is the maximum number of files in a copy. A process can create files as fast as they are listed.
	maxFiles = 10_000_000
	// batch is how many names of a directory are held in memory.
	batch = 512
)

// Warn receives a warning about a file that is left out or that changed.
type Warn func(format string, args ...any)

// Packer writes trees to a tar stream.
type Packer struct {
	// Stream receives the files. The caller closes it. Out is the writer below it, which receives files with holes.
	Stream *tar.Writer
	Out    io.Writer
	// ID translates user and group IDs; nil: they are not changed.
	ID func(uint32) int
	// Whole keeps hard links and extended attributes.
	Whole bool
	// Warn must be set.
	Warn Warn

	ctx   context.Context //nolint:containedctx // of one copy
	files int
	links map[inode]string // the names of files with several names
}

// inode identifies a file.
type inode struct{ device, number uint64 }

// Pack writes the file, and all files below it, under a name. An entry "." is the directory itself. It closes the file.
func (p *Packer) Pack(ctx context.Context, f *File, name string) error {
	p.ctx = ctx
	return p.pack(f, name, 0)
}

func (p *Packer) pack(f *File, name string, depth int) error {
	defer f.Close()
	if err := p.ctx.Err(); err != nil {
		return context.Cause(p.ctx)
	}
	if p.files++; p.files > maxFiles {
		return fmt.Errorf("copy %q: more than %d files", name, maxFiles)
	}
	if depth > maxDepth {
		return fmt.Errorf("copy %q: more than %d levels of directories", name, maxDepth)
	}
	header := &tar.Header{
		Format: tar.FormatPAX, // others round the time
		Name:   name, Mode: int64(f.Stat.Mode & 0o7777), ModTime: time.Unix(f.Stat.Mtim.Unix()), Uid: int(f.Stat.Uid), Gid: int(f.Stat.Gid),
	}
	if p.ID != nil {
		header.Uid, header.Gid = p.ID(f.Stat.Uid), p.ID(f.Stat.Gid)
	}
	switch {
	case f.IsDir():
		return p.directory(f, header, depth)
	case f.IsRegular():
		return p.regular(f, header)
	case f.IsLink():
		target, err := f.Link()
		if err != nil {
			return fmt.Errorf("copy %q: %w", name, err)
		}
		header.Linkname = target
		header.Typeflag = tar.TypeSymlink
		return p.Stream.WriteHeader(header)
	}
	p.Warn("%q left out: not a regular file, directory or symbolic link", name)
	return nil
}

func (p *Packer) directory(f *File, header *tar.Header, depth int) error {
	name := header.Name
	list, err := f.Read()
	if err != nil {
		return fmt.Errorf("copy %q: %w", name, err)
	}
	defer list.Close()
	header.Typeflag = tar.TypeDir
	header.Name += "/"
	if err := errors.Join(p.attributes(header, list), p.Stream.WriteHeader(header)); err != nil {
		return err
	}
	for {
		names, err := list.Readdirnames(batch)
		for _, entry := range names {
			if err := p.entry(f, path.Join(name, entry), entry, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy %q: %w", name, err)
		}
	}
}

// entry packs an entry of a directory. One that was removed since the directory was read is left out.
func (p *Packer) entry(dir *File, name, entry string, depth int) error {
	f, err := dir.Lookup(entry)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, ErrCovered), errors.Is(err, ErrKernel):
		cause, _ := errors.AsType[*fs.PathError](err)
		p.Warn("%q left out: %v", name, cause.Err)
		return nil
	case err != nil:
		return fmt.Errorf("copy %q: %w", name, err)
	}
	return p.pack(f, name, depth+1)
}

// regular writes exactly as many bytes as the header says. The file can change meanwhile: what was appended is left out, and what was cut
// off is zeros.
func (p *Packer) regular(f *File, header *tar.Header) error {
	data, err := f.Read()
	if err != nil {
		return fmt.Errorf("copy %q: %w", header.Name, err)
	}
	defer data.Close()
	var now unix.Stat_t
	if err := unix.Fstat(int(data.Fd()), &now); err != nil {
		return fmt.Errorf("copy %q: %w", header.Name, err)
	}
	if p.isLinked(header, &now) {
		return p.Stream.WriteHeader(header)
	}
	header.Typeflag, header.Size = tar.TypeReg, now.Size
	if err := p.attributes(header, data); err != nil {
		return err
	}
	if list := extents(data, &now); list != nil {
		return p.sparse(header, data, list)
	}
	if _, err := data.Seek(0, io.SeekStart); err != nil { // extents has moved it
		return fmt.Errorf("copy %q: %w", header.Name, err)
	}
	if err := p.Stream.WriteHeader(header); err != nil {
		return err
	}
	return p.exactly(p.Stream, stopper{p.ctx, data}, header.Name, header.Size)
}

// exactly copies as many bytes as a header says.
func (p *Packer) exactly(w io.Writer, data io.Reader, name string, size int64) error {
	n, err := io.CopyN(w, data, size)
	if errors.Is(err, io.EOF) {
		p.Warn("%q shrank while it was copied: the end is zeros", name)
		_, err = io.CopyN(w, stopper{p.ctx, zeros{}}, size-n)
	}
	if err != nil {
		return fmt.Errorf("copy %q: %w", name, err)
	}
	return nil
}

// isLinked makes the header that of a hard link if the stream has the file under another name. Otherwise it remembers the name.
func (p *Packer) isLinked(header *tar.Header, st *unix.Stat_t) bool {
	if !p.Whole || st.Nlink < 2 {
		return false
	}
	id := inode{st.Dev, st.Ino}
	if name, known := p.links[id]; known {
		header.Typeflag, header.Linkname = tar.TypeLink, name
		return true
	}
	if p.links == nil {
		p.links = map[inode]string{}
	}
	p.links[id] = header.Name
	return false
}

// attributes adds the extended attributes of a file to its header.
func (p *Packer) attributes(header *tar.Header, f *os.File) error {
	if !p.Whole {
		return nil
	}
	list, err := attributesOf(f, header.Name, p.Warn)
	if err != nil {
		return fmt.Errorf("copy %q: %w", header.Name, err)
	}
	for name, value := range list {
		if header.PAXRecords == nil {
			header.PAXRecords = map[string]string{}
		}
		header.PAXRecords[attributeKey+name] = value
	}
	return nil
}

// stopper is a reader that ends with the context.
type stopper struct {
	ctx context.Context //nolint:containedctx // of one copy
	io.Reader
}

func (s stopper) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.Reader.Read(p)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// elements returns the elements of the name of an archive entry. A name with ".." is an error. The name of the destination itself has none.
func elements(name string) ([]string, error) {
	var list []string
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element == "." {
			continue
		}
		if err := checkName(element); err != nil {
			return nil, fmt.Errorf("archive entry %q: must not contain %q", name, element)
		}
		list = append(list, element)
	}
	if len(list) > maxDepth {
		return nil, fmt.Errorf("archive entry %q: more than %d levels of directories", name, maxDepth)
	}
	return list, nil
}

// OpenHost returns the tree of a directory of the host, for the client of a copy. The directory need not be readable.
func OpenHost(dir string) (*Root, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return NewRoot(os.NewFile(uintptr(fd), dir)), nil
}

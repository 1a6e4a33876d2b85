package volume

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/filecopy"
)

// importPrefix is the prefix of the directory in which the files of a claim are created during an import. Names of claims cannot start
// with it.
const importPrefix = ".import-"

// ExportClaim writes the files of a persistent volume to a tar stream, with owners, permissions, extended attributes, holes and hard links.
// Containers may change them meanwhile. The error is [fs.ErrNotExist] if there is no such volume.
func (s *Set) ExportClaim(ctx context.Context, name string, w io.Writer) (filecopy.Result, error) {
	var result filecopy.Result
	fail := func(err error) (filecopy.Result, error) {
		return result, fmt.Errorf("export volume %q: %w", name, err)
	}
	if err := checkClaim(name); err != nil {
		return fail(err)
	}
	before, err := os.Stat(s.claimDir(name))
	if err != nil {
		return fail(err)
	}
	root, err := filecopy.OpenHost(s.claimDir(name))
	if err != nil {
		return fail(err)
	}
	defer root.Close() // until then no other directory has its inode
	dir, err := root.Open("/")
	if err != nil {
		return fail(err)
	}
	stream := tar.NewWriter(w)
	var warned filecopy.Warnings
	p := filecopy.Packer{Stream: stream, Out: w, Whole: true, Warn: warned.Add}
	err = p.Pack(ctx, dir, ".")
	if after, statErr := os.Stat(s.claimDir(name)); err == nil && (statErr != nil || !os.SameFile(before, after)) {
		err = errors.New("the volume was deleted or replaced meanwhile")
	}
	if err != nil {
		if stream.Flush() == nil { // an archive that ends between two files looks complete to tar(1)
			_, _ = w.Write(bytes.Repeat([]byte{'!'}, filecopy.InvalidBlock))
		}
		return fail(err)
	}
	result.Warnings = warned.List()
	return result, stream.Close()
}

// ImportClaim creates a persistent volume with the files of a tar stream. With replace it replaces the files of a volume that is not empty.
// The files are created in a directory beside the volume, which then takes its place: the volume is not changed if the import fails, also
// if the daemon is killed. Free returns an error if a pod uses the volume. No pod can start to use it during the import.
func (s *Set) ImportClaim(ctx context.Context, name string, r io.Reader, replace bool, free func() error) (filecopy.Result, error) {
	if err := checkClaim(name); err != nil {
		return filecopy.Result{}, fmt.Errorf("import %w", err)
	}
	result, err := exclusive(ctx, &s.locks, "claim/"+name, func(ctx context.Context) (filecopy.Result, error) {
		if err := free(); err != nil {
			return filecopy.Result{}, err
		}
		return s.importClaim(ctx, name, r, replace)
	})
	if refused, ok := errors.AsType[*filecopy.Error](err); ok {
		refused.Err = fmt.Errorf("import volume %q: %w", name, refused.Err)
		return result, refused
	}
	if err != nil {
		return result, fmt.Errorf("import volume %q: %w", name, err)
	}
	return result, nil
}

func (s *Set) importClaim(ctx context.Context, name string, r io.Reader, replace bool) (result filecopy.Result, err error) {
	target, staged := s.claimDir(name), filepath.Join(s.opts.ClaimsDir, importPrefix+name)
	exists, err := checkTarget(target, replace)
	if err != nil {
		return result, err
	}
	if err := RemoveTree(ctx, staged); err != nil { // of a daemon that was killed
		return result, err
	}
	if err := os.Mkdir(staged, 0o700); err != nil {
		return result, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, RemoveTree(context.WithoutCancel(ctx), staged))
		}
	}()
	if err := os.Chmod(staged, openMode); err != nil { // as a new volume, unless the stream has an entry for it
		return result, err
	}
	if result, err = extractClaim(ctx, staged, r); err != nil {
		return result, err
	}
	if err := syncFileSystem(staged); err != nil {
		return result, err
	}
	if err := s.forgetGrants(name); err != nil {
		return result, err
	}
	if ctx.Err() != nil {
		return result, context.Cause(ctx)
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if exists {
		flags = unix.RENAME_EXCHANGE // at no time there is no volume
	}
	if err := unix.Renameat2(unix.AT_FDCWD, staged, unix.AT_FDCWD, target, flags); err != nil {
		return result, fmt.Errorf("rename: %w", err)
	}
	if err := atomicfile.SyncDir(s.opts.ClaimsDir); err != nil {
		return result, errors.Join(err, unix.Renameat2(unix.AT_FDCWD, target, unix.AT_FDCWD, staged, flags))
	}
	if err := RemoveTree(context.WithoutCancel(ctx), staged); err != nil { // what was there before; the volume is complete
		result.Warnings = append(result.Warnings, fmt.Sprintf("the former files of the volume were not deleted: %v", err))
	}
	return result, nil
}

// checkTarget reports whether a directory of a volume exists, and an error if it cannot be replaced.
func checkTarget(target string, replace bool) (exists bool, err error) {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	refused := func(hint, text string) error {
		return &filecopy.Error{Kind: filecopy.Conflict, Err: errors.New(text), Hint: hint}
	}
	var above unix.Stat_t
	if err := unix.Stat(filepath.Dir(target), &above); err != nil {
		return false, err
	}
	var own unix.Stat_t
	if err := unix.Lstat(target, &own); err != nil {
		return false, err
	}
	if !info.IsDir() || own.Dev != above.Dev {
		return false, refused("extract the archive with tar into "+target, target+" is a link or a mount point")
	}
	entries, err := os.ReadDir(target)
	if err != nil {
		return false, err
	}
	if len(entries) > 0 && !replace {
		return false, refused("import with --replace to delete what it contains", "it is not empty")
	}
	return true, nil
}

func extractClaim(ctx context.Context, dir string, r io.Reader) (result filecopy.Result, err error) {
	root, err := filecopy.OpenHost(dir)
	if err != nil {
		return result, err
	}
	defer root.Close()
	f, err := root.Open("/")
	if err != nil {
		return result, err
	}
	defer f.Close()
	var warned filecopy.Warnings
	x := filecopy.Extractor{Dir: f, Root: true, Warn: warned.Add, Attributes: func(h *tar.Header) (filecopy.Attributes, error) {
		return filecopy.Attributes{
			UID: h.Uid, GID: h.Gid, Mode: uint32(h.Mode & 0o7777), ModTime: h.ModTime, Extended: filecopy.Extended(h),
		}, nil
	}}
	archive := &ending{Reader: r}
	done, err := x.Extract(ctx, archive)
	if err == nil {
		_, err = io.Copy(io.Discard, archive)
	}
	if err == nil && archive.zeros < endOfArchive {
		err = errors.New("read archive: it is incomplete")
	}
	result = filecopy.Result{Files: done.Files, Bytes: done.Bytes, Warnings: warned.List()}
	if err == nil && done.Files == 0 {
		err = errors.New("the archive is empty")
	}
	return result, refusedArchive(err)
}

// endOfArchive is the number of zeros at the end of an archive. Without them a part of it is missing, also if that ends between two files.
const endOfArchive = 1024

// ending counts the zeros at the end of what was read.
type ending struct {
	io.Reader
	zeros int
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	rest := len(bytes.TrimRight(p[:n], "\x00"))
	if rest > 0 {
		e.zeros = 0
	}
	e.zeros = min(e.zeros+n-rest, endOfArchive)
	return n, err
}

// refusedArchive is the error of an archive, or of a file system that does not take its files. Others are faults of the daemon.
func refusedArchive(err error) error {
	if err == nil || isAny(err, context.Canceled, unix.EIO, unix.EROFS) {
		return err
	}
	return &filecopy.Error{Kind: filecopy.Conflict, Err: err, Hint: hintOf(err)}
}

func hintOf(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return "free disk space, and import the archive again"
	case strings.Contains(err.Error(), "read archive"):
		return "import an uncompressed tar archive, such as the output of podstead volume export VOLUME, or of zstd -dc or gzip -dc"
	}
	return "check the archive with tar -tf"
}

// syncFileSystem writes the files of a directory to the disk.
func syncFileSystem(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

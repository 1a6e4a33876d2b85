// Package files copies files from and to containers, running or not, without a program in the container. It is the daemon, which is root,
// that reads and writes, while the processes of the container change the files; a [filecopy.Root] resolves the paths.
//
// A running container is reached by the root directory of its first process, so that its volumes are seen. Of a container that is not
// running, its writable layer and its volumes are mounted in a mount namespace that ends with the copy, also if the daemon is killed.
package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/client"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/spec"
)

// maxCopies is the maximum number of copies at a time. One that is stuck in a file system that does not respond counts until it returns.
const maxCopies = 8

// Config is what a [Service] needs. Dir and all others are required, except the Snapshotter.
type Config struct {
	Client      *client.Client
	Snapshotter string
	// Dir contains mount points for the time of a mount. It is cleared by New.
	Dir string
	// Task returns the task of a container. The error is that of [errdefs.IsNotFound] if it has no process.
	Task func(context.Context, client.Container) (client.Task, error)
	// ProcessDir returns a directory that lists the processes of a container.
	ProcessDir func(uid, id string) string
	// IDs returns the ID range of a pod.
	IDs func(uid string, pod *spec.Pod) (namespace.IDRange, error)
	// Volumes mounts the volumes of a container that is not running, see Volumes of package runtime/container.
	Volumes func(ctx context.Context, uid string, pod *spec.Pod, name, copy, users string) (
		mounts []specs.Mount, missing map[string]error, release func() error, err error)
}

// Service copies files. It is safe for concurrent use.
type Service struct {
	config Config
	copies *semaphore.Weighted
	views  *semaphore.Weighted // of images
	number atomic.Uint64       // of copies
}

// New returns the service. It removes mounts that an earlier daemon has left.
func New(c Config) (*Service, error) {
	if err := clearMounts(c.Dir); err != nil {
		return nil, fmt.Errorf("copy files: %w", err)
	}
	return &Service{config: c, copies: semaphore.NewWeighted(maxCopies), views: semaphore.NewWeighted(maxViews)}, nil
}

// container is a container whose files are accessible.
type container struct {
	root *filecopy.Root
	held io.Closer // keeps the mounts of a container that is not running
	spec *specs.Spec
	ids  namespace.IDRange
	// missing has why volumes are not available, by mount path.
	missing map[string]error
}

func (c *container) close() {
	_ = c.root.Close()
	if c.held != nil {
		_ = c.held.Close()
	}
}

// absolute returns the path from the root: a relative one is from the working directory of the container.
func (c *container) absolute(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	cwd := "/"
	if c.spec.Process != nil && c.spec.Process.Cwd != "" {
		cwd = c.spec.Process.Cwd
	}
	return strings.TrimSuffix(cwd, "/") + "/" + path
}

// Stat returns the attributes of a file. Symbolic links are followed.
func (s *Service) Stat(ctx context.Context, uid, name, path string) (filecopy.Stat, error) {
	stat, err := with(ctx, s, uid, name, func(ctx context.Context, c *container) (filecopy.Stat, error) { return c.stat(path) })
	return stat, describe("stat", name, path, err)
}

func (c *container) stat(path string) (filecopy.Stat, error) {
	dir, base, located, err := c.root.Locate(c.absolute(path))
	if err != nil {
		return filecopy.Stat{}, err
	}
	defer dir.Close()
	f := dir
	if base != "." {
		if f, err = dir.Lookup(base); err != nil {
			return filecopy.Stat{}, err
		}
		defer f.Close()
	}
	if strings.HasSuffix(path, "/") && !f.IsDir() {
		return filecopy.Stat{}, unix.ENOTDIR
	}
	return filecopy.Stat{Path: located, Mode: fileMode(f.Stat.Mode), Size: f.Stat.Size, ModTime: time.Unix(f.Stat.Mtim.Unix())}, nil
}

// fileMode converts st_mode of stat(2).
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFREG:
	default:
		m |= fs.ModeIrregular
	}
	return m
}

// Read writes the file at a path, and all files below it, to a tar stream. The stream has an end only if there was no error. The entries
// are below the base name of the path, or below "." if the path ends with a dot. A path that is a symbolic link gives the link, unless it
// ends with a slash.
func (s *Service) Read(ctx context.Context, uid, name, path string, w io.Writer) (filecopy.Result, error) {
	done, err := with(ctx, s, uid, name, func(ctx context.Context, c *container) (filecopy.Result, error) { return c.read(ctx, path, w) })
	return done, describe("read", name, path, err)
}

func (c *container) read(ctx context.Context, path string, w io.Writer) (filecopy.Result, error) {
	var warned filecopy.Warnings
	f, err := c.root.OpenLink(c.absolute(path))
	if err != nil {
		return filecopy.Result{}, err
	}
	if !f.IsDir() && !f.IsRegular() && !f.IsLink() {
		_ = f.Close()
		return filecopy.Result{}, filecopy.ErrNotRegular
	}
	stream := tar.NewWriter(w)
	p := filecopy.Packer{Stream: stream, Out: w, Warn: warned.Add, ID: inside(c.ids)}
	if err := p.Pack(ctx, f, baseName(path)); err != nil {
		if stream.Flush() == nil { // an archive that ends between two files looks complete to tar(1)
			_, _ = w.Write(bytes.Repeat([]byte{'!'}, filecopy.InvalidBlock))
		}
		return filecopy.Result{}, err
	}
	return filecopy.Result{Warnings: warned.List()}, stream.Close()
}

// baseName returns the last element of a path, "." if it is the root or ends with a dot.
func baseName(path string) string {
	path = strings.TrimRight(path, "/")
	switch base := path[strings.LastIndexByte(path, '/')+1:]; base {
	case "", ".", "..":
		return "."
	default:
		return base
	}
}

// Options are the options of a write.
type Options struct {
	// Preserve keeps owners, permissions and times of the archive. Otherwise files belong to the user of the container.
	Preserve bool
}

// Write creates the files of a tar stream in a directory that exists.
func (s *Service) Write(ctx context.Context, uid, name, path string, r io.Reader, o Options) (filecopy.Result, error) {
	done, err := with(ctx, s, uid, name,
		func(ctx context.Context, c *container) (filecopy.Result, error) { return c.write(ctx, path, r, o) })
	return done, describe("write to", name, path, err)
}

func (c *container) write(ctx context.Context, path string, r io.Reader, o Options) (filecopy.Result, error) {
	var warned filecopy.Warnings
	var done filecopy.Copied
	dir, err := c.root.Open(c.absolute(path))
	if err != nil {
		return filecopy.Result{}, err
	}
	defer dir.Close()
	if !dir.IsDir() {
		return filecopy.Result{}, unix.ENOTDIR
	}
	x := filecopy.Extractor{Dir: dir, Warn: warned.Add, Attributes: c.attributes(o)}
	err = namespace.OnOwnThread(func() error {
		if err := assume(c.ids); err != nil {
			return err
		}
		done, err = x.Extract(ctx, r)
		return err
	})
	return filecopy.Result{Files: done.Files, Bytes: done.Bytes, Warnings: warned.List()}, err
}

// with calls f with a container. It returns when f has returned, or earlier with the error of ctx; then f returns later.
func with[T any](ctx context.Context, s *Service, uid, name string, f func(context.Context, *container) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if !s.copies.TryAcquire(1) {
		return none, &filecopy.Error{Kind: filecopy.Busy, Err: fmt.Errorf("%d copies are in progress", maxCopies), Hint: "try again later"}
	}
	ctx = engine.Context(ctx)
	done := make(chan result, 1)
	go func() {
		defer s.copies.Release(1)
		var r result
		c, err := s.open(ctx, uid, name)
		if err == nil {
			r.value, err = f(ctx, c)
			err = c.withCause(err)
			c.close()
		}
		r.err = err
		done <- r
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	late := time.NewTimer(cancelTimeout)
	defer late.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-late.C:
		return none, context.Cause(ctx)
	}
}

// cancelTimeout is how long a cancelled copy is waited for. It returns at the next block, unless a file system does not respond.
const cancelTimeout = 2 * time.Second

// describe adds the operation to an error and classifies it.
func describe(operation, container, path string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*filecopy.Error](err); ok {
		known.Err = fmt.Errorf("%s files of container %q: %w", operation, container, known.Err)
		return known
	}
	cause := err
	if p, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(error(p), err) {
		cause = p.Err
	}
	err = fmt.Errorf("%s %q of container %q: %w", operation, path, container, cause)
	refused := func(kind filecopy.Kind, hint string) error { return &filecopy.Error{Kind: kind, Err: err, Hint: hint} }
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refused(filecopy.NotFound, "")
	case errors.Is(err, unix.EROFS):
		return refused(filecopy.Conflict,
			"copy to a volume that is mounted read-write, or set securityContext.readOnlyRootFilesystem to false in the container")
	case errors.Is(err, filecopy.ErrCovered):
		return refused(filecopy.Conflict, "start the pod, or copy the file while the container runs")
	case errors.Is(err, filecopy.ErrKernel):
		return refused(filecopy.Conflict, "read files of /proc and /sys with podstead exec POD -- cat FILE")
	case errors.Is(err,
		unix.ENOTDIR), errors.Is(err,
		unix.ELOOP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENAMETOOLONG),
		errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, filecopy.ErrNotRegular), errors.Is(err, os.ErrPermission):
		return refused(filecopy.Conflict, "")
	}
	return err
}

package connect

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/internal/view"
)

// Copy copies files from or to a container.
type Copy struct {
	Client *client.Client
	// UID of the pod.
	UID string
	// Preserve keeps permissions and times and, to a container, owners.
	Preserve bool
	In       io.Reader
	Out      io.Writer
	// Warn reports a file that was left out.
	Warn func(string)

	transferred atomic.Int64
}

// Transferred returns how many bytes of the archive were copied. It can be called during the copy.
func (c *Copy) Transferred() int64 { return c.transferred.Load() }

func (c *Copy) query(p Place) client.FileQuery {
	return client.FileQuery{UID: c.UID, Container: p.Container, Path: p.Path}
}

// copyCounter counts the bytes of a stream.
type copyCounter struct {
	io.Writer
	n *atomic.Int64
}

func (c copyCounter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// Get copies from a container to the host.
func (c *Copy) Get(ctx context.Context, from, to Place) error {
	if to.Stream {
		result, err := c.Client.ReadFiles(ctx, from.Pod, c.query(from), copyCounter{c.Out, &c.transferred})
		c.warn(result.Warnings)
		return err
	}
	r, w := io.Pipe()
	var result api.CopyResult
	var readErr error
	read := make(chan struct{})
	go func() {
		defer close(read)
		result, readErr = c.Client.ReadFiles(ctx, from.Pod, c.query(from), copyCounter{w, &c.transferred})
		_ = w.CloseWithError(readErr)
	}()
	err := c.extract(ctx, r, from, to)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // the padding of the archive
	}
	_ = r.CloseWithError(errStopped)
	<-read
	c.warn(result.Warnings)
	if readErr != nil && !errors.Is(readErr, errStopped) {
		return readErr
	}
	return err
}

// errStopped ends a stream whose reader has failed.
var errStopped = errors.New("stopped")

func (c *Copy) warn(list []string) {
	for _, text := range list {
		c.Warn(text)
	}
}

// extract creates the files of an archive from a container.
func (c *Copy) extract(ctx context.Context, stream io.Reader, from, to Place) error {
	mask := uint32(unix.Umask(0))
	unix.Umask(int(mask))
	x := &filecopy.Extractor{Rebase: true, Warn: func(format string, args ...any) { c.Warn(fmt.Sprintf(format, args...)) }}
	// Neither the owner nor a setuid bit is taken from a container: root would install programs of the container with the rights of root.
	x.Attributes = func(h *tar.Header) (filecopy.Attributes, error) {
		a := filecopy.Attributes{UID: -1, GID: -1, Mode: uint32(h.Mode) & 0o777 &^ mask}
		if c.Preserve {
			a.ModTime = h.ModTime
		}
		return a, nil
	}
	var root *filecopy.Root
	x.Start = func(first *tar.Header) (err error) {
		_, base := parts(from.Path)
		dir, name, err := destination(to.Path, base, first.Typeflag == tar.TypeDir)
		if err != nil {
			return err
		}
		if root, err = filecopy.OpenHost(dir); err != nil {
			return err
		}
		if name != "" {
			x.Prefix = []string{name}
		}
		if base == "." { // the names in the archive have no element for the directory itself
			x.Rebase = false
			if name != "" {
				return c.into(root, name, x)
			}
		}
		x.Dir, err = root.Open("/")
		return err
	}
	_, err := x.Extract(ctx, stream)
	if x.Dir != nil {
		err = errors.Join(err, x.Dir.Close())
	}
	if root != nil {
		err = errors.Join(err, root.Close())
	}
	return err
}

// into creates the directory that gets the content of another one.
func (c *Copy) into(root *filecopy.Root, name string, x *filecopy.Extractor) error {
	dir, err := root.Open("/")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create %q: %w", name, err)
	}
	x.Dir, err = dir.Lookup(name)
	return err
}

// destination returns the directory in which a copy is created, and its name there, "" if the content is created in the directory itself.
// base is the name of the source, "." for the content of a directory.
func destination(path, base string, isDir bool) (dir, name string, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir() && base == ".":
		return path, "", nil
	case err == nil && info.IsDir():
		return path, base, nil
	case err == nil && isDir:
		return "", "", fmt.Errorf("copy directory to %q: the file exists and is not a directory", path)
	case err == nil:
		return hostPath(path, true)
	case !errors.Is(err, fs.ErrNotExist):
		return "", "", err
	}
	if _, linkErr := os.Lstat(path); linkErr == nil {
		return "", "", fmt.Errorf("copy to %q: the symbolic link leads to no file", path)
	}
	if strings.HasSuffix(path, "/") && !isDir {
		return "", "", fmt.Errorf("copy to %q: no such directory", path)
	}
	dir, name, err = hostPath(path, false)
	if err == nil && name == "." {
		return "", "", fmt.Errorf("copy to %q: no such directory", path)
	}
	return dir, name, err
}

// Put copies from the host to a container.
func (c *Copy) Put(ctx context.Context, from, to Place) error {
	q := c.query(to)
	if from.Stream {
		return c.send(ctx, to.Pod, q, true, func(w io.Writer) error {
			_, err := io.Copy(w, c.In)
			return err
		})
	}
	root, file, base, err := openSource(from.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, name, err := c.target(ctx, to, base, file.IsDir())
	if err != nil {
		return errors.Join(err, file.Close())
	}
	q.Path = dir
	return c.send(ctx, to.Pod, q, false, func(w io.Writer) error {
		stream := tar.NewWriter(w)
		p := filecopy.Packer{Stream: stream, Out: w, Warn: func(format string, args ...any) { c.Warn(fmt.Sprintf(format, args...)) }}
		if err := p.Pack(ctx, file, name); err != nil {
			return err
		}
		return stream.Close()
	})
}

// openSource opens a file of the host. A symbolic link is not followed, unless the path ends with a slash or a dot.
func openSource(path string) (root *filecopy.Root, file *filecopy.File, base string, err error) {
	dir, base := parts(path)
	follow := base == "." || strings.HasSuffix(path, "/")
	if follow {
		dir = path
	}
	if root, err = filecopy.OpenHost(dir); err != nil {
		return nil, nil, "", whole(path, err)
	}
	name := base
	if follow {
		name = "/"
	}
	if file, err = root.OpenLink(name); err == nil && !file.IsDir() && !file.IsRegular() && !file.IsLink() {
		err = errors.Join(filecopy.ErrNotRegular, file.Close())
	}
	if err != nil {
		return nil, nil, "", errors.Join(whole(path, err), root.Close())
	}
	return root, file, base, nil
}

// whole returns the error of a path of the host with the path as the user wrote it.
func whole(path string, err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	return &SourceError{fmt.Errorf("copy %q: %w", path, err)}
}

// SourceError is the error of a source on the host.
type SourceError struct{ err error }

// Error returns the error with the path as the user wrote it.
func (e *SourceError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *SourceError) Unwrap() error { return e.err }

// target is destination for a path in a container.
func (c *Copy) target(ctx context.Context, to Place, base string, isDir bool) (dir, name string, err error) {
	stat, err := c.Client.StatFile(ctx, to.Pod, c.query(to))
	e, _ := errors.AsType[*api.Error](err)
	switch {
	case err == nil && stat.Type == api.Directory:
		return to.Path, base, nil
	case err == nil && isDir:
		return "", "", fmt.Errorf("copy directory to %q: the file exists and is not a directory", to.Path)
	case err == nil:
		dir, name = parts(string(stat.Path))
		return dir, name, nil
	case e == nil || e.Reason != api.ReasonFileNotFound:
		return "", "", err
	}
	if strings.HasSuffix(to.Path, "/") && !isDir {
		return "", "", fmt.Errorf("copy to %q: no such directory", to.Path)
	}
	if dir, name = parts(to.Path); name == "." {
		return "", "", err
	}
	return dir, name, nil
}

// send writes an archive to a container.
func (c *Copy) send(ctx context.Context, pod string, q client.FileQuery, stdin bool, write func(io.Writer) error) error {
	r, w := io.Pipe()
	var writeErr error
	written := make(chan struct{})
	go func() {
		defer close(written)
		writeErr = write(copyCounter{w, &c.transferred})
		_ = w.CloseWithError(writeErr)
	}()
	result, err := c.Client.WriteFiles(ctx, pod, q, c.Preserve, r)
	_ = r.CloseWithError(errStopped)
	if err != nil && stdin {
		return err // a read of standard input may not return
	}
	<-written
	c.warn(result.Warnings)
	if writeErr != nil && !errors.Is(writeErr, errStopped) {
		return writeErr
	}
	return err
}

// Place is the source or the destination of a copy.
type Place struct {
	Pod       string // empty: the host
	Container string // empty: the default
	Path      string
	Stream    bool // standard input or output
}

// containerName is the pattern of a name of a container (RFC 1123 label).
var containerName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// ParsePlace reads a place: POD:PATH, default/POD:PATH as in kubectl, POD:CONTAINER:PATH with an absolute path, "-", or a path of the
// host. A path of the host with a colon must start with "/" or ".", or have a "/" before the colon.
func ParsePlace(arg string) (Place, error) {
	if arg == "-" {
		return Place{Stream: true}, nil
	}
	if arg == "" {
		return Place{}, errors.New("a path must not be empty")
	}
	name := arg
	for _, resource := range []string{"pod/", "pods/", "po/", "default/"} {
		name = strings.TrimPrefix(name, resource)
	}
	pod, path, found := strings.Cut(name, ":")
	if !found || pod == "" || strings.HasPrefix(arg, ".") || strings.Contains(pod, "/") {
		return Place{Path: arg}, nil
	}
	p := Place{Pod: pod, Path: path}
	if container, rest, ok := strings.Cut(path, ":"); ok && strings.HasPrefix(rest, "/") && containerName.MatchString(container) {
		p.Container, p.Path = container, rest
	}
	if p.Path == "" {
		return Place{}, fmt.Errorf("%q: a path must follow the colon", arg)
	}
	return p, nil
}

// parts divides a path into its directory and its last element. The element is "." if the content of the directory is meant: for the root,
// and for a path that ends with "." or "..". A slash at the end is ignored.
func parts(path string) (dir, base string) {
	trimmed := strings.TrimRight(path, "/")
	i := strings.LastIndexByte(trimmed, '/')
	dir, base = trimmed[:i+1], trimmed[i+1:]
	switch {
	case base == "" || base == "." || base == "..":
		return path, "."
	case dir == "":
		return ".", base
	}
	return dir, base
}

// hostPath is parts for a path of the host, whose links in the last element are resolved if follow is set.
func hostPath(path string, follow bool) (dir, base string, err error) {
	if follow {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", "", err
		}
	}
	dir, base = parts(path)
	return dir, base, nil
}

// clearLine moves the cursor of a terminal to the first column, and erases the line (ECMA-48: EL).
const clearLine = "\r\x1b[K"

// ShowProgress shows on a terminal how much was copied, after the first second. The returned function removes the line.
func (c *Copy) ShowProgress(ctx context.Context, w io.Writer) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		drawn := false
		for {
			select {
			case <-tick.C:
				_, _ = fmt.Fprint(w, clearLine+"Copied "+view.Size(c.Transferred()))
				drawn = true
			case <-ctx.Done():
				if drawn {
					_, _ = io.WriteString(w, clearLine)
				}
				return
			}
		}
	})
	return func() {
		cancel()
		drawing.Wait()
	}
}

// Package imagefile opens image archives and layouts to be imported, and writes archives.
//
// [Dirs] imports the archives in the image directories, at the start of the daemon and when they appear or change. It decides which
// archives are complete, and reports those that cannot be imported. What an import does with the images is left to the store.
package imagefile

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Archive is an image archive that is read. Size is 0 if it is not known.
type Archive struct {
	io.ReadCloser
	Size int64
}

// Open opens a file, or a directory in the OCI or Docker layout, which it reads as a tar stream.
func Open(ctx context.Context, path string) (*Archive, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openDir(ctx, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &Archive{ReadCloser: f}
	if info.Mode().IsRegular() {
		a.Size = info.Size()
	}
	return a, nil
}

// ErrNoLayout is the error of a directory that has no image layout.
var ErrNoLayout = errors.New("the directory has neither oci-layout nor manifest.json")

func openDir(ctx context.Context, dir string) (*Archive, error) {
	files, size, err := list(dir)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.CloseWithError(pack(ctx, dir, files, w))
	}()
	return &Archive{ReadCloser: &stream{r, done}, Size: size}, nil
}

// stream is a pipe whose Close waits for the writer.
type stream struct {
	*io.PipeReader
	done chan struct{}
}

func (s *stream) Close() error {
	err := s.PipeReader.Close()
	<-s.done
	return err
}

// list returns the regular files of a layout and their size. Links are not followed.
func list(dir string) (files []string, size int64, err error) {
	layout := false
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		layout = layout || name == "oci-layout" || name == "manifest.json"
		files, size = append(files, name), size+info.Size()
		return nil
	})
	if err == nil && !layout {
		err = ErrNoLayout
	}
	return files, size, err
}

// pack writes files to a tar stream.
func pack(ctx context.Context, dir string, files []string, w io.Writer) error {
	root, err := os.OpenRoot(dir) // a file may be replaced by a link meanwhile
	if err != nil {
		return err
	}
	defer root.Close()
	tw := tar.NewWriter(w)
	for _, name := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := packFile(root, name, tw); err != nil {
			return err
		}
	}
	return tw.Close()
}

func packFile(root *os.Root, name string, tw *tar.Writer) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := tw.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Size: info.Size(), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := io.CopyN(tw, f, info.Size()); err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return nil
}

// Write writes a file by write, with a mode less the umask. A regular file appears, or is replaced, when it is complete. A device, a FIFO
// and the target of a symbolic link, such as /dev/stdout, are written directly.
func Write(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text())
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name, path)
}

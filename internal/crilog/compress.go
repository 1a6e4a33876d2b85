package crilog

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// compressedExt is the extension of a compressed file that is being written.
	compressedExt = ".compressing"
	// lowestPriority is the nice value of the thread that compresses.
	lowestPriority = 19
)

// compressions bounds how many logs of a process are compressed at the same time. A compression uses a thread, and a megabyte of memory.
// It is more than one, since the disk of one log may hang.
var compressions = make(chan struct{}, 4)

// compression is the background compression of a log.
type compression struct {
	stop chan struct{} // closed when the log is closed
	done chan struct{} // closed by the goroutine
}

// compress starts to compress the rotated files, unless that is running. The caller holds the lock.
func (w *writer) compress() {
	if w.compression != nil {
		return
	}
	c := &compression{stop: make(chan struct{}), done: make(chan struct{})}
	w.compression = c
	go func() {
		defer close(c.done)
		select {
		case compressions <- struct{}{}:
			defer func() { <-compressions }()
		case <-c.stop:
			w.mu.Lock()
			defer w.mu.Unlock()
			w.compression = nil
			return
		}
		// The thread ends with the goroutine, since it is never unlocked: its priority cannot be raised again.
		runtime.LockOSThread()
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), lowestPriority)
		for {
			begun := time.Now()
			done, err := w.compressOne(c.stop)
			w.mu.Lock()
			if done || err != nil { // after an error, the next rotation tries again
				w.compression = nil
				w.mu.Unlock()
				return
			}
			w.mu.Unlock()
			select {
			case <-time.After(time.Since(begun)): // at most half of one CPU, even if nothing else uses it
			case <-c.stop:
			}
		}
	}()
}

// resumeCompression starts to compress what the compression of another process has left. The caller holds the lock.
func (w *writer) resumeCompression() error {
	dir, err := openDirectory(filepath.Dir(w.path), false)
	if err != nil {
		return err
	}
	defer dir.close()
	left, _, err := w.uncompressed(dir, filepath.Base(w.path))
	if err != nil || left == nil {
		return err
	}
	w.compress()
	return left.Close()
}

// stopCompression returns when no file is compressed any more.
func (w *writer) stopCompression() {
	w.mu.Lock()
	c := w.compression
	w.mu.Unlock()
	if c != nil {
		close(c.stop)
		<-c.done
	}
}

// stoppable is a reader until it is stopped.
type stoppable struct {
	io.Reader
	stop <-chan struct{}
}

func (s stoppable) Read(p []byte) (int, error) {
	if closed(s.stop) {
		return 0, os.ErrClosed
	}
	return s.Reader.Read(p)
}

// compressOne compresses the newest rotated file that is not compressed. It reports true if there is none. The file is replaced when the
// compressed one is on the disk, so that a crash leaves one of them. A follower reads on in the file that it has open.
func (w *writer) compressOne(stop <-chan struct{}) (done bool, err error) {
	if closed(stop) {
		return true, nil
	}
	dir, err := openDirectory(filepath.Dir(w.path), false)
	if err != nil {
		return false, err
	}
	defer dir.close()
	name := filepath.Base(w.path)
	w.mu.Lock()
	from, id, err := w.uncompressed(dir, name)
	w.mu.Unlock()
	if err != nil || from == nil {
		return from == nil, err
	}
	defer from.Close()
	temporary := name + compressedExt
	if err := unix.Unlinkat(dir.fd, temporary, 0); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a crash
		return false, err
	}
	err = dir.pack(from, temporary, stop)
	if err == nil {
		err = w.replace(dir, name, id)
	}
	if err != nil {
		_ = unix.Unlinkat(dir.fd, temporary, 0)
	}
	return false, err
}

// uncompressed opens the newest rotated file that is not compressed, nil if there is none. The caller holds the lock.
func (w *writer) uncompressed(dir *directory, name string) (*os.File, fileID, error) {
	for i := 1; i < w.opt.Keep; i++ {
		f, err := dir.open(rotated(name, i), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fileID{}, err
		}
		text, err := newFile(f)
		if err == nil && text.unpack == nil {
			id, err := identify(f)
			return f, id, err
		}
		_ = f.Close()
		if err != nil {
			return nil, fileID{}, err
		}
	}
	return nil, fileID{}, nil
}

// pack writes the compressed file to the disk.
func (d *directory) pack(from *os.File, name string, stop <-chan struct{}) error {
	st, err := from.Stat()
	if err != nil {
		return err
	}
	to, err := d.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(to, 64<<10)
	packer, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err == nil {
		_, err = io.Copy(packer, stoppable{io.NewSectionReader(from, 0, st.Size()), stop})
		err = errors.Join(err, packer.Close(), out.Flush(), to.Sync())
	}
	// The age of a log counts from its last line.
	err = errors.Join(err,
		unix.Futimes(int(to.Fd()),
			[]unix.Timeval{unix.NsecToTimeval(st.ModTime().UnixNano()), unix.NsecToTimeval(st.ModTime().UnixNano())}))
	return errors.Join(err, to.Close())
}

// replace replaces a file, under the name that it has now. If it was removed meanwhile, the compressed one is removed.
func (w *writer) replace(dir *directory, name string, id fileID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < w.opt.Keep; i++ {
		if found, err := dir.stat(rotated(name, i)); err == nil && found == id {
			return unix.Renameat(dir.fd, name+compressedExt, dir.fd, rotated(name, i))
		}
	}
	return unix.Unlinkat(dir.fd, name+compressedExt, 0)
}

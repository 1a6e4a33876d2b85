package crilog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// trimmedSize is the maximum size of a trimmed log in bytes.
	trimmedSize = 64 << 10
	// trimmedExt is the extension of a trimmed log that is being written.
	trimmedExt = ".trimmed"
)

// TrimMatching removes the logs in the directories with matching names in a directory of the layout <dir>/<pod>/<container>/<n>.log, except
// the last 64 KiB of the log with the highest number of each container. It follows no
// links, as [Remove].
func TrimMatching(dir string, match func(name string) bool) error {
	return visit(dir, func(_ *directory, pod string) error {
		if !match(pod) {
			return nil
		}
		return visit(filepath.Join(dir, pod), func(_ *directory, container string) error {
			return trim(filepath.Join(dir, pod, container))
		})
	})
}

// visit calls each for the entries of a directory. It is no error if there is none, or if a link or a file has taken its place.
func visit(dir string, each func(d *directory, name string) error) error {
	d, err := walk(dir, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLink) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("trim logs: %w", err)
	}
	defer d.close()
	names, err := d.names()
	for _, name := range names {
		err = errors.Join(err, each(d, name))
	}
	return err
}

// trim trims the newest log in the directory of a container, and removes everything else in it.
func trim(dir string) error {
	newest, number := "", -1
	find := func(_ *directory, name string) error {
		stem, isLog := strings.CutSuffix(name, ".log")
		if n, err := strconv.Atoi(stem); isLog && err == nil && n > number {
			newest, number = name, n
		}
		return nil
	}
	shorten := func(d *directory, name string) error {
		if name != newest {
			return nil
		}
		return d.shorten(name)
	}
	remove := func(d *directory, name string) error {
		if name == newest {
			return nil
		}
		return d.removeAll(name)
	}
	return errors.Join(visit(dir, find), visit(dir, shorten), visit(dir, remove))
}

// shorten replaces a log, of which the newest rotated file is a part, by its last lines. A log that is not a regular file is removed.
func (d *directory) shorten(name string) error {
	text, err := d.lastBytes(name)
	if errors.Is(err, errLink) || errors.Is(err, errNotRegular) {
		return d.removeAll(name)
	}
	if err != nil {
		return err
	}
	if len(text) < trimmedSize {
		earlier, err := d.lastBytes(rotated(name, 1))
		if err == nil { // otherwise the evidence is shorter
			text = append(earlier, text...)
		}
	}
	if cut := len(text) - trimmedSize; cut > 0 {
		text = text[cut:]
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	if err := d.removeAll(name + trimmedExt); err != nil {
		return err
	}
	f, err := d.open(name+trimmedExt, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return unix.Renameat(d.fd, name+trimmedExt, d.fd, name)
}

// lastBytes returns the end of a file, at most one line more than trimmedSize.
func (d *directory) lastBytes(name string) ([]byte, error) {
	f, err := d.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := newFile(f)
	if err != nil {
		return nil, err
	}
	size, err := text.size()
	if err != nil {
		return nil, err
	}
	if size >= 0 {
		return io.ReadAll(io.NewSectionReader(text, max(size-trimmedSize-1, 0), trimmedSize+1))
	}
	var last []byte
	in := io.NewSectionReader(text, 0, 1<<62)
	for {
		part, err := io.ReadAll(io.LimitReader(in, 4*trimmedSize))
		last = append(last, part...)
		last = append([]byte(nil), last[max(len(last)-trimmedSize-1, 0):]...)
		if err != nil || len(part) == 0 {
			return last, err
		}
	}
}

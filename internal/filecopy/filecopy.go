// Package filecopy copies trees of files whose owner can be hostile: files of containers and of volumes, and archives from anywhere. A
// [Packer] writes a tree to a tar stream, an [Extractor] creates one from a stream, and both reach files only by a [Root], below which
// every path stays. The package also has what the API and the runtime agree on: attributes of files, results and errors of a copy.
//
// Regular files, directories and symbolic links are copied. Holes of files stay holes. Devices, FIFOs and sockets are left out with a
// warning, neither opened nor created. Hard links in a tree become separate files, and extended attributes are not copied, unless the whole
// tree is ([Packer.Whole]).
package filecopy

import (
	"fmt"
	"io/fs"
	"time"
)

// Stat describes a file of a container.
type Stat struct {
	// Path is the absolute path in the container, whose last element is no symbolic link.
	Path string
	// Mode has the type and the permissions. It is that of the file, not of a symbolic link that leads to it.
	Mode    fs.FileMode
	Size    int64
	ModTime time.Time
}

// Result is the result of a copy.
type Result struct {
	Files int
	Bytes int64
	// Warnings are about files that were left out or changed during the copy. There are at most [MaxWarnings], the last one counts the
	// others.
	Warnings []string
}

// MaxWarnings is the maximum number of warnings of a copy: a container can have any number of files that are left out.
const MaxWarnings = 20

// InvalidBlock is the size of a block of an archive. One that is neither zeros nor a header is an error for its reader.
const InvalidBlock = 512

// Warnings collects the first warnings of a copy. Its zero value is empty.
type Warnings struct {
	texts []string
	more  int
}

// Add adds a warning.
func (w *Warnings) Add(format string, args ...any) {
	if len(w.texts) < MaxWarnings-1 {
		w.texts = append(w.texts, fmt.Sprintf(format, args...))
		return
	}
	w.more++
}

// List returns the warnings. The last one counts those that have no room.
func (w *Warnings) List() []string {
	if w.more > 0 {
		return append(w.texts, fmt.Sprintf("%d more warnings", w.more))
	}
	return w.texts
}

// Kind is what a caller can do about an [Error].
type Kind string

// The kinds of errors.
const (
	NotFound Kind = "NotFound" // there is no such file
	Conflict Kind = "Conflict" // the file or the container does not permit it
	Busy     Kind = "Busy"     // too many copies, or the container is being started
)

// Error is an error that is not a fault of the daemon.
type Error struct {
	Kind Kind
	Err  error
	Hint string
}

// Error returns the message, without the hint.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

package statefile

import (
	"fmt"
	"os"

	"github.com/podstead/podstead/internal/atomicfile"
)

// Loss is what a loss of power may do to a file. After the daemon was killed, each file has either the old or the new content.
type Loss int

// What a loss of power may do.
const (
	// Durable files have the new content once they are written.
	Durable Loss = iota
	// Ordered files have either the old or the new content.
	Ordered
	// Volatile files are lost, as they are on a tmpfs.
	Volatile
)

// Read reads a file into the struct that v points to, and returns the fields that v does not have. A missing file is an error that matches
// [fs.ErrNotExist].
func (f Format) Read(path string, v any) (Unknown, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Unknown{}, err
	}
	return f.Decode(text, v)
}

// Write replaces a file by the fields of a struct and the unknown fields of the file. Only root can read it. The directory must exist.
func (f Format) Write(path string, v any, unknown Unknown) error {
	text, err := f.Encode(v, unknown)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	write := atomicfile.Write
	switch f.Loss {
	case Durable:
	case Ordered:
		write = atomicfile.WriteOrdered
	case Volatile:
		write = atomicfile.WriteVolatile
	}
	return write(path, append(text, '\n'), 0o600)
}

// SetAside renames a file that cannot be used, and returns its new path. It replaces one that was set aside before.
func (f Format) SetAside(path string) (aside string, err error) {
	return path + f.Aside, os.Rename(path, path+f.Aside)
}

package crilog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Remove removes the log at path and its rotated files, and whatever else has these names. It is no error if there is none, or if links
// have taken the place of its directories: then the log itself does not exist.
func Remove(path string) error {
	name := filepath.Base(path)
	return RemoveMatching(filepath.Dir(path), func(entry string) bool { return entry == name || strings.HasPrefix(entry, name+".") })
}

// RemoveMatching removes the files and the directories with matching names from a directory. It follows no links, as [Remove].
func RemoveMatching(dir string, match func(name string) bool) error {
	d, err := walk(dir, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLink) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove logs: %w", err)
	}
	defer d.close()
	names, err := d.names()
	for _, name := range names {
		if match(name) {
			err = errors.Join(err, d.removeAll(name))
		}
	}
	return err
}

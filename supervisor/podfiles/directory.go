package podfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/podstead/podstead/supervisor/podfiles/watch"
)

// directory is what is known about the pods directory. It decides whether files that are missing were removed, or whether the
// directory is lost: not mounted, moved, unreadable, or replaced by an empty one. A lost directory deletes no pods.
//
//	the directory cannot be listed                                  lost
//	it has no file, and the daemon has never seen one in it         lost (at boot, or after a link to it was swapped)
//	it has no file, and all were removed one by one, as inotify     removed
//	reported, or there was only one
//	it has no file, otherwise                                       lost
//	it has a file                                                   the missing ones were removed
//
// After a loss, files may return one after the other, as when they are copied. Until the directory stops changing, no pod is deleted.
type directory struct {
	id      watch.ID
	names   []string        // of the newest listing with files
	removed map[string]bool // since then
	emptied bool            // all were removed
	read    bool            // the newest listing succeeded, or there is no directory and no pod that follows one
	lost    error           // why the directory counts as lost; nil: it does not
	since   time.Time       // of lost
	settles time.Time       // after a loss: when missing files count as removed
}

var errNoFiles = errors.New("it has no pod files")

// observe returns what is known after a listing. Removed has the files that were removed one by one since the listing before, owned is
// whether there are pods that follow a file of the directory, settle the time without a change after which a directory counts as restored.
func (d directory) observe(l *watch.Listing, err error, removed map[string]bool, owned bool, now time.Time,
	settle time.Duration,
) directory {
	next := d
	switch {
	case err != nil && !owned && errors.Is(err, fs.ErrNotExist):
		return directory{read: true}
	case err != nil:
		next.names, next.read = nil, false
		return next.lose(err, owned, now)
	case len(l.Files) > 0:
		return d.found(l, now, settle)
	}
	if l.ID != d.id {
		next.names, next.removed, next.emptied = nil, nil, false
	}
	next.id, next.read = l.ID, true
	next.removed = maps.Clone(next.removed)
	if next.removed == nil {
		next.removed = map[string]bool{}
	}
	maps.Copy(next.removed, removed)
	if len(next.names) == 1 ||
		len(next.names) > 1 && !slices.ContainsFunc(next.names, func(name string) bool { return !next.removed[name] }) {
		next.emptied = true
	}
	if next.emptied || !owned {
		next.lost, next.since = nil, time.Time{}
		return next
	}
	return next.lose(errNoFiles, owned, now)
}

// lose makes the directory lost. A directory that no pod follows cannot be lost.
func (d directory) lose(why error, owned bool, now time.Time) directory {
	if d.lost == nil {
		d.since = now
	}
	d.lost = why
	if !owned {
		d.lost, d.since = nil, time.Time{}
	}
	return d
}

// found takes a listing with files.
func (d directory) found(l *watch.Listing, now time.Time, settle time.Duration) directory {
	names := make([]string, 0, len(l.Files))
	for i := range l.Files {
		names = append(names, l.Files[i].Name)
	}
	next := directory{id: l.ID, names: names, settles: d.settles, read: true}
	changed := !slices.Equal(names, d.names) || slices.ContainsFunc(l.Files, func(f watch.File) bool { return f.Text != nil })
	if d.lost != nil || changed && now.Before(d.settles) {
		next.settles = now.Add(settle)
	}
	return next
}

// message describes the loss of a directory at a path.
func (d *directory) message(path string) string {
	if errors.Is(d.lost, fs.ErrNotExist) {
		return fmt.Sprintf("pods directory %s does not exist", path)
	}
	if errors.Is(d.lost, errNoFiles) {
		return fmt.Sprintf("pods directory %s has no pod files", path)
	}
	return fmt.Sprintf("pods directory %s cannot be read: %v", path, d.lost)
}

package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// Notifier notices changes of a directory, and of the path to it. It reports that something may have changed; what has changed, the next
// listing shows. It does not notice changes of files that links in the directory point to, and of links further up in the path:
// listings at intervals find them.
type Notifier struct {
	path    string
	inotify *fsnotify.Watcher
	changed chan struct{}

	mu      sync.Mutex
	removed map[string]bool

	// Of the goroutine that calls Arm.
	watched  ID     // the directory
	ancestor string // the nearest directory above it that exists
}

// NewNotifier returns a notifier, which the caller must close. The directory need not exist.
func NewNotifier(path string) (*Notifier, error) {
	inotify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch directory %s: %w", path, err)
	}
	return &Notifier{path: filepath.Clean(path), inotify: inotify, changed: make(chan struct{}, 1), removed: map[string]bool{}}, nil
}

// Close ends the notifications.
func (n *Notifier) Close() error { return n.inotify.Close() }

// Changed returns a channel with one value if something has changed since it was last received.
func (n *Notifier) Changed() <-chan struct{} { return n.changed }

// Removed returns the names of the files that were removed or renamed, one by one, since the last call.
func (n *Notifier) Removed() map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	removed := maps.Clone(n.removed)
	clear(n.removed)
	return removed
}

// Run receives notifications until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	for {
		select {
		case e, ok := <-n.inotify.Events:
			if !ok {
				return
			}
			n.handle(e)
		case _, ok := <-n.inotify.Errors: // events were lost
			if !ok {
				return
			}
			n.notify()
		case <-ctx.Done():
			return
		}
	}
}

// handle notifies of an event in the directory, or of one of a part of its path.
func (n *Notifier) handle(e fsnotify.Event) {
	dir, name := filepath.Split(e.Name)
	switch {
	case filepath.Clean(dir) == n.path:
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			n.mu.Lock()
			n.removed[name] = true
			n.mu.Unlock()
		}
	case !strings.HasPrefix(n.path+"/", e.Name+"/"):
		return
	}
	n.notify()
}

func (n *Notifier) notify() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// Arm watches the directory that the path leads to now, and the nearest directory above it that exists. It is called before each listing:
// a change after that is noticed. The error says why changes are not noticed; a directory that does not exist is none.
func (n *Notifier) Arm() error {
	n.armAbove()
	var st unix.Stat_t
	if unix.Stat(n.path, &st) != nil {
		n.unwatch()
		return nil
	}
	if id := idOf(&st); n.watched != id {
		n.unwatch()
		n.watched = id
	}
	// The watch ends if the directory is deleted. A new one may have the same inode, so the watch is always added.
	if err := n.inotify.Add(n.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("watch directory %s: %w", n.path, err)
	}
	return nil
}

// armAbove watches the nearest directory above that exists.
func (n *Notifier) armAbove() {
	above := filepath.Dir(n.path)
	for n.inotify.Add(above) != nil && above != filepath.Dir(above) {
		above = filepath.Dir(above)
	}
	if n.ancestor != "" && n.ancestor != above {
		_ = n.inotify.Remove(n.ancestor) // it may no longer exist
	}
	n.ancestor = above
}

// unwatch ends the watch of a directory that the path no longer leads to.
func (n *Notifier) unwatch() {
	if n.watched != (ID{}) {
		_ = n.inotify.Remove(n.path) // it ends by itself if the directory was deleted
		n.watched = ID{}
		n.Removed()
	}
}

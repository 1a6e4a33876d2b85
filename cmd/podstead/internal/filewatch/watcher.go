package filewatch

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quiet is the time without a change after which changes are reported together.
	quiet = 300 * time.Millisecond
	// longest is the time after which changes are reported although more of them follow.
	longest = 5 * time.Second
	// pollNotified is the interval of comparisons if the kernel reports changes. It does not on every file system.
	pollNotified = 10 * time.Second
	// pollOnly is the interval if it does not, since the limit of watches is reached.
	pollOnly = time.Second
)

// Watcher notices changes of a [Set]. It is not safe for concurrent use.
type Watcher struct {
	take   func(*Set) (*scan, error)
	notify notifier
	// events has a value if something may have changed.
	events  chan struct{}
	watched map[string]bool // the directories of notify
	partial bool            // notify lacks some

	set     Set
	last    *scan
	taken   time.Time       // of last, or before
	pending map[string]bool // changes that the next call reports
	failure string          // of the last scan, which was reported; empty: it has not failed
}

// notifier watches the entries of directories. [*fsnotify.Watcher] implements it.
type notifier interface {
	Add(dir string) error
	Remove(dir string) error
	Close() error
}

// New returns a watcher of nothing, which the caller must close. Changes of a set from now on are noticed, however late the set is known.
func New() (*Watcher, error) {
	inotify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	w := newWatcher(take, inotify)
	go w.receive(inotify)
	return w, nil
}

func newWatcher(take func(*Set) (*scan, error), notify notifier) *Watcher {
	return &Watcher{
		take: take, notify: notify, events: make(chan struct{}, 1), watched: map[string]bool{}, last: &scan{}, taken: time.Now(),
		pending: map[string]bool{},
	}
}

// Close ends the notifications.
func (w *Watcher) Close() error { return w.notify.Close() }

// receive receives notifications until the watcher is closed.
func (w *Watcher) receive(inotify *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-inotify.Events:
			if !ok {
				return
			}
			if e.Op == fsnotify.Chmod {
				continue
			}
		case _, ok := <-inotify.Errors: // events were lost
			if !ok {
				return
			}
		}
		w.changed()
	}
}

// changed notes that something may have changed.
func (w *Watcher) changed() {
	select {
	case w.events <- struct{}{}:
	default:
	}
}

// Watch replaces what is watched. What has changed since the last call of [Watcher.Next] returned, or since [New], counts as changed. After
// an error, such as that of a pattern or of too many files, the watcher is unchanged.
func (w *Watcher) Watch(s Set) error {
	now, err := w.settled(&s)
	if err != nil {
		w.arm(w.last.dirs)
		return err
	}
	maps.Copy(w.pending, s.missed(w.last, now, w.taken))
	w.set, w.last, w.failure = s, now, ""
	return nil
}

// Next waits until files have changed, and until they are complete as far as that can be known. It returns their paths, sorted. An
// error other than that of the context is returned once: further calls return the changes of what can be watched, and those of the rest
// when it can be watched again.
func (w *Watcher) Next(ctx context.Context) ([]string, error) {
	for {
		complete, err := w.wait(ctx)
		if err != nil {
			return nil, err
		}
		taken := time.Now()
		now, failure := w.settled(&w.set)
		now.keep(w.last, &w.set)
		changed := changes(w.last, now)
		maps.Copy(changed, w.pending)
		w.last, w.taken = now, taken
		w.pending = changed
		switch last := w.failure; {
		case failure == nil:
			w.failure = ""
		case failure.Error() != last:
			w.failure = failure.Error()
			return nil, failure
		}
		if len(changed) > 0 && complete {
			w.pending = map[string]bool{}
			return slices.Sorted(maps.Keys(changed)), nil
		}
	}
}

// wait waits until something may have changed, and for the end of a series of changes. It reports whether it has waited for the end.
func (w *Watcher) wait(ctx context.Context) (complete bool, err error) {
	poll := pollNotified
	if w.partial {
		poll = pollOnly
	}
	if len(w.pending) == 0 {
		t := time.NewTimer(poll)
		defer t.Stop()
		select {
		case <-w.events:
		case <-t.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	end := time.NewTimer(longest)
	defer end.Stop()
	for {
		t := time.NewTimer(quiet)
		select {
		case <-w.events:
			t.Stop()
			continue
		case <-t.C:
		case <-end.C:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return false, context.Cause(ctx)
		}
		return true, nil
	}
}

// settled returns the state of a set after its directories are watched: those that it finds too. After an error it lacks trees.
func (w *Watcher) settled(s *Set) (*scan, error) {
	const rounds = 5 // new directories that appear meanwhile are found by the next notification
	for round := 0; ; round++ {
		now, err := w.take(s)
		if !w.arm(now.dirs) || round == rounds {
			return now, err
		}
	}
}

// arm watches directories, or the nearest ones above that exist, and no others. It reports whether some of them were not watched before.
func (w *Watcher) arm(dirs map[string]bool) (added bool) {
	wanted := map[string]bool{}
	for dir := range dirs {
		wanted[nearest(dir)] = true
	}
	w.partial = false
	for dir := range wanted {
		// The watch ends if a directory is deleted or moved, and another one may have its path now. It is always added.
		if err := w.notify.Add(dir); err != nil {
			w.partial = true
			continue
		}
		added = added || !w.watched[dir]
		w.watched[dir] = true
	}
	for dir := range w.watched {
		if !wanted[dir] {
			_ = w.notify.Remove(dir) // it may have been deleted
			delete(w.watched, dir)
		}
	}
	return added
}

// nearest returns a directory, or the nearest one above it that exists.
func nearest(dir string) string {
	for dir != filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

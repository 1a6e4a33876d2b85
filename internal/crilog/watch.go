package crilog

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// pollWatched is how often a follower looks although nothing was reported: not every file system reports.
	pollWatched = 2 * time.Second
	// pollBlind is how often it looks where it could not watch: there is no folder yet, or no watch is left.
	pollBlind = 200 * time.Millisecond
)

// watcher wakes a follower.
type watcher struct {
	dir    string
	notify *fsnotify.Watcher // nil where there is nothing to wait for
	added  bool
}

func (r *reader) watch() *watcher {
	w := &watcher{dir: filepath.Dir(r.path)}
	if r.opt.Until != nil {
		// Without a watcher it polls.
		w.notify, _ = fsnotify.NewWatcher()
		w.add()
	}
	return w
}

func (w *watcher) add() {
	if w.notify != nil && !w.added {
		w.added = w.notify.Add(w.dir) == nil
	}
}

// wait returns when the log may have more, or until is closed.
func (w *watcher) wait(ctx context.Context, until <-chan struct{}) error {
	w.add()
	poll := pollBlind
	var events chan fsnotify.Event
	var errs chan error
	if w.added {
		poll = pollWatched
		events, errs = w.notify.Events, w.notify.Errors
	}
	t := time.NewTimer(poll)
	defer t.Stop()
	select {
	case <-events:
	case <-errs: //nolint:errcheck // too many events: look
	case <-t.C:
	case <-until:
	case <-ctx.Done():
		return ctx.Err()
	}
	// What was reported until now is covered by the look that follows.
	for {
		select {
		case <-events:
		default:
			return nil
		}
	}
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

package crilog

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// pollWatched is the polling interval of a follower with a watch. Not every file system sends notifications.
	pollWatched = 2 * time.Second
	// pollUnwatched is the polling interval without a watch: the directory does not exist, or the limit of watches is reached.
	pollUnwatched = 200 * time.Millisecond
)

// watcher notifies a follower.
type watcher struct {
	dir    string
	notify *fsnotify.Watcher // nil without a watch
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

// wait returns when the log may have more lines, or until is closed.
func (w *watcher) wait(ctx context.Context, until <-chan struct{}) error {
	w.add()
	poll := pollUnwatched
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
	case <-errs: //nolint:errcheck // event overflow: read again
	case <-t.C:
	case <-until:
	case <-ctx.Done():
		return ctx.Err()
	}
	// The read that follows covers all notifications until now.
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

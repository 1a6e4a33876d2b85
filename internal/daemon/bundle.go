package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/podstead/podstead/internal/daemon/bundleundo"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// bundleInterval is how often the daemon checks whether a client that applies a bundle was killed.
const bundleInterval = 5 * time.Second

// restoreBundle restores the files of a bundle that was interrupted. The record remains for [Options.undoBundle].
func (o *Options) restoreBundle(ctx context.Context) {
	if err := bundleundo.Sweep(o.Config.StateDir); err != nil {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot remove temporary files", slog.Any("error", err))
	}
	err := o.withBundle(func(_ *bundleundo.Lock, r *bundleundo.Record) error { return r.Undo() })
	if err != nil {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "interrupted bundle cannot be undone", slog.Any("error", err))
	}
}

// moveBack makes the name of an image refer to the one before an import after a time.
type moveBack func(ctx context.Context, name string, after time.Time) (bool, error)

// imagesOf returns how names of images of a runtime are moved back; nil: it does not manage images.
func imagesOf(rt Runtime) moveBack {
	if r, ok := rt.(imageRuntime); ok {
		return r.Images().Restore
	}
	return nil
}

// undoBundles undoes bundles whose client was killed, until ctx ends.
func (o *Options) undoBundles(ctx context.Context, s *supervisor.Supervisor, files *podfiles.Set, back moveBack) {
	w := o.watchState(ctx)
	if w != nil {
		defer w.Close()
	}
	reported := ""
	for {
		err := o.undoBundle(ctx, s, files, back)
		if err != nil && !errors.Is(err, errPodRemains) && err.Error() != reported {
			reported = err.Error()
			o.Log.LogAttrs(ctx, slog.LevelWarn, "interrupted bundle cannot be undone", slog.Any("error", err))
		}
		if !o.awaitBundle(ctx, w) {
			return
		}
	}
}

// watchState watches the directory of the record; nil: that is not possible.
func (o *Options) watchState(ctx context.Context) *fsnotify.Watcher {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		if err = w.Add(o.Config.StateDir); err == nil {
			return w
		}
		err = errors.Join(err, w.Close())
	}
	o.Log.LogAttrs(ctx, slog.LevelWarn, "state directory is not watched, looking for interrupted bundles at intervals",
		slog.Any("error", err))
	return nil
}

// awaitBundle waits until a bundle may have been interrupted. It returns false at the end of ctx.
func (o *Options) awaitBundle(ctx context.Context, w *fsnotify.Watcher) bool {
	record := filepath.Base(bundleundo.Path(o.Config.StateDir))
	var events chan fsnotify.Event
	var lost chan error
	if w != nil {
		events, lost = w.Events, w.Errors
	}
	next := o.nextLook(w != nil)
	for {
		select {
		case e := <-events:
			if filepath.Base(e.Name) == record {
				return true
			}
		case err := <-lost:
			o.Log.LogAttrs(ctx, slog.LevelDebug, "changes of the state directory were not noticed", slog.Any("error", err))
			return true
		case <-next:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// nextLook returns the time of the next look; nil: none while nothing is notified. The end of a client is not notified, so there are looks
// while there is a record.
func (o *Options) nextLook(notified bool) <-chan time.Time {
	if _, err := os.Lstat(bundleundo.Path(o.Config.StateDir)); notified && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return time.After(bundleInterval)
}

// undoBundle restores the names of images and the files of a bundle that was interrupted, deletes the pods that it has created, and then
// removes the record.
func (o *Options) undoBundle(ctx context.Context, s *supervisor.Supervisor, files *podfiles.Set, back moveBack) error {
	return o.withBundle(func(l *bundleundo.Lock, r *bundleundo.Record) error {
		var errs []error
		for _, name := range r.Images { // before the pods, which use them
			if back == nil {
				break
			}
			_, err := back(ctx, name, r.Began)
			errs = append(errs, err)
		}
		if err := errors.Join(append(errs, r.Undo())...); err != nil {
			return err
		}
		errs = nil
		for i := range r.Pods {
			if r.Pods[i].Earlier == nil {
				errs = append(errs, removePod(ctx, &r.Pods[i], s, files))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if err := l.End(); err != nil {
			return err
		}
		o.Log.LogAttrs(ctx, slog.LevelWarn, "interrupted bundle undone", slog.String("bundle", r.Bundle))
		return nil
	})
}

// removePod deletes a pod whose file was removed. If it was the only file, the directory would count as lost after a reboot.
func removePod(ctx context.Context, p *bundleundo.Pod, s *supervisor.Supervisor, files *podfiles.Set) error {
	if _, err := os.Lstat(p.File); !errors.Is(err, fs.ErrNotExist) {
		return err // another has written the file again
	}
	for _, f := range files.Files() {
		if f.Pod == p.Name && f.Path != p.File {
			return nil
		}
	}
	list := s.Pods()
	i := slices.IndexFunc(list, func(s supervisor.Snapshot) bool { return s.Pod.Name == p.Name && s.Owner.File == p.File })
	if i < 0 {
		return nil
	}
	if _, err := files.Remove(ctx, p.Name); err != nil {
		return err
	}
	return fmt.Errorf("pod %q: %w", p.Name, errPodRemains)
}

var errPodRemains = errors.New("it is being deleted")

// withBundle calls undo with the record of a bundle that was interrupted. It does nothing while a client applies a bundle.
func (o *Options) withBundle(undo func(*bundleundo.Lock, *bundleundo.Record) error) error {
	if _, err := os.Lstat(bundleundo.Path(o.Config.StateDir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := bundleundo.Acquire(o.Config.StateDir)
	if err != nil {
		if errors.Is(err, bundleundo.ErrBusy) {
			return nil
		}
		return err
	}
	defer lock.Close()
	r, err := lock.Pending()
	if r == nil || err != nil {
		return err
	}
	return undo(lock, r)
}

package imagefile

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/supervisor/podfiles/watch"
)

// Run imports archives until ctx ends, one at a time, so that a pod that lists an archive of its own does not wait for them. It returns
// when an import that is in progress has completed, but does not wait for a file system that does not respond.
func (d *Dirs) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer d.await(ctx, &running)
	defer cancel()
	changed := make(chan struct{}, 1)
	notifiers := d.notify(ctx, &running, changed)
	done := make(chan importOutcome, 1)
	busy, failed := false, false
	for {
		for _, n := range notifiers {
			if _, err := disk.Call(ctx, n.disk, func() (struct{}, error) { return struct{}{}, n.Arm() }); err != nil {
				d.o.Log.LogAttrs(ctx, slog.LevelDebug, "changes of an image directory are found at intervals only", slog.Any("error", err))
			}
		}
		d.Scan(ctx)
		a, changing := d.next()
		if !busy {
			busy = d.begin(ctx, &running, a, failed, done)
		}
		interval := d.o.times.rescan
		if changing {
			interval = d.o.times.look
		}
		timer := time.NewTimer(interval)
		failed = false
		select {
		case <-changed:
		case <-timer.C:
		case <-d.verify:
			d.forget()
		case o := <-done:
			if ctx.Err() == nil {
				busy, failed = false, o.path == "" && o.err != nil
				d.finish(ctx, o)
			}
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// await waits until the goroutines of Run have exited, or the time is up.
func (d *Dirs) await(ctx context.Context, running *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		running.Wait()
	}()
	timeout := time.NewTimer(d.o.times.stop)
	defer timeout.Stop()
	select {
	case <-ended:
	case <-timeout.C:
		d.o.Log.LogAttrs(ctx, slog.LevelWarn, "an import of an image directory does not end, the file system may not respond")
	}
}

// begin starts an import, or the release of the images of archives that are gone, and reports whether there is one to be done. After a
// release that failed it waits for the next scan.
func (d *Dirs) begin(ctx context.Context, running *sync.WaitGroup, a *dirArchive, failed bool, done chan<- importOutcome) bool {
	switch {
	case a != nil:
		d.outdated = false
		f := image.DirFile{Path: a.path, Origin: a.origin, Size: a.size}
		running.Go(func() { done <- d.work(ctx, f) })
	case d.released && !failed:
		running.Go(func() { done <- importOutcome{err: d.store.PublishFiles(ctx)} })
	default:
		return false
	}
	return true
}

// dirsNotifier is that of a directory, which may be on a file system that does not respond.
type dirsNotifier struct {
	*watch.Notifier
	disk *disk.Caller
}

// notify sends to changed when a directory changes, until ctx ends.
func (d *Dirs) notify(ctx context.Context, running *sync.WaitGroup, changed chan<- struct{}) (list []dirsNotifier) {
	for _, dir := range d.o.Paths {
		n, err := watch.NewNotifier(dir)
		if err != nil {
			d.o.Log.LogAttrs(ctx, slog.LevelWarn, "changes of an image directory are found at intervals only", slog.Any("error", err))
			continue
		}
		list = append(list, dirsNotifier{n, disk.NewCaller(d.o.Log)})
		running.Go(func() {
			defer n.Close()
			n.Run(ctx)
		})
		running.Go(func() {
			for {
				select {
				case <-n.Changed():
				case <-ctx.Done():
					return
				}
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		})
	}
	return list
}

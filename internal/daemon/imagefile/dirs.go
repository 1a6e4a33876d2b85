package imagefile

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
)

// Store imports archives. *runtime.Images implements it.
type Store interface {
	SetFiles(list []image.DirFile)
	ImportDirFile(ctx context.Context, f image.DirFile, open func() (io.ReadCloser, error)) (list []image.Image, read bool, err error)
	PublishFiles(ctx context.Context) error
}

// DirsOptions are options of [NewDirs].
type DirsOptions struct {
	// Paths are the directories, by precedence, the highest last. They need not exist.
	Paths []string
	// Emit emits an event; nil: events are dropped.
	Emit func(kind api.EventKind, f event.Fields)
	Log  *slog.Logger

	times times // zero: those of production
}

// times are the times that tests shorten.
type times struct {
	settle time.Duration // how long a file must not change before it is read
	give   time.Duration // after which a file that changes all the time is read nevertheless
	rescan time.Duration // interval of scans without a notification
	look   time.Duration // interval of scans while a file changes
	again  time.Duration // after which an import that failed is tried again
	stop   time.Duration // after which an import that does not end is abandoned
}

// Dirs are the image directories. Call Scan, then Run.
type Dirs struct {
	store Store
	o     DirsOptions

	archives []*dirArchive // by precedence
	released bool          // an archive was removed, and its images are not released yet
	failing  map[string]bool
	disks    map[string]*disk.Caller // for listings, by directory: one may be on a file system that does not respond
	now      func() time.Time

	verify   chan struct{} // full after the policy for signatures has changed
	outdated bool          // the policy has changed since the current import began
}

// dirArchive is an archive that is in a directory.
type dirArchive struct {
	foundArchive
	first  time.Time // when it was first seen incomplete
	since  time.Time // when it was first seen in this state
	done   string    // the state in which it was imported
	failed string    // the state in which an import failed
	cause  string    // of that failure
	again  time.Time // when it is tried again although it has not changed: the disk may have been full
	// everFailed is true from a failure until the next success. Pods do not wait for it.
	everFailed bool
}

// NewDirs returns the image directories of a store.
func NewDirs(store Store, o DirsOptions) *Dirs {
	if o.times == (times{}) {
		o.times = times{
			settle: 2 * time.Second, give: 5 * time.Minute, rescan: 30 * time.Second, look: 500 * time.Millisecond, again: 10 * time.Minute,
			stop: 5 * time.Second,
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Emit == nil {
		o.Emit = func(api.EventKind, event.Fields) {}
	}
	paths := make([]string, len(o.Paths))
	for i, path := range o.Paths {
		paths[i] = filepath.Clean(path)
	}
	o.Paths = slices.Compact(paths)
	d := &Dirs{
		store: store, o: o, failing: map[string]bool{}, disks: map[string]*disk.Caller{}, now: time.Now, released: true,
		verify: make(chan struct{}, 1),
	}
	for _, dir := range o.Paths {
		d.disks[dir] = disk.NewCaller(o.Log)
	}
	return d
}

// SetEmit sets the function that emits events. It must not be called while Run runs.
func (d *Dirs) SetEmit(emit func(kind api.EventKind, f event.Fields)) { d.o.Emit = emit }

// Reverify makes Run look at all archives again, because the policy for signatures has changed. It does not wait.
func (d *Dirs) Reverify() {
	select {
	case d.verify <- struct{}{}:
	default:
	}
}

// forget makes all archives candidates for an import. The store reads only those whose images the policy for signatures does not admit.
func (d *Dirs) forget() {
	for _, a := range d.archives {
		a.done, a.failed = "", ""
	}
	d.outdated = true
}

// Scan lists the directories, and tells the store which archives pods have to wait for. It imports nothing. A directory on a file system
// that does not respond is one that cannot be listed.
func (d *Dirs) Scan(ctx context.Context) {
	var archives []*dirArchive
	now := d.now()
	for _, dir := range d.o.Paths {
		files, err := disk.Call(ctx, d.disks[dir], func() ([]foundArchive, error) { return listArchives(dir) })
		if err != nil {
			d.report(ctx, dir, err)
			archives = append(archives, d.knownIn(dir)...) // as they were
			continue
		}
		d.failing[dir] = false
		for _, f := range files {
			archives = append(archives, d.seen(f, now))
		}
	}
	for _, before := range d.archives {
		d.released = d.released || !slices.ContainsFunc(archives, func(a *dirArchive) bool { return a.path == before.path })
	}
	d.archives = archives
	d.publish()
}

// report logs once that a directory cannot be listed.
func (d *Dirs) report(ctx context.Context, dir string, err error) {
	if !d.failing[dir] && ctx.Err() == nil {
		d.o.Log.LogAttrs(ctx, slog.LevelWarn, "image directory cannot be listed", slog.String("dir", dir), slog.Any("error", err))
	}
	d.failing[dir] = true
}

func (d *Dirs) knownIn(dir string) (list []*dirArchive) {
	for _, a := range d.archives {
		if filepath.Dir(a.path) == dir {
			list = append(list, a)
		}
	}
	return list
}

// seen returns what is known of an archive.
func (d *Dirs) seen(f foundArchive, now time.Time) *dirArchive {
	for _, a := range d.archives {
		if a.path != f.path {
			continue
		}
		if a.origin != f.origin {
			a.since = now
			if a.first.IsZero() {
				a.first = now
			}
		}
		a.foundArchive = f
		return a
	}
	since := now
	if f.changed.Before(now) {
		since = f.changed
	}
	return &dirArchive{foundArchive: f, first: now, since: since}
}

// publish tells the store what is in the directories.
func (d *Dirs) publish() {
	list := make([]image.DirFile, len(d.archives))
	for i, a := range d.archives {
		list[i] = a.file()
	}
	d.store.SetFiles(list)
}

func (a *dirArchive) file() image.DirFile {
	return image.DirFile{Path: a.path, Origin: a.origin, Size: a.size, Pending: a.open() && !a.everFailed}
}

// openArchive reports whether the state of the archive was neither imported nor refused.
func (a *dirArchive) open() bool { return a.origin != a.done && a.origin != a.failed }

// next returns the next archive that is complete as far as can be seen, smaller ones first; nil: none. With changing, there are some that
// may be incomplete.
func (d *Dirs) next() (a *dirArchive, changing bool) {
	now := d.now()
	for _, c := range d.archives {
		switch {
		case !c.open() && (c.origin != c.failed || now.Before(c.again)):
		case now.Sub(c.since) < d.o.times.settle && now.Sub(c.first) < d.o.times.give:
			changing = true
		case a == nil || c.size < a.size:
			a = c
		}
	}
	return a, changing
}

// importOutcome is what has become of an import.
type importOutcome struct {
	path, origin string // empty: images of archives that are gone were released
	images       []image.Image
	read         bool
	err          error
}

// work imports an archive.
func (d *Dirs) work(ctx context.Context, f image.DirFile) importOutcome {
	list, read, err := d.store.ImportDirFile(ctx, f, func() (io.ReadCloser, error) {
		return openArchive(ctx, f.Path)
	})
	return importOutcome{f.Path, f.Origin, list, read, err}
}

// openArchive opens a regular file, or a directory in the OCI layout.
func openArchive(ctx context.Context, path string) (io.ReadCloser, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Open(ctx, path)
	}
	return spec.OpenFile(path)
}

// finish records what has become of an import.
func (d *Dirs) finish(ctx context.Context, o importOutcome) {
	if o.path == "" {
		d.released = o.err != nil
		if o.err != nil {
			d.o.Log.LogAttrs(ctx, slog.LevelWarn, "images of removed archives are not released", slog.Any("error", o.err))
		}
		return
	}
	i := slices.IndexFunc(d.archives, func(a *dirArchive) bool { return a.path == o.path })
	if i < 0 {
		return // it was removed
	}
	a := d.archives[i]
	if o.err == nil {
		a.done, a.first, a.everFailed = o.origin, time.Time{}, false
		if o.read {
			d.o.Emit(api.EventImageArchiveImported, event.Fields{"archive": o.path, "images": namesOf(o.images)})
		}
	} else {
		d.refuse(ctx, a, o.origin, causeOf(o.err))
	}
	if d.outdated {
		a.done, a.failed = "", ""
	}
	d.publish()
}

// refuse records and reports that an archive cannot be imported. The same failure is reported once.
func (d *Dirs) refuse(ctx context.Context, a *dirArchive, origin, cause string) {
	known := a.failed == origin && a.cause == cause
	a.failed, a.cause, a.first, a.everFailed = origin, cause, time.Time{}, true
	a.again = d.now().Add(d.o.times.again)
	if known {
		return
	}
	d.o.Emit(api.EventImageArchiveFailed, event.Fields{"archive": a.path, "error": cause})
	d.o.Log.LogAttrs(ctx, slog.LevelWarn, "image archive cannot be imported", slog.String("archive", a.path), slog.String("error", cause))
}

// causeOf returns the cause of an error without the name of the archive.
func causeOf(err error) string {
	if e, ok := errors.AsType[*image.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// maxNamedImages bounds the images in an event.
const maxNamedImages = 5

func namesOf(list []image.Image) string {
	var text []string
	for i := range list {
		if i == maxNamedImages {
			text = append(text, "...")
			break
		}
		text = append(text, list[i].Name)
	}
	return strings.Join(text, ", ")
}

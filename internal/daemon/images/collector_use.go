package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/statefile"
)

// UseFormat is that of the file with the use of images.
var UseFormat = statefile.Format{Version: 1}

const (
	// maxTimeOff is the longest time without a daemon that counts as time without use. A host without a battery for its clock may start in
	// 1970.
	maxTimeOff = 366 * 24 * time.Hour
	// saveUsesInterval is how often the ages are saved if nothing else changes. A power cut loses at most as much.
	saveUsesInterval = 6 * time.Hour
)

// ages is the content of the file. The ages are durations: they are right also if the wall clock was set meanwhile.
type ages struct {
	SavedAt time.Time      `json:"savedAt"`
	Images  map[string]age `json:"images,omitempty"` // by ID
}

// age is that of an image in seconds.
type age struct {
	Known  int64 `json:"known"`  // since the image was found first
	Unused int64 `json:"unused"` // since something used it; for an image that was never used, the same
}

// use is when an image was found, and when something used it last. The times have a reading of the monotonic clock.
type use struct{ found, used time.Time }

// uses is the use of all images. It is not safe for concurrent use.
type uses struct {
	path    string
	log     *slog.Logger
	disk    *disk.Caller
	byID    map[string]use
	inUse   map[string]bool
	saved   time.Time
	unknown statefile.Unknown
	// foreign is set if the file is of a later version, and must be kept.
	foreign bool
}

// loadUses reads the file of an earlier daemon. Without it, or if it is damaged, all images are as good as new.
func loadUses(ctx context.Context, path string, now time.Time, log *slog.Logger) *uses {
	u := &uses{path: path, log: log, disk: disk.NewCaller(log), byID: map[string]use{}, inUse: map[string]bool{}}
	var saved ages
	var err error
	if u.unknown, err = UseFormat.Read(path, &saved); err != nil {
		u.foreign = errors.Is(err, statefile.ErrNewer)
		if !errors.Is(err, fs.ErrNotExist) {
			log.WarnContext(ctx, "cannot read when images were used, they count as new", slog.String("file", path), slog.Any("error", err))
		}
		return u
	}
	off := now.Round(0).Sub(saved.SavedAt) // of the wall clock
	if off < 0 || off > maxTimeOff {
		off = 0
	}
	for id, a := range saved.Images {
		u.byID[id] = use{now.Add(-off - seconds(a.Known)), now.Add(-off - seconds(a.Unused))}
	}
	u.saved = now
	return u
}

func seconds(n int64) time.Duration { return time.Duration(max(0, n)) * time.Second }

// update records which images are used now, saves that if it has changed, and adds the ages to the facts.
func (u *uses) update(ctx context.Context, f *Facts, now time.Time) {
	changed := now.Sub(u.saved) >= saveUsesInterval
	present, inUse := map[string]use{}, map[string]bool{}
	for n := range f.Images {
		w := &f.Images[n]
		at, known := u.byID[w.ID]
		if !known {
			at = use{now, now}
		}
		used := f.Used(w)
		if used || u.inUse[w.ID] {
			at.used = now
		}
		present[w.ID] = at
		if used {
			inUse[w.ID] = true
		}
		w.Known, w.Unused = now.Sub(at.found), now.Sub(at.used)
		changed = changed || !known || inUse[w.ID] != u.inUse[w.ID]
	}
	changed = changed || len(present) != len(u.byID)
	u.byID, u.inUse = present, inUse
	if changed {
		u.save(ctx, now)
	}
}

// save writes the file. Without it, images count as new after a restart of the daemon.
func (u *uses) save(ctx context.Context, now time.Time) {
	u.saved = now
	if u.foreign {
		return
	}
	a := ages{SavedAt: now.UTC().Round(0), Images: map[string]age{}}
	for id, at := range u.byID {
		used := at.used
		if u.inUse[id] {
			used = now
		}
		a.Images[id] = age{Known: int64(now.Sub(at.found) / time.Second), Unused: int64(now.Sub(used) / time.Second)}
	}
	_, err := disk.Call(ctx, u.disk, func() (struct{}, error) {
		return struct{}{}, UseFormat.Write(u.path, a, u.unknown)
	})
	if err != nil {
		u.log.WarnContext(ctx, "cannot save when images were used", slog.Any("error", fmt.Errorf("write %s: %w", u.path, err)))
	}
}

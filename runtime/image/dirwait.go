package image

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// stallTimeout bounds the wait for an import that makes no progress: the file system of an archive may not respond.
const stallTimeout = 5 * time.Minute

// stall tells since when imports of the image directories make no progress. All pods that wait share it, so that a retry does not wait
// again.
type stall struct {
	at       string // the progress that was last seen; empty: nothing is pending
	since    time.Time
	patience time.Duration // 0: stallTimeout
}

// awaitFiles waits until found returns true, no archive in the image directories is pending, or the import of these makes no progress. It
// calls found after each change.
func (s *Store) awaitFiles(ctx context.Context, progress func(Progress), found func() (bool, error)) error {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		pending, changed := s.files.pending()
		if ok, err := found(); ok || err != nil || len(pending) == 0 {
			return err
		}
		for waiting := true; waiting; {
			p := s.reads.of(pending)
			if s.files.stalled(p, time.Now()) {
				return nil
			}
			if progress != nil {
				progress(p)
			}
			select {
			case <-changed:
				waiting = false
			case <-tick.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// stalled reports whether the import of the pending archives has made no progress for a long time.
func (f *dirFiles) stalled(p Progress, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := fmt.Sprintf("%s %d of %d", p.Archive, p.Bytes, p.TotalBytes); f.stall.at != at {
		f.stall.at, f.stall.since = at, now
	}
	return now.Sub(f.stall.since) >= cmp.Or(f.stall.patience, stallTimeout)
}

// of returns the progress of the archive that is being read, or of the first one.
func (s *reads) of(pending []DirFile) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range pending {
		if c := s.archives[pending[i].archive().records]; c != nil {
			p := c.progress()
			p.Archive = pending[i].Path
			return p
		}
	}
	return Progress{Archive: pending[0].Path, TotalBytes: pending[0].Size}
}

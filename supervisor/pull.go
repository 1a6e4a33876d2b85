package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// progressInterval is the least time between two reports of the progress of a pull.
	progressInterval = 250 * time.Millisecond
	// importDelay is the time after which the import of an image archive is reported. Most imports take less.
	importDelay = time.Second
)

// pulls is the progress of pulls, by container.
type pulls map[string]lifecycle.Progress

// pullReports sends [pullProgress]: the first report of each archive, of the pull and of the unpacking for certain, later ones if there is
// room in the mailbox. There are none if the image is present, and none of imports for the time importDelay. What comes too early is sent
// later unless there is something newer: a registry that sends nothing more must not hide what it has sent.
type pullReports struct {
	ctx       context.Context //nolint:containedctx // of the pull: no report is sent after the pull
	mailbox   mailbox
	container string
	begun     time.Time

	mu       sync.Mutex
	reported time.Time           // zero: there was no report
	last     lifecycle.Progress  // the last report
	held     *lifecycle.Progress // the newest report, which came too early; nil: none
}

// run sends what is held, until done is closed.
func (r *pullReports) run(done <-chan struct{}) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.mu.Lock()
			if r.held != nil && !r.early(r.held) {
				r.send(*r.held)
			}
			r.mu.Unlock()
		case <-done:
			return
		}
	}
}

// report sends or holds a report.
func (r *pullReports) report(p lifecycle.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.early(&p) {
		r.held = &p
		return
	}
	r.send(p)
}

// early reports whether it is too early for a report. The caller holds the mutex.
func (r *pullReports) early(p *lifecycle.Progress) bool {
	return p.Archive != "" && time.Since(r.begun) < importDelay ||
		!r.first(p) && p.Done < p.Total && time.Since(r.reported) < progressInterval // the unpacking that follows may take long
}

// first reports whether a report is the first one of its archive, of the pull or of the unpacking. The caller holds the mutex.
func (r *pullReports) first(p *lifecycle.Progress) bool {
	return r.reported.IsZero() || p.Archive != r.last.Archive || p.Unpacking != r.last.Unpacking
}

// send sends a report. The caller holds the mutex.
func (r *pullReports) send(p lifecycle.Progress) {
	r.held = nil
	if r.ctx.Err() != nil { // cancelled
		return
	}
	if m := (pullProgress{r.container, p}); r.first(&p) {
		r.mailbox.post(r.ctx, m)
	} else {
		r.mailbox.offer(m)
	}
	r.reported, r.last = time.Now(), p
}

// recordPull records the progress of a pull, and emits the event of its beginning. Each import of an image archive before the pull has an
// event of its own, unpacking has none.
func (l *loop) recordPull(m pullProgress, at emit.Emission) {
	if m.progress.MissingSecrets != "" {
		at.Emit(api.EventPullSecretsMissing, m.container, event.Fields{"secrets": m.progress.MissingSecrets})
		m.progress.MissingSecrets = ""
	}
	l.pulling[m.container] = m.progress
	archive := m.progress.Archive
	if emitted, begun := l.begun[m.container]; m.progress.Unpacking || begun && emitted == archive {
		return
	}
	l.begun[m.container] = archive
	if archive != "" {
		at.Emit(api.EventImageImporting, m.container, event.Fields{"archive": archive})
		return
	}
	at.Emit(api.EventImagePulling, m.container, event.Fields{"image": at.Image(m.container)})
}

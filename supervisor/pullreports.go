package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// progressInterval is the least time between two reports of the progress of a pull.
	progressInterval = 250 * time.Millisecond
	// importDelay is the time after which the import of an image archive is reported. Most imports take less.
	importDelay = time.Second
)

// pullReports sends [pullProgress]: the first report of each archive and of the pull for certain, later ones if there is room in the mailbox. There are
// none if the image is present, and none of imports for the time importDelay. What comes too early is sent later unless there is something newer: a
// registry that sends nothing more must not hide what it has sent.
type pullReports struct {
	ctx       context.Context //nolint:containedctx // of the pull: reports after its end are not sent
	mailbox   mailbox
	container string
	begun     time.Time

	mu       sync.Mutex
	reported time.Time // zero: there was no report
	archive  string    // of the last report
	timer    *time.Timer
	held     *lifecycle.Progress // what the timer sends; nil: nothing
}

// report sends or holds a report.
func (r *pullReports) report(p lifecycle.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	var wait time.Duration
	switch {
	case p.Archive != "" && time.Since(r.begun) < importDelay:
		wait = importDelay - time.Since(r.begun)
	case !r.first(&p) && p.Done < p.Total: // the unpacking that follows may take long
		wait = progressInterval - time.Since(r.reported)
	}
	if wait <= 0 {
		r.send(p)
		return
	}
	r.held = &p
	r.timer = time.AfterFunc(wait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.held == &p {
			r.held = nil
			r.send(p)
		}
	})
}

// first reports whether a report is the first one of its archive or of the pull. The caller holds the mutex.
func (r *pullReports) first(p *lifecycle.Progress) bool {
	return r.reported.IsZero() || p.Archive != r.archive
}

// send sends a report. The caller holds the mutex.
func (r *pullReports) send(p lifecycle.Progress) {
	if r.ctx.Err() != nil { // cancelled
		return
	}
	if m := (pullProgress{r.container, p}); r.first(&p) {
		r.mailbox.post(r.ctx, m)
	} else {
		r.mailbox.offer(m)
	}
	r.reported, r.archive = time.Now(), p.Archive
}

// drop forgets what is held. The caller holds the mutex.
func (r *pullReports) drop() {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.held = nil
}

// end prevents further reports.
func (r *pullReports) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
}

package event

import (
	"context"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
)

// Journal stores the newest events of pods across restarts of the daemon and the host: those whose [Entry] has Kept set, and the events
// that led to them. It is for people: no decision depends on it, so a crash may lose the newest events. Append and Retain are not called
// concurrently with each other; Read may be called at any time. Every call may block for as long as the disk does.
type Journal interface {
	// Load returns the stored events of all pods, ordered by Seq. Beside an error it returns those that could be read.
	Load() ([]Event, error)
	// Read returns the stored events of all pods that had a name, ordered by Seq. It succeeds if there are none.
	Read(pod string) ([]Event, error)
	// Append stores events of any pods, ordered by Seq. They need not be durable when it returns. After an error some of them may be
	// stored, and Append is called with all of them again.
	Append(events []Event) error
	// Retain receives the names of the existing pods. Of other names, the journal may delete all but the newest.
	Retain(pods []string) error
}

const (
	// maxCauses limits how many events without Kept are stored with the event that they led to. A failure that repeats a hundred times
	// does so in the same way.
	maxCauses = 8
	// journalRetry is the time before a write to the journal is retried.
	journalRetry = time.Minute
)

// withoutPod has the kinds after which the name may have no pod.
var withoutPod = map[api.EventKind]bool{
	api.EventPodRemoved: true, api.EventPodRejected: true, api.EventFileInvalid: true, api.EventFileRejected: true,
}

// Recorder writes the events of a ring to a journal, so that no other goroutine waits for the disk.
type Recorder struct {
	ring    *Ring
	journal Journal
	now     func() time.Time
	pods    func() []string

	seq     uint64          // of the newest event that was processed
	written map[uint64]bool // the Seqs of the last batch
	failed  bool            // the last write
}

// NewRecorder returns a recorder. It calls pods for the names of the existing pods.
func NewRecorder(ring *Ring, journal Journal, now func() time.Time, pods func() []string) *Recorder {
	return &Recorder{ring: ring, journal: journal, now: now, pods: pods}
}

// Run writes events until ctx ends, and then the remaining ones. Events that leave the ring while the journal hangs or fails are lost.
func (r *Recorder) Run(ctx context.Context) {
	for {
		events, _, err := r.ring.Follow(ctx, r.seq)
		if err != nil {
			events, _ = r.ring.Since(r.seq)
		}
		if !r.record(events) && err == nil {
			select {
			case <-time.After(journalRetry):
			case <-ctx.Done():
				return // the events that failed are lost
			}
		}
		if err != nil {
			return
		}
	}
}

// record writes the events with Kept set, and those that led to them, and reports success.
func (r *Recorder) record(events []Event) bool {
	restored := r.ring.Restored()
	r.seq = max(r.seq, restored) // restored events are in the journal
	events = slices.DeleteFunc(events, func(e Event) bool { return e.Seq <= restored })
	if len(events) == 0 {
		return true
	}
	var batch []Event
	removed := false
	marked := map[uint64]bool{}
	for _, e := range events {
		if !e.Kind.Entry().Kept {
			continue
		}
		for _, c := range r.chain(e, restored, marked) {
			marked[c.Seq] = true
			batch = append(batch, c)
		}
		removed = removed || withoutPod[e.Kind]
	}
	if len(batch) > 0 {
		if !r.write(batch, removed) {
			return false
		}
		r.written = marked
	}
	r.seq = events[len(events)-1].Seq
	return true
}

// chain returns an event after the events that led to it and are not written yet.
func (r *Recorder) chain(e Event, restored uint64, marked map[uint64]bool) []Event {
	chain := []Event{e}
	for len(chain) <= maxCauses {
		cause, found := r.ring.find(chain[len(chain)-1].Cause)
		if !found || cause.Seq <= restored || cause.Kind.Entry().Kept || marked[cause.Seq] || r.written[cause.Seq] {
			break
		}
		chain = append(chain, cause)
	}
	slices.Reverse(chain)
	return chain
}

// write writes a batch and reports success. Of repeated failures it emits the first.
func (r *Recorder) write(batch []Event, removed bool) bool {
	err := r.journal.Append(batch)
	if err == nil && removed {
		err = r.journal.Retain(r.pods())
	}
	if err != nil && !r.failed {
		r.ring.Add(New(api.EventJournalNotDurable, r.now(), "", Fields{"error": err.Error()}))
	}
	r.failed = err != nil
	return err == nil
}

// Merge merges two lists of events, ordered by Seq and without duplicates.
func Merge(a, b []Event) []Event {
	all := slices.Concat(a, b)
	order.Sort(all, bySeq)
	return slices.CompactFunc(all, func(x, y Event) bool { return x.Seq == y.Seq })
}

package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// host has a disk of 1000 bytes and 1000 inodes. An image has as many inodes as bytes. It is [HostImages] and a [FinishedPods]. The
// collector calls it only in [host.run].
type host struct {
	mu      sync.Mutex // held by the test, except in run
	held    bool
	list    []Whole
	claims  []image.Claim
	other   int64 // bytes of everything else
	inodes  bool  // only inodes are used, not space
	swept   int64
	finish  []supervisor.Finished
	failure error
	unswept error // of a removal whose content could not be deleted
	removed []string
	events  []string
}

func (h *host) Facts(context.Context) (Facts, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	return Facts{Now: time.Now(), Claims: slices.Clone(h.claims), Images: slices.Clone(h.list)}, h.failure
}

func (h *host) Discard(_ context.Context, id string, respect Respect) (bool, int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	at := slices.IndexFunc(h.list, func(w Whole) bool { return w.ID == id })
	if at < 0 || h.claimed(id, respect) {
		return false, 0, nil
	}
	size := h.list[at].Size
	h.list = slices.Delete(h.list, at, at+1)
	h.removed = append(h.removed, id)
	return true, size, h.unswept
}

func (h *host) claimed(id string, respect Respect) bool {
	facts := Facts{Now: time.Now(), Claims: h.claims}
	_, is := facts.Claimed(&Whole{ID: id}, respect)
	return is
}

func (h *host) Sweep(context.Context) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.other -= h.swept
	h.swept = 0
	return 0, nil
}

func (h *host) Finished() []supervisor.Finished {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.finish
}

func (h *host) CollectFinished(_ context.Context, p *supervisor.Finished) error {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.removed = append(h.removed, "pod "+p.Pod.Name)
	h.other -= 100
	return nil
}

func (h *host) disk() (Disk, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	used := h.other
	for _, w := range h.list {
		used += w.Size
	}
	if h.inodes {
		return Disk{Inodes: percent(used, 1000), Space: 1, Used: 10, Size: 1000}, nil
	}
	return Disk{Space: percent(used, 1000), Inodes: 1, Used: used, Size: 1000}, nil
}

// run calls f while the collector can run.
func (h *host) run(f func()) {
	if h.held {
		h.mu.Unlock()
	}
	f()
	synctest.Wait()
	h.mu.Lock()
	h.held = true
}

func (h *host) pass(d time.Duration) { h.run(func() { time.Sleep(d) }) }

func (h *host) use(id string, used bool) {
	claim := image.Claim{By: image.Pod, Who: "web", Image: id}
	h.claims = slices.DeleteFunc(h.claims, func(c image.Claim) bool { return c == claim })
	if used {
		h.claims = append(h.claims, claim)
	}
}

// request is a request of a person.
func (h *host) request(id string) {
	h.claims = append(h.claims, image.Claim{By: image.Person, Image: id})
}

// kinds returns the events since the last call, without the removed images.
func (h *host) kinds() []string {
	list := slices.DeleteFunc(h.events, func(kind string) bool { return kind == string(api.EventImageRemoved) })
	h.events = nil
	return list
}

func whole(id string, size int64) Whole {
	return Whole{ID: id, Names: []string{"example.com/" + id}, Size: size}
}

var limits = Limits{High: 85, Low: 80, MinAge: 2 * time.Minute}

func (h *host) start(t *testing.T, l Limits, file string) (c *Collector, stop func()) {
	t.Helper()
	c = NewCollector(l, CollectorOptions{
		Images: h, Pods: h, File: file, Disk: h.disk, Log: slog.New(slog.DiscardHandler),
		Emit: func(kind api.EventKind, _ event.Fields) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.events = append(h.events, string(kind))
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	stop = sync.OnceFunc(func() { h.run(func() { cancel(); <-done }) })
	h.run(func() { go func() { c.Run(ctx); close(done) }() })
	t.Cleanup(stop)
	return c, stop
}

// TestThresholds: above the high threshold, the images that were used longest ago are removed until the usage is below the low one.
func TestThresholds(t *testing.T) {
	for _, inodes := range []bool{false, true} {
		t.Run(fmt.Sprintf("inodes %t", inodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &host{inodes: inodes, other: 100, list: []Whole{
					whole("never", 100), whole("old", 100), whole("recent", 100), whole("used", 100), whole("hand", 100),
					whole("other", 100),
				}}
				h.request("hand")
				for _, id := range []string{"old", "recent", "used", "other"} {
					h.use(id, true)
				}
				h.start(t, limits, filepath.Join(t.TempDir(), "use.json"))
				h.pass(6 * time.Minute)
				h.use("old", false)
				h.pass(6 * time.Minute)
				h.use("recent", false)
				h.pass(6 * time.Minute)
				h.use("other", false)
				h.pass(6 * time.Minute)
				if h.removed != nil {
					t.Fatalf("removed %v below the threshold", h.removed)
				}
				h.other = 260 // 86 %
				h.pass(time.Minute)
				if diff := cmp.Diff([]string{"never"}, h.removed); diff != "" {
					t.Error(diff)
				}
				h.other = 500
				h.pass(time.Minute)
				if diff := cmp.Diff([]string{"never", "old", "recent", "other"}, h.removed); diff != "" {
					t.Error(diff)
				}
				if got := h.kinds(); len(got) != 0 {
					t.Errorf("events %v of a collection that freed enough", got)
				}
			})
		})
	}
}

// TestNothingToFree: what is used, requested by hand, or too young is kept, finished pods are collected last, and the event is emitted
// once.
func TestNothingToFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{other: 700, swept: 10, list: []Whole{whole("used", 100), whole("hand", 100), whole("young", 150)}}
		h.use("used", true)
		h.request("hand")
		h.finish = []supervisor.Finished{
			{Snapshot: supervisor.Snapshot{Pod: &spec.Pod{Name: "old"}}, For: time.Hour},
			{Snapshot: supervisor.Snapshot{Pod: &spec.Pod{Name: "new"}}, For: time.Minute},
		}
		h.start(t, limits, filepath.Join(t.TempDir(), "use.json"))
		if diff := cmp.Diff([]string{"pod old"}, h.removed); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{string(api.EventFreeDiskSpaceFailed)}, h.kinds()); diff != "" {
			t.Error(diff)
		}
		h.finish = nil
		h.pass(90 * time.Second)
		if got := h.kinds(); len(got) != 0 {
			t.Errorf("events %v are repeated", got)
		}
		h.pass(time.Minute) // older than MinAge now
		if diff := cmp.Diff([]string{"pod old", "young"}, h.removed); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{string(api.EventDiskSpaceAvailable)}, h.kinds()); diff != "" {
			t.Error(diff)
		}
		h.other = 790 // above again: a new warning
		h.pass(2 * time.Minute)
		h.pass(25 * time.Hour)
		if diff := cmp.Diff([]string{string(api.EventFreeDiskSpaceFailed), string(api.EventFreeDiskSpaceFailed)}, h.kinds()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestMaxAge: an image that nothing has used for longer is removed from a disk with much space. A restart of the daemon, a wall clock that
// was wrong and a damaged file do not change that, or the image counts as new.
func TestMaxAge(t *testing.T) {
	const maxAge = 10 * time.Hour
	l := Limits{High: 85, Low: 80, MaxAge: maxAge}
	for name, c := range map[string]struct {
		change func(text string, now time.Time) string // of the file while the daemon is off
		after  time.Duration                           // after which the image is removed
	}{
		"unchanged":     {func(text string, _ time.Time) string { return text }, 4 * time.Hour},
		"damaged":       {func(string, time.Time) string { return "{" }, maxAge},
		"clock ahead":   {savedAt(-10 * 365 * 24 * time.Hour), 5 * time.Hour},
		"clock behind":  {savedAt(30 * 365 * 24 * time.Hour), 5 * time.Hour},
		"later version": {func(string, time.Time) string { return `{"version":9}` }, maxAge},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &host{list: []Whole{whole("a", 1), whole("b", 1), whole("hand", 1)}}
				h.use("b", true)
				h.request("hand")
				file := filepath.Join(t.TempDir(), "use.json")
				_, stop := h.start(t, l, file)
				h.pass(5*time.Hour - time.Second)
				stop()
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(c.change(string(text), time.Now())), 0o600); err != nil {
					t.Fatal(err)
				}
				h.pass(time.Hour)
				_, stop = h.start(t, l, file)
				h.pass(c.after - 10*time.Minute)
				if h.removed != nil {
					t.Fatalf("removed %v before %v", h.removed, c.after)
				}
				h.pass(20 * time.Minute)
				if diff := cmp.Diff([]string{"a"}, h.removed); diff != "" {
					t.Error(diff)
				}
				stop()
				if text, err := os.ReadFile(file); err != nil ||
					strings.Contains(string(text), `"version":9`) != (name == "later version") {
					t.Errorf("file %q, %v", text, err)
				}
			})
		})
	}
}

// savedAt returns a change of the time in the file, which has no checksum then.
func savedAt(off time.Duration) func(string, time.Time) string {
	return func(text string, now time.Time) string {
		text = text[:strings.Index(text, `,"_sum"`)] + "}"
		return strings.Replace(text, now.UTC().Format(time.RFC3339)[:10], now.Add(off).UTC().Format(time.RFC3339)[:10], 1)
	}
}

// TestFailure: a failed collection is an event, which is not repeated while it fails. Nothing is removed if it is not known what is used.
func TestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{other: 900, list: []Whole{whole("a", 50)}, failure: errors.New("no pods directory")}
		c, _ := h.start(t, Limits{High: 85, Low: 80}, filepath.Join(t.TempDir(), "use.json"))
		h.pass(time.Hour)
		if diff := cmp.Diff([]string{string(api.EventImageGCFailed)}, h.kinds()); diff != "" || h.removed != nil {
			t.Errorf("removed %v, events %s", h.removed, diff)
		}
		h.failure = nil
		c.SetLimits(Limits{High: 100, Low: 80})
		h.pass(time.Hour)
		if h.removed != nil {
			t.Errorf("removed %v without a threshold", h.removed)
		}
		c.SetLimits(Limits{High: 90, Low: 80})
		h.pass(time.Minute)
		if diff := cmp.Diff([]string{"a"}, h.removed); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRemovalIsReported: an image that was removed has its event also if the removal could not be completed, as when the daemon stops
// meanwhile.
func TestRemovalIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{list: []Whole{whole("a", 50)}, unswept: errors.New("context canceled")}
		h.start(t, Limits{High: 85, Low: 80, MaxAge: time.Hour}, filepath.Join(t.TempDir(), "use.json"))
		h.pass(2 * time.Hour)
		if diff := cmp.Diff([]string{string(api.EventImageRemoved), string(api.EventImageGCFailed)}, h.events); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestStat: the usage of a file system is plausible.
func TestStat(t *testing.T) {
	d, err := StatDisk(t.TempDir())
	if err != nil || d.Size <= 0 || d.Space < 0 || d.Space > 100 || d.Inodes > 100 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := StatDisk("/nonexistent"); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}

package podfiles

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// claimants returns the names of the pods and why there may be others.
func (b *bench) claimants(settle bool) (names []string, unknown string) {
	b.Helper()
	list, why, err := b.set.Claimants(b.Context(), settle)
	b.must(err)
	for _, pod := range list {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	if why != nil {
		unknown = why.Cause
	}
	return slices.Compact(names), unknown
}

// TestClaimantsReadDirectory: a file that was written a moment ago counts, although the set has not listed the directory.
func TestClaimantsReadDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", podText("a"))
	b.set = New(b.dir, b.fakePods, Options{times: &b.times})
	if names, unknown := b.claimants(true); !slices.Equal(names, []string{"web"}) || unknown != "" {
		t.Errorf("claimants %v, unknown %q, want web", names, unknown)
	}
	b.write("db.toml", podText("a"))
	if names, unknown := b.claimants(true); !slices.Equal(names, []string{"db", "web"}) || unknown != "" {
		t.Errorf("claimants %v, unknown %q, want db and web", names, unknown)
	}
}

// TestClaimantsOfChangingFile: without a wait, a file that may be half-written has the definition before and the newest one, and others are
// unknown.
func TestClaimantsOfChangingFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", named("before", "a"))
	b.set = New(b.dir, b.fakePods, Options{times: &b.times})
	if names, unknown := b.claimants(true); !slices.Equal(names, []string{"before"}) || unknown != "" {
		t.Fatalf("claimants %v, unknown %q", names, unknown)
	}
	b.set.times.quiet = time.Hour
	b.write("web.toml", named("after", "a"))
	if names, unknown := b.claimants(false); !slices.Equal(names, []string{"after", "before"}) ||
		unknown != "pod file web.toml changed a moment ago" {
		t.Errorf("claimants %v, unknown %q", names, unknown)
	}
	definitions, err := b.set.Definitions(t.Context())
	b.must(err)
	if len(definitions) != 2 {
		t.Errorf("%d definitions, want 2", len(definitions))
	}
	// A file that does not settle in time is unknown too.
	if _, unknown := b.claimants(true); unknown != "pod file web.toml changed a moment ago" {
		t.Errorf("unknown %q", unknown)
	}
}

// TestClaimantsUnknown: an invalid file and a lost directory may define any pod.
func TestClaimantsUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("bad.toml", "name = \n")
	b.set = New(b.dir, b.fakePods, Options{times: &b.times})
	if names, unknown := b.claimants(true); names != nil || unknown != "pod file bad.toml is invalid" {
		t.Errorf("claimants %v, unknown %q", names, unknown)
	}
	b.remove("bad.toml")
	if _, unknown := b.claimants(true); unknown != "" {
		t.Errorf("unknown %q without the file", unknown)
	}
	path := filepath.Join(b.dir, "web.toml")
	_, err := b.AddStaged(accept(path, []byte(podText("a"))).pod, state.Owner{File: path}, supervisor.Staged{})
	b.must(err)
	b.must(os.RemoveAll(b.dir))
	if _, unknown := b.claimants(true); !strings.Contains(unknown, "pods directory "+b.dir) {
		t.Errorf("unknown %q after the loss of the directory", unknown)
	}
}

// TestClaimantsGenerations: generations count, and if they cannot be read there is no result.
func TestClaimantsGenerations(t *testing.T) {
	t.Parallel()
	b := newRollback(t)
	b.becomes["a"], b.becomes["b"] = "ready", "ready"
	b.write("web.toml", updating("a", withinHour))
	b.run()
	b.untilOutcomes("1 Ready, runs 1")
	b.write("web.toml", updating("b", withinHour))
	b.untilOutcomes("1 Ready, 2 Ready, runs 2")
	list, _, err := b.set.Claimants(t.Context(), false)
	b.must(err)
	images := map[string]bool{}
	for _, pod := range list {
		images[pod.Containers[0].Image] = true
	}
	if want := map[string]bool{"a": true, "b": true}; !cmp.Equal(images, want) {
		t.Errorf("images %v, want those of the file and of the generation", images)
	}
	b.end()
	b.set = New(b.dir, b.fakePods, Options{times: &b.times, Histories: unreadableHistories{Histories: b.store}})
	if _, _, err := b.set.Claimants(t.Context(), false); !errors.Is(err, errUnreadable) {
		t.Errorf("error %v, want %v", err, errUnreadable)
	}
}

var errUnreadable = errors.New("input/output error")

// unreadableHistories are generations that cannot be read.
type unreadableHistories struct{ Histories }

func (unreadableHistories) Load() (map[string]*History, []error, error) {
	return nil, nil, errUnreadable
}

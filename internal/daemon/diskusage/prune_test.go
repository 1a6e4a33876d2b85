package diskusage

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
)

func TestPrune(t *testing.T) {
	job := api.PrunedItem{Type: "pod", Name: "job", Bytes: 85} // the container, the pod volume and the log
	collected := api.PrunedItem{Type: "pod", Name: "job", Bytes: 81}
	content := api.PrunedItem{Type: "content", Bytes: 7}
	for name, c := range map[string]struct {
		q       api.SystemPrune
		removed []string
		items   []api.PrunedItem
	}{
		"what nothing uses": {
			removed: []string{"pod job", "image old", "image new", "content"},
			items: []api.PrunedItem{
				collected, {Type: "image", Name: "old:1, old:2", Bytes: 35}, {Type: "image", Name: "new:1", Bytes: 45}, content,
			},
		},
		"dry run": { // new frees also what it shares with old
			q:     api.SystemPrune{DryRun: true},
			items: []api.PrunedItem{job, {Type: "image", Name: "old:1, old:2", Bytes: 330}, {Type: "image", Name: "new:1", Bytes: 495}},
		},
		"dry run of everything": {
			q: api.SystemPrune{DryRun: true, All: true, Volumes: true},
			items: []api.PrunedItem{
				job,
				{Type: "image", Name: "hand:1", Bytes: 220},
				{Type: "image", Name: "old:1, old:2", Bytes: 330},
				{Type: "image", Name: "new:1", Bytes: 495},
				{Type: "volume", Name: "spare", Bytes: 19},
			},
		},
		"everything": {
			q:       api.SystemPrune{All: true, Volumes: true},
			removed: []string{"pod job", "image hand", "image old", "image new", "content", "volume spare"},
			items: []api.PrunedItem{
				collected,
				{Type: "image", Name: "hand:1", Bytes: 20},
				{Type: "image", Name: "old:1, old:2", Bytes: 35},
				{Type: "image", Name: "new:1", Bytes: 45},
				content,
				{Type: "volume", Name: "spare", Bytes: 19},
			},
		},
		"older than one hour": {
			q:       api.SystemPrune{OlderThan: time.Hour},
			removed: []string{"pod job", "image old", "content"},
			items:   []api.PrunedItem{collected, {Type: "image", Name: "old:1, old:2", Bytes: 35}, content},
		},
		"older than a day": {
			q: api.SystemPrune{OlderThan: 24 * time.Hour, All: true}, removed: []string{"content"}, items: []api.PrunedItem{content},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			got, err := h.system(t).Prune(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			want := api.SystemPruned{Items: c.items}
			for _, item := range c.items {
				want.Freed += item.Bytes
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if !slices.Equal(h.removed, c.removed) {
				t.Errorf("removed %q, want %q", h.removed, c.removed)
			}
		})
	}
}

// TestPruneOfUnknownAge: an image whose age is not known yet is not older than anything.
func TestPruneOfUnknownAge(t *testing.T) {
	h := newHost()
	h.ages, h.finished = nil, nil
	if got, err := h.system(t).Prune(t.Context(), api.SystemPrune{OlderThan: time.Nanosecond, DryRun: true}); err != nil ||
		len(got.Items) > 0 {
		t.Errorf("items %v, error %v, want none", got.Items, err)
	}
}

// TestPruneVolumesUnknown: nothing is removed while a pod file may use any volume. Without volumes, that does not matter.
func TestPruneVolumesUnknown(t *testing.T) {
	for _, dryRun := range []bool{false, true} {
		h := newHost()
		h.unknown = &podfiles.Unknown{Cause: "pod file a.toml is invalid", Hint: "correct or remove the file"}
		got, err := h.system(t).Prune(t.Context(), api.SystemPrune{Volumes: true, DryRun: dryRun})
		e, ok := errors.AsType[*api.Error](err)
		if !ok || e.Status != http.StatusConflict || !strings.HasSuffix(e.Message, "not known: pod file a.toml is invalid") ||
			e.Hint != h.unknown.Hint {
			t.Errorf("error %#v", err)
		}
		if len(got.Items)+len(h.removed) > 0 {
			t.Errorf("removed %v, items %v", h.removed, got.Items)
		}
		if _, err := h.system(t).Prune(t.Context(), api.SystemPrune{DryRun: dryRun}); err != nil {
			t.Errorf("without volumes: %v", err)
		}
	}
}

// TestPruneVolumesOfUndefinedPod: a pod whose definition is not known may use any volume.
func TestPruneVolumesOfUndefinedPod(t *testing.T) {
	h := newHost()
	h.pods = []supervisor.Snapshot{{Pod: &spec.Pod{Name: "later"}}}
	got, err := h.system(t).Prune(t.Context(), api.SystemPrune{Volumes: true})
	e, ok := errors.AsType[*api.Error](err)
	if !ok || e.Status != http.StatusConflict || !strings.HasSuffix(e.Message, `not known: the definition of pod "later" is not known`) ||
		e.Hint == "" {
		t.Errorf("error %#v", err)
	}
	if len(got.Items)+len(h.removed) > 0 {
		t.Errorf("removed %v, items %v", h.removed, got.Items)
	}
	if _, err := h.system(t).Prune(t.Context(), api.SystemPrune{}); err != nil {
		t.Errorf("without volumes: %v", err)
	}
}

// TestPruneReadsFilesAgain: a pod file that is written during the prune keeps its volume, and an invalid one keeps all.
func TestPruneReadsFilesAgain(t *testing.T) {
	h := newHost()
	h.files = h.files[1:] // nothing uses kept and spare
	h.asked = func(n int) {
		if n == 2 {
			h.files = append(h.files, claiming("late", "kept"))
		}
	}
	got, err := h.system(t).Prune(t.Context(), api.SystemPrune{Volumes: true})
	if err != nil || !slices.Contains(h.removed, "volume spare") || slices.Contains(h.removed, "volume kept") {
		t.Errorf("removed %v, items %v, error %v, want spare and not kept", h.removed, got.Items, err)
	}
	if slices.Contains(h.settled, false) {
		t.Errorf("reads of the pod files wait: %v, want all", h.settled)
	}
	h = newHost()
	h.asked = func(n int) {
		if n == 2 {
			h.unknown = &podfiles.Unknown{Cause: "pod file a.toml changed a moment ago"}
		}
	}
	got, err = h.system(t).Prune(t.Context(), api.SystemPrune{Volumes: true})
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != http.StatusConflict || slices.Contains(h.removed, "volume spare") {
		t.Errorf("removed %v, error %v, want a conflict", h.removed, err)
	}
	if len(got.Items) != 4 {
		t.Errorf("items %v, want what was removed before", got.Items)
	}
}

// TestPruneFails: the result has what was removed before the error.
func TestPruneFails(t *testing.T) {
	for what, items := range map[string]int{"pod job": 0, "image new": 2, "content": 3, "volume spare": 4} {
		h := newHost()
		h.fails[what] = errors.New("input/output error")
		got, err := h.system(t).Prune(t.Context(), api.SystemPrune{Volumes: true})
		if err == nil || !strings.Contains(err.Error(), "prune: ") || !strings.Contains(err.Error(), "input/output error") ||
			len(got.Items) != items {
			t.Errorf("%s: %d items, error %v, want %d items", what, len(got.Items), err, items)
		}
	}
}

// TestPruneIsStuck: what a pod has left, and cannot be removed, does not keep the command for ever.
func TestPruneIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.stuck = true
		_, err := h.system(t).Prune(t.Context(), api.SystemPrune{})
		if want := `prune: remove what pod "job" has left: timed out after 1m0s`; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

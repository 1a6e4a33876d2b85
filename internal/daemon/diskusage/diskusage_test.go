package diskusage

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/images"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// host is everything that a [System] needs. Its directory of pod files can change while it is asked.
type host struct {
	usage    runtime.DiskUsage
	list     []images.Whole
	claims   []image.Claim
	ages     map[string]time.Duration
	finished []supervisor.Finished
	planned  []*spec.Pod
	pods     []supervisor.Snapshot
	volumes  []supervisor.Volume
	files    []*spec.Pod
	unknown  *podfiles.Unknown
	asked    func(n int) // called before the pod files are read for the n-th time
	reads    int
	settled  []bool
	removed  []string
	fails    map[string]error // by what is removed
	stuck    bool             // what a finished pod has left cannot be removed
}

func (h *host) Facts(context.Context) (images.Facts, error) {
	return images.Facts{Now: time.Now(), Claims: h.claims, Images: slices.Clone(h.list)}, nil
}

func (h *host) Unused() map[string]time.Duration { return h.ages }
func (h *host) Limits() images.Limits            { return images.Limits{High: 85, Low: 80} }
func (h *host) Finished() []supervisor.Finished  { return h.finished }
func (h *host) Pods() []supervisor.Snapshot      { return h.pods }
func (h *host) Planned() []*spec.Pod             { return h.planned }

func (h *host) DiskUsage(context.Context) (runtime.DiskUsage, error) {
	u := h.usage
	u.PodVolumes, u.Logs, u.Containers = maps.Clone(u.PodVolumes), maps.Clone(u.Logs), slices.Clone(u.Containers)
	return u, h.fails["df"]
}

func (h *host) Volumes(context.Context) ([]supervisor.Volume, error) { return h.volumes, nil }

func (h *host) Claimants(_ context.Context, settle bool) ([]*spec.Pod, *podfiles.Unknown, error) {
	h.reads++
	h.settled = append(h.settled, settle)
	if h.asked != nil {
		h.asked(h.reads)
	}
	return h.files, h.unknown, nil
}

func (h *host) Discard(ctx context.Context, id string, respect images.Respect) (bool, int64, error) {
	at := slices.IndexFunc(h.list, func(w images.Whole) bool { return w.ID == id })
	facts, err := h.Facts(ctx)
	if _, claimed := facts.Claimed(&h.list[at], respect); claimed || err != nil {
		return false, 0, nil
	}
	return true, h.list[at].Size, h.remove("image " + id)
}

func (h *host) Sweep(context.Context) (int64, error) { return 7, h.remove("content") }

func (h *host) CollectFinished(ctx context.Context, p *supervisor.Finished) error {
	if h.stuck {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	delete(h.usage.PodVolumes, p.Facts.UID)
	h.usage.Logs[p.Facts.UID] = 4 // the end of the log
	h.usage.Containers = slices.DeleteFunc(h.usage.Containers, func(c runtime.WritableLayer) bool { return c.UID == p.Facts.UID })
	return h.remove("pod " + p.Pod.Name)
}

func (h *host) RemoveVolume(_ context.Context, name string) error { return h.remove("volume " + name) }

func (h *host) remove(what string) error {
	if err := h.fails[what]; err != nil {
		return err
	}
	h.removed = append(h.removed, what)
	return nil
}

func (h *host) system(t *testing.T) *System {
	return &System{Disk: h, Images: h, Pods: h, Files: h, Ages: h, Dir: t.TempDir()}
}

// claiming is a pod that uses a persistent volume.
func claiming(name, volume string) *spec.Pod {
	return &spec.Pod{Name: name, Volumes: []spec.Volume{{Name: "v", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: volume}}}}
}

// newHost returns a host with a pod web that runs, a pod job that finished two hours ago, and four images: one in use, one pulled by hand,
// and two that nothing uses. All images have the layer base, which a container has too, and the unused ones share a layer and a blob.
func newHost() *host {
	return &host{
		usage: runtime.DiskUsage{
			DiskUsage: image.DiskUsage{
				Blobs:  map[string]int64{"b1": 10, "b2": 20, "b3": 30, "b4": 40, "both": 5, "lost": 3},
				Layers: map[string]int64{"base": 100, "l2": 200, "l3": 300, "l4": 400, "two": 50},
				Images: map[string]image.Parts{
					"used": {Blobs: []string{"b1"}, Layers: []string{"base"}},
					"hand": {Blobs: []string{"b2"}, Layers: []string{"base", "l2"}},
					"old":  {Blobs: []string{"b3", "both"}, Layers: []string{"base", "l3", "two"}},
					"new":  {Blobs: []string{"b4", "both"}, Layers: []string{"base", "l4", "two"}},
				},
				InUse: map[string]bool{"base": true},
			},
			Containers: []runtime.WritableLayer{
				{ID: "2", UID: "uw", Pod: "web", Container: "c", Size: 11}, {ID: "1", UID: "uj", Pod: "job", Container: "c", Size: 13},
			},
			Claims: map[string]int64{"data": 17, "spare": 19, "kept": 23}, PodVolumes: map[string]int64{"uw": 29, "uj": 31},
			Logs: map[string]int64{"uw": 37, "uj": 41}, Journal: 43, State: 47,
		},
		list: []images.Whole{
			{ID: "used", Names: []string{"used:1"}, Records: []string{"used"}, Size: 10},
			{ID: "hand", Names: []string{"hand:1"}, Records: []string{"hand"}, Size: 20},
			{ID: "old", Names: []string{"old:1", "old:2"}, Records: []string{"old"}, Size: 35},
			{ID: "new", Names: []string{"new:1"}, Records: []string{"new"}, Size: 45},
		},
		claims: []image.Claim{{By: image.Pod, Who: "web", Image: "used"}, {By: image.Person, Image: "hand"}},
		ages:   map[string]time.Duration{"hand": 3 * time.Hour, "old": 3 * time.Hour, "new": time.Minute},
		finished: []supervisor.Finished{{
			Snapshot: supervisor.Snapshot{Pod: &spec.Pod{Name: "job"}, Facts: lifecycle.Facts{UID: "uj"}}, For: 2 * time.Hour,
		}},
		volumes: []supervisor.Volume{{Name: "data", Pods: []string{"web"}}, {Name: "kept"}, {Name: "spare"}},
		files:   []*spec.Pod{claiming("filed", "kept"), claiming("web", "data")}, fails: map[string]error{},
	}
}

func TestDiskUsage(t *testing.T) {
	h := newHost()
	u, err := h.system(t).DiskUsage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []api.DiskUsageItem{
		{Type: "images", Total: 4, Active: 1, Size: 108, Reclaimable: 95}, // all but b1 and the blob of no image
		{Type: "layers", Total: 5, Active: 1, Size: 1050, Reclaimable: 950},
		{Type: "containers", Total: 2, Active: 1, Size: 24, Reclaimable: 13},
		{Type: "volumes", Total: 3, Active: 2, Size: 59, Reclaimable: 19},
		{Type: "podVolumes", Total: 2, Active: 1, Size: 60, Reclaimable: 31},
		{Type: "logs", Total: 2, Active: 1, Size: 78, Reclaimable: 41},
		{Type: "state", Size: 47},
		{Type: "journal", Size: 43},
	}
	if diff := cmp.Diff(want, u.Items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	images := []api.ImageUsage{
		{Names: []string{"used:1"}, Size: 110, Shared: 100, Used: true},
		{Names: []string{"hand:1"}, Size: 320, Shared: 100, Requested: true, Unused: 10800},
		{Names: []string{"old:1", "old:2"}, Size: 485, Shared: 155, Unused: 10800},
		{Names: []string{"new:1"}, Size: 595, Shared: 155, Unused: 60},
	}
	if diff := cmp.Diff(images, u.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	containers := []api.ContainerUsage{
		{Pod: "job", Container: "c", ID: "1", Size: 13}, {Pod: "web", Container: "c", ID: "2", Size: 11, Active: true},
	}
	if diff := cmp.Diff(containers, u.Containers); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	volumes := []api.VolumeUsage{
		{Name: "data", Pods: []string{"web"}, Size: 17}, {Name: "kept", Pods: []string{"filed"}, Size: 23}, {Name: "spare", Size: 19},
	}
	if diff := cmp.Diff(volumes, u.Volumes); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	if f := u.Filesystem; f.Size <= 0 || f.Used <= 0 || f.Used > f.Size || f.HighPercent != 85 || f.LowPercent != 80 {
		t.Errorf("file system %+v", f)
	}
	if !slices.Equal(h.settled, []bool{false}) {
		t.Errorf("reads of the pod files wait: %v, want one that does not", h.settled)
	}
	if len(h.removed) > 0 {
		t.Errorf("removed %v", h.removed)
	}
}

// TestMeasureFails: an error names the operation.
func TestMeasureFails(t *testing.T) {
	h := newHost()
	h.fails["df"] = errors.New("input/output error")
	_, err := h.system(t).DiskUsage(t.Context())
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != http.StatusInternalServerError ||
		!strings.Contains(e.Message, "measure disk usage: input/output error") {
		t.Errorf("error %v", err)
	}
}

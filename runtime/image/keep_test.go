package image_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// kept are images of one name, of which only the newest has the name.
type kept struct {
	*env
	ctx context.Context
	t   *testing.T
}

// add imports an image that takes over the name, and returns its configuration.
func (k *kept) add(version string) string {
	k.t.Helper()
	archive := filepath.Join(k.dir, "shop.tar")
	if err := os.Rename(save(k.t, sample("shop:1", version)), archive); err != nil {
		k.t.Fatal(err)
	}
	list, err := k.load(k.ctx, archive)
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.scope.Ensure(k.ctx, "shop:1", spec.PullNever, nil); err != nil { // unpacks it
		k.t.Fatal(err)
	}
	return list[0].ConfigDigest
}

// keep keeps images for a pod.
func (k *kept) keep(pod string, configs ...string) {
	k.t.Helper()
	if _, err := k.store.Keep(k.ctx, pod, configs...); err != nil {
		k.t.Fatal(err)
	}
}

// want checks after a garbage collection whether the image of a configuration can be started, and that its layers need not be unpacked
// again.
func (k *kept) want(config, version string, present bool) {
	k.t.Helper()
	k.collect(k.ctx, k.t)
	applied, _ := k.applier.counts()
	img, err := k.scope.EnsureAgain(k.ctx, "shop:1", spec.PullNever, image.Previous{ConfigDigest: config, FromArchive: true}, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	if got := img.ConfigDigest == config; got != present {
		k.t.Errorf("version %s is present: %v, want %v", version, got, present)
	}
	if got := k.read(k.ctx, k.t, img, "version"); present && got != version {
		k.t.Errorf("the layers have version %q, want %q", got, version)
	}
	if again, _ := k.applier.counts(); again != applied {
		k.t.Errorf("%d layers of version %s were unpacked again", again-applied, version)
	}
}

func (k *kept) wantPods(want ...string) {
	k.t.Helper()
	got, err := k.store.Kept(k.ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		k.t.Errorf("pods with kept images (-want +got):\n%s", diff)
	}
}

func newKept(t *testing.T) *kept {
	ctx, w := newEnv(t, image.Options{})
	return &kept{w, ctx, t}
}

// TestKeep checks that an image is kept without a name and a container until it is released.
func TestKeep(t *testing.T) {
	k := newKept(t)
	first := k.add("1")
	k.wantPods()
	k.keep("web", first)
	second := k.add("2")
	k.want(first, "1", true)
	k.keep("web", first, second)
	k.add("3")
	k.want(first, "1", true)
	k.want(second, "2", true)
	k.wantPods("web")

	k.keep("db.example", second)
	k.keep("web", first)
	k.want(second, "2", true)
	k.keep("db.example")
	k.want(second, "2", false)
	k.want(first, "1", true)
	k.wantPods("web")
	k.keep("web")
	k.want(first, "1", false)
	k.wantPods()
	if n := k.leases(k.ctx, t); n != 0 {
		t.Errorf("%d leases", n)
	}
	if n := k.snapshots(k.ctx, t); n != 2 {
		t.Errorf("%d snapshots, want the 2 of the last image", n)
	}
}

// TestKeepAbsentImages checks that images that are not present are skipped.
func TestKeepAbsentImages(t *testing.T) {
	const absent = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	k := newKept(t)
	k.keep("web", absent, "")
	k.wantPods()
	first := k.add("1")
	k.keep("web", absent, first)
	k.add("2")
	k.want(first, "1", true)
	k.keep("web", absent)
	k.want(first, "1", false)
	k.wantPods()
	k.keep("web")
}

// TestKeepReportsReleases checks when a garbage collection is useful.
func TestKeepReportsReleases(t *testing.T) {
	k := newKept(t)
	first, second := k.add("1"), k.add("2")
	for _, step := range []struct {
		configs  []string
		released bool
	}{
		{nil, false}, {[]string{second}, false}, {[]string{second}, false}, {[]string{first}, true}, {nil, true}, {nil, false},
	} {
		released, err := k.store.Keep(k.ctx, "web", step.configs...)
		if released != step.released || err != nil {
			t.Errorf("keep %q: %v, %v, want %v", step.configs, released, err, step.released)
		}
	}
}

// TestKeepWritesChangesOnly checks that nothing is written for images that are kept already.
func TestKeepWritesChangesOnly(t *testing.T) {
	k := newKept(t)
	first := k.add("1")
	k.keep("web", first)
	k.keep("db")
	before := k.database()
	for range 3 {
		k.keep("web", first)
		k.keep("web", first, first)
		k.keep("db")
		k.wantPods("web")
	}
	if k.database() != before {
		t.Error("the database was written")
	}
	k.keep("db", first)
	if k.database() == before {
		t.Error("a change does not change the database, so this test shows nothing")
	}
}

// database returns the hash of the database file. Every transaction that writes changes it.
func (k *kept) database() [sha256.Size]byte {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.dir, "meta.db"))
	if err != nil {
		k.t.Fatal(err)
	}
	return sha256.Sum256(data)
}

// TestOwnsKeptImages checks that the leases of kept images are not deleted at the start of the daemon.
func TestOwnsKeptImages(t *testing.T) {
	k := newKept(t)
	k.keep("web", k.add("1"))
	k.wantLeases(k.ctx, t, 1)
}

package layers

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins/snapshots/native"
	"github.com/containerd/errdefs"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/types/known/anypb"
)

// idle is a collector without a collection; running has one.
type (
	idle    struct{ holders *int }
	running struct{}
)

func (c idle) TryHold() (release func(), held bool) {
	*c.holders++
	return func() { *c.holders-- }, true
}

func (running) TryHold() (release func(), held bool) { return nil, false }

// world is the metadata of an engine with the container "web", which has a layer.
type world struct {
	*testing.T
	ctx          context.Context
	db           *metadata.DB
	layers       snapshots.Snapshotter
	transactions int
	holders      int
}

func newWorld(t *testing.T) *world {
	backend, err := native.NewSnapshotter(filepath.Join(t.TempDir(), "layers"))
	w := &world{T: t, ctx: namespaces.WithNamespace(t.Context(), "test")}
	w.check(err)
	db, err := bolt.Open(filepath.Join(t.TempDir(), "meta.db"), 0o600, nil)
	w.check(err)
	w.db = metadata.NewDB(db, nil, map[string]snapshots.Snapshotter{"native": backend})
	t.Cleanup(func() { w.check(db.Close()); w.check(backend.Close()) })
	w.check(w.db.Init(w.ctx))
	w.layers = w.db.Snapshotter("native")
	_, err = w.layers.Prepare(w.ctx, "layer", "")
	w.check(err)
	w.create("web", "native", "layer")
	w.db.RegisterMutationCallback(func(bool) { w.transactions++ })
	return w
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) create(id, snapshotter, key string) {
	w.Helper()
	_, err := metadata.NewContainerStore(w.db).Create(w.ctx, containers.Container{
		ID: id, Spec: &anypb.Any{}, Runtime: containers.RuntimeInfo{Name: "test"}, Snapshotter: snapshotter, SnapshotKey: key,
	})
	w.check(err)
}

// delete deletes a container, and expects how many transactions that needs, and whether its record and the layer are left.
func (w *world) delete(id string, c Collector, transactions int, record, layer bool) error {
	w.Helper()
	w.transactions = 0
	store := metadata.NewContainerStore(w.db)
	done := make(chan error, 1)
	go func() { done <- Containers{store, w.db, c}.Delete(w.ctx, id) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(time.Minute):
		w.Fatal("the deletion waits for itself")
	}
	if w.transactions != transactions || w.holders != 0 {
		w.Errorf("%d transactions, want %d; the collection is held %d times", w.transactions, transactions, w.holders)
	}
	for what, is := range map[string]struct {
		err  error
		left bool
	}{
		"record": {func() error { _, err := store.Get(w.ctx, id); return err }(), record},
		"layer":  {func() error { _, err := w.layers.Stat(w.ctx, "layer"); return err }(), layer},
	} {
		if is.left && is.err != nil || !is.left && !errdefs.IsNotFound(is.err) {
			w.Errorf("%s: %v, want it left: %v", what, is.err, is.left)
		}
	}
	return err
}

func TestDelete(t *testing.T) {
	w := newWorld(t)
	w.check(w.delete("web", idle{&w.holders}, 1, false, false))
	if err := w.delete("web", idle{&w.holders}, 0, false, false); !errdefs.IsNotFound(err) {
		t.Errorf("error %v for a container that does not exist", err)
	}
	w.create("web", "native", "layer") // a daemon was killed between the deletions
	w.check(w.delete("web", idle{&w.holders}, 1, false, false))
	w.create("plain", "", "")
	w.check(w.delete("plain", idle{&w.holders}, 1, false, false))
}

// TestDeleteDuringCollection: the snapshotter is locked, or will be.
func TestDeleteDuringCollection(t *testing.T) {
	w := newWorld(t)
	w.check(w.delete("web", running{}, 2, false, false))
}

// TestDeleteFails: a layer that cannot be removed keeps its record.
func TestDeleteFails(t *testing.T) {
	w := newWorld(t)
	w.create("strange", "none", "layer")
	for _, c := range []Collector{idle{&w.holders}, running{}} {
		if err := w.delete("strange", c, 0, true, true); err == nil {
			t.Error("a container of a snapshotter that does not exist was deleted")
		}
	}
	w.check(w.layers.Commit(w.ctx, "committed", "layer"))
	_, err := w.layers.Prepare(w.ctx, "child", "committed")
	w.check(err)
	w.create("parent", "native", "committed")
	_, err = w.layers.Prepare(w.ctx, "layer", "")
	w.check(err)
	for _, c := range []Collector{idle{&w.holders}, running{}} {
		if err := w.delete("parent", c, 0, true, true); !errdefs.IsFailedPrecondition(err) {
			t.Errorf("error %v for a layer with a child", err)
		}
	}
}

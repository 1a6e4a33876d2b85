package engine

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins/snapshots/native"
	"github.com/containerd/errdefs"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/types/known/anypb"
)

const inherited = "containerd.io/snapshot/owner"

// world is an engine's metadata, its snapshotter and a copy.
type world struct {
	t         *testing.T
	ctx       context.Context
	root      string
	snapshots snapshots.Snapshotter
	records   recordStores
	copied    *recordCopy
	closers   []func() error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: namespaces.WithNamespace(t.Context(), "test"), root: t.TempDir()}
	w.openMetadata()
	w.copied = newRecordCopy(w.records)
	w.check(w.copied.Fill(w.ctx, w.sources().Copy, slog.New(slog.DiscardHandler)))
	w.records = w.copied.Records()
	w.closers = append(w.closers, w.copied.Close)
	t.Cleanup(w.close)
	return w
}

func (w *world) metadata() string { return filepath.Join(w.root, "meta.db") }

func (w *world) sources() rebuildSources {
	return rebuildSources{
		Copy: filepath.Join(w.root, "records.db"), Snapshotters: []string{filepath.Join(w.root, "io.containerd.snapshotter.v1.native")},
		Needed: []string{"web", "pod"},
	}
}

func (w *world) openMetadata() {
	w.t.Helper()
	backend, err := native.NewSnapshotter(w.sources().Snapshotters[0])
	w.check(err)
	db, err := bolt.Open(w.metadata(), 0o600, nil)
	w.check(err)
	m := metadata.NewDB(db, nil, map[string]snapshots.Snapshotter{"native": backend})
	w.check(m.Init(w.ctx))
	w.snapshots = m.Snapshotter("native")
	w.records = recordStores{metadata.NewContainerStore(m), metadata.NewSandboxStore(m)}
	w.closers = append(w.closers, db.Close, backend.Close)
}

func (w *world) close() {
	for _, c := range w.closers {
		w.check(c())
	}
	w.closers = nil
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// populate creates an image with one layer, a container with a writable layer, its sandbox, and a view.
func (w *world) populate() {
	w.t.Helper()
	_, err := w.snapshots.Prepare(w.ctx, "extract", "")
	w.check(err)
	w.check(w.snapshots.Commit(w.ctx, "sha256:layer", "extract"))
	_, err = w.snapshots.Prepare(w.ctx, "web", "sha256:layer")
	w.check(err)
	_, err = w.snapshots.View(w.ctx, "view", "sha256:layer", snapshots.WithLabels(map[string]string{inherited: "me", "lost": "x"}))
	w.check(err)
	spec := &anypb.Any{TypeUrl: "spec", Value: []byte("{}")}
	_, err = w.records.Sandboxes.Create(w.ctx, sandbox.Sandbox{
		ID: "pod", Labels: map[string]string{"pod": "p"}, Spec: spec, Runtime: sandbox.RuntimeOpts{Name: "r"}, Sandboxer: "shim",
	})
	w.check(err)
	for _, id := range []string{"web", "deleted"} {
		_, err = w.records.Containers.Create(w.ctx, containers.Container{
			ID: id, Labels: map[string]string{"pod": "p"}, Image: "image", Spec: spec, Runtime: containers.RuntimeInfo{Name: "r"},
			Snapshotter: "native", SnapshotKey: id, SandboxID: "pod",
		})
		w.check(err)
	}
	_, err = w.records.Containers.Update(w.ctx, containers.Container{ID: "web", Labels: map[string]string{"exit": "0"}}, "labels.exit")
	w.check(err)
	w.check(w.records.Containers.Delete(w.ctx, "deleted"))
}

func TestRebuild(t *testing.T) {
	w := newWorld(t)
	w.populate()
	mounts, err := w.snapshots.Mounts(w.ctx, "web")
	w.check(err)
	w.close()
	w.check(os.Remove(w.metadata()))
	w.check(rebuildMetadata(w.ctx, w.sources(), w.metadata()))
	w.openMetadata()
	list, err := w.records.Containers.List(w.ctx)
	w.check(err)
	if len(list) != 1 || list[0].ID != "web" || list[0].Labels["exit"] != "0" || list[0].Labels["pod"] != "p" ||
		list[0].SandboxID != "pod" ||
		list[0].SnapshotKey != "web" || list[0].Image != "image" {
		t.Errorf("containers: %+v", list)
	}
	pod, err := w.records.Sandboxes.Get(w.ctx, "pod")
	w.check(err)
	if pod.Labels["pod"] != "p" || pod.Sandboxer != "shim" {
		t.Errorf("sandbox: %+v", pod)
	}
	again, err := w.snapshots.Mounts(w.ctx, "web")
	w.check(err)
	if len(again) != 1 || again[0].Source != mounts[0].Source {
		t.Errorf("mounts %v, want %v", again, mounts)
	}
	view, err := w.snapshots.Stat(w.ctx, "view")
	w.check(err)
	if view.Kind != snapshots.KindView || view.Parent != "sha256:layer" || view.Labels[inherited] != "me" ||
		view.Labels["containerd.io/gc.root"] == "" {
		t.Errorf("view: %+v", view)
	}
	if err := w.snapshots.Remove(w.ctx, "sha256:layer"); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("removal of a layer that is in use: %v", err)
	}
	_, err = w.snapshots.Prepare(w.ctx, "next", "sha256:layer")
	w.check(err)
	for _, key := range []string{"next", "web", "view", "sha256:layer"} {
		w.check(w.snapshots.Remove(w.ctx, key))
	}
}

// TestNoRebuild: without one of the sources there is no new metadata.
func TestNoRebuild(t *testing.T) {
	for name, damage := range map[string]func(*world, *rebuildSources){
		"copy is missing": func(w *world, s *rebuildSources) { w.check(os.Remove(s.Copy)) },
		"copy is damaged": func(w *world, s *rebuildSources) { w.check(os.WriteFile(s.Copy, []byte("garbage"), 0o600)) },
		"layers are damaged": func(w *world, s *rebuildSources) {
			w.check(os.WriteFile(filepath.Join(s.Snapshotters[0], "metadata.db"), []byte("garbage"), 0o600))
		},
		"container without a record": func(_ *world, s *rebuildSources) { s.Needed = append(s.Needed, "deleted") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.populate()
			w.close()
			w.check(os.Remove(w.metadata()))
			s := w.sources()
			damage(w, &s)
			if err := rebuildMetadata(w.ctx, s, w.metadata()); err == nil {
				t.Error("no error")
			}
			if _, err := os.Stat(w.metadata()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("new metadata: %v", err)
			}
		})
	}
}

// TestFillReplacesTheCopy: what an earlier engine left in the copy is not adopted.
func TestFillReplacesTheCopy(t *testing.T) {
	w := newWorld(t)
	w.populate()
	w.close()
	w.check(os.Remove(w.metadata()))
	w.openMetadata()
	copied := newRecordCopy(w.records)
	w.check(copied.Fill(w.ctx, w.sources().Copy, slog.New(slog.DiscardHandler)))
	w.closers = append(w.closers, copied.Close)
	w.close()
	if err := rebuildMetadata(w.ctx, w.sources(), filepath.Join(w.root, "other.db")); !errdefs.IsNotFound(err) {
		t.Errorf("error %v, want a missing record", err)
	}
}

// TestChangeThatCannotBeCopied: there is no copy after it until the next one is filled, and the original records are changed.
func TestChangeThatCannotBeCopied(t *testing.T) {
	label := func(w *world, value string) error {
		_, err := w.records.Containers.Update(w.ctx, containers.Container{ID: "web", Labels: map[string]string{"exit": value}},
			"labels.exit")
		return err
	}
	for name, change := range map[string]func(*world) error{
		"update": func(w *world) error { return label(w, "1") },
		"delete": func(w *world) error { return w.records.Containers.Delete(w.ctx, "web") },
		"update of sandbox": func(w *world) error {
			_, err := w.records.Sandboxes.Update(w.ctx, sandbox.Sandbox{ID: "pod", Labels: map[string]string{"pod": "q"}}, "labels.pod")
			return err
		},
		"delete of sandbox": func(w *world) error { return w.records.Sandboxes.Delete(w.ctx, "pod") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.populate()
			w.check(w.copied.copied.Containers.Delete(w.ctx, "web"))
			w.check(w.copied.copied.Sandboxes.Delete(w.ctx, "pod"))
			w.check(change(w))
			if _, err := os.Stat(w.sources().Copy); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the copy exists: %v", err)
			}
			_, err := w.records.Containers.Create(w.ctx, containers.Container{
				ID: "next", Spec: &anypb.Any{TypeUrl: "spec"}, Runtime: containers.RuntimeInfo{Name: "r"},
			})
			w.check(err)
			w.check(w.copied.Fill(w.ctx, w.sources().Copy, slog.New(slog.DiscardHandler)))
			w.close()
			s := w.sources()
			s.Needed = []string{"next"}
			w.check(rebuildMetadata(w.ctx, s, filepath.Join(w.root, "other.db")))
		})
	}
}

// TestConcurrentChanges: the copy and the original end up with the same records.
func TestConcurrentChanges(t *testing.T) {
	w := newWorld(t)
	w.populate()
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for j := range 20 {
				value := strconv.Itoa(100*i + j)
				_, err := w.records.Containers.Update(w.ctx, containers.Container{ID: "web", Labels: map[string]string{"exit": value}},
					"labels.exit")
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	original, err := w.records.Containers.Get(w.ctx, "web")
	w.check(err)
	copied, err := w.copied.copied.Containers.Get(w.ctx, "web")
	w.check(err)
	if original.Labels["exit"] != copied.Labels["exit"] {
		t.Errorf("label %s in the original, %s in the copy", original.Labels["exit"], copied.Labels["exit"])
	}
}

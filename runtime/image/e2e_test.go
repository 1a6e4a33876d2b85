//go:build e2e

package image_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

func TestRunningContainerKeepsItsLayers(t *testing.T) {
	ctx, r := newHostEnv(t)
	r.start(ctx, t)
	archive := save(t, sample("shop:1", "1"))
	if _, err := r.store.ImportFile(ctx, archive, nil); err != nil {
		t.Fatal(err)
	}
	img, err := r.store.In(archive).Ensure(ctx, "shop:1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.engine.Client().NewContainer(ctx, "c1", containerd.WithImage(r.store.Handle(img)),
		containerd.WithSnapshotter(overlay), containerd.WithNewSnapshot("c1", r.store.Handle(img)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.Forget(ctx, recordIn(t, archive, "shop:1")); err != nil {
		t.Fatal(err)
	}
	r.collect(ctx, t)
	if _, err := r.engine.Client().ContentStore().Info(ctx, img.Target.Digest); !errdefs.IsNotFound(err) {
		t.Errorf("the manifest of the removed image: %v, want not found, or nothing was collected", err)
	}
	if n := len(r.snapshots(ctx, t)); n != 3 {
		t.Errorf("%d snapshots, want the container's and 2 layers", n)
	}
	mounts, err := r.engine.Client().SnapshotService(overlay).Mounts(ctx, "c1")
	if err != nil {
		t.Fatal(err)
	}
	err = mount.WithTempMount(ctx, mounts, func(root string) error {
		data, err := os.ReadFile(filepath.Join(root, "version"))
		if err == nil && string(data) != "1" {
			err = fmt.Errorf("version %q", data)
		}
		return err
	})
	if err != nil {
		t.Errorf("root file system of the container: %v", err)
	}
	if err := c.Delete(ctx, containerd.WithSnapshotCleanup); err != nil {
		t.Fatal(err)
	}
	r.collect(ctx, t)
	if keys := r.snapshots(ctx, t); len(keys) > 0 {
		t.Errorf("snapshots remain after the removal of the container: %q", keys)
	}
}

func TestKillDuringUnpack(t *testing.T) {
	ctx, r := newHostEnv(t)
	archive := save(t, large("shop:1", 32<<20))
	r.runUntil(ctx, t, archive, func() bool {
		files, err := filepath.Glob(filepath.Join(r.dir, "root/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs/bin/server"))
		if err != nil || len(files) == 0 {
			return false
		}
		fi, err := os.Stat(files[0])
		return err == nil && fi.Size() > 1<<20
	})
	img, err := r.store.In(archive).Ensure(ctx, "shop:1", spec.PullNever, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.read(ctx, t, img.Snapshot, "bin/server")); n != 32<<20 {
		t.Errorf("%d bytes were unpacked", n)
	}
	r.collect(ctx, t)
	if keys := r.snapshots(ctx, t); len(keys) != 2 {
		t.Errorf("snapshots are %q, want those of the 2 layers", keys)
	}
	r.wantNoLeases(ctx, t)
}

func TestKillDuringImport(t *testing.T) {
	ctx, r := newHostEnv(t)
	archive := save(t, large("shop:1", 32<<20))
	r.runUntil(ctx, t, archive, func() bool {
		files, err := filepath.Glob(filepath.Join(r.dir, "root/io.containerd.content.v1.content/ingest/*/data"))
		if err != nil || len(files) == 0 {
			return false
		}
		fi, err := os.Stat(files[0])
		return err == nil && fi.Size() > 1<<20
	})
	if _, err := r.store.ImportFile(ctx, archive, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.In(archive).Ensure(ctx, "shop:1", spec.PullNever, nil); err != nil {
		t.Fatal(err)
	}
	r.wantNoLeases(ctx, t)
}

func TestKillDuringPullIsResumed(t *testing.T) {
	ctx, r := newHostEnv(t)
	reg := newRegistry(t)
	reg.push(t, large("shop:1", 8<<20))
	ref := reg.host + "/shop:1"
	served := make(chan struct{}, 10)
	reg.intercept(halfBlob(reg, func(req *http.Request) {
		served <- struct{}{}
		<-req.Context().Done()
	}))
	r.runUntil(ctx, t, ref, func() bool {
		files, err := filepath.Glob(filepath.Join(r.dir, "root/io.containerd.content.v1.content/ingest/*/data"))
		if err != nil || len(served) == 0 {
			return false
		}
		for _, f := range files {
			if fi, err := os.Stat(f); err == nil && fi.Size() >= 4<<20 {
				return true
			}
		}
		return false
	})
	var resumed atomic.Bool
	reg.intercept(func(_ http.ResponseWriter, req *http.Request) bool {
		if from := req.Header.Get("Range"); from != "" && from != "bytes=0-" {
			resumed.Store(true)
		}
		return false
	})
	img, err := r.store.In().Ensure(ctx, ref, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.read(ctx, t, img.Snapshot, "bin/server")); n != 8<<20 {
		t.Errorf("%d bytes were unpacked", n)
	}
	if !resumed.Load() {
		t.Error("the whole layer was requested again")
	}
	r.wantNoLeases(ctx, t)
}

func TestPullFromDockerRegistry(t *testing.T) {
	ctx, r := newHostEnv(t)
	r.start(ctx, t)
	ref := dockerRegistry(t) + "/team/shop:1"
	archive := save(t, sample(ref, "1"))
	list, err := r.store.ImportFile(ctx, archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := docker.NewResolver(docker.ResolverOptions{
		Hosts: docker.ConfigureDefaultRegistries(docker.WithPlainHTTP(docker.MatchLocalhost)),
	})
	if err := r.engine.Client().Push(ctx, ref, list[0].Target, containerd.WithResolver(plain)); err != nil {
		t.Fatal(err)
	}
	if err := r.store.Forget(ctx, recordIn(t, archive, ref)); err != nil {
		t.Fatal(err)
	}
	var progress []image.Progress
	img, err := r.store.In().Ensure(ctx, ref, "", func(p image.Progress) { progress = append(progress, p) })
	if err != nil {
		t.Fatal(err)
	}
	if !img.Pulled || img.FromArchive || img.ConfigDigest != list[0].ConfigDigest {
		t.Errorf("pulled %+v, pushed %+v", img, list[0])
	}
	if got := r.read(ctx, t, img.Snapshot, "version"); string(got) != "1" {
		t.Errorf("version %q", got)
	}
	if _, err := r.store.In().Ensure(ctx, strings.Replace(ref, "shop:1", "shop:2", 1), "", nil); err == nil ||
		!strings.Contains(err.Error(), "not found") {
		t.Errorf("unknown tag: %v", err)
	}
	r.wantNoLeases(ctx, t)
}

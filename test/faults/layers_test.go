//go:build e2e

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// TestNoLayersLeft: a disk that is full while containers fail and restart all the time, and while their pods are deleted, has no layers
// without a record when there is space again. The number of layers is compared, because only the daemon can open the records.
func TestNoLayersLeft(t *testing.T) {
	f := newFixture(t)
	f.Ext4Disk() // unlike tmpfs, it needs space for directories
	fill, release := f.ballast()
	f.MustRun("get")
	pods := []string{"p1", "p2"}
	for _, name := range pods {
		f.MustCreate(name, "restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+container("c", "exit 1"))
	}
	for _, name := range pods {
		f.Until(name, "restarting", func(p *api.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount >= 2 })
	}
	fill(12 << 10) // enough for a part of the work
	for _, name := range pods {
		f.Until(name, "affected", func(p *api.Pod) bool {
			return slices.ContainsFunc(p.Status.Conditions,
				func(c api.Condition) bool { return c.Type == api.StateNotDurable && c.Status == "True" })
		})
	}
	f.MustRun("delete", "--all", "--force")
	release()
	f.awaitLayers(1)
}

// TestHeldLayerIsRemoved: a layer that could not be removed with its container is removed later. A mount prevents the removal, because
// what a full disk prevents depends on the file system.
func TestHeldLayerIsRemoved(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	f.MustCreate("p", container("c", "exec sleep 100000"))
	f.running("p")
	layer := filepath.Join(f.layerDir(), f.awaitLayers(2)[1])
	held := filepath.Join(layer, "held")
	f.Check(os.Mkdir(held, 0o700))
	f.Check(unix.Mount("held", held, "tmpfs", 0, ""))
	unmount := func() error { return unix.Unmount(held, unix.MNT_DETACH) }
	f.Cleanup(func() { _ = unmount() })
	f.MustRun("delete", "p", "--force")
	f.Await(func() error { // the engine has tried
		_, err := os.Stat(filepath.Join(layer, "work"))
		if err == nil {
			return fmt.Errorf("%s is complete", layer)
		}
		return nil
	})
	f.Check(unmount())
	f.awaitLayers(1)
}

// TestLayerOfKilledDaemon: a layer without a record, from a daemon that was killed while it created the layer, is removed when the next
// daemon starts. Those of running containers stay.
func TestLayerOfKilledDaemon(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	f.MustCreate("p", container("c", "exec sleep 100000"))
	was, layers := f.running("p"), f.awaitLayers(2)
	f.MustKillDaemon()
	for _, dir := range []string{"fs", "work"} { // as the engine creates it
		f.Check(os.MkdirAll(filepath.Join(f.layerDir(), "9999", dir), 0o700))
	}
	f.MustRun("get")
	if left := f.awaitLayers(2); !slices.Equal(left, layers) {
		t.Errorf("layers %v, were %v", left, layers)
	}
	if is := f.running("p"); !slices.Equal(is, was) {
		t.Errorf("containers %v, were %v", is, was)
	}
	f.MustRun("delete", "p", "--force")
	f.awaitLayers(1)
}

// awaitLayers waits until n layers have directories, and returns their names. The first is that of the image.
func (f *fixture) awaitLayers(n int) (names []string) {
	f.Helper()
	f.Await(func() error {
		entries, err := os.ReadDir(f.layerDir())
		names = nil
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err == nil && len(names) != n {
			err = fmt.Errorf("layers %v, want %d", names, n)
		}
		return err
	})
	return names
}

// layerDir returns the directory that has a directory for each layer.
func (f *fixture) layerDir() string {
	return filepath.Join(f.StateDir(), "engine", "io.containerd.snapshotter.v1.overlayfs", "snapshots")
}

//go:build e2e

package volume

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// TestUnbindable: a host path above a directory with mounts of pods does not copy them, also those that were mounted before the directory
// became unbindable. The directory itself is refused.
func TestUnbindable(t *testing.T) {
	base := t.TempDir()
	dir := filetest.Mkdir(t, filepath.Join(base, "run", "ns"))
	tmpfsAt(t, filepath.Join(dir, "before"), unix.MS_PRIVATE)
	for range 2 {
		if _, err := EnsureUnbindable(dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := unmountTree(dir); err != nil {
			t.Error(err)
		}
	})
	tmpfsAt(t, filepath.Join(dir, "after"), unix.MS_PRIVATE)
	s := newSet(t, nil)
	s.opts.Unbindable = []string{dir}
	pod := podOf(
		spec.Volume{Name: "above", HostPath: &spec.HostPathVolume{Path: filepath.Join(base, "run")}},
		spec.Volume{Name: "in", HostPath: &spec.HostPathVolume{Path: filepath.Join(dir, "after")}},
		spec.Volume{Name: "self", HostPath: &spec.HostPathVolume{Path: dir}},
	)
	clean(t, s, pod.UID)
	mount := func(name string) (string, error) {
		c := &spec.Container{VolumeMounts: []spec.VolumeMount{{Name: name, MountPath: "/m"}}}
		list, err := s.Mounts(t.Context(), pod, Request{Run: "run", Container: c})
		if err != nil {
			return "", err
		}
		return list[0].Source, nil
	}
	above, err := mount("above")
	if err != nil {
		t.Fatal(err)
	}
	if list := mountsBelow(t, above); len(list) != 1 {
		t.Errorf("mounts at and below the host path: %v, want one", list)
	}
	if _, err := mount("in"); err != nil {
		t.Errorf("a mount in the directory: %v", err)
	}
	if _, err := mount("self"); err == nil || !strings.Contains(err.Error(), "contains mounts of pods") {
		t.Errorf("the directory itself: %v", err)
	}
	if err := s.Release(t.Context(), pod.UID, "run"); err != nil {
		t.Error(err)
	}
	if err := unmountTree(filepath.Join(dir, "before")); err != nil {
		t.Error(err)
	}
	if err := unix.Rmdir(filepath.Join(dir, "before")); err != nil {
		t.Errorf("remove the mount point of an earlier mount: %v", err)
	}
	if err := ReleaseUnbindable(dir); err != nil || !slices.Contains(mountsBelow(t, dir), dir) {
		t.Errorf("released with a mount in it, %v", err)
	}
	if err := unmountTree(filepath.Join(dir, "after")); err != nil {
		t.Error(err)
	}
	if err := ReleaseUnbindable(dir); err != nil || len(mountsBelow(t, dir)) > 0 {
		t.Errorf("not released: %v, %v", mountsBelow(t, dir), err)
	}
}

//go:build e2e

package volume

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// While somebody who may write to an allowed folder swaps a folder of it against a link that leads out, what is mounted for a
// hostPath volume is never outside, and stays what it was when the link is there.
func TestConfinedHostPathRace(t *testing.T) {
	s := newSet(t, nil)
	dir := t.TempDir()
	allowed, outside := filetest.Mkdir(t, filepath.Join(dir, "srv")), filetest.Mkdir(t, filepath.Join(dir, "etc"))
	s.opts.HostPaths = []string{allowed}
	folder, link := filetest.Mkdir(t, filepath.Join(allowed, "a")), filepath.Join(allowed, "b")
	filetest.Symlink(t, outside, link)
	inside, forbidden := filetest.Stat(t, folder).Ino, filetest.Stat(t, outside).Ino
	pod := podOf(spec.Volume{Name: "h", HostPath: &spec.HostPathVolume{Path: folder}})
	clean(t, s, pod.UID)
	var group sync.WaitGroup
	stop := make(chan struct{})
	filetest.Swap(t, &group, stop, folder, link)
	end := time.Now().Add(wholeTime)
	mounted, refused := 0, 0
	for n := 0; n < 300 || (mounted == 0 || refused == 0) && time.Now().Before(end); n++ {
		list, err := s.Mounts(t.Context(), pod, Request{Run: "run", Container: &spec.Container{VolumeMounts: []spec.VolumeMount{{Name: "h", MountPath: "/h"}}}})
		if err != nil {
			refused++
			continue
		}
		mounted++
		if ino := filetest.Stat(t, list[0].Source).Ino; ino == forbidden || ino != inside {
			t.Fatalf("mounted inode %d, want %d", ino, inside)
		}
	}
	close(stop)
	group.Wait()
	t.Logf("mounted %d times, refused %d times", mounted, refused)
	if mounted == 0 || refused == 0 {
		t.Errorf("no race was met: mounted %d times, refused %d times", mounted, refused)
	}
}

// A host path that is mounted by what was looked at shows what is mounted below it, files too, and passes mounts on as asked.
func TestConfinedHostPathIsWhole(t *testing.T) {
	s := newSet(t, nil)
	base := t.TempDir()
	shared := tmpfsAt(t, filepath.Join(base, "shared"), unix.MS_SHARED)
	filetest.Write(t, filepath.Join(shared, "file"), "text")
	below := tmpfsAt(t, filepath.Join(shared, "below"), unix.MS_SHARED)
	filetest.Write(t, filepath.Join(below, "deep"), "deep text")
	s.opts.HostPaths = []string{base}
	pod := podOf(
		spec.Volume{Name: "folder", HostPath: &spec.HostPathVolume{Path: shared}},
		spec.Volume{Name: "file", HostPath: &spec.HostPathVolume{Path: filepath.Join(shared, "file"), Type: spec.HostPathFile}},
	)
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	list, err := s.Mounts(t.Context(), pod, Request{Run: "run", Container: &spec.Container{VolumeMounts: []spec.VolumeMount{
		{Name: "folder", MountPath: "/private"},
		{Name: "folder", MountPath: "/slave", MountPropagation: "HostToContainer"},
		{Name: "folder", MountPath: "/shared", MountPropagation: "Bidirectional"},
		{Name: "file", MountPath: "/file"},
		{Name: "folder", MountPath: "/sub", SubPath: "below"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"below/deep", "below/deep", "below/deep"} {
		if got := filetest.Read(t, filepath.Join(list[i].Source, name)); got != "deep text" {
			t.Errorf("%s: %q", list[i].Destination, got)
		}
	}
	if got := filetest.Read(t, list[3].Source); got != "text" {
		t.Errorf("the file: %q", got)
	}
	later := tmpfsAt(t, filetest.Mkdir(t, filepath.Join(shared, "later")), unix.MS_PRIVATE)
	filetest.Write(t, filepath.Join(later, "news"), "news")
	for i, seen := range []bool{false, true, true} {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(list[i].Source, "later", "news"), &st); (err == nil) != seen {
			t.Errorf("%s: a mount that came later is seen: %v, want %v", list[i].Destination, err == nil, seen)
		}
	}
}

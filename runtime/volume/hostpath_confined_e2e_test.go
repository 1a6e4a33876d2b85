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

// While a directory below an allowed one is exchanged for a link out of it, nothing outside is mounted for a hostPath
// volume.
func TestConfinedHostPathRace(t *testing.T) {
	s := newSet(t, nil)
	dir := t.TempDir()
	allowed, outside := filetest.Mkdir(t, filepath.Join(dir, "srv")), filetest.Mkdir(t, filepath.Join(dir, "etc"))
	s.opts.HostPaths = []string{allowed}
	dirPath, link := filetest.Mkdir(t, filepath.Join(allowed, "a")), filepath.Join(allowed, "b")
	filetest.Symlink(t, outside, link)
	inside, forbidden := filetest.Stat(t, dirPath).Ino, filetest.Stat(t, outside).Ino
	pod := podOf(spec.Volume{Name: "h", HostPath: &spec.HostPathVolume{Path: dirPath}})
	clean(t, s, pod.UID)
	var group sync.WaitGroup
	stop := make(chan struct{})
	filetest.Swap(t, &group, stop, dirPath, link)
	deadline := time.Now().Add(testTimeout)
	mounted, refused := 0, 0
	for n := 0; n < 300 || (mounted == 0 || refused == 0) && time.Now().Before(deadline); n++ {
		list, err := s.Mounts(t.Context(), pod,
			Request{Run: "run", Container: &spec.Container{VolumeMounts: []spec.VolumeMount{{Name: "h", MountPath: "/h"}}}})
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
		t.Errorf("race not reproduced: mounted %d times, refused %d times", mounted, refused)
	}
}

// A confined host path includes the mounts below it, can be a file, and has the requested mount propagation.
func TestConfinedHostPathRecursive(t *testing.T) {
	s := newSet(t, nil)
	base := t.TempDir()
	shared := tmpfsAt(t, filepath.Join(base, "shared"), unix.MS_SHARED)
	filetest.Write(t, filepath.Join(shared, "file"), "text")
	below := tmpfsAt(t, filepath.Join(shared, "below"), unix.MS_SHARED)
	filetest.Write(t, filepath.Join(below, "deep"), "deep text")
	s.opts.HostPaths = []string{base}
	pod := podOf(
		spec.Volume{Name: "dir", HostPath: &spec.HostPathVolume{Path: shared}},
		spec.Volume{Name: "file", HostPath: &spec.HostPathVolume{Path: filepath.Join(shared, "file"), Type: spec.HostPathFile}},
	)
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	list, err := s.Mounts(t.Context(), pod, Request{Run: "run", Container: &spec.Container{VolumeMounts: []spec.VolumeMount{
		{Name: "dir", MountPath: "/private"},
		{Name: "dir", MountPath: "/slave", MountPropagation: "HostToContainer"},
		{Name: "dir", MountPath: "/shared", MountPropagation: "Bidirectional"},
		{Name: "file", MountPath: "/file"},
		{Name: "dir", MountPath: "/sub", SubPath: "below"},
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
	filetest.Write(t, filepath.Join(later, "file"), "file")
	for i, seen := range []bool{false, true, true} {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(list[i].Source, "later", "file"), &st); (err == nil) != seen {
			t.Errorf("%s: a later mount is visible: %v, want %v", list[i].Destination, err == nil, seen)
		}
	}
}

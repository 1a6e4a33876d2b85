package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

func TestImageDefined(t *testing.T) {
	c := &spec.Container{VolumeMounts: []spec.VolumeMount{{Name: "v", MountPath: "/var/lib/db/"}}}
	volumes := map[string]struct{}{}
	for _, p := range []string{
		"/var/lib/db", "/var/lib/db/wal", "/var/lib/dbs", "/var/lib",
		"data", "/data/", "/", "/proc/x", "/sys/fs/cgroup", "/dev", "/etc/hosts", "/../up",
	} {
		volumes[p] = struct{}{}
	}
	got, err := ImageDefined(volumes, c, []string{"/etc/hosts"})
	if diff := cmp.Diff([]string{"/data", "/up", "/var/lib", "/var/lib/dbs"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for i := range maxImageDefined + 1 {
		volumes["/"+strings.Repeat("x", i+1)] = struct{}{}
	}
	_, err = ImageDefined(volumes, c, nil)
	filetest.WantError(t, err, "at most 64")
}

// TestImageDefinedVolumes checks the life of volumes that an image defines: they are empty directories of one run, get the content of the
// image, and are removed with the run.
func TestImageDefinedVolumes(t *testing.T) {
	s := newSet(t, &fakeValues{})
	pod := &spec.Pod{Containers: []spec.Container{{Name: "a"}, {Name: "b"}}}
	paths := []string{"/data", "/new", "/link"}
	of := func(run string) *spec.Pod { return WithImageDefined(pod, "b", run, paths) }
	if n := len(pod.Volumes) + len(pod.Containers[1].VolumeMounts) + len(of("r").Containers[0].VolumeMounts); n != 0 {
		t.Errorf("%d volumes where there must be none", n)
	}
	root := t.TempDir()
	for _, dir := range []string{"data/deep", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	filetest.Write(t, filepath.Join(root, "data/deep/file"), "of the image")
	if err := os.Symlink("/elsewhere", filepath.Join(root, "link")); err != nil { // below the root
		t.Fatal(err)
	}
	for _, run := range []string{"one", "two"} {
		if err := s.Prepare(t.Context(), Pod{UID: "u", Spec: of(run)}); err != nil {
			t.Fatal(err)
		}
		if err := s.FillImageDefined(t.Context(), "u", run, root, paths); err != nil {
			t.Fatal(err)
		}
	}
	dirs, err := s.ImageDefinedDirs("u", "one")
	if err != nil || len(dirs) != 3 {
		t.Fatalf("directories %v, %v", dirs, err)
	}
	if text := filetest.Read(t, filepath.Join(dirs[0], "deep/file")); text != "of the image" {
		t.Errorf("content %q", text)
	}
	for i, want := range []os.FileMode{0o750, 0o755, 0o750} {
		if info, err := os.Stat(dirs[i]); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %o", paths[i], info.Mode(), err, want)
		}
	}
	err = s.FillImageDefined(t.Context(), "u", "one", root, []string{"/data/deep/file"})
	filetest.WantError(t, err, `volume "/data/deep/file" of the image: is not a directory`)
	filetest.Write(t, groupNote(dirs[0]), "2000")
	if err := s.RemoveImageDefined(t.Context(), "u", "one"); err != nil {
		t.Fatal(err)
	}
	if all, err := filepath.Glob(filepath.Join(s.diskDir("u"), "*one*")); err != nil || len(all) > 0 {
		t.Errorf("left: %v, %v", all, err)
	}
	left, err := s.ImageDefinedDirs("u", "two")
	if gone, _ := s.ImageDefinedDirs("u", "one"); err != nil || len(gone) != 0 || len(left) != 3 {
		t.Errorf("left of the removed run: %v, of the other one: %v, %v", gone, left, err)
	}
}

//go:build e2e

package volume

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// nest returns the mounts that are left, and the error, for a container with these volume mounts and files.
func nest(t *testing.T, s *Set, pod Pod, root string, files []specs.Mount, mounts ...spec.VolumeMount) ([]specs.Mount, error) {
	t.Helper()
	r := Request{Run: "run", Container: &spec.Container{Name: "c", VolumeMounts: mounts}}
	list, err := s.Mounts(t.Context(), pod, r)
	if err != nil {
		t.Fatal(err)
	}
	return s.Nest(t.Context(), pod, r, root, append(list, files...))
}

// file returns a mount of a file.
func file(t *testing.T, destination string) specs.Mount {
	t.Helper()
	source := filepath.Join(t.TempDir(), "file")
	filetest.Write(t, source, "text")
	return specs.Mount{Destination: destination, Type: "bind", Source: source, Options: []string{"rbind", "rprivate", "rw"}}
}

// TestNest checks that mounts inside of volumes are made in the copy of the volume for the container, wherever links of the image lead.
func TestNest(t *testing.T) {
	s := newSet(t, &fakeValues{configMaps: map[string]map[string]string{"conf": {"key": "value"}}})
	pod := podOf(
		spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}, spec.Volume{Name: "other", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "conf"}},
	)
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	data, other := s.path(pod.UID, &pod.Spec.Volumes[0]), s.path(pod.UID, &pod.Spec.Volumes[1])
	filetest.Write(t, filepath.Join(other, "own"), "other")
	filetest.Mkdir(t, filepath.Join(data, "releases", "3"))
	filetest.Symlink(t, "releases/3", filepath.Join(data, "current"))
	root := t.TempDir()
	filetest.Symlink(t, "/data", filepath.Join(root, "etc"))
	filetest.Mkdir(t, filepath.Join(root, "data"))
	filetest.Symlink(t, "/elsewhere", filepath.Join(root, "data", "sub")) // covered by the volume

	left, err := nest(t, s, pod, root, []specs.Mount{file(t, "/etc/hosts"), file(t, "/run/file"), {Destination: "/data/proc", Type: "proc"}},
		spec.VolumeMount{Name: "data", MountPath: "/data"},
		spec.VolumeMount{Name: "other", MountPath: "/data/sub", ReadOnly: true},
		spec.VolumeMount{Name: "other", MountPath: "/data/current/x"},
		spec.VolumeMount{Name: "conf", MountPath: "/conf"},
		spec.VolumeMount{Name: "other", MountPath: "/conf/more"},
	)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range left {
		names = append(names, m.Destination)
	}
	if diff := cmp.Diff([]string{"/data", "/conf", "/run/file", "/data/proc"}, names); diff != "" {
		t.Error(diff)
	}
	view := left[0].Source
	for path, want := range map[string]string{"hosts": "text", "sub/own": "other", "releases/3/x/own": "other"} {
		if got := filetest.Read(t, filepath.Join(view, path)); got != want {
			t.Errorf("%s contains %q, want %q", path, got, want)
		}
	}
	if got := filetest.Read(t, filepath.Join(left[1].Source, "more", "own")) + filetest.Read(t, filepath.Join(left[1].Source, "key")); got != "othervalue" {
		t.Errorf("the config map contains %q", got)
	}
	if err := os.WriteFile(filepath.Join(view, "sub", "new"), nil, 0o600); !os.IsPermission(err) && err == nil {
		t.Error("a read-only mount can be written")
	}
	if err := os.WriteFile(filepath.Join(view, "current", "x", "new"), nil, 0o600); err != nil {
		t.Error(err)
	}
	if slices.Contains(left[0].Options, "rprivate") || !slices.Contains(left[0].Options, "private") {
		t.Errorf("options of the volume: %q", left[0].Options)
	}
	if got := filetest.Read(t, filepath.Join(data, "hosts")); got != "" {
		t.Errorf("the mount is visible in the volume itself: %q", got)
	}
	if err := s.Release(t.Context(), pod.UID, "run"); err != nil {
		t.Error(err)
	}
}

// TestNestRefuses checks mount points that do not exist in a read-only volume, and links out of a volume.
func TestNestRefuses(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}})
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	data := s.path(pod.UID, &pod.Spec.Volumes[0])
	filetest.Symlink(t, "/etc", filepath.Join(data, "absolute"))
	filetest.Symlink(t, "../../../../../../etc", filepath.Join(data, "relative"))
	filetest.Write(t, filepath.Join(data, "file"), "")
	for _, test := range []struct {
		path     string
		readOnly bool
		want     string
	}{
		{"/data/absolute/hosts", false, `mount point "/data/absolute/hosts": create mount point: subpath "absolute/hosts" not within volume path`},
		{"/data/relative/hosts", false, `not within volume path`},
		{"/data/file/hosts", false, `not a directory`},
		{"/data/missing", true, `no such file or directory`},
		{"/data/missing", false, ""},
		{"/data/missing", true, ""},
	} {
		_, err := nest(t, s, pod, t.TempDir(), []specs.Mount{file(t, test.path)}, spec.VolumeMount{Name: "data", MountPath: "/data", ReadOnly: test.readOnly})
		filetest.WantError(t, err, test.want)
	}
}

// TestNestRace: while a container exchanges a directory for a link out of the volume, no mount point is created outside, and nothing is mounted
// there.
func TestNestRace(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}})
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	data, outside := s.path(pod.UID, &pod.Spec.Volumes[0]), filetest.Mkdir(t, filepath.Join(t.TempDir(), "outside"))
	filetest.Mkdir(t, filepath.Join(data, "a"))
	filetest.Symlink(t, outside, filepath.Join(data, "b"))
	var group sync.WaitGroup
	stop := make(chan struct{})
	filetest.Swap(t, &group, stop, filepath.Join(data, "a"), filepath.Join(data, "b"))
	mount, root := file(t, "/data/a/deep/file"), t.TempDir()
	nested, refused := 0, 0
	for deadline := time.Now().Add(testTimeout); nested < 20 || refused < 20; {
		if time.Now().After(deadline) {
			t.Errorf("race not reproduced: nested %d times, refused %d times", nested, refused)
			break
		}
		if _, err := nest(t, s, pod, root, []specs.Mount{mount}, spec.VolumeMount{Name: "data", MountPath: "/data"}); err != nil {
			refused++
			continue
		}
		nested++
	}
	close(stop)
	group.Wait()
	t.Logf("nested %d times, refused %d times", nested, refused)
	if entries, err := os.ReadDir(outside); len(entries) > 0 || err != nil {
		t.Errorf("created outside: %v, %v", entries, err)
	}
}

//go:build e2e

package volume

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

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

	left, err := nest(t, s, pod, root,
		[]specs.Mount{file(t, "/etc/hosts"), file(t, "/run/file"), {Destination: "/data/proc", Type: "proc"}},
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
	if got := filetest.Read(t, filepath.Join(left[1].Source, "more", "own")) +
		filetest.Read(t, filepath.Join(left[1].Source, "key")); got != "othervalue" {
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

// TestNestLinks checks mount points behind links in volumes, and those that cannot be created.
func TestNestLinks(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}})
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	data := s.path(pod.UID, &pod.Spec.Volumes[0])
	other := filetest.Mkdir(t, filepath.Join(data, "other"))
	for name, to := range map[string]string{
		"absolute": "/etc", "relative": "../../../../../../etc", "in": "other", "device": "/dev", "sub/other": "../../other",
		"sub/out": "../other",
	} {
		filetest.Mkdir(t, filepath.Join(data, "sub"))
		filetest.Symlink(t, to, filepath.Join(data, name))
	}
	filetest.Write(t, filepath.Join(data, "file"), "")
	for _, test := range []struct {
		path, sub string
		readOnly  bool
		left      string
		want      string
	}{
		{path: "/data/absolute/hosts", left: "/etc/hosts"},
		{path: "/data/relative/hosts", left: "/etc/hosts"},
		{path: "/data/device/null", want: `mount point "/data/device/null" leads to /dev/null through a symbolic link`},
		{path: "/data/file/hosts", want: "not a directory"},
		{path: "/data/missing", readOnly: true, want: "no such file or directory"},
		{path: "/data/missing"},
		{path: "/data/missing", readOnly: true},
		{path: "/data/in/x"},
		{path: "/data/other/y", sub: "sub", left: "/other/y"},
		{path: "/data/out/y", sub: "sub", left: "/other/y"},
	} {
		left, err := nest(t, s, pod, t.TempDir(), []specs.Mount{file(t, test.path)},
			spec.VolumeMount{Name: "data", MountPath: "/data", SubPath: test.sub, ReadOnly: test.readOnly})
		filetest.WantError(t, err, test.want)
		got := ""
		if len(left) > 1 {
			got = left[1].Destination
		}
		if got != test.left {
			t.Errorf("%s: the mount that is left is at %q, want %q", test.path, got, test.left)
		}
	}
	if names := glob(t, filepath.Join(other, "*")); !slices.Equal(names, []string{filepath.Join(other, "x")}) {
		t.Errorf("created: %q", names)
	}
}

// TestNestReplaced checks that nothing is created in a host path that was replaced after it was mounted.
func TestNestReplaced(t *testing.T) {
	s := newSet(t, nil)
	dir := t.TempDir()
	path, outside := filetest.Mkdir(t, filepath.Join(dir, "path")), filetest.Mkdir(t, filepath.Join(dir, "outside"))
	pod := podOf(spec.Volume{Name: "host", HostPath: &spec.HostPathVolume{Path: path}})
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	r := Request{Run: "run", Container: &spec.Container{Name: "c", VolumeMounts: []spec.VolumeMount{{Name: "host", MountPath: "/host"}}}}
	list, err := s.Mounts(t.Context(), pod, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	filetest.Symlink(t, outside, path)
	_, err = s.Nest(t.Context(), pod, r, t.TempDir(), append(list, file(t, "/host/new")))
	filetest.WantError(t, err, "was replaced since it was mounted")
	if names := glob(t, filepath.Join(outside, "*")); len(names) > 0 {
		t.Errorf("created: %q", names)
	}
}

// TestNestRace: while a container exchanges a directory for a link out of the volume, no mount point is created outside, and nothing is
// mounted there.
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
	nested, other := 0, 0
	for deadline := time.Now().Add(testTimeout); nested < 100 || other < 100; {
		if time.Now().After(deadline) {
			t.Errorf("race not reproduced: nested %d times, refused or at the target of the link %d times", nested, other)
			break
		}
		left, err := nest(t, s, pod, root, []specs.Mount{mount}, spec.VolumeMount{Name: "data", MountPath: "/data"})
		if err == nil && len(left) == 1 {
			nested++
			continue
		}
		other++
	}
	close(stop)
	group.Wait()
	t.Logf("nested %d times, refused or at the target of the link %d times", nested, other)
	if entries, err := os.ReadDir(outside); len(entries) > 0 || err != nil {
		t.Errorf("created outside: %v, %v", entries, err)
	}
}

// flagsOf returns the flags of the mount at a path, in the order of their names.
func flagsOf(t *testing.T, path string) string {
	t.Helper()
	var has unix.Statfs_t
	if err := unix.Statfs(path, &has); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, flag := range map[string]int64{
		"nodev": unix.ST_NODEV, "noexec": unix.ST_NOEXEC, "nosuid": unix.ST_NOSUID, "nosymfollow": 0x2000, "ro": unix.ST_RDONLY,
	} {
		if int64(has.Flags)&flag != 0 { //nolint:unconvert // the type depends on the architecture
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestNestKeepsFlags checks that mounts inside of volumes, and the volume around them, have the flags of the mounts on the host, also
// where an option of the pod changes a flag.
func TestNestKeepsFlags(t *testing.T) {
	for name, test := range map[string]struct {
		flags    uintptr // of the mount on the host
		readOnly bool    // option of the pod
		want     string
	}{
		"nosuid":                {unix.MS_NOSUID, false, "nosuid"},
		"nodev":                 {unix.MS_NODEV, false, "nodev"},
		"noexec":                {unix.MS_NOEXEC, false, "noexec"},
		"ro":                    {unix.MS_RDONLY, false, "ro"},
		"nosymfollow":           {unix.MS_NOSYMFOLLOW, false, "nosymfollow"},
		"none, read-only":       {0, true, "ro"},
		"nosuid, read-only":     {unix.MS_NOSUID, true, "nosuid ro"},
		"nodev, read-only":      {unix.MS_NODEV, true, "nodev ro"},
		"noexec, read-only":     {unix.MS_NOEXEC, true, "noexec ro"},
		"nosymfollow,read-only": {unix.MS_NOSYMFOLLOW, true, "nosymfollow ro"},
		"all":                   {unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY, false, "nodev noexec nosuid ro"},
		"all but ro, read-only": {unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, true, "nodev noexec nosuid ro"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSet(t, nil)
			dir := tmpfsAt(t, filepath.Join(t.TempDir(), "dir"), unix.MS_PRIVATE)
			filetest.Mkdir(t, filepath.Join(dir, "inner"))
			if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|test.flags, ""); err != nil {
				t.Fatal(err)
			}
			pod := podOf(spec.Volume{Name: "host", HostPath: &spec.HostPathVolume{Path: dir}},
				spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}})
			clean(t, s, pod.UID)
			prepare(t, s, pod)
			left, err := nest(t, s, pod, t.TempDir(), nil,
				spec.VolumeMount{Name: "data", MountPath: "/data"},
				spec.VolumeMount{Name: "host", MountPath: "/data/sub", ReadOnly: test.readOnly},
				spec.VolumeMount{Name: "host", MountPath: "/host"},
				spec.VolumeMount{Name: "data", MountPath: "/host/inner"},
			)
			if err != nil {
				t.Fatal(err)
			}
			data, host := left[0].Source, left[1].Source
			if got := flagsOf(t, filepath.Join(data, "sub")); got != test.want {
				t.Errorf("the mount in the volume has the flags %q, want %q", got, test.want)
			}
			if got, want := flagsOf(t, host), flagsOf(t, dir); got != want {
				t.Errorf("the volume around a mount has the flags %q, want %q", got, want)
			}
			if got := flagsOf(t, filepath.Join(host, "inner")); got != flagsOf(t, s.path(pod.UID, &pod.Spec.Volumes[1])) {
				t.Errorf("a mount without flags has %q", got)
			}
			if err := s.Release(t.Context(), pod.UID, "run"); err != nil {
				t.Error(err)
			}
		})
	}
}

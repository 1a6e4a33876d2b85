package volume

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

func TestMemorySize(t *testing.T) {
	container := func(limit string) spec.Container {
		c := spec.Container{}
		if limit != "" {
			c.Resources.Limits = spec.ResourceList{"memory": *quantity(limit)}
		}
		return c
	}
	sidecar := func(limit string) spec.Container {
		c := container(limit)
		c.RestartPolicy = spec.RestartAlways
		return c
	}
	const mi = 1 << 20
	tests := []struct {
		name      string
		init, run []spec.Container
		pod       string
		limit     string
		want      int64
	}{
		{"no limits", nil, []spec.Container{container("")}, "", "", 1024 * mi},
		{"volume limit", nil, []spec.Container{container("")}, "", "10Mi", 10 * mi},
		{"zero means no limit", nil, []spec.Container{container("")}, "", "0", 1024 * mi},
		{"limits exceed host memory", nil, []spec.Container{container("4Gi")}, "", "2Gi", 1024 * mi},
		{"sum of the containers", nil, []spec.Container{container("10Mi"), container("20Mi")}, "", "1Gi", 30 * mi},
		{"container without a limit", nil, []spec.Container{container("10Mi"), container("")}, "", "", 1024 * mi},
		{"init container without a limit", []spec.Container{container("")}, []spec.Container{container("10Mi")}, "", "", 1024 * mi},
		{"init container with a higher limit", []spec.Container{container("50Mi")}, []spec.Container{container("10Mi")}, "", "", 50 * mi},
		{"sidecar", []spec.Container{sidecar("5Mi")}, []spec.Container{container("10Mi")}, "", "", 15 * mi},
		{
			"init container after a sidecar",
			[]spec.Container{sidecar("5Mi"), container("50Mi"), sidecar("1Mi")},
			[]spec.Container{container("10Mi")},
			"", "", 55 * mi,
		},
		{"pod limit", nil, []spec.Container{container("10Mi")}, "64Mi", "", 64 * mi},
		{"volume limit below pod limit", nil, []spec.Container{container("10Mi")}, "64Mi", "8Mi", 8 * mi},
	}
	s := newSet(t, nil)
	for _, test := range tests {
		pod := &spec.Pod{InitContainers: test.init, Containers: test.run}
		if test.pod != "" {
			pod.Resources.Limits = spec.ResourceList{"memory": *quantity(test.pod)}
		}
		v := &spec.EmptyDirVolume{Medium: "Memory"}
		if test.limit != "" {
			v.SizeLimit = quantity(test.limit)
		}
		if got := s.memorySize(pod, v); got != test.want {
			t.Errorf("%s: %d MiB, want %d", test.name, got/mi, test.want/mi)
		}
	}
}

// A directory is created once. Its mode can be changed by containers, and an interrupted creation is completed.
func TestCreateDir(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "data")
	filetest.Mkdir(t, filepath.Join(filepath.Dir(dir), ".data.new"))
	gid := int64(os.Getgid())
	if created, err := createDir(dir, &gid); !created || err != nil {
		t.Fatalf("createDir: %v, %v", created, err)
	}
	if s := filetest.Stat(t, dir); s.Mode != unix.S_IFDIR|unix.S_ISGID|0o777 || int64(s.Gid) != gid {
		t.Errorf("mode %o, group %d", s.Mode, s.Gid)
	}
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	if created, err := createDir(dir, nil); created || err != nil {
		t.Errorf("repeated: %v, %v", created, err)
	}
	if s := filetest.Stat(t, dir); s.Mode != unix.S_IFDIR {
		t.Errorf("mode changed to %o", s.Mode)
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
		t.Errorf("unexpected files: %v", entries)
	}
	file := filepath.Join(t.TempDir(), "file")
	filetest.Write(t, file, "")
	_, err := createDir(file, nil)
	filetest.WantError(t, err, "is not a directory")
	nowhere := filepath.Join(t.TempDir(), "link")
	filetest.Symlink(t, "nowhere", nowhere)
	_, err = createDir(nowhere, nil)
	filetest.WantError(t, err, "not a directory")
	_, err = createDir(filepath.Join(t.TempDir(), "no", "parent"), nil)
	filetest.WantError(t, err, "no such file")
}

// TestFollowMode: the directory has the mode of the definition once, and again when that changes. An fsGroup adds its rights.
func TestFollowMode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	if _, err := createDir(dir, nil); err != nil {
		t.Fatal(err)
	}
	mode := func(m int32) *int32 { return &m }
	own := int64(os.Getgid())
	for _, step := range []struct {
		name  string
		mode  *int32
		group *int64
		by    os.FileMode // the mode that a container sets before; 0: none
		want  os.FileMode
	}{
		{"default", nil, nil, 0, 0o777},
		{"mode of a container with the default", nil, nil, 0o711, 0o711},
		{"mode", mode(0o750), nil, 0, 0o750},
		{"mode of a container", mode(0o750), nil, 0o700, 0o700},
		{"other mode", mode(0o1777), nil, 0, 0o777 | os.ModeSticky},
		{"mode without rights, with fsGroup", mode(0o1705), &own, 0, 0o775 | os.ModeSticky | os.ModeSetgid},
		{"no mode, as before", nil, nil, 0, 0o777},
	} {
		if step.by != 0 {
			if err := os.Chmod(dir, step.by); err != nil {
				t.Fatal(err)
			}
		}
		pod := &spec.Pod{SecurityContext: &spec.PodSecurityContext{FSGroup: step.group}}
		if err := followMode(dir, Pod{Spec: pod}, &spec.Volume{EmptyDir: &spec.EmptyDirVolume{Mode: step.mode}}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode() &^ os.ModeDir; got != step.want {
			t.Errorf("%s: mode %v, want %v", step.name, got, step.want)
		}
	}
}

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
		{"nothing: the machine", nil, []spec.Container{container("")}, "", "", 1024 * mi},
		{"the volume's", nil, []spec.Container{container("")}, "", "10Mi", 10 * mi},
		{"a limit of zero is none", nil, []spec.Container{container("")}, "", "0", 1024 * mi},
		{"more than the machine", nil, []spec.Container{container("4Gi")}, "", "2Gi", 1024 * mi},
		{"the sum of the containers", nil, []spec.Container{container("10Mi"), container("20Mi")}, "", "1Gi", 30 * mi},
		{"one without a limit", nil, []spec.Container{container("10Mi"), container("")}, "", "", 1024 * mi},
		{"an init container without", []spec.Container{container("")}, []spec.Container{container("10Mi")}, "", "", 1024 * mi},
		{"an init container that needs more", []spec.Container{container("50Mi")}, []spec.Container{container("10Mi")}, "", "", 50 * mi},
		{"sidecars run beside", []spec.Container{sidecar("5Mi")}, []spec.Container{container("10Mi")}, "", "", 15 * mi},
		{
			"an init container after a sidecar",
			[]spec.Container{sidecar("5Mi"), container("50Mi"), sidecar("1Mi")},
			[]spec.Container{container("10Mi")},
			"", "", 55 * mi,
		},
		{"the pod's own", nil, []spec.Container{container("10Mi")}, "64Mi", "", 64 * mi},
		{"the volume's below the pod's", nil, []spec.Container{container("10Mi")}, "64Mi", "8Mi", 8 * mi},
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

// A folder is made once; what a container makes of it stays, and what a crash left is finished.
func TestMakeDir(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "data")
	filetest.Mkdir(t, filepath.Join(filepath.Dir(dir), ".data.new"))
	gid := int64(os.Getgid())
	if made, err := makeDir(dir, &gid); !made || err != nil {
		t.Fatalf("makeDir: %v, %v", made, err)
	}
	if s := filetest.Stat(t, dir); s.Mode != unix.S_IFDIR|unix.S_ISGID|0o777 || int64(s.Gid) != gid {
		t.Errorf("mode %o, group %d", s.Mode, s.Gid)
	}
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	if made, err := makeDir(dir, nil); made || err != nil {
		t.Errorf("again: %v, %v", made, err)
	}
	if s := filetest.Stat(t, dir); s.Mode != unix.S_IFDIR {
		t.Errorf("the container's mode became %o", s.Mode)
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
	file := filepath.Join(t.TempDir(), "file")
	filetest.Write(t, file, "")
	_, err := makeDir(file, nil)
	filetest.WantError(t, err, "is not a directory")
	nowhere := filepath.Join(t.TempDir(), "link")
	filetest.Symlink(t, "nowhere", nowhere)
	_, err = makeDir(nowhere, nil)
	filetest.WantError(t, err, "not a directory")
	_, err = makeDir(filepath.Join(t.TempDir(), "no", "parent"), nil)
	filetest.WantError(t, err, "no such file")
}

//go:build e2e

package runtime_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/test/ocitar"
)

// volumesImage writes an archive of an image that defines volumes, and returns the name of the image.
func (m *testHost) volumesImage() string {
	m.Helper()
	const name = "localhost/podstead/volumes:1"
	path, err := exec.LookPath("busybox")
	if err != nil {
		m.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		m.Fatal(err)
	}
	layer := ocitar.Layer{
		{Path: "bin", Mode: fs.ModeDir | 0o755},
		{Path: "data", Mode: fs.ModeDir | 0o701},
		{Path: "data/seed", Mode: 0o640, Data: []byte("seed\n")},
	}
	for _, applet := range []string{"sh", "cat", "stat", "ls"} {
		layer = append(layer, ocitar.File{Path: "bin/" + applet, Mode: 0o755, Data: program})
	}
	var archive bytes.Buffer
	if err := ocitar.WriteOCI(&archive, ocitar.Image{
		Name: name, Layers: []ocitar.Layer{layer},
		Config: ocispec.ImageConfig{
			Env: []string{"PATH=/bin"}, Volumes: map[string]struct{}{"/data": {}, "/new": {}, "/mine": {}, "/sys/fs/cgroup": {}},
		},
	}); err != nil {
		m.Fatal(err)
	}
	file := filepath.Join(m.dir, "volumes.tar")
	if err := os.WriteFile(file, archive.Bytes(), 0o600); err != nil {
		m.Fatal(err)
	}
	m.pull(file, name)
	return name
}

// TestImageDefinedVolumes tests the volumes that an image defines: each run of a container has writable ones with the content of the image,
// also with a read-only root file system, unless the pod mounts its own.
func TestImageDefinedVolumes(t *testing.T) {
	for _, name := range []string{"host users", "user namespace"} {
		t.Run(name, func(t *testing.T) {
			m := newUserNamespaceHost(t)
			image := m.volumesImage()
			own := spec.Volume{Name: "own", EmptyDir: &spec.EmptyDirVolume{}}
			p := newPod(m, &spec.Pod{HostUsers: new(name == "host users"), Volumes: []spec.Volume{own}})
			c := sh("stat -c '%a %u' /data /data/seed; cat /data/seed; ls /new /mine; " +
				"for d in data new mine; do echo x > /$d/x && echo writable; done; (echo x > /y) 2>/dev/null || echo read-only")
			c.Image = image
			c.VolumeMounts = []spec.VolumeMount{{Name: "own", MountPath: "/mine"}}
			c.SecurityContext = &spec.SecurityContext{ReadOnlyRootFilesystem: new(true)}
			fresh := []string{"701 0", "640 0", "seed", "/mine:", "", "/new:", "writable", "writable", "writable", "read-only"}
			wantLines(t, p.output(c), fresh...)
			wantLines(t, p.output(c), "701 0", "640 0", "seed", "/mine:", "x", "", "/new:", "writable", "writable", "writable", "read-only")
			last := lifecycle.Ref{Container: p.Containers[len(p.Containers)-1].Name, Round: 1, Attempt: 1}
			if stat, err := m.StatFile(m.ctx(), uid, last.Container, "/new/x"); err != nil || stat.Size != 2 {
				t.Errorf("file in a volume of a container that has exited: %+v, %v", stat, err)
			}
			dir := filepath.Join(m.opts.StateDir, "pods", uid, "volumes")
			if list, err := os.ReadDir(dir); err != nil || len(list) != 5 {
				t.Errorf("directories of two runs and one volume: %v, %v", list, err)
			}
			if err := m.RemoveContainer(m.ctx(), uid, p.Pod, last); err != nil {
				t.Fatal(err)
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) != 3 {
				t.Errorf("directories after the removal of a run: %v, %v", list, err)
			}
		})
	}
}

//go:build e2e

package scenario

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/ocitar"
)

// TestArchiveOfRunningPod: a pod keeps its image until it is removed, whatever happens to its archive and to the name of the image.
//
// fields: imageArchives, containers[].{image,imagePullPolicy}
func TestArchiveOfRunningPod(t *testing.T) {
	f := newFixture(t)
	archive := filepath.Join(f.Dir, "app.tar")
	f.writeArchive(archive, "first")
	for _, name := range []string{"never", "default"} {
		policy := ""
		if name == "never" {
			policy = "imagePullPolicy = \"Never\"\n"
		}
		f.versioned(name, archive, policy)
		f.version(name, 0, "first")
	}

	f.Check(os.Remove(archive))
	f.crash("never", 1, "first")
	f.crash("default", 1, "first")

	f.writeArchive(archive, "second")
	f.crash("never", 2, "first")

	f.versioned("other", archive, "")
	f.version("other", 0, "second")
	f.crash("never", 3, "first")
	f.crash("default", 2, "first")
	f.crash("other", 1, "second")

	f.MustKillDaemon()
	f.MustRun("get")
	f.crash("never", 4, "first")
	f.Check(os.Remove(archive))
	f.crash("default", 3, "first")
	f.crash("other", 2, "second")
}

// versioned starts a pod with an image of an archive of [fixture.writeArchive].
func (f *fixture) versioned(name, archive, fields string) {
	f.Helper()
	control := filepath.Join(f.Dir, name)
	f.Check(os.Mkdir(control, 0o755)) // the files are private
	text := fmt.Sprintf("name = %q\nimageArchives = [%q]\nrestartBackoff = { initialSeconds = 0.1 }\n", name, archive) +
		fmt.Sprintf("volumes = [{ name = \"control\", hostPath = { path = %q } }]\n", control) +
		"[[containers]]\nname = \"c\"\nimage = \"localhost/app\"\nvolumeMounts = { control = \"/control\" }\n" +
		"command = [\"sh\", \"-c\", \"cat /version; trap 'exit 0' TERM; until rm /control/crash 2>/dev/null; do sleep 0.1; done; " +
		"exit 1\"]\n" +
		fields
	_, err := f.Create(f.Ctx(), name, text)
	f.Check(err)
}

// version waits until a run of the container has written the version of its image.
func (f *fixture) version(pod string, restarts int, want string) {
	f.Helper()
	f.Until(pod, fmt.Sprintf("running after %d restarts", restarts), func(p *api.Pod) bool {
		c := p.Status.ContainerStatuses[0]
		return c.State.Running != nil && c.RestartCount == restarts
	})
	if got := f.line(pod, "version "); got != want {
		f.Errorf("pod %s runs version %q after %d restarts, want %q", pod, got, restarts, want)
	}
}

// crash ends the process of a pod, and checks that its next run has the same version.
func (f *fixture) crash(pod string, restarts int, want string) {
	f.Helper()
	f.Check(os.WriteFile(filepath.Join(f.Dir, pod, "crash"), nil, 0o600))
	f.version(pod, restarts, want)
}

// writeArchive writes an archive with an image that contains busybox and a version. It replaces the file.
func (f *fixture) writeArchive(path, version string) {
	f.Helper()
	busybox, err := exec.LookPath("busybox")
	f.Check(err)
	program, err := os.ReadFile(busybox)
	f.Check(err)
	layer := ocitar.Layer{{Path: "bin", Mode: fs.ModeDir | 0o755}, {Path: "bin/busybox", Mode: 0o755, Data: program}}
	for _, command := range []string{"cat", "rm", "sh", "sleep"} {
		layer = append(layer, ocitar.File{Path: "bin/" + command, Link: "busybox"})
	}
	layer = append(layer, ocitar.File{Path: "version", Mode: 0o644, Data: []byte("version " + version + "\n")})
	var archive bytes.Buffer
	f.Check(ocitar.WriteOCI(&archive, ocitar.Image{Name: "localhost/app:latest", Layers: []ocitar.Layer{layer}}))
	f.Check(os.WriteFile(path+".new", archive.Bytes(), 0o600))
	f.Check(os.Rename(path+".new", path))
}

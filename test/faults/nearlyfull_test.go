//go:build e2e

package faults

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/ocitar"
)

// nearlyFull is a host with a small disk and two pods that run: keeper, whose image was imported by hand, and rolling, which keeps a
// generation for a rollback. The image actor was imported by hand, kept is in an archive of the image directory, and nothing uses the
// image intruder.
type nearlyFull struct{ *fixture }

const (
	testserver = "localhost/podstead/testserver:1"
	intruder   = "localhost/podstead/intruder:1"
	actor      = "localhost/podstead/actor:1"
	kept       = "localhost/kept:1"
)

func newNearlyFull(t *testing.T, inodes int) nearlyFull {
	f := nearlyFull{newFixture(t)}
	f.Ext4Disk("-N", fmt.Sprint(inodes))
	f.Env = append(f.Env, "PODSTEAD_IMAGES_MIN_AGE=0s")
	f.MustRun("image", "import", f.Archive("busybox")) // the daemon runs
	f.apply("keeper",
		fmt.Sprintf("terminationGracePeriodSeconds = 1\n[[containers]]\nname = \"c\"\nimage = %q\ncommand = [\"sleep\", \"100000\"]\n",
			busybox))
	for generation, name := range []string{"testserver", "busybox"} {
		f.apply("rolling", fmt.Sprintf(
			"terminationGracePeriodSeconds = 1\nlabels.n = \"%d\"\nimageArchives = [%q]\n[[containers]]\nname = \"c\"\nimage = %q\n%s",
			generation, f.Archive(name), "localhost/podstead/"+name+":1",
			map[string]string{"busybox": "command = [\"sleep\", \"100000\"]\n"}[name]))
	}
	f.unused("intruder")
	f.MustRun("image", "import", f.Archive("actor"))
	f.inDirectory()
	f.MustRun("stop", "keeper")
	f.MustRun("start", "keeper", "--wait")
	return f
}

// apply applies a pod and waits until it is ready.
func (f nearlyFull) apply(name, text string) {
	f.Helper()
	file, err := f.WritePod(name, fmt.Sprintf("name = %q\n", name)+text)
	f.Check(err)
	f.MustRun("apply", file, "--wait")
}

// unused imports an image with a pod that is deleted.
func (f nearlyFull) unused(name string) {
	f.Helper()
	file, err := f.WritePod("once",
		fmt.Sprintf("name = \"once\"\nrestartPolicy = \"Never\"\nimageArchives = [%q]\n[[containers]]\nname = \"c\"\nimage = %q\ncommand "+
			"= [\"/none\"]\n",
			f.Archive(name), "localhost/podstead/"+name+":1"))
	f.Check(err)
	_, _ = f.Podstead(f.Ctx(), "run", file) // the image has no such program
	f.Await(func() error {
		if f.images()["localhost/podstead/"+name+":1"] == "" {
			return nil
		}
		return errors.New("the image is in use")
	})
}

// inDirectory puts an archive with the image kept into the image directory, and waits until it is imported.
func (f nearlyFull) inDirectory() {
	f.Helper()
	var archive bytes.Buffer
	f.Check(ocitar.WriteOCI(&archive, ocitar.Image{Name: kept, Layers: []ocitar.Layer{{{Path: "kept", Mode: 0o644}}}}))
	dir := filepath.Join(f.StateDir(), "images")
	f.Check(errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, ".kept.tar"), archive.Bytes(), 0o600),
		os.Rename(filepath.Join(dir, ".kept.tar"), filepath.Join(dir, "kept.tar"))))
	f.Await(func() error {
		if reason := f.images()[kept]; !strings.HasPrefix(reason, "archive ") {
			return fmt.Errorf("the image is kept for %q", reason)
		}
		return nil
	})
}

// images returns what keeps each image.
func (f nearlyFull) images() map[string]string {
	f.Helper()
	list := map[string]string{}
	for line := range strings.Lines(f.MustRun("image", "ls", "--no-headers")) {
		columns := strings.Fields(line)
		list[columns[0]] = strings.TrimSpace(strings.ReplaceAll(strings.Join(columns[5:], " "), "<none>", ""))
	}
	return list
}

// event waits for an event of the host, and returns its line.
func (f nearlyFull) event(kind api.EventKind, containing string) (line string) {
	f.Helper()
	f.Await(func() error {
		out := f.MustRun("events", "-o", "json")
		for l := range strings.Lines(out) {
			if strings.Contains(l, fmt.Sprintf(`"kind":%q`, kind)) && strings.Contains(l, containing) {
				line = l
				return nil
			}
		}
		return fmt.Errorf("no event %s with %q in:\n%s", kind, containing, out)
	})
	return line
}

func (f nearlyFull) count(kind api.EventKind) int {
	return strings.Count(f.MustRun("events", "-o", "json"), fmt.Sprintf(`"kind":%q`, kind))
}

// unharmed checks that the pods run, and that what must be kept is present.
func (f nearlyFull) unharmed() {
	f.Helper()
	images := f.images()
	for _, name := range []string{busybox, testserver, actor, kept} {
		if _, ok := images[name]; !ok {
			f.Errorf("image %s was removed, left: %v", name, images)
		}
	}
	for name, changes := range map[string]int{"keeper": 1, "rolling": 2} { // each change restarts the container
		if p := f.get(name); p.Status.Phase != api.PhaseRunning || p.Status.ContainerStatuses[0].RestartCount > changes {
			f.Errorf("pod %s: %s, %d restarts", name, p.Status.Phase, p.Status.ContainerStatuses[0].RestartCount)
		}
	}
}

func (f nearlyFull) end() {
	f.Helper()
	f.MustRun("delete", "--all", "--force")
}

// TestDiskNearlyFull: above the threshold, unused images are removed, everything else is kept, and pods keep running. On a full disk
// nothing is lost, pulls fail with the cause, and everything works when there is space again.
func TestDiskNearlyFull(t *testing.T) {
	f := newNearlyFull(t, 4096)
	if _, ok := f.images()[intruder]; !ok {
		t.Fatalf("no unused image: %v", f.images())
	}
	ballast := filepath.Join(f.StateDir(), "ballast")
	f.fillTo(ballast, 87)
	removed := f.event(api.EventImageRemoved, intruder)
	if !strings.Contains(removed, "of the space") {
		t.Errorf("event %s", removed)
	}
	f.unharmed()

	f.fillTo(ballast, 95)
	failed := f.event(api.EventFreeDiskSpaceFailed, "the threshold is 85%")
	if !strings.Contains(failed, "of images in use") || !strings.Contains(failed, "of images requested by hand") {
		t.Errorf("event %s", failed)
	}
	f.unharmed()

	fill, release := f.ballast() // completely, with the reserve
	f.Check(os.Remove(ballast))
	fill(0)
	pulled, err := f.Podstead(f.Ctx(), "image", "import", f.Archive("intruder"))
	if err == nil ||
		!strings.Contains(err.Error(), "no space left on device") && !strings.Contains(err.Error(), "half of the free disk space") {
		t.Errorf("import on the full disk: %q, %v", pulled, err)
	}
	f.MustKillDaemon() // nothing is lost
	f.unharmed()
	if n := f.count(api.EventFreeDiskSpaceFailed); n > 3 {
		t.Errorf("%d warnings", n)
	}
	release()
	f.MustRun("image", "import", f.Archive("intruder"))
	f.MustRun("rollout", "undo", "rolling")
	f.MustRun("rollout", "status", "rolling")
	if p := f.get("rolling"); p.Spec.Containers[0].Image != testserver {
		t.Errorf("image %s after the rollback", p.Spec.Containers[0].Image)
	}
	f.unharmed()
	f.end()
}

// fillTo writes a file until the disk is used to a percentage.
func (f nearlyFull) fillTo(path string, percent uint64) {
	f.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	f.Check(err)
	defer file.Close()
	block := make([]byte, 256<<10)
	for {
		var fs unix.Statfs_t
		f.Check(unix.Statfs(f.StateDir(), &fs))
		used := fs.Blocks - fs.Bfree
		if used*100 >= percent*(used+fs.Bavail) {
			return
		}
		_, err := file.Write(block)
		f.Check(err)
		f.Check(file.Sync())
	}
}

// TestInodesNearlyFull: the same with inodes.
func TestInodesNearlyFull(t *testing.T) {
	f := newNearlyFull(t, 2048)
	dir := filepath.Join(f.StateDir(), "many")
	f.Check(os.Mkdir(dir, 0o700))
	for n := 0; ; n++ {
		var fs unix.Statfs_t
		f.Check(unix.Statfs(f.StateDir(), &fs))
		if (fs.Files-fs.Ffree)*100 >= 90*fs.Files {
			break
		}
		f.Check(os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), nil, 0o600))
	}
	removed := f.event(api.EventImageRemoved, intruder)
	if !strings.Contains(removed, "of the inodes") {
		t.Errorf("event %s", removed)
	}
	f.event(api.EventFreeDiskSpaceFailed, "of the inodes")
	f.unharmed()
	f.Check(os.RemoveAll(dir))
	f.event(api.EventDiskSpaceAvailable, "of the inodes")
	if left := slices.Sorted(maps.Keys(f.images())); len(left) != 4 {
		t.Errorf("images %v, want 4", left)
	}
	f.end()
}

//go:build e2e

package hostile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/ocitar"
)

// imageOptions bound unpacked images to what the attacks are made for.
func imageOptions() options {
	return options{env: []string{fmt.Sprint("PODSTEAD_IMAGES_MAX_UNPACKED_SIZE=", ocitar.AttackLimit)}}
}

// refusal returns the message of a pod's container that waits for its image.
func refusal(p *api.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && (w.Reason == "ErrImagePull" || w.Reason == "ImagePullBackOff") {
			return w.Message
		}
	}
	return ""
}

// refusals are pods whose images must be refused, with patterns for the reasons. A few exist at a time: they are deleted before their
// pulls are repeated, because a pull that is interrupted keeps what it has for the next one.
type refusals struct {
	*fixture
	names, want []string
	n           int // pods that were created
}

// maxRefusals is how many pods exist at a time.
const maxRefusals = 6

// add creates a pod, with an archive or none.
func (r *refusals) add(archive, image, want string) {
	r.Helper()
	if len(r.names) == maxRefusals {
		r.check()
	}
	r.n++
	name := fmt.Sprintf("refused%d", r.n)
	if archive != "" {
		archive = fmt.Sprintf("imageArchives = [%q]\n", archive)
	}
	_, err := r.Create(r.Ctx(), name, fmt.Sprintf("name = %q\n%s[[containers]]\nname = \"c\"\nimage = %q\n", name, archive, image))
	r.Check(err)
	r.names, r.want = append(r.names, name), append(r.want, want)
}

// check waits until all pods are refused. It deletes each before its image is pulled again, since an interrupted pull keeps its content.
func (r *refusals) check() {
	r.Helper()
	r.Await(func() error {
		for i, name := range slices.Backward(r.names) {
			p, err := r.Client().Pod(r.Ctx(), name)
			if err != nil {
				return err
			}
			message := refusal(&p)
			if message == "" && p.Status.Phase == "Pending" {
				continue
			}
			if !regexp.MustCompile(r.want[i]).MatchString(message) {
				r.Errorf("%s: phase %s, message %q, want %q", name, p.Status.Phase, message, r.want[i])
			}
			r.MustRun("delete", "--force", name)
			r.names, r.want = slices.Delete(r.names, i, i+1), slices.Delete(r.want, i, i+1)
		}
		if len(r.names) > 0 {
			return fmt.Errorf("pods %q are not refused yet", r.names)
		}
		return nil
	})
}

// write writes a file in the directory of the fixture and returns its path.
func (f *fixture) write(name string, data []byte) (path string) {
	f.Helper()
	path = filepath.Join(f.Dir, name)
	f.Check(os.WriteFile(path, data, 0o600))
	return path
}

// engineSize returns the bytes of content and snapshots.
func (f *fixture) engineSize() (total int64) {
	f.Helper()
	f.Check(filepath.WalkDir(filepath.Join(f.StateDir(), "engine"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		var stat unix.Stat_t
		if err == nil && d.Type().IsRegular() && unix.Lstat(path, &stat) == nil {
			const block = 512
			total += stat.Blocks * block
		}
		return err
	}))
	return total
}

// daemonPeak returns the largest memory that the daemon had, in bytes.
func (f *fixture) daemonPeak() int64 {
	f.Helper()
	pid, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	f.Check(err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			f.Check(err)
			return kib << 10
		}
	}
	f.Fatal("the daemon has no VmHWM")
	return 0
}

// maxDaemon is what the daemon may take while it refuses images. Two are read at the same time, each with up to 64 MiB of names.
const maxDaemon = 256 << 20

// TestHostileImages: images that would exhaust the memory or the disk, or be another image, are refused, from an archive and from a
// registry. Nothing of them remains.
func TestHostileImages(t *testing.T) {
	f := newFixture(t, imageOptions())
	before := f.engineSize()
	pods := &refusals{fixture: f}
	zipped := func(name string, write func(io.Writer) error) (path string) {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		f.Check(errors.Join(write(z), z.Close()))
		return f.write(name, buf.Bytes())
	}
	for i, a := range slices.Concat(ocitar.Attacks(), ocitar.Invalid()) {
		tree := a.Make()
		archive := zipped(fmt.Sprintf("bad%d.tar.gz", i), func(w io.Writer) error { return tree.Write(w, "localhost/bad:1") })
		pods.add(archive, "localhost/bad:1", a.Archive)
		if a.Registry != "" {
			pods.add("", newRegistry(t, map[string]*ocitar.Tree{"bad:1": tree}).host+"/bad:1", a.Registry)
		}
	}
	for name, data := range map[string][]byte{"zeros": make([]byte, 2*ocitar.AttackLimit), "manifest.json": make([]byte, 9<<20)} {
		archive := zipped(name+".tar.gz", func(w io.Writer) error { return ocitar.WriteFiles(w, map[string][]byte{name: data}) })
		pods.add(archive, "localhost/bad:1", "more than")
	}
	pods.check()
	if peak := f.daemonPeak(); peak > maxDaemon {
		f.Errorf("the daemon took %d MiB", peak>>20)
	}
	const slack = 2 << 20 // the database grows
	f.Await(func() error {
		if now := f.engineSize(); now > before+slack {
			return fmt.Errorf("the engine has %d bytes more than before", now-before)
		}
		return nil
	})
}

// TestImagePoisoning: an archive that contains an image with the name of another one changes nothing for pods that do not list it, nor for
// restarts of pods.
func TestImagePoisoning(t *testing.T) {
	f := newFixture(t, options{})
	forged := func(name, dir string) string {
		var buf bytes.Buffer
		f.Check(ocitar.WriteOCI(&buf, ocitar.Image{
			Name: name, Config: ocispec.ImageConfig{Entrypoint: []string{"/forged"}},
			Layers: []ocitar.Layer{{{Path: dir, Mode: fs.ModeDir | 0o755}}},
		}))
		return f.write(dir+".tar", buf.Bytes())
	}
	identity := func(name string) string {
		p, err := f.Client().Pod(f.Ctx(), name)
		f.Check(err)
		return p.Status.ContainerStatuses[0].ImageID
	}
	genuine := identity(neighbour)
	f.create("restarts", "restartPolicy = \"Always\"\nrestartBackoff = { initialSeconds = 0.1 }\n"+Play("c", "try", "wait 1ms"))
	f.Until("restarts", "restarted", func(p *api.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount > 0 })
	own := identity("restarts")

	// The attackers list archives with forged images of both names.
	const shadowed = "differs from the image of this name that is already present, only pods that list the archive use it"
	for i, name := range []string{testserver, Intruder} {
		pod := fmt.Sprintf("attacker%d", i)
		_, err := f.Create(f.Ctx(), pod, fmt.Sprintf(
			"name = %q\nterminationGracePeriodSeconds = 1\nimageArchives = [%q]\n[[containers]]\nname = \"c\"\nimage = %q\n", pod,
			forged(name, fmt.Sprint("forged", i)), name))
		f.Check(err)
		f.Until(pod, "started", func(p *api.Pod) bool { // in vain: its image has no program
			c := p.Status.ContainerStatuses[0]
			return c.RestartCount > 0 || c.State.Terminated != nil ||
				c.State.Waiting != nil && (c.State.Waiting.Reason == "CrashLoopBackOff" || c.State.Waiting.Reason == "RunContainerError")
		})
	}
	count := f.Until("restarts", "found", func(*api.Pod) bool { return true }).Status.ContainerStatuses[0].RestartCount
	f.Until("restarts", "restarted again", func(p *api.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount > count })
	if now := identity("restarts"); now != own {
		f.Errorf("a restart used image %s, want %s", now, own)
	}
	f.create("next", fmt.Sprintf("\n[[containers]]\nname = \"c\"\nimage = %q\n", testserver))
	f.Until("next", "running", func(p *api.Pod) bool { return p.Status.Phase == "Running" })
	if now := identity("next"); now != genuine {
		f.Errorf("a new pod used image %s, want %s", now, genuine)
	}
	_, err := f.Create(f.Ctx(), "unlisted", fmt.Sprintf(
		"name = \"unlisted\"\nterminationGracePeriodSeconds = 1\n[[containers]]\nname = \"c\"\nimage = %q\nimagePullPolicy = \"Never\"\n",
		testserver))
	f.Check(err)
	f.Until("unlisted", "without an image", func(p *api.Pod) bool {
		w := p.Status.ContainerStatuses[0].State.Waiting
		return w != nil && w.Reason == "ErrImageNeverPull"
	})
	for pod, want := range map[string]int{"attacker0": 1, "attacker1": 1, "restarts": 0, "next": 1} { // next finds the forged image
		if events := f.MustRun("events", pod); strings.Count(events, shadowed) != want {
			f.Errorf("%s: want %d events %q, have\n%s", pod, want, shadowed, events)
		}
	}
	f.MustRun("delete", "restarts", "next", "unlisted", "attacker0", "attacker1")
}

// TestSlowRegistries: two registries that send a byte from time to time do not keep other pods from starting, with images from an archive
// or from another registry.
func TestSlowRegistries(t *testing.T) {
	f := newFixture(t, options{})
	slow := newRegistry(t, map[string]*ocitar.Tree{"slow0:1": ocitar.Small("0"), "slow1:1": ocitar.Small("1")})
	slow.interval = 100 * time.Millisecond
	create := func(name, host string) {
		f.Helper()
		_, err := f.Create(f.Ctx(), name, fmt.Sprintf(
			"name = %q\nrestartPolicy = \"Never\"\n[[containers]]\nname = \"c\"\nimage = \"%s/%s:1\"\ncommand = [\"/none\"]\n", name, host,
			name))
		f.Check(err)
	}
	pulled := func(name string) {
		f.Helper()
		f.Until(name, "pulled", func(*api.Pod) bool { return strings.Contains(f.MustRun("events", name), "Successfully pulled image") })
	}
	create("slow0", slow.host)
	create("slow1", slow.host)
	f.Await(func() error {
		if n := slow.blobs.Load(); n < 2 {
			return fmt.Errorf("%d slow pulls run, want 2", n)
		}
		return nil
	})
	f.create("imported", Play("c", "stay", "wait 1ms"))
	f.Until("imported", "ready", isReady)
	fast := newRegistry(t, map[string]*ocitar.Tree{"fast:1": ocitar.Small("fast")})
	create("fast", fast.host)
	pulled("fast")
	close(slow.hurry) // an unfinished download would be kept
	pulled("slow0")
	pulled("slow1")
	f.MustRun("delete", "imported", "fast", "slow0", "slow1")
}

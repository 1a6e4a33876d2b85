package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// watched is a watch of devices whose nodes are links to those of the test's host, which are also those of the container.
type watched struct {
	*deviceWatch
	t    *testing.T
	root int
	seen []string
}

func newWatched(t *testing.T, missing bool, devices ...spec.Device) *watched {
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(root) })
	w := &watched{t: t, root: root}
	n := len(devices)
	w.deviceWatch = &deviceWatch{
		order: lifecycle.DeviceOrder{Definition: &spec.Container{Devices: devices}, Missing: missing},
		known: make([][]node, n), held: make([][]node, n),
		report: func(c lifecycle.DeviceChange) {
			w.seen = append(w.seen, fmt.Sprintf("%s removed=%v", filepath.Base(c.Device.Path), c.Removed))
		},
	}
	return w
}

// link makes a link the only one with a name.
func (w *watched) link(target, path string) {
	w.t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		w.t.Fatal(err)
	}
}

// expect checks the devices until nothing new appears, and expects these reports.
func (w *watched) expect(want ...string) {
	w.t.Helper()
	w.seen = nil
	for range 3 {
		w.check(w.t.Context())
	}
	if !slices.Equal(w.seen, want) {
		w.t.Errorf("reports %v, want %v", w.seen, want)
	}
}

// numbersOf returns the device numbers of nodes.
func numbersOf(nodes []node) string {
	var text []string
	for i := range nodes {
		text = append(text, fmt.Sprintf("%s %d:%d", nodes[i].Path, nodes[i].Major, nodes[i].Minor))
	}
	return strings.Join(text, ", ")
}

func created(devices ...specs.LinuxDevice) *specs.Spec {
	return &specs.Spec{Linux: &specs.Linux{Devices: devices}}
}

// nullAt is a node with the numbers of /dev/null.
func nullAt(path string) specs.LinuxDevice {
	return specs.LinuxDevice{Path: path, Type: "c", Major: 1, Minor: 3}
}

// TestDevicesOfRunningContainer starts the watch of a container whose device has been replugged before.
func TestDevicesOfRunningContainer(t *testing.T) {
	link := filepath.Join(t.TempDir(), "stick")
	t.Run("kept, and has got the new node", func(t *testing.T) {
		w := newWatched(t, false, spec.Device{Path: link, ContainerPath: "/dev/zero", OnRemove: spec.DeviceKeep})
		w.link("/dev/zero", link)
		w.read(t.Context(), w.root, created(nullAt("/dev/zero")))
		w.expect()
		if got := numbersOf(w.held[0]); got != "/dev/zero 1:5" {
			t.Errorf("held %s, want what the container has", got)
		}
	})
	t.Run("kept, and was optional and absent", func(t *testing.T) {
		w := newWatched(t, false, spec.Device{Path: link, ContainerPath: "/dev/zero", Optional: true})
		w.link("/dev/zero", link)
		w.read(t.Context(), w.root, created())
		w.expect()
		if got := numbersOf(w.held[0]); got != "/dev/zero 1:5" {
			t.Errorf("held %s, want what the container has", got)
		}
	})
	t.Run("kept, and has removed its node", func(t *testing.T) {
		w := newWatched(t, false, spec.Device{Path: link, ContainerPath: "/dev/none/stick", OnRemove: spec.DeviceKeep})
		w.link("/dev/null", link)
		w.read(t.Context(), w.root, created(nullAt("/dev/none/stick")))
		w.expect()
	})
	t.Run("mounted, and replugged with another node", func(t *testing.T) {
		w := newWatched(t, false, spec.Device{Path: link, ContainerPath: "/dev/zero"})
		w.link("/dev/null", link)
		definition := created()
		definition.Mounts = []specs.Mount{
			{Type: "bind", Source: link, Destination: "/dev/zero"},
			{Type: "bind", Source: link, Destination: "/dev/shm"}, // a directory of the container
			{Type: "tmpfs", Source: "tmpfs", Destination: "/dev"},
		}
		w.read(t.Context(), w.root, definition)
		w.expect("stick removed=true", "stick removed=false")
	})
	t.Run("mounted, unplugged, and not running any more", func(t *testing.T) {
		w := newWatched(t, false, spec.Device{Path: link, ContainerPath: "/dev/zero"})
		w.link("/dev/none", link)
		definition := created()
		definition.Mounts = []specs.Mount{{Type: "bind", Source: link, Destination: "/dev/zero"}}
		w.read(t.Context(), -1, definition)
		w.expect("stick removed=true")
	})
}

// TestDeviceDirectoryReplaced: a directory is unplugged when none of the nodes is left that the container has.
func TestDeviceDirectoryReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snd")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c0, c1, c2 := filepath.Join(dir, "c0"), filepath.Join(dir, "c1"), filepath.Join(dir, "c2")
	w := newWatched(t, false, spec.Device{Path: dir, ContainerPath: "/dev/snd"})
	w.link("/dev/null", c0)
	w.link("/dev/null", c1)
	w.read(t.Context(), w.root, created(nullAt("/dev/snd/c0"), nullAt("/dev/snd/c1")))
	w.expect()
	w.link("/dev/zero", c0) // one of two
	w.link("/dev/zero", c2) // one more
	w.expect()
	w.link("/dev/zero", c1) // c0 and c2 are not those that the container has
	w.expect("snd removed=true", "snd removed=false")
	w.link("/dev/full", c0) // all at once
	w.link("/dev/full", c1)
	w.link("/dev/full", c2)
	w.expect("snd removed=true", "snd removed=false")
}

// TestMissingDeviceIsNamed: the report names the device that was missing, not the first one.
func TestMissingDeviceIsNamed(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	w := newWatched(t, true, spec.Device{Path: path("o"), Optional: true}, spec.Device{Path: path("a")}, spec.Device{Path: path("b")})
	w.link("/dev/null", path("a"))
	w.expect()
	w.link("/dev/null", path("b"))
	w.expect("b removed=false")
	w = newWatched(t, true, spec.Device{Path: path("o"), Optional: true}, spec.Device{Path: path("a")})
	w.expect("a removed=false")
}

// TestUpdateHolds: what a container has is noted also if it needs no new node. What it has no more must be withdrawn later.
func TestUpdateHolds(t *testing.T) {
	w := newWatched(t, false, spec.Device{Path: "/dev/zero", OnRemove: spec.DeviceKeep})
	w.read(t.Context(), -1, created(nullAt("/dev/zero")))
	updated, err := w.updateIn(w.root, "id", 0, nodesOf(t.Context(), &w.order.Definition.Devices[0]))
	if got := numbersOf(w.held[0]); updated || err != nil || got != "/dev/zero 1:5" {
		t.Errorf("updated %v, %v, held %s", updated, err, got)
	}
}

// inotifyInstances returns the number of inotify instances of the process.
func inotifyInstances(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, entry := range list {
		if target, _ := os.Readlink("/proc/self/fd/" + entry.Name()); strings.Contains(target, "inotify") {
			n++
		}
	}
	return n
}

// TestDirNotifierShares: all subscriptions share one instance, each is notified only of its directories, and the last one closes the
// instance.
func TestDirNotifierShares(t *testing.T) {
	before := inotifyInstances(t)
	var n dirNotifier
	dir := t.TempDir()
	both, one, other := filepath.Join(dir, "both"), filepath.Join(dir, "one"), filepath.Join(dir, "other")
	for _, d := range []string{both, one, other} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	a, b := n.subscribe(), n.subscribe()
	if !a.watch([]string{both, one, filepath.Join(dir, "none")}) || !b.watch([]string{both, other}) {
		t.Fatal("no inotify instance")
	}
	if got := inotifyInstances(t) - before; got != 1 {
		t.Errorf("%d instances, want 1", got)
	}
	files := 0
	change := func(dir string) {
		t.Helper()
		files++
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(files)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	notified := func(d *dirNotify) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := d.wait(ctx, time.Hour); err != nil {
			t.Fatalf("not notified: %v", err)
		}
	}
	change(one)
	notified(a)
	if len(b.changed) > 0 {
		t.Error("notified of another directory")
	}
	change(both)
	notified(a)
	notified(b)
	a.watch([]string{one}) // the directory stays watched for the other one
	change(both)
	notified(b)
	if len(a.changed) > 0 {
		t.Error("notified of a directory that is not watched any more")
	}
	a.close()
	change(other)
	notified(b)
	b.close()
	if got := inotifyInstances(t) - before; got != 0 {
		t.Errorf("%d instances are left", got)
	}
	c := n.subscribe() // again
	c.watch([]string{one})
	change(one)
	notified(c)
	c.close()
}

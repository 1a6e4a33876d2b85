package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// watched is a watch of devices whose nodes are links to those of the test's host.
type watched struct {
	*deviceWatch
	t    *testing.T
	seen []string
}

func newWatched(t *testing.T, missing bool, devices ...spec.Device) *watched {
	w := &watched{t: t}
	n := len(devices)
	w.deviceWatch = &deviceWatch{
		order:       lifecycle.DeviceOrder{Definition: &spec.Container{Devices: devices}, Missing: missing},
		deviceState: deviceState{make([][]node, n), make([][]node, n)},
		report: func(c lifecycle.DeviceChange) {
			w.seen = append(w.seen, fmt.Sprintf("%s removed=%v", filepath.Base(c.Device.Path), c.Removed))
		},
	}
	return w
}

// start sets the state to that of a container that was created with the present nodes, as the next daemon reads it.
func (w *watched) start() {
	w.t.Helper()
	nodes, err := grantedDevices(w.t.Context(), w.order.Definition)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(deviceState{nodes, nodes})
	if err != nil {
		w.t.Fatal(err)
	}
	w.deviceState = deviceState{}
	if err := json.Unmarshal(text, &w.deviceState); err != nil {
		w.t.Fatal(err)
	}
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

// TestDevicesWithoutDaemon starts the watch of a container some time after its devices were read.
func TestDevicesWithoutDaemon(t *testing.T) {
	link := filepath.Join(t.TempDir(), "stick")
	device := spec.Device{Path: link, ContainerPath: "/dev/stick"}
	t.Run("unchanged", func(t *testing.T) {
		w := newWatched(t, false, device)
		w.link("/dev/null", link)
		w.start()
		w.expect()
	})
	t.Run("replugged with the same numbers", func(t *testing.T) {
		w := newWatched(t, false, device)
		w.link("/dev/null", link)
		w.start()
		w.Known[0][0].Inode++
		w.expect("stick removed=true", "stick removed=false")
	})
	t.Run("replugged with others", func(t *testing.T) {
		w := newWatched(t, false, device)
		w.link("/dev/null", link)
		w.start()
		w.link("/dev/zero", link)
		w.expect("stick removed=true", "stick removed=false")
	})
	t.Run("kept, reported, and not given", func(t *testing.T) {
		w := newWatched(t, false, spec.Device{Path: link, ContainerPath: "/dev/stick", OnRemove: spec.DeviceKeep})
		w.link("/dev/null", link)
		w.start()
		held := w.Held
		w.link("/dev/zero", link)
		w.start()
		w.Held = held
		w.expect()
	})
	t.Run("optional and absent", func(t *testing.T) {
		w := newWatched(t, false, spec.Device{Path: link + "s", Optional: true})
		w.start()
		w.expect()
	})
}

// TestDevicesUnreadable: an error other than that a device does not exist does not mean that it was unplugged.
func TestDevicesUnreadable(t *testing.T) {
	link := filepath.Join(t.TempDir(), "stick")
	w := newWatched(t, false, spec.Device{Path: link})
	w.link("/dev/null", link)
	w.start()
	w.link(link, link) // ELOOP
	w.expect()
	w.link("/dev/null", link)
	w.expect()
	w.link("/etc/passwd", link) // written by a program that has found no device
	w.expect("stick removed=true")
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
	w.start()
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

// TestUpdateRights: what a container may use follows from what it was given, not from the nodes that it has made.
func TestUpdateRights(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"devices.allow", "devices.deny"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	w := newWatched(t, false, spec.Device{Path: "/dev/null", ContainerPath: "/dev/a", Permissions: "r"})
	w.start()
	old := w.Held[0]
	w.order.Definition.Devices[0].Path = "/dev/zero"
	now, err := grantedDevices(t.Context(), w.order.Definition)
	if err != nil {
		t.Fatal(err)
	}
	if w.holds(0, now[0]) || !w.holds(0, old) {
		t.Error("the container holds /dev/null")
	}
	if err := w.setRights(dir, 0, old, now[0]); err != nil {
		t.Fatal(err)
	}
	allow, deny := read("devices.allow"), read("devices.deny")
	if allow != "c 1:5 r" || deny != "c 1:3 rwm" || !w.unsaved || !w.holds(0, now[0]) {
		t.Errorf("allow %q, deny %q, unsaved %v, held %v", allow, deny, w.unsaved, w.Held)
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

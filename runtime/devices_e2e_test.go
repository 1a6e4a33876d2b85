//go:build e2e

package runtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// keptFile has a container whose device is replugged.
const keptFile = `
hostUsers = @users
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo ready; sleep infinity"]
devices = [{ path = "@dir/by-id/stick", containerPath = "/dev/stick", onRemove = "keep" }]
`

// deviceWatch has the changes that the runtime reports.
type deviceWatch struct {
	*pod
	changes chan lifecycle.DeviceChange
	stop    func()
}

// watchDevices watches the devices of a run until the end of the test.
func (p *pod) watchDevices(o lifecycle.DeviceOrder) *deviceWatch {
	ctx, stop := context.WithCancel(p.ctx())
	w, done := &deviceWatch{pod: p, changes: make(chan lifecycle.DeviceChange, 64)}, make(chan error, 1)
	go func() { done <- p.WatchDevices(ctx, uid, o, func(c lifecycle.DeviceChange) { w.changes <- c }) }()
	w.stop = sync.OnceFunc(func() {
		stop()
		if err := <-done; ctx.Err() == nil || err == nil {
			p.Errorf("watch of devices: %v", err)
		}
	})
	p.Cleanup(w.stop)
	return w
}

// next returns the next change.
func (w *deviceWatch) next() lifecycle.DeviceChange {
	w.Helper()
	select {
	case c := <-w.changes:
		return c
	case <-time.After(deadline):
		w.Fatal("no change of a device was reported")
	}
	panic("unreachable")
}

// plug makes the device the one with a number, by a node of its own and the stable link to it.
func plug(t testing.TB, dir string, n int, major, minor uint32) (unplug func()) {
	t.Helper()
	node := filepath.Join(dir, "node"+strconv.Itoa(n))
	link := filepath.Join(dir, "by-id", "stick")
	makeNode(t, node, major, minor)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../"+filepath.Base(node), link); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		for _, path := range []string{node, link, filepath.Dir(link)} {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDevicesKept replugs the device of a running container 20 times, as another node with other numbers each time. The container has the
// new node without a restart, and not the right to the old one. In a user namespace it has to be restarted.
//
// fields: containers[].devices[].onRemove
func TestDevicesKept(t *testing.T) {
	t.Run("node", func(t *testing.T) {
		m := newTestHost(t)
		tun, fuse := [2]uint32{10, 200}, [2]uint32{10, 229}
		unplug := plug(t, m.dir, 0, tun[0], tun[1])
		p := newPod(m, m.parse(strings.NewReplacer("@users", "true", "@dir", m.dir).Replace(keptFile)))
		ref := p.serve("c")
		w := p.watchDevices(lifecycle.DeviceOrder{Ref: ref, Definition: p.Container("c")})
		for n := range 20 {
			unplug()
			if c := w.next(); !c.Removed || c.Device.Path != m.dir+"/by-id/stick" {
				t.Fatalf("replug %d: %+v, want that the device was unplugged", n, c)
			}
			now, old := fuse, tun
			if n%2 == 1 {
				now, old = old, now
			}
			unplug = plug(t, m.dir, n+1, now[0], now[1])
			if c := w.next(); c.Removed || c.Outcome != "the container has its new node" {
				t.Fatalf("replug %d: %+v, want a new node", n, c)
			}
			_, out, err := p.exec(ref, deadline, fmt.Sprintf(`stat -c '%%t:%%T %%a' /dev/stick; : < /dev/stick && echo open
				mknod /dev/old c %d %d; sh -c ': < /dev/old'; rm /dev/old`, old[0], old[1]))
			want := fmt.Sprintf("%x:%x 666", now[0], now[1])
			if err != nil || !strings.Contains(out, want+"\nopen\n") || !strings.Contains(out, "not permitted") {
				t.Fatalf("replug %d: %v, %q, want %q, and no right to the old device", n, err, out, want)
			}
		}
	})
	t.Run("hostile", func(t *testing.T) {
		m := newTestHost(t)
		unplug := plug(t, m.dir, 0, 10, 200)
		p := newPod(m, m.parse(strings.NewReplacer("@users", "true", "@dir", m.dir).Replace(keptFile)))
		ref := p.serve("c")
		order := lifecycle.DeviceOrder{Ref: ref, Definition: p.Container("c")}
		replug := func(w *deviceWatch, n int, minor uint32) {
			unplug()
			if c := w.next(); !c.Removed {
				t.Fatalf("%+v, want that the device was unplugged", c)
			}
			unplug = plug(t, m.dir, n, 10, minor)
			if c := w.next(); c.Removed || strings.Contains(c.Outcome, "starts again") {
				t.Fatalf("%+v, want that the container has the device", c)
			}
		}
		w := p.watchDevices(order)
		for n, minor := range []uint32{229, 200, 229} { // the container has the next node before the device has its numbers
			last := 429 - minor
			if _, out, err := p.exec(ref, deadline, fmt.Sprintf("rm /dev/stick; mknod /dev/stick c 10 %d", minor)); err != nil {
				t.Fatalf("%v, %q", err, out)
			}
			w.stop() // the next watch is that of another daemon
			w = p.watchDevices(order)
			replug(w, n+1, minor)
			_, out, err := p.exec(ref, deadline, fmt.Sprintf(`: < /dev/stick && echo open
				mknod /dev/old c 10 %d; sh -c ': < /dev/old'; rm /dev/old`, last))
			if err != nil || !strings.Contains(out, "open\n") || !strings.Contains(out, "not permitted") {
				t.Fatalf("replug %d: %v, %q, want the device, and no right to the old one", n, err, out)
			}
		}
		w.stop()
		if len(w.changes) > 0 {
			t.Fatalf("another report: %+v", <-w.changes)
		}
		w = p.watchDevices(order) // what was reported is not reported again: the first change is the next one
		replug(w, 9, 229)
	})
	t.Run("user namespace", func(t *testing.T) {
		m := newUserNamespaceHost(t)
		unplug := plug(t, m.dir, 0, 10, 200)
		p := newPod(m, m.parse(strings.NewReplacer("@users", "false", "@dir", m.dir).Replace(keptFile)))
		ref := p.serve("c")
		w := p.watchDevices(lifecycle.DeviceOrder{Ref: ref, Definition: p.Container("c")})
		unplug()
		if c := w.next(); !c.Removed {
			t.Fatalf("%+v, want that the device was unplugged", c)
		}
		unplug = plug(t, m.dir, 1, 10, 229)
		if c := w.next(); c.Removed || !strings.Contains(c.Outcome, "gets it when it starts again: nodes are mounted") {
			t.Fatalf("%+v, want that the container must start again", c)
		}
		w.stop() // the next daemon reports nothing that was reported
		w = p.watchDevices(lifecycle.DeviceOrder{Ref: ref, Definition: p.Container("c")})
		unplug()
		if c := w.next(); !c.Removed {
			t.Fatalf("%+v, want that the device was unplugged", c)
		}
		plug(t, m.dir, 2, 10, 200)
		if c := w.next(); c.Removed || c.Outcome != "" {
			t.Fatalf("%+v, want that the mounted node has its number again", c)
		}
	})
}

// TestDevicesMissing waits for the device of a container that could not be created.
func TestDevicesMissing(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(strings.NewReplacer("@users", "true", "@dir", m.dir, `, onRemove = "keep"`, "").Replace(keptFile)))
	ref, err := p.begin("c")
	wantFailure(t, "a device that does not exist", err, lifecycle.ReasonDeviceMissing, "by-id/stick does not exist")
	w := p.watchDevices(lifecycle.DeviceOrder{Ref: ref, Definition: p.Container("c"), Missing: true})
	plug(t, m.dir, 0, 10, 200)
	if c := w.next(); c.Removed || c.Outcome != "" {
		t.Fatalf("%+v, want that the device was plugged in", c)
	}
}

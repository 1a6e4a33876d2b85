package container

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// deviceInterval is the interval at which devices are checked if the kernel reports nothing: an event may be lost, and inotify(7) does
	// not see what other hosts do in a network file system.
	deviceInterval = 5 * time.Second
	// unnotifiedInterval is the interval if the limit of inotify instances is reached.
	unnotifiedInterval = time.Second
	// settleInterval is how long a node that has appeared must be the same before it is used: udev sets its owner, its mode and the
	// links to it after the kernel has created it.
	settleInterval = 300 * time.Millisecond
	// quietInterval is the least interval between two checks.
	quietInterval = 50 * time.Millisecond
	// maxDeviceDirs limits how many directories of one container are watched.
	maxDeviceDirs = 64
)

// WatchDevices implements the method of the supervisor's Containers. What is at a path decides, not what the kernel reports of hardware:
// containers use nodes and links, which udev creates after the kernel has reported a device (uevents), and which exist without one in a
// container or a test. devtmpfs removes the node of a device in the same moment, and inotify(7) reports it.
func (s *Service) WatchDevices(
	ctx context.Context, uid string, o lifecycle.DeviceOrder, report func(lifecycle.DeviceChange),
) error {
	n := len(o.Definition.Devices)
	w := deviceWatch{service: s, uid: uid, order: o, report: report, known: make([][]node, n), held: make([][]node, n)}
	if !o.Missing {
		if err := w.begin(ctx); err != nil {
			return err
		}
	}
	notify := s.notifier.subscribe()
	defer notify.close()
	for {
		notified := notify.watch(w.dirs())
		wait := w.check(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		if !notified {
			wait = min(wait, unnotifiedInterval)
		}
		if err := notify.wait(ctx, wait); err != nil {
			return err
		}
	}
}

// deviceWatch watches the devices of one run.
type deviceWatch struct {
	service *Service
	uid     string
	order   lifecycle.DeviceOrder
	report  func(lifecycle.DeviceChange)
	known   [][]node // by device: what it was at the last check; none: it did not exist
	pending [][]node // by device: what appeared at the last check, and is not reported yet
	held    [][]node // by device: what the container has
	absent  int      // the device that was missing at last
	found   bool     // all devices exist that were missing
}

// begin reads what the container has. A container that is restarted for a device has what it was created with. One that keeps running may
// have got other nodes since.
func (w *deviceWatch) begin(ctx context.Context) error {
	reading, cancel := engine.WithTimeout(ctx, engine.RemoveTimeout)
	defer cancel()
	s, id := w.service, record.ContainerID(w.uid, w.order.Ref)
	c, err := s.config.Client.LoadContainer(reading, id)
	if err != nil {
		return fmt.Errorf("find container: %w", err)
	}
	definition, err := c.Spec(reading)
	if err != nil {
		return fmt.Errorf("read specification: %w", err)
	}
	root, _, err := s.openRoot(reading, id, w.uid)
	if err == nil {
		defer unix.Close(root)
	}
	w.read(ctx, root, definition)
	return nil
}

// read sets what the container has, by its specification and its root directory. If it has exited, the root is -1.
func (w *deviceWatch) read(ctx context.Context, root int, definition *specs.Spec) {
	given := givenNodes(root, definition)
	for i := range w.order.Definition.Devices {
		d := &w.order.Definition.Devices[i]
		nodes := given.of(d)
		if !d.Restarts() {
			nodes = nodesIn(root, nodes, nodesOf(ctx, d))
		}
		w.held[i] = nodes
		if w.known[i] = nodes; len(nodes) == 0 && !d.Optional { // it is mounted, and was unplugged
			w.known[i] = []node{{}}
		}
	}
}

// node is a device node of the host for a container.
type node struct {
	oci.Device
	inode uint64 // 0: not known. devtmpfs gives each node another one
}

// same reports whether two nodes are the same device that was not unplugged in between, as far as that is known.
func (n *node) same(o *node) bool {
	return n.Path == o.Path && n.sameNumbers(o) && (n.inode == o.inode || n.inode == 0 || o.inode == 0)
}

func (n *node) sameNumbers(o *node) bool {
	return n.Type == o.Type && n.Major == o.Major && n.Minor == o.Minor
}

// settled reports whether nothing about the nodes differs, also not their owners and modes.
func settled(a, b []node) bool {
	return slices.EqualFunc(a, b, func(x, y node) bool {
		return x.same(&y) && x.FileMode != nil && y.FileMode != nil && *x.FileMode == *y.FileMode &&
			x.UID != nil && y.UID != nil && *x.UID == *y.UID && x.GID != nil && y.GID != nil && *x.GID == *y.GID
	})
}

// extends reports whether there is a node that was not there before.
func extends(before, now []node) bool {
	return slices.ContainsFunc(now, func(n node) bool {
		return !slices.ContainsFunc(before, func(b node) bool { return b.same(&n) })
	})
}

// nodesOf returns the present nodes of a device; none if it does not exist, or is no device.
func nodesOf(ctx context.Context, d *spec.Device) []node {
	list, err := presentNodes(ctx, d)
	if err != nil {
		return nil
	}
	nodes := make([]node, 0, len(list))
	for _, one := range list {
		var stat unix.Stat_t
		if unix.Stat(one.Source, &stat) != nil {
			continue
		}
		nodes = append(nodes, node{one, stat.Ino})
	}
	return nodes
}

// check compares the devices with those of the last check, and reports what has changed. It returns when to check again at the latest.
func (w *deviceWatch) check(ctx context.Context) time.Duration {
	devices := w.order.Definition.Devices
	now := make([][]node, len(devices))
	for i := range devices {
		now[i] = nodesOf(ctx, &devices[i])
	}
	if ctx.Err() != nil {
		return 0
	}
	before := w.pending
	w.pending = make([][]node, len(devices))
	if w.order.Missing {
		return w.checkMissing(now, before)
	}
	wait := deviceInterval
	for i := range devices {
		d := &devices[i]
		if len(w.known[i]) > 0 && unplugged(w.known[i], now[i]) {
			w.known[i] = nil
			w.report(lifecycle.DeviceChange{Device: d, Removed: true})
		}
		switch {
		case !extends(w.known[i], now[i]), len(w.known[i]) > 0 && d.Restarts():
			w.known[i] = remaining(w.known[i], now[i]) // the container gets more nodes of a directory at its next start
		case before != nil && settled(before[i], now[i]):
			w.known[i] = now[i]
			w.report(lifecycle.DeviceChange{Device: d, Outcome: w.plugIn(ctx, i, now[i])})
		default:
			w.pending[i], wait = now[i], settleInterval
		}
	}
	return wait
}

// checkMissing reports when all devices exist that the container cannot be created without.
func (w *deviceWatch) checkMissing(now, before [][]node) time.Duration {
	devices := w.order.Definition.Devices
	stable := before != nil
	for i := range devices {
		if len(now[i]) == 0 && !devices[i].Optional {
			w.absent = i
			return deviceInterval
		}
		stable = stable && settled(before[i], now[i])
	}
	w.pending = now
	switch {
	case !stable:
		return settleInterval
	case w.found:
		return deviceInterval
	}
	w.found = true
	if devices[w.absent].Optional { // what was missing existed at the first check
		w.absent = slices.IndexFunc(devices, func(d spec.Device) bool { return !d.Optional })
	}
	w.report(lifecycle.DeviceChange{Device: &devices[w.absent]})
	return deviceInterval
}

// unplugged reports whether a device was unplugged: no node is left of it. A node with its path may be another one.
func unplugged(before, now []node) bool { return len(remaining(before, now)) == 0 }

// remaining returns the nodes that were there before.
func remaining(before, now []node) []node {
	return slices.DeleteFunc(slices.Clone(now), func(n node) bool {
		return !slices.ContainsFunc(before, func(b node) bool { return b.same(&n) })
	})
}

// dirs returns the directories whose entries decide what the devices are.
func (w *deviceWatch) dirs() []string {
	all := map[string]bool{}
	add := func(path string) { // the closest one that exists
		for dir := path; ; dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
				all[dir] = true
				return
			}
		}
	}
	for i := range w.order.Definition.Devices {
		path := filepath.Clean(w.order.Definition.Devices[i].Path)
		add(filepath.Dir(path))
		for range maxLinks {
			target, err := os.Readlink(path)
			if err != nil {
				break
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			path = filepath.Clean(target)
			add(filepath.Dir(path))
		}
		_ = filepath.WalkDir(path, func(p string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil || len(all) >= maxDeviceDirs:
				return fs.SkipAll
			case !entry.IsDir():
				return nil
			case p != path && slices.Contains(noDevices, entry.Name()):
				return fs.SkipDir
			}
			all[p] = true
			return nil
		})
	}
	return slices.Sorted(maps.Keys(all))
}

// maxLinks is the number of links that lead from one to another.
const maxLinks = 8

// given are the nodes that a container was created with, by their paths in it.
type given []specs.LinuxDevice

// givenNodes returns the nodes that a run was created with. In a user namespace they are mounted, and the mounts have them also after the
// host has others. Of a run that has exited, they are those of the host.
func givenNodes(root int, definition *specs.Spec) given {
	list := given(slices.Clone(definition.Linux.Devices))
	for _, m := range definition.Mounts {
		if m.Type != "bind" || !strings.HasPrefix(m.Destination, "/dev/") {
			continue
		}
		n := node{Device: oci.Device{LinuxDevice: specs.LinuxDevice{Path: m.Destination}}}
		var stat unix.Stat_t
		if n.read(root) || unix.Stat(m.Source, &stat) == nil && n.set(&stat) {
			list = append(list, n.LinuxDevice)
		}
	}
	return list
}

// typeOf returns the type of a device node in the form of the OCI runtime specification.
func typeOf(mode uint32) string {
	if mode&unix.S_IFMT == unix.S_IFBLK {
		return "b"
	}
	return "c"
}

// of returns the nodes of a device.
func (g given) of(d *spec.Device) []node {
	var nodes []node
	at := d.InContainer()
	for _, one := range g {
		if one.Path == at || strings.HasPrefix(one.Path, at+"/") {
			nodes = append(nodes, node{oci.Device{LinuxDevice: one, Access: d.Access()}, 0})
		}
	}
	return nodes
}

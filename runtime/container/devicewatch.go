package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
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
	w := deviceWatch{service: s, uid: uid, order: o, report: report, deviceState: deviceState{make([][]node, n), make([][]node, n)}}
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
		_ = w.save(ctx) // again after the next check
		if !notified {
			wait = min(wait, unnotifiedInterval)
		}
		if err := notify.wait(ctx, wait); err != nil {
			return err
		}
	}
}

// deviceState is what is known of the devices of a run. The record of its container has it, for the next daemon: the container itself can
// say nothing about it, since it can remove and make nodes.
type deviceState struct {
	Known [][]node // by device: what it was at the last check; none: it did not exist
	Held  [][]node // by device: the nodes that the container has, or has the right to
}

// deviceWatch watches the devices of one run.
type deviceWatch struct {
	deviceState
	service *Service
	uid     string
	order   lifecycle.DeviceOrder
	report  func(lifecycle.DeviceChange)
	unsaved bool     // the record has an older state
	pending [][]node // by device: what appeared at the last check, and is not reported yet
	absent  int      // the device that was missing at last
	found   bool     // all devices exist that were missing
}

// begin reads what is known of the devices. Of a container of an earlier version nothing is: it has what the host has.
func (w *deviceWatch) begin(ctx context.Context) error {
	reading, cancel := engine.WithTimeout(ctx, engine.RemoveTimeout)
	defer cancel()
	c, err := w.service.config.Client.LoadContainer(reading, record.ContainerID(w.uid, w.order.Ref))
	if err != nil {
		return fmt.Errorf("find container: %w", err)
	}
	var stored deviceState
	known, err := record.Devices(record.Info(reading, c), &stored)
	if err != nil {
		return err
	}
	devices := w.order.Definition.Devices
	if known && len(stored.Known) == len(devices) && len(stored.Held) == len(devices) {
		w.deviceState = stored
		return nil
	}
	for i := range devices {
		if devices[i].CDI != "" {
			continue
		}
		nodes, _ := nodesOf(ctx, &devices[i])
		w.Known[i], w.Held[i] = nodes, nodes
	}
	w.unsaved = true
	return nil
}

// save stores what has changed. If that fails, a daemon that starts before it succeeds reports the changes again.
func (w *deviceWatch) save(ctx context.Context) error {
	if !w.unsaved {
		return nil
	}
	ctx, cancel := engine.WithTimeout(ctx, engine.RemoveTimeout)
	defer cancel()
	store := w.service.config.Client.ContainerService()
	err := record.SetDevices(ctx, store, record.ContainerID(w.uid, w.order.Ref), w.deviceState)
	w.unsaved = err != nil
	return err
}

// check compares the devices with those of the last check, and reports what has changed. It returns when to check again at the latest.
func (w *deviceWatch) check(ctx context.Context) time.Duration {
	devices := w.order.Definition.Devices
	now, read := make([][]node, len(devices)), make([]bool, len(devices))
	for i := range devices {
		switch d := &devices[i]; {
		case d.CDI == "":
			now[i], read[i] = nodesOf(ctx, d)
		case w.order.Missing:
			now[i] = w.service.presentCDI(ctx, d)
		}
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
		if !read[i] {
			continue
		}
		if len(w.Known[i]) > 0 && unplugged(w.Known[i], now[i]) {
			w.setKnown(i, nil)
			w.report(lifecycle.DeviceChange{Device: d, Removed: true})
		}
		switch {
		case !extends(w.Known[i], now[i]), len(w.Known[i]) > 0 && d.Restarts():
			w.setKnown(i, remaining(w.Known[i], now[i])) // the container gets more nodes of a directory at its next start
		case before != nil && settled(before[i], now[i]):
			w.setKnown(i, now[i])
			w.report(lifecycle.DeviceChange{Device: d, Outcome: w.plugIn(ctx, i, now[i])})
		default:
			w.pending[i], wait = now[i], settleInterval
		}
	}
	return wait
}

func (w *deviceWatch) setKnown(device int, nodes []node) {
	w.unsaved = w.unsaved || !slices.EqualFunc(w.Known[device], nodes, func(a, b node) bool { return a.same(b) })
	w.Known[device] = nodes
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
		if w.order.Definition.Devices[i].CDI != "" {
			for _, dir := range w.service.config.CDIDirs {
				add(dir)
			}
			continue
		}
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
		entries := 0
		_ = filepath.WalkDir(path, func(p string, entry fs.DirEntry, err error) error {
			entries++
			switch {
			case err != nil || len(all) >= maxDeviceDirs || entries > maxDeviceEntries:
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

var (
	errMountedNode = errors.New("nodes are mounted in a user namespace")
	errFixedRights = errors.New("the rights of a running container cannot be changed with cgroup v2")
)

// plugIn gives a running container the nodes of a device, unless it is restarted for that. It returns the outcome for people.
func (w *deviceWatch) plugIn(ctx context.Context, device int, nodes []node) string {
	if w.order.Definition.Devices[device].Restarts() {
		return "the container gets it when it starts again"
	}
	ctx, cancel := engine.WithTimeout(ctx, engine.RemoveTimeout)
	defer cancel()
	updated, err := w.update(ctx, device, nodes)
	switch {
	case err != nil:
		return "the container gets it when it starts again: " + err.Error()
	case updated:
		return "the container has its new node"
	}
	return ""
}

// update makes nodes in a running container, with the rights to use them. Nodes with the same numbers need nothing.
func (w *deviceWatch) update(ctx context.Context, device int, nodes []node) (updated bool, err error) {
	s, ref := w.service, w.order.Ref
	unlock, err := s.locks.Lock(ctx, w.uid+"/"+ref.Container)
	if err != nil {
		return false, err
	}
	defer unlock()
	id := record.ContainerID(w.uid, ref)
	root, mounted, err := s.openRoot(ctx, id, w.uid)
	if err != nil {
		return false, err
	}
	defer unix.Close(root)
	if mounted {
		if w.holds(device, nodes) {
			return false, nil
		}
		return false, errMountedNode
	}
	return w.updateIn(ctx, root, id, device, nodes)
}

// holds reports whether the container has all nodes. The node of a device that was unplugged works again when another one has its numbers.
func (w *deviceWatch) holds(device int, nodes []node) bool {
	return !slices.ContainsFunc(nodes, func(n node) bool { return !slices.ContainsFunc(w.Held[device], n.sameNode) })
}

// updateIn is update with the root directory of the container. The rights do not depend on what nodes the container has: it can make some.
func (w *deviceWatch) updateIn(ctx context.Context, root int, id string, device int, nodes []node) (updated bool, err error) {
	if !oci.Privileged(w.order.Definition) {
		if err := w.grant(ctx, id, device, nodes); err != nil {
			return false, err
		}
	}
	for i := range nodes {
		if nodes[i].isIn(root) {
			continue
		}
		if err := nodes[i].makeIn(root); err != nil {
			return false, err
		}
		updated = true
	}
	return updated, nil
}

// grant gives a container the rights to the nodes of a device, and takes those to the numbers that the device had: they may be of another
// one now. A right is recorded before the container has it.
func (w *deviceWatch) grant(ctx context.Context, id string, device int, nodes []node) error {
	old := slices.DeleteFunc(slices.Clone(w.Held[device]), func(n node) bool { return slices.ContainsFunc(nodes, n.sameNumbers) })
	if len(old) == 0 && w.holds(device, nodes) {
		return nil
	}
	dirs, err := cgroup.Dirs(w.service.config.Cgroups.Container(w.uid, id))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "devices.allow")) // of the controller of cgroup v1
		return err == nil
	})
	if i < 0 {
		if w.holds(device, nodes) { // some of the nodes of a directory
			return nil
		}
		return errFixedRights
	}
	w.Held[device], w.unsaved = append(old, nodes...), true
	if err := w.save(ctx); err != nil {
		return err
	}
	return w.setRights(dirs[i], device, old, nodes)
}

// setRights writes rights to the devices controller of cgroup v1.
func (w *deviceWatch) setRights(dir string, device int, old, nodes []node) error {
	for i := range old {
		if err := cgroup.Write(filepath.Join(dir, "devices.deny"), old[i].rule("rwm")); err != nil {
			return err
		}
	}
	w.Held[device], w.unsaved = nodes, true
	for i := range w.Held { // other devices of the container may have the numbers, too
		for k := range w.Held[i] {
			n := &w.Held[i][k]
			if i != device && !slices.ContainsFunc(old, n.sameNumbers) {
				continue
			}
			if err := cgroup.Write(filepath.Join(dir, "devices.allow"), n.rule(n.Access)); err != nil {
				return err
			}
		}
	}
	return nil
}

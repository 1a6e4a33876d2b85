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

	"github.com/podstead/podstead/runtime/engine"
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

// settled reports whether nothing about the nodes differs, also not their owners and modes.
func settled(a, b []node) bool {
	return slices.EqualFunc(a, b, func(x, y node) bool {
		return x.same(y) && x.FileMode != nil && y.FileMode != nil && *x.FileMode == *y.FileMode &&
			x.UID != nil && y.UID != nil && *x.UID == *y.UID && x.GID != nil && y.GID != nil && *x.GID == *y.GID
	})
}

// extends reports whether there is a node that was not there before.
func extends(before, now []node) bool {
	return slices.ContainsFunc(now, func(n node) bool {
		return !slices.ContainsFunc(before, func(b node) bool { return b.same(n) })
	})
}

// nodesOf returns the present nodes of a device; none if it does not exist, or is no device. It returns false if that is not known, such as
// when the daemon has no file descriptor left.
func nodesOf(ctx context.Context, d *spec.Device) (nodes []node, known bool) {
	nodes, err := presentNodes(ctx, d)
	return nodes, err == nil || errors.Is(err, errNoDevice) || errors.Is(err, errNotNode)
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

// unplugged reports whether a device was unplugged: no node is left of it. A node with its path may be another one.
func unplugged(before, now []node) bool { return len(remaining(before, now)) == 0 }

// remaining returns the nodes that were there before.
func remaining(before, now []node) []node {
	return slices.DeleteFunc(slices.Clone(now), func(n node) bool {
		return !slices.ContainsFunc(before, func(b node) bool { return b.same(n) })
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

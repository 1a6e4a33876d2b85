package fakeruntime

import (
	"cmp"
	"context"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// SetDevice sets whether a device of the host exists. All do at first.
func (r *Runtime) SetDevice(path string, exists bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away[path] = !exists
	r.notify()
}

// missing returns the first device without which a container cannot be created; nil: there is none. The caller holds the lock.
func (r *Runtime) missing(c *spec.Container) *spec.Device {
	for i := range c.Devices {
		if d := &c.Devices[i]; r.away[d.Name()] && !d.Optional {
			return d
		}
	}
	return nil
}

// required returns the first device of a container that is not optional.
func required(c *spec.Container) *spec.Device {
	return &c.Devices[slices.IndexFunc(c.Devices, func(d spec.Device) bool { return !d.Optional })]
}

// WatchDevices reports what [Runtime.SetDevice] does.
func (r *Runtime) WatchDevices(
	ctx context.Context, uid string, o lifecycle.DeviceOrder, report func(lifecycle.DeviceChange),
) error {
	call := Call{Method: "WatchDevices", UID: uid, Container: o.Container, Attempt: o.Attempt}
	if err := r.do(ctx, call, func() error { return nil }); err != nil {
		return err
	}
	c := o.Definition
	gone, found := make([]bool, len(c.Devices)), false
	var absent *spec.Device // the one that was missing at last
	for {
		var changes []lifecycle.DeviceChange
		r.mu.Lock()
		changed := r.changed
		if missing := r.missing(c); missing != nil {
			absent = missing
		} else if o.Missing && !found {
			found = true
			changes = append(changes, lifecycle.DeviceChange{Device: cmp.Or(absent, required(c))})
		}
		for i := range c.Devices {
			if away := r.away[c.Devices[i].Name()]; !o.Missing && c.Devices[i].CDI == "" && away != gone[i] {
				gone[i] = away
				changes = append(changes, lifecycle.DeviceChange{Device: &c.Devices[i], Removed: away})
			}
		}
		r.mu.Unlock()
		for _, change := range changes {
			report(change)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

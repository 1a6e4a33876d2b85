package supervisor

import (
	"context"
	"slices"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// deviceKey is the part of a [lifecycle.DeviceOrder] that names the watch. A definition whose devices change is that of another run.
type deviceKey struct {
	lifecycle.Ref
	missing bool
}

// setDevices starts and stops watches so that exactly the devices of the ordered runs are watched.
func (e *effects) setDevices(ctx context.Context, orders []lifecycle.DeviceOrder) {
	for key, stop := range e.devices {
		if !slices.ContainsFunc(orders, func(o lifecycle.DeviceOrder) bool { return key == deviceKey{o.Ref, o.Missing} }) {
			stop()
			delete(e.devices, key)
		}
	}
	for _, o := range orders {
		if key := (deviceKey{o.Ref, o.Missing}); e.devices[key] == nil {
			e.devices[key] = e.startDevices(ctx, o)
		}
	}
}

// startDevices watches the devices of a run. It sends a [deviceReport] for each change.
func (e *effects) startDevices(ctx context.Context, o lifecycle.DeviceOrder) (stop context.CancelFunc) {
	watching, stop := context.WithCancel(ctx)
	e.watch(watching, "watch devices of container "+o.Container, func(ctx context.Context) (message, error) {
		return nil, e.shared.runtime.WatchDevices(ctx, e.uid, o, func(c lifecycle.DeviceChange) {
			e.mailbox.post(ctx, deviceReport{watched{watching.Done()}, o.Ref, c})
		})
	})
	return stop
}

// event returns the lifecycle event of a report.
func (m deviceReport) event(now lifecycle.Instant) lifecycle.Event {
	if m.change.Removed {
		return lifecycle.DeviceRemoved{
			Ref: m.ref, Device: m.change.Device.Name(), Restarts: m.change.Device.Restarts(), At: now,
		}
	}
	return lifecycle.DeviceAdded{Ref: m.ref, Device: m.change.Device.Name(), Outcome: m.change.Outcome, At: now}
}

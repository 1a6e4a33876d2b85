package simulate

import (
	"cmp"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// deviceWatch is the watch of the devices of a run.
type deviceWatch struct {
	lifecycle.DeviceOrder
	gone   []bool       // by device of the definition
	absent *spec.Device // the one that was missing at last
	found  bool         // all devices exist that were missing
}

// SetDevice sets whether a device of the host exists. All do at first.
func (w *World) SetDevice(path string, exists bool) {
	w.away[path] = !exists
	if w.down {
		return
	}
	for _, p := range w.pods {
		for c := range p.Spec.EveryContainer() {
			if watch := p.devices[p.Facts.Container(c.Name).Newest.Ref]; watch != nil {
				p.reportDevices(watch)
			}
		}
	}
}

// missing returns the first device without which a container cannot be created; nil: there is none.
func (p *Pod) missing(container string) *spec.Device {
	c := p.Spec.Container(container)
	if c == nil {
		return nil
	}
	return p.world.missing(c)
}

func (w *World) missing(c *spec.Container) *spec.Device {
	for i := range c.Devices {
		if d := &c.Devices[i]; w.away[d.Name()] && !d.Optional {
			return d
		}
	}
	return nil
}

// required returns the first device of a container that is not optional.
func required(c *spec.Container) *spec.Device {
	return &c.Devices[slices.IndexFunc(c.Devices, func(d spec.Device) bool { return !d.Optional })]
}

// watchDevices watches the devices of exactly the runs of a decision.
func (p *Pod) watchDevices(orders []lifecycle.DeviceOrder) {
	for ref, watch := range p.devices {
		if !slices.ContainsFunc(orders, func(o lifecycle.DeviceOrder) bool { return o.Ref == ref && o.Missing == watch.Missing }) {
			delete(p.devices, ref)
		}
	}
	for _, o := range orders {
		if p.devices[o.Ref] == nil {
			watch := &deviceWatch{DeviceOrder: o, gone: make([]bool, len(o.Definition.Devices))}
			for i := range o.Definition.Devices {
				d := &o.Definition.Devices[i]
				watch.gone[i] = d.Optional && p.world.away[d.Name()]
			}
			p.devices[o.Ref] = watch
			p.reportDevices(watch)
		}
	}
}

// reportDevices reports what has changed about the devices of a run.
func (p *Pod) reportDevices(watch *deviceWatch) {
	now := p.world.Now()
	if watch.Missing {
		if missing := p.world.missing(watch.Definition); missing != nil {
			watch.absent = missing
		} else if !watch.found {
			watch.found = true
			p.deliver(lifecycle.DeviceAdded{Ref: watch.Ref, Device: cmp.Or(watch.absent, required(watch.Definition)).Name(), At: now})
		}
		return
	}
	for i := range watch.Definition.Devices {
		d := &watch.Definition.Devices[i]
		away := p.world.away[d.Name()]
		if d.CDI != "" || away == watch.gone[i] {
			continue
		}
		watch.gone[i] = away
		if away {
			p.deliver(lifecycle.DeviceRemoved{Ref: watch.Ref, Device: d.Name(), Restarts: d.Restarts(), At: now})
		} else {
			p.deliver(lifecycle.DeviceAdded{Ref: watch.Ref, Device: d.Name(), At: now})
		}
	}
}

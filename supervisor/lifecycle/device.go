package lifecycle

import "github.com/podstead/podstead/spec"

// DeviceOrder is a run whose devices must be watched.
type DeviceOrder struct {
	Ref
	Definition *spec.Container
	// Missing reports that the container could not be created because a device does not exist. Otherwise it was started with its devices.
	Missing bool
}

// DeviceChange is what happened to a device of a container.
type DeviceChange struct {
	Device  *spec.Device
	Removed bool
	Outcome string // of [DeviceAdded]
}

// DeviceRemoved reports that a device of a run was unplugged.
type DeviceRemoved struct {
	Ref
	Device   string // as in the pod file
	Restarts bool   // see [spec.Device.Restarts]
	At       Instant
}

// A program that exits because its device is unplugged may do so before the removal is noticed. It has not failed, and is restarted without
// a delay if its restart policy restarts it.
func (e DeviceRemoved) apply(f *Facts) {
	c, known := f.Containers[e.Container]
	a := &c.Newest
	if !e.Restarts || !known || a.Ref != e.Ref || a.Started.IsZero() || a.DeviceRemoved != "" || c.Replaced.includes(a) {
		return
	}
	a.DeviceRemoved = e.Device
	if a.terminated() {
		if a.failed() && c.Failures > 0 {
			c.Failures--
		}
		c.resetDelays()
	}
	live := a.live()
	f.Containers[e.Container] = c
	if live {
		f.replace(e.Container, ReasonDeviceRemoved)
	}
}

// DeviceAdded reports that a device of a run that runs was plugged in again or, for one that could not be created, that its devices exist.
type DeviceAdded struct {
	Ref
	Device string // as in the pod file
	// Outcome is what that means for a container that runs, for people. It is empty for one that is created or restarted.
	Outcome string
	At      Instant
}

func (e DeviceAdded) apply(f *Facts) {
	f.update(e.Ref, func(a Attempt) Attempt {
		if a.misses() {
			set(&a.DeviceAdded, e.At)
		}
		return a
	})
}

// misses reports whether the container could not be created because a device does not exist.
func (a *Attempt) misses() bool {
	return !a.CreateFailed.IsZero() && a.Exit.Reason == ReasonDeviceMissing
}

// createDue returns when a container that could not be created is tried again: when its device has been plugged in, or after a delay.
func (a *Attempt) createDue() Instant {
	due := a.CreateFailed.Add(retryDelay)
	if a.DeviceAdded.IsZero() {
		return due
	}
	return earlier(due, later(a.DeviceAdded, a.CreateFailed.Add(sandboxPace)))
}

// watchDevices orders the watch of the devices of a container that runs, will run again, or waits for them. A run that is replaced needs
// none.
func (p *plan) watchDevices(c *spec.Container, h *Container) {
	a := &h.Newest
	c = p.facts.definition(c, a)
	had := !a.Started.IsZero() && a.DeviceRemoved == ""
	if len(c.Devices) == 0 || !had && !a.misses() || !a.DeviceAdded.IsZero() || p.facts.superseded(a) {
		return
	}
	p.decision.Devices = append(p.decision.Devices, DeviceOrder{Ref: a.Ref, Definition: c, Missing: a.misses()})
}

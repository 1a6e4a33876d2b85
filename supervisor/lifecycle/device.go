package lifecycle

import (
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
)

// unplugNotice is how long after the exit of a program a removal of its device can be noticed that is the cause of the exit. The runtime
// checks devices at least once per second where the kernel notifies it of changes late or not at all.
const unplugNotice = 2 * time.Second

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
// a delay if its restart policy restarts it. A removal long after an exit is not its cause.
func (e DeviceRemoved) apply(f *Facts) {
	c := f.Containers[e.Container]
	if !e.Restarts || c == nil {
		return
	}
	a := &c.Newest
	if a.Ref != e.Ref || a.Started.IsZero() || a.DeviceRemoved != "" || c.Replaced.includes(a) {
		return
	}
	if a.terminated() && e.At.Sub(a.Exited) > unplugNotice {
		return
	}
	a.DeviceRemoved = e.Device
	if a.terminated() {
		if a.failed() && c.Failures > 0 {
			c.Failures--
		}
		if a.exitedByItself() && c.Exits > 0 {
			c.Exits--
		}
		c.resetDelays()
	}
	if a.live() {
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
	f.update(e.Ref, func(a *Attempt) {
		if a.misses() {
			set(&a.DeviceAdded, e.At)
		}
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

// devicePace returns the earliest start after a run that was replaced for a device; zero if there is no such run in this round. A device
// that comes and goes restarts a container at most once per [retryDelay].
func (f *Facts) devicePace(h *Container) Instant {
	last := &h.Newest
	if !last.ran() {
		last = &h.Previous
	}
	if last.DeviceRemoved == "" || last.Round != f.Round {
		return Instant{}
	}
	return last.Started.Add(retryDelay)
}

// watchDevices orders the watch of the devices of a container that runs, will run again, or waits for them. CDI devices are found when a
// container starts, and not watched while it runs. A run that is replaced needs none, nor one whose sandbox is lost: it did not exit for a
// device.
func (p *plan) watchDevices(c *spec.Container, h *Container) {
	a := &h.Newest
	c = p.facts.definition(c, a)
	s := &p.facts.Sandbox
	watched := slices.ContainsFunc(c.Devices, func(d spec.Device) bool { return d.CDI == "" })
	had := watched && !a.Started.IsZero() && a.DeviceRemoved == "" && (a.live() || s.ready() && a.Sandbox == s.N)
	if len(c.Devices) == 0 || !had && !a.misses() || !a.DeviceAdded.IsZero() || p.facts.superseded(a) {
		return
	}
	p.decision.Devices = append(p.decision.Devices, DeviceOrder{Ref: a.Ref, Definition: c, Missing: a.misses()})
}

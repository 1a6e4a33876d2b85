package supervisor_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// withDevices returns a pod with one container for each device.
func withDevices(name string, devices ...spec.Device) *spec.Pod {
	pod := &spec.Pod{Name: name, RestartPolicy: spec.RestartAlways, TerminationGracePeriodSeconds: 5}
	for i, d := range devices {
		pod.Containers = append(pod.Containers, spec.Container{
			Name: string(rune('a' + i)), Image: "image", Command: []string{"sleep", "100000"}, Devices: []spec.Device{d},
		})
	}
	return pod
}

// TestDeviceReplugged replugs a device 20 times, also while the daemon does not run. The container that is restarted for it has no
// back-off, the one that keeps running is not restarted.
func TestDeviceReplugged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(withDevices("web", spec.Device{Path: "/dev/a"}, spec.Device{Path: "/dev/a", OnRemove: spec.DeviceKeep}))
		running := func(n int) func(supervisor.Snapshot) bool {
			return func(s supervisor.Snapshot) bool { return isReady(s) && s.Facts.Container("a").Newest.Restarts == n }
		}
		m.until("web", "ready", running(0))
		for n := range 20 {
			if n%5 == 4 { // the next daemon finds out
				m.leave()
				m.engine.SetDevice("/dev/a", false)
				m.start()
			} else {
				m.engine.SetDevice("/dev/a", false)
			}
			s := m.until("web", "waiting for the device", func(s supervisor.Snapshot) bool {
				w := s.Status.ContainerStatuses[0].State.Waiting
				return w != nil && w.Reason == lifecycle.ReasonDeviceMissing
			})
			if s.Status.ContainerStatuses[1].State.Running == nil {
				t.Fatalf("replug %d: container b: %+v", n, s.Status.ContainerStatuses[1].State)
			}
			time.Sleep(25 * time.Second)
			plugged := time.Now()
			m.engine.SetDevice("/dev/a", true)
			m.until("web", "ready", running(n+1))
			if took := time.Since(plugged); took > time.Second {
				t.Errorf("replug %d: started after %v", n, took)
			}
		}
		s, _ := m.Pod("web")
		if b := s.Facts.Container("b").Newest; b.Attempt != 1 {
			t.Errorf("container b was restarted: %+v", b)
		}
		if a := s.Facts.Container("a"); a.Failures != 0 || a.Backoff.Level != 0 {
			t.Errorf("%d failures, back-off %+v of container a", a.Failures, a.Backoff)
		}
		if kinds := m.emitted(); slices.Contains(kinds, string(api.EventContainerBackOff)+" a") {
			t.Errorf("a back-off: %v", kinds)
		}
	})
}

// TestDeviceOfTwoPods: both pods that use a device wait for it, and both start when it is plugged in.
func TestDeviceOfTwoPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.engine.SetDevice("/dev/a", false)
		for _, name := range []string{"web", "db"} {
			m.add(withDevices(name, spec.Device{Path: "/dev/a"}))
		}
		time.Sleep(time.Minute)
		for _, name := range []string{"web", "db"} {
			if s, _ := m.Pod(name); isReady(s) {
				t.Errorf("pod %s is ready without its device", name)
			}
		}
		m.engine.SetDevice("/dev/a", true)
		m.until("web", "ready", isReady)
		m.until("db", "ready", isReady)
	})
}

// TestDeviceFlaps: a device that comes and goes restarts its container at most every 10 seconds.
func TestDeviceFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(withDevices("web", spec.Device{Path: "/dev/a"}))
		m.until("web", "ready", isReady)
		for range 60 {
			m.engine.SetDevice("/dev/a", false)
			time.Sleep(500 * time.Millisecond)
			m.engine.SetDevice("/dev/a", true)
			time.Sleep(1500 * time.Millisecond)
		}
		s, _ := m.Pod("web")
		if n := s.Facts.Container("a").Newest.Restarts; n < 6 || n > 12 {
			t.Errorf("%d restarts in two minutes, want one every 10 s or so", n)
		}
	})
}

// TestDeviceKeptIsNoCause: nothing follows from a device that is unplugged while its container keeps running.
func TestDeviceKeptIsNoCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		pod := withDevices("web", spec.Device{Path: "/dev/a", OnRemove: spec.DeviceKeep})
		pod.Containers[0].Command = []string{"sh", "-c", "sleep 100; exit 3"}
		m.add(pod)
		m.until("web", "ready", isReady)
		m.engine.SetDevice("/dev/a", false)
		time.Sleep(10 * time.Second)
		m.engine.SetDevice("/dev/a", true)
		time.Sleep(2 * time.Minute)
		events, _ := m.Events().Since(0)
		seen := 0
		for i := range events {
			e := &events[i]
			if e.Kind == api.EventDeviceRemoved || e.Kind == api.EventDeviceAdded {
				seen++
			}
			if e.Cause > 0 && events[e.Cause-1].KeepsDevice() {
				t.Errorf("%s follows from %s", e.Message, events[e.Cause-1].Message)
			}
		}
		if seen != 2 {
			t.Errorf("%d events of the device, want 2", seen)
		}
	})
}

// TestDeviceAddedIsNamed: the event names the device that was missing, not another one of the container.
func TestDeviceAddedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.engine.SetDevice("/dev/b", false)
		pod := withDevices("web", spec.Device{Path: "/dev/a"})
		pod.Containers[0].Devices = append(pod.Containers[0].Devices, spec.Device{Path: "/dev/b"})
		m.add(pod)
		time.Sleep(25 * time.Second)
		m.engine.SetDevice("/dev/b", true)
		m.until("web", "ready", isReady)
		events, _ := m.Events().Since(0)
		i := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == api.EventDeviceAdded })
		if i < 0 || events[i].Fields["device"] != "/dev/b" || events[i].Fields["restarts"] == "" {
			t.Errorf("event %d of %+v, want one of /dev/b", i, events)
		}
	})
}

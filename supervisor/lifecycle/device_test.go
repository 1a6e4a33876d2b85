package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func unplugged(name string, n int, restarts bool) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.DeviceRemoved{Ref: run(name, n), Device: "/dev/a", Restarts: restarts, At: t}
	}
}

func pluggedIn(name string, n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.DeviceAdded{Ref: run(name, n), Device: "/dev/a", At: t}
	}
}

// missing is a run that cannot be created because its device does not exist.
func missing(name string, n, restarts int) history {
	return failing(start(name, n, restarts, 0), lifecycle.Failure{
		Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonDeviceMissing, Message: "device /dev/a does not exist",
	})
}

// TestDecideDevices: a container whose device is unplugged stops and starts again without a delay, when the device exists.
func TestDecideDevices(t *testing.T) {
	pod, failing := podOf(never, "app"), podOf(always, "app")
	stopping := lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonDeviceRemoved}
	stopped := history{
		up(), running("app", 1), tick(100), unplugged("app", 1, true), stopping, sent("app", 1, false), exited("app", 1, 143),
	}
	decisions{
		{
			name: "a container is stopped within its grace period", pod: pod,
			past: history{up(), running("app", 1), tick(100), unplugged("app", 1, true)}, now: 100, want: do{stopping},
		},
		{
			name: "a container that keeps running", pod: pod,
			past: history{up(), running("app", 1), tick(100), unplugged("app", 1, false)}, now: 100,
		},
		{
			name: "an older run", pod: failing,
			past: history{up(), ran("app", 1, 1), running("app", 2), unplugged("app", 1, true)}, now: 100,
		},
		{
			name: "it starts again at once, whatever its restart policy", pod: pod, past: history{stopped, pulled("app", 2)}, now: 100,
			want: do{start("app", 2, 1, 0)},
		},
		{
			name: "the device does not exist: it is tried again at intervals", pod: pod,
			past: history{stopped, pulled("app", 2), missing("app", 2, 1)}, now: 105, wake: 110,
		},
		{
			name: "the device exists again: it starts at once", pod: pod,
			past: history{stopped, pulled("app", 2), missing("app", 2, 1), tick(105), pluggedIn("app", 2), pulled("app", 3)}, now: 105,
			want: do{start("app", 3, 1, 0)},
		},
		{
			name: "a device that comes and goes starts it once per second", pod: pod,
			past: history{stopped, pulled("app", 2), missing("app", 2, 1), pluggedIn("app", 2), pulled("app", 3)}, now: 100.5, wake: 101,
		},
		{
			name: "a program that has exited because of it has no back-off", pod: failing,
			past: history{
				up(), ran("app", 1, 1), running("app", 2),
				lifecycle.RemoveContainer{Ref: run("app", 1)},
				tick(50), exited("app", 2, 1),
				unplugged("app", 2, true), pulled("app", 3),
			},
			now: 50, want: do{start("app", 3, 2, 1)},
		},
		{
			name: "a device that comes and goes restarts it every 10 s", pod: pod, past: history{
				up(), tick(100), running("app", 1), unplugged("app", 1, true), stopping, tick(101), exited("app", 1, 143),
			}, now: 101, wake: 110,
		},
		{
			name: "also after its creation has failed", pod: pod, past: history{
				up(), tick(100), running("app", 1), unplugged("app", 1, true), stopping, tick(101), exited("app", 1, 143),
				pulled("app", 2), missing("app", 2, 1), tick(103), pluggedIn("app", 2), pulled("app", 3),
			}, now: 103, wake: 110,
		},
		{
			name: "also if its program exits first", pod: failing, past: history{
				up(), tick(100), running("app", 1), tick(101), exited("app", 1, 1), unplugged("app", 1, true),
			}, now: 101, wake: 110,
		},
		{
			name: "a back-off that began long before the device is unplugged", pod: failing, past: history{
				up(), ran("app", 1, 1), running("app", 2),
				lifecycle.RemoveContainer{Ref: run("app", 1)},
				tick(50), start("app", 2, 1, 1), exited("app", 2, 1), tick(53), unplugged("app", 2, true),
			}, now: 53, wake: 60,
		},
		{
			name: "a pod that has failed is not started again", pod: pod,
			past: history{up(), ran("app", 1, 1), sandboxRemoved(1), unplugged("app", 1, true)}, now: 100,
		},
	}.check(t)
}

// TestDeviceRemovedIsNoFailure: a run that exits because its device was unplugged does not count for backoffLimit.
func TestDeviceRemovedIsNoFailure(t *testing.T) {
	failures := func(f lifecycle.Facts) any { return f.Container("app").Failures }
	foldings{
		{"it exits before that is noticed", history{up(), ran("app", 1, 1), unplugged("app", 1, true)}, failures, 0},
		{
			"it is noticed twice",
			history{up(), ran("app", 1, 1), ran("app", 2, 1), unplugged("app", 2, true), unplugged("app", 2, true)},
			failures, 1,
		},
		{
			"it is stopped", history{up(), running("app", 1), unplugged("app", 1, true), lifecycle.StopContainer{
				Ref: run("app", 1), Reason: lifecycle.ReasonDeviceRemoved,
			}, exited("app", 1, 1)}, failures, 0,
		},
		{"it exits long before", history{up(), ran("app", 1, 1), tick(10), unplugged("app", 1, true)}, failures, 1},
		{"kept", history{up(), ran("app", 1, 1), unplugged("app", 1, false)}, failures, 1},
	}.check(t)
}

// TestDecisionWatchesDevices: the devices are watched of runs that have them, and of those that miss them.
func TestDecisionWatchesDevices(t *testing.T) {
	pod := podOf(always, "app", "none")
	pod.Containers[0].Devices = []spec.Device{{Path: "/dev/a"}}
	for name, test := range map[string]struct {
		past history
		want []lifecycle.DeviceOrder
	}{
		"being created": {history{up(), pulled("app", 1), start("app", 1, 0, 0)}, nil},
		"running":       {history{up(), running("app", 1)}, []lifecycle.DeviceOrder{{Ref: run("app", 1)}}},
		"in back-off": {
			history{up(), ran("app", 1, 1), running("app", 2), exited("app", 2, 1)}, []lifecycle.DeviceOrder{{Ref: run("app", 2)}},
		},
		"lost with the sandbox": {
			history{up(), running("app", 1), running("app", 2), exited("app", 2, 1), sandboxLost(1)}, nil,
		},
		"in an earlier sandbox": {
			history{
				up(), running("app", 1), exited("app", 1, 1), sandboxLost(1), sandboxRemoved(1), startSandbox(2),
				happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SandboxStarted{Sandbox: 2, At: t} }),
			}, nil,
		},
		"missing": {
			history{up(), pulled("app", 1), missing("app", 1, 0)}, []lifecycle.DeviceOrder{{Ref: run("app", 1), Missing: true}},
		},
		"found":     {history{up(), pulled("app", 1), missing("app", 1, 0), pluggedIn("app", 1)}, nil},
		"unplugged": {history{up(), running("app", 1), unplugged("app", 1, true)}, nil},
		"stopping":  {history{up(), running("app", 1), stopped(time.Minute)}, nil},
	} {
		got := lifecycle.Decide(pod, fold(test.past), at(1)).Devices
		for i := range got {
			if got[i].Definition != &pod.Containers[0] {
				t.Errorf("%s: definition %+v", name, got[i].Definition)
			}
			got[i].Definition = nil
		}
		if len(got) != len(test.want) || len(got) > 0 && got[0] != test.want[0] {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

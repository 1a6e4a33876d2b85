package explain_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// exits lets a container exit, and waits until it runs again and its back-off is over.
func (w *world) exits(container string, exit lifecycle.Exit) {
	s, _ := w.Pod("web")
	if !w.engine.Crash(s.Facts.UID, container, exit) {
		w.t.Fatalf("container %s does not run", container)
	}
	w.sleep(20 * time.Minute)
}

// redefine changes an environment variable of the first container.
func (w *world) redefine(value string) {
	w.change(value)
	w.sleep(time.Minute)
}

func (w *world) change(value string) {
	next := *w.pod
	next.Containers = append([]spec.Container(nil), w.pod.Containers...)
	next.Containers[0].Env = []spec.EnvVar{{Name: "A", Value: value}}
	s, _ := w.Pod("web")
	staged, err := w.Stage(w.t.Context(), &next, nil, func(string, lifecycle.Progress) {})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.Redefine(w.t.Context(), s.Facts.UID, &next, staged, state.Owner{By: "test"}); err != nil {
		w.t.Fatal(err)
	}
	w.pod = &next
}

func (w *world) restart(container string) {
	if err := w.Restart(w.t.Context(), "web", "", container, "uid 0"); err != nil {
		w.t.Fatal(err)
	}
	w.sleep(time.Minute)
}

func (w *world) startAgain() {
	if err := w.Start(w.t.Context(), "web", "", "uid 0"); err != nil {
		w.t.Fatal(err)
	}
	w.sleep(time.Minute)
}

var (
	oom   = lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonOOMKilled}
	crash = lifecycle.Exit{Code: 1, Reason: lifecycle.ReasonError}
)

// TestHeadline expects that the first line counts each cause of restarts by itself: the newest first, then the worst.
func TestHeadline(t *testing.T) {
	two := pod(server)
	two.Containers = append(two.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", server}})
	once := pod(server)
	once.RestartPolicy = spec.RestartNever
	device, kept := pod(server), pod(server)
	device.Containers[0].Devices = []spec.Device{{Path: "/dev/a"}}
	kept.Containers[0].Devices = []spec.Device{{Path: "/dev/a", OnRemove: spec.DeviceKeep}}
	replug := func(w *world) {
		w.engine.SetDevice("/dev/a", false)
		w.sleep(time.Minute)
		w.engine.SetDevice("/dev/a", true)
		w.sleep(time.Minute)
	}
	for _, test := range []struct {
		name    string
		pod     *spec.Pod
		happens func(w *world)
		want    string
		healthy bool
	}{
		{
			"start, restart and change", pod(server), func(w *world) {
				w.stop(supervisor.StopOptions{})
				w.sleep(time.Minute)
				w.startAgain()
				w.restart("")
				w.redefine("1")
			},
			"web restarted 3 times: once because its definition changed: containers[0].env[0], " +
				"once because a restart was requested by uid 0 and once because " +
				"the pod was started again (requested by uid 0). It is ready now.", true,
		},
		{
			"start that fails after a change", once, func(w *world) {
				w.fails.Store(&failure{"StartContainer", lifecycle.Failure{Reason: lifecycle.ReasonStartError, Message: "no such program"}})
				w.redefine("1")
			},
			`web failed: container "app" cannot be started: no such program.`, false,
		},
		{
			"start in progress after a stop", pod(server), func(w *world) {
				w.stop(supervisor.StopOptions{})
				w.sleep(time.Minute)
				w.slow.Store(true)
				if err := w.Start(w.t.Context(), "web", "", "uid 0"); err != nil {
					w.t.Fatal(err)
				}
				w.sleep(5 * time.Second)
			},
			"web is restarting because the pod was started again (requested by uid 0). The restart is in progress.", false,
		},
		{
			"next start in progress after one that failed after a change", pod(server), func(w *world) {
				w.fails.Store(&failure{"StartContainer", lifecycle.Failure{Reason: lifecycle.ReasonStartError, Message: "no such program"}})
				w.slow.Store(true)
				w.change("1")
				w.sleep(5 * time.Second)
			},
			`web is waiting: container "app" cannot be started: no such program. The restart is in progress.`, false,
		},
		{"device unplugged", device, replug, "web restarted once because its device /dev/a was unplugged. It is ready now.", false},
		{
			"crash after a device was unplugged that is kept", kept, func(w *world) {
				replug(w)
				w.exits("app", crash)
			},
			"web restarted once because it exited with code 1 after 3m0s. It is ready now.", false,
		},
		{
			"reboots, restart, crash and changes", pod(server), func(w *world) {
				w.ShutDown(w.t.Context(), time.Minute, lifecycle.ByShutdown)
				w.boots("2")
				w.losePower("3")
				w.restart("app")
				w.exits("app", crash)
				w.redefine("1")
				w.redefine("2")
			},
			"web restarted 6 times: twice because its definition changed, once because it exited with code 1 after 1m0s, " +
				"once because the host stopped without a shutdown (power loss, reset or kernel panic), " +
				"once because a restart was requested by uid 0 and once because the host was rebooted. It is ready now.", false,
		},
		{
			"crashes after different times", pod(server), func(w *world) {
				w.exits("app", crash)
				w.sleep(time.Minute)
				w.exits("app", crash)
				w.exits("app", crash)
			},
			"web restarted 3 times because it exited with code 1 (the last time after 20m0s). It is ready now.", false,
		},
		{
			"crashes after different times, then others", pod(server), func(w *world) {
				w.exits("app", crash)
				w.exits("app", crash)
				w.exits("app", oom)
				w.restart("")
			},
			"web restarted 4 times: once because a restart was requested by uid 0, once because it was OOM-killed after 20m0s " +
				"and twice because it exited with code 1 (the last time after 20m0s). It is ready now.", false,
		},
		{
			"OOM kills, crashes and a start", pod(server), func(w *world) {
				for range 5 {
					w.exits("app", crash)
				}
				w.exits("app", oom)
				w.exits("app", oom)
				w.sleep(2 * time.Hour)
				w.stop(supervisor.StopOptions{})
				w.sleep(time.Minute)
				w.startAgain()
			},
			"web restarted 8 times: once because the pod was started again (requested by uid 0), " +
				"twice because it was OOM-killed after 20m0s and 5 times because it exited with code 1 (the last time after 20m0s). " +
				"It is ready now.", true,
		},
		{
			"a restart is still to come", pod(server), func(w *world) {
				w.restart("")
				w.exits("app", crash)
				s, _ := w.Pod("web")
				w.engine.Crash(s.Facts.UID, "app", oom)
				w.sleep(time.Second)
				w.engine.Crash(s.Facts.UID, "app", oom)
			},
			"web is restarting because it was OOM-killed after 1s. It was restarted 3 times before: " +
				"once because it was OOM-killed after 20m0s, once because it exited with code 1 after 1m0s " +
				"and once because a restart was requested by uid 0. Next restart in 10s.", false,
		},
		{
			"a crash of one container, then a restart of the other", two, func(w *world) {
				w.exits("app", crash)
				w.restart("other")
			},
			`web: container "app" restarted once because it exited with code 1 after 1m0s. The pod is ready now.`, false,
		},
		{
			"a crash long ago, then a restart of the other", two, func(w *world) {
				w.exits("app", crash)
				w.sleep(time.Hour)
				w.restart("other")
			},
			`web: container "other" restarted once because a restart was requested by uid 0. The pod is ready now.`, true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.pod = test.pod
				w.add()
				w.sleep(time.Minute)
				test.happens(w)
				e := w.explanation()
				explain.Render(&e, w.now().Wall)
				if e.Text != test.want || e.Healthy != test.healthy {
					t.Errorf("healthy: %v, %s\nwant: %v, %s", e.Healthy, e.Text, test.healthy, test.want)
				}
			})
		})
	}
}

// TestHeadlineOfLostEvents expects that restarts whose events are not stored any more are counted without a cause.
func TestHeadlineOfLostEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pod = pod(server)
		w.add()
		w.sleep(time.Minute)
		w.restart("")
		for range 3 {
			w.exits("app", crash)
		}
		s, _ := w.Pod("web")
		events, err := w.History(t.Context(), "web")
		if err != nil {
			t.Fatal(err)
		}
		starts := 0
		for i, e := range slices.Backward(events) {
			if e.Kind != api.EventContainerStarted {
				continue
			}
			starts++
			e := explain.ForPod(&s, events[i:], w.now())
			explain.Render(&e, w.now().Wall)
			want := map[int]string{
				1: "web restarted 4 times.", 2: "web restarted 4 times, the last time because it exited with code 1 after 20m0s.",
				3: "web restarted 4 times, the last 2 times because it exited with code 1 after 20m0s.",
			}[starts]
			if !strings.HasPrefix(e.Text, want) {
				t.Errorf("with %d starts: %s, want %s", starts, e.Text, want)
			}
		}
	})
}

// TestHeadlineOfLostStart expects that a run whose start is not on the disk after a power loss ended with the power, not with the exit
// before.
func TestHeadlineOfLostStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pod = pod(server)
		w.add()
		w.sleep(time.Minute)
		w.exits("app", crash)
		w.losePower("2")
		s, _ := w.Pod("web")
		events, err := w.History(t.Context(), "web")
		if err != nil {
			t.Fatal(err)
		}
		exited := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == api.EventContainerFailed })
		rebooted := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == api.EventHostRebooted })
		lost := slices.Concat(events[:exited+1], events[rebooted:])
		want := "web restarted twice: once because the host stopped without a shutdown (power loss, reset or kernel panic) " +
			"and once because it exited with code 1 after 1m0s. It is ready now."
		for name, list := range map[string][]event.Event{"all": events, "without the start": lost} {
			e := explain.ForPod(&s, list, w.now())
			if explain.Render(&e, w.now().Wall); e.Text != want {
				t.Errorf("events %s: %s\nwant: %s", name, e.Text, want)
			}
		}
	})
}

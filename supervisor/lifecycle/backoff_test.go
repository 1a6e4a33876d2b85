package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestNextTry holds what people are stopping against when Decide wakes for it.
func TestNextTry(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	refused := lifecycle.Failure{Kind: lifecycle.FailureNotCreated}
	mount := lifecycle.Failure{Reason: lifecycle.ReasonFailedMount, Message: "no disk"}
	crashed := history{up(), tick(10), ran("app", 1, 1), ran("app", 2, 1)}
	late := history{up(), tick(10), pullFailed("app", 1, 2, lifecycle.ReasonErrImagePull)}
	for _, row := range []struct {
		name string
		past history
		now  float64
		want time.Duration // 0: false
	}{
		{"delay of a failed pull", late, 12, 18 * time.Second},
		{"nothing while the image is being pulled", history{late, tick(30), pull("app", 1, 3)}, 31, 0},
		{"restart delay", crashed, 12, 8 * time.Second},
		{
			"delay of a failed creation",
			history{up(), tick(10), pulled("app", 1), failing(start("app", 1, 0, 0), refused)},
			13,
			7 * time.Second,
		},
		{
			"nothing after a failed creation in a sandbox that was lost",
			history{
				up(), tick(10), pulled("app", 1), failing(start("app", 1, 0, 0), refused), sandboxLost(1), sandboxRemoved(1),
				startSandbox(2),
			},
			13, 0,
		},
		{"delay of a failed sandbox", history{tick(10), failing(startSandbox(1), oops)}, 14, 6 * time.Second},
		{"delay after the first failed mount", history{tick(10), failing(startSandbox(1), mount)}, 10.5, 500 * time.Millisecond},
		{"delay after the second failed mount", history{tick(10), mounts(2, mount)}, 10.5, 1500 * time.Millisecond},
		{"mount delay at its limit", history{tick(10), mounts(20, mount)}, 10.5, 119*time.Second + 500*time.Millisecond},
		{"pull delay at its limit", history{up(), tick(10), pullFailed("app", 1, 20, lifecycle.ReasonErrImagePull)}, 10, 300 * time.Second},
		{"nothing once the image was pulled", history{late, tick(30), pull("app", 1, 3), pulled("app", 1), issued("app", 1)}, 31, 0},
		{"nothing while a start is in progress", history{late, issued("app", 1)}, 12, 0},
		{"nothing before the sandbox was requested", nil, 1, 0},
		{"nothing in a pod that is stopped before it started", history{tick(10), failing(startSandbox(1), mount), stopped(1)}, 10.5, 0},
		{"nothing while the container runs", history{up(), running("app", 1)}, 1, 0},
		{"nothing for a container about to start", up(), 1, 0},
		{"nothing in a stopping pod", history{crashed, stopped(1)}, 12, 0},
	} {
		facts := fold(row.past)
		got, known := lifecycle.NextTry(pod, facts, "app", at(row.now))
		if got != row.want || known != (row.want > 0) {
			t.Errorf("%s: in %v, %v; want %v", row.name, got, known, row.want)
		}
		if !facts.Container("app").Pull.Failed.IsZero() {
			got = min(got, 10*time.Second-time.Duration((row.now-10)*float64(time.Second))) // Decide wakes for FindImage before
		}
		if d := lifecycle.Decide(pod, facts, at(row.now)); known && d.Wake.Sub(at(row.now)) != got {
			t.Errorf("%s: in %v, but Decide wakes in %v", row.name, got, d.Wake.Sub(at(row.now)))
		}
	}
	if got, known := lifecycle.NextTry(pod, fold(late), "app", at(31)); got != 0 || !known {
		t.Errorf("after the delay: in %v, %v; want 0, true", got, known)
	}
	if got, known := lifecycle.NextTry(podOf(spec.RestartNever, "app"), fold(crashed), "app", at(12)); known {
		t.Errorf("terminated pod: in %v", got)
	}
}

// mounts is a sandbox that failed n times in a row.
func mounts(n int, f lifecycle.Failure) history {
	past := history{}
	for i := range n {
		past = append(past, failing(startSandbox(i+1), f))
	}
	return past
}

// TestBackoffMessages checks that the message shows the delay until the next run has started.
func TestBackoffMessages(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	crashed := func(level int, granted, ended float64) history { // a start granted at a level, and the exit of its run
		return history{
			up(), ran("app", 1, 1), tick(granted), start("app", 2, 1, level), running("app", 2), tick(ended), exited("app", 2, 1),
		}
	}
	for _, row := range []struct {
		name string
		past history
		now  float64
		want string
	}{
		{"first delay", crashed(1, 0, 1), 2, "back-off 10s"},
		{"first delay has passed", crashed(1, 0, 1), 11, "back-off 10s"},
		{"restart issued after the first delay", history{crashed(1, 0, 1), tick(11), start("app", 3, 2, 2)}, 11, "back-off 10s"},
		{"restart issued late", history{crashed(1, 0, 1), tick(14), start("app", 3, 2, 2)}, 14, "back-off 10s"},
		{"last delay below the limit", history{crashed(5, 0, 1), tick(161), start("app", 3, 2, 6)}, 161, "back-off 2m40s"},
		{"delay at the limit", history{crashed(6, 0, 1), tick(301), start("app", 3, 2, 6)}, 301, "back-off 5m0s"},
	} {
		w := lifecycle.StatusOf(pod, fold(row.past), at(row.now)).ContainerStatuses[0].State.Waiting
		want := row.want + " restarting failed container=app pod=" + pod.Name + "_default("
		if w == nil || w.Reason != lifecycle.ReasonCrashLoopBackOff || !strings.HasPrefix(w.Message, want) {
			t.Errorf("%s: %+v, want %q", row.name, w, want)
		}
	}
}

func TestRestartDelay(t *testing.T) {
	always := podOf(spec.RestartAlways, "init", "app")
	init2 := history{up(), tick(10), ran("init", 1, 1), ran("init", 2, 1)}
	app2 := history{up(), ran("init", 1, 0), tick(10), ran("app", 1, 0), ran("app", 2, 0)}
	for _, row := range []struct {
		name      string
		pod       *spec.Pod
		past      history
		container string
		now       float64
		want      time.Duration
	}{
		{"container that never ran", always, up(), "app", 1, 0},
		{"first crash", always, history{up(), ran("init", 1, 1)}, "init", 1, 0},
		{"second crash", always, init2, "init", 12, 10 * time.Second},
		{"delay has passed", always, init2, "init", 21, 0},
		{"second crash of an app container", always, app2, "app", 12, 10 * time.Second},
		{"running container", always, history{app2, running("app", 3)}, "app", 12, 0},
		{"succeeded init container", always, history{up(), tick(10), ran("init", 1, 1), ran("init", 2, 0)}, "init", 10, 0},
		{
			"succeeded container with OnFailure", podOf(spec.RestartOnFailure, "app", "b"),
			history{up(), ran("app", 1, 1), ran("app", 2, 0)},
			"app", 1, 0,
		},
		{"stopping pod", always, history{app2, stopped(1)}, "app", 12, 0},
		{"terminated pod", podOf(spec.RestartNever, "init", "app"), history{up(), ran("init", 1, 1), ran("init", 2, 1)}, "init", 1, 0},
	} {
		if got := lifecycle.RestartDelay(row.pod, fold(row.past), row.container, at(row.now)); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
	for reason, want := range map[lifecycle.Reason]time.Duration{
		lifecycle.ReasonErrImagePull: 40 * time.Second, lifecycle.ReasonErrImageNeverPull: 10 * time.Second,
	} {
		if got := lifecycle.PullDelay(fold(pullFailed("app", 1, 3, reason)), "app"); got != want {
			t.Errorf("%s: %v, want %v", reason, got, want)
		}
	}
	if got := lifecycle.PullDelay(fold(nil), "app"); got != 0 {
		t.Errorf("container without a pull: %v", got)
	}
}

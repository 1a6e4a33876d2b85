package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestDecidePull(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	const broken, absent = lifecycle.ReasonErrImagePull, lifecycle.ReasonErrImageNeverPull
	once := history{up(), tick(10), pullFailed("app", 1, 1, broken)}
	decisions{
		{name: "waits for a pull in progress", pod: pod, past: history{up(), pull("app", 1, 1)}, now: 5000},
		{name: "failed pull is not retried before 10 s", pod: pod, past: once, now: 19.999, wake: 20},
		{name: "failed pull is retried after 10 s at level 2", pod: pod, past: once, now: 20, want: do{pull("app", 1, 2)}},
		{
			name: "second failed pull is not retried before 20 s", pod: pod,
			past: history{once, tick(20), pullFailed("app", 1, 2, broken), tick(30), find("app", 1)}, now: 39.999, wake: 40,
		},
		{
			name: "second failed pull is retried after 20 s at level 3", pod: pod,
			past: history{once, tick(20), pullFailed("app", 1, 2, broken)}, now: 40, want: do{pull("app", 1, 3)},
		},
		{
			name: "delay and level are limited to 300 s and 6", pod: pod,
			past: history{up(), tick(10), pullFailed("app", 1, 6, broken)}, now: 310, want: do{pull("app", 1, 6)},
		},
		{
			name: "first failed pull waits for its back-off", pod: pod,
			past: history{up(), tick(10), pullFailed("app", 1, 1, broken)}, now: 10, wake: 20,
		},
		{name: "level is kept until 600 s after a failure", pod: pod, past: once, now: 610, want: do{pull("app", 1, 2)}},
		{name: "level is reset later than 600 s after a failure", pod: pod, past: once, now: 610.001, want: do{pull("app", 1, 1)}},
		{
			name: "ErrImageNeverPull is retried every 10 s", pod: pod,
			past: history{up(), tick(10), pullFailed("app", 1, 5, absent)}, now: 10, wake: 20,
		},
		{
			name: "unavailable engine is retried after 1 s", pod: pod,
			past: history{up(), tick(10), failing(pull("app", 1, 1), unavailable)}, now: 10.999, wake: 11,
		},
		{
			name: "unavailable engine does not change the level", pod: pod,
			past: history{up(), tick(10), failing(pull("app", 1, 1), unavailable)}, now: 11, want: do{pull("app", 1, 1)},
		},
		{
			name: "every run checks its image", pod: pod,
			past: history{up(), ran("app", 1, 1)}, now: 1, want: do{pull("app", 2, 1)},
		},
		{
			name: "old failure does not delay the pull of the next run", pod: pod,
			past: history{once, tick(20), running("app", 1), tick(25), exited("app", 1, 1)}, now: 25,
			want: do{pull("app", 2, 2)},
		},
		{
			name: "stopping pod does not retry a failed pull", pod: pod,
			past: history{once, tick(20), pullFailed("app", 1, 2, broken), tick(30), stopped(time.Second)}, now: 30,
			want: do{removeSandbox(1)},
		},
	}.check(t)
}

func find(name string, n int) lifecycle.Action { return lifecycle.FindImage{Container: name, For: n} }

// imageFound is a successful check for an image.
func imageFound(name string, n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ImagePulled{Container: name, For: n, At: t}
	}
}

// TestDecideFindImage checks that only pulls back off, not checks for an image.
func TestDecideFindImage(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	late := history{up(), tick(10), pullFailed("app", 1, 3, lifecycle.ReasonErrImagePull)} // 40 s
	looked := history{late, tick(20), find("app", 1)}
	found := history{looked, imageFound("app", 1)}
	crashed := history{found, start("app", 1, 0, 0), started("app", 1), tick(25), exited("app", 1, 1)}
	decisions{
		{name: "4.4 image is not checked before 10 s", pod: pod, past: late, now: 19.999, wake: 20},
		{name: "4.4 image is checked after 10 s", pod: pod, past: late, now: 20, want: do{find("app", 1)}, wake: 50},
		{name: "4.4 check is not repeated before 10 s", pod: pod, past: looked, now: 29.999, wake: 30},
		{name: "4.4 check is repeated after 10 s", pod: pod, past: history{looked, failed(find("app", 1), oops)}, now: 30, want: do{find("app", 1)}, wake: 50},
		{name: "4.4 pull is retried when its back-off has passed", pod: pod, past: looked, now: 50, want: do{pull("app", 1, 4)}},
		{name: "4.4 failed pull resets the time of the last check", pod: pod, past: history{looked, tick(50), pullFailed("app", 1, 4, lifecycle.ReasonErrImagePull)}, now: 59.999, wake: 60},
		{name: "4.4 image that was found is used", pod: pod, past: found, now: 20, want: do{start("app", 1, 0, 0)}},
		{name: "4.4 next run checks its image at once", pod: pod, past: crashed, now: 25, want: do{find("app", 2)}, wake: 50},
		{name: "4.4 next run does not use the result of an earlier check", pod: pod, past: history{crashed, find("app", 2)}, now: 25, wake: 35},
		{name: "4.4 next run keeps the back-off of the failed pull", pod: pod, past: history{crashed, find("app", 2)}, now: 50, want: do{pull("app", 2, 4)}},
		{name: "4.4 next run uses the image that it found", pod: pod, past: history{crashed, find("app", 2), imageFound("app", 2)}, now: 25, want: do{start("app", 2, 1, 1)}},
		{name: "4.4 result of a check for an older run is ignored", pod: pod, past: history{crashed, find("app", 2), imageFound("app", 1)}, now: 25, wake: 35},
		{name: "stopping pod checks no image", pod: pod, past: history{late, stopped(time.Second)}, now: 20, want: do{removeSandbox(1)}},
	}.check(t)
	statuses{
		{"4.4 status while the pull backs off", pod, looked, 20, "Pending; app ImagePullBackOff"},
		{"4.4 status after the image was found", pod, found, 20, "Pending; app ContainerCreating"},
	}.check(t)
}

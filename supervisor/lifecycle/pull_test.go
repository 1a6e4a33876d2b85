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
		{name: "a running pull is waited for", pod: pod, past: history{up(), pull("app", 1, 1)}, now: 5000},
		{name: "a failed one waits 10 s", pod: pod, past: once, now: 19.999, wake: 20},
		{name: "and leads to level 2", pod: pod, past: once, now: 20, want: do{pull("app", 1, 2)}},
		{
			name: "the next waits 20 s", pod: pod,
			past: history{once, tick(20), pullFailed("app", 1, 2, broken), tick(30), find("app", 1)}, now: 39.999, wake: 40,
		},
		{
			name: "and so on", pod: pod,
			past: history{once, tick(20), pullFailed("app", 1, 2, broken)}, now: 40, want: do{pull("app", 1, 3)},
		},
		{
			name: "up to 300 s and level 6", pod: pod,
			past: history{up(), tick(10), pullFailed("app", 1, 6, broken)}, now: 310, want: do{pull("app", 1, 6)},
		},
		{
			name: "and until then", pod: pod,
			past: history{up(), tick(10), pullFailed("app", 1, 1, broken)}, now: 10, wake: 20,
		},
		{name: "600 s after a failure the level holds", pod: pod, past: once, now: 610, want: do{pull("app", 1, 2)}},
		{name: "later it does not", pod: pod, past: once, now: 610.001, want: do{pull("app", 1, 1)}},
		{
			name: "what asks no registry is looked at every 10 s", pod: pod,
			past: history{up(), tick(10), pullFailed("app", 1, 5, absent)}, now: 10, wake: 20,
		},
		{
			name: "an absent engine is asked again after 1 s", pod: pod,
			past: history{up(), tick(10), failing(pull("app", 1, 1), away)}, now: 10.999, wake: 11,
		},
		{
			name: "which is no failure", pod: pod,
			past: history{up(), tick(10), failing(pull("app", 1, 1), away)}, now: 11, want: do{pull("app", 1, 1)},
		},
		{
			name: "every run looks for its image", pod: pod,
			past: history{up(), ran("app", 1, 1)}, now: 1, want: do{pull("app", 2, 1)},
		},
		{
			name: "a failure of long ago does not delay it", pod: pod,
			past: history{once, tick(20), running("app", 1), tick(25), exited("app", 1, 1)}, now: 25,
			want: do{pull("app", 2, 2)},
		},
		{
			name: "a failure before anything ran is the newest run's own", pod: pod,
			past: history{once, tick(20), pullFailed("app", 1, 2, broken), tick(30), stopped(time.Second)}, now: 30,
			want: do{removeSandbox(1)},
		},
	}.check(t)
}

func find(name string, n int) lifecycle.Action { return lifecycle.FindImage{Container: name, For: n} }

// come is the end of a look for an image that has found it.
func come(name string, n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ImagePulled{Container: name, For: n, At: t}
	}
}

// TestDecideFind: only pulls back off.
func TestDecideFind(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	late := history{up(), tick(10), pullFailed("app", 1, 3, lifecycle.ReasonErrImagePull)} // 40 s
	looked := history{late, tick(20), find("app", 1)}
	found := history{looked, come("app", 1)}
	crashed := history{found, start("app", 1, 0, 0), started("app", 1), tick(25), exited("app", 1, 1)}
	decisions{
		{name: "4.4 an image whose pull waits is looked for after 10 s", pod: pod, past: late, now: 19.999, wake: 20},
		{name: "4.4 and then", pod: pod, past: late, now: 20, want: do{find("app", 1)}, wake: 50},
		{name: "4.4 and 10 s after that", pod: pod, past: looked, now: 29.999, wake: 30},
		{name: "4.4 again", pod: pod, past: history{looked, failed(find("app", 1), oops)}, now: 30, want: do{find("app", 1)}, wake: 50},
		{name: "4.4 no longer than the pull waits", pod: pod, past: looked, now: 50, want: do{pull("app", 1, 4)}},
		{name: "4.4 the pull of before is forgotten then", pod: pod, past: history{looked, tick(50), pullFailed("app", 1, 4, lifecycle.ReasonErrImagePull)}, now: 59.999, wake: 60},
		{name: "4.4 one that has come is used", pod: pod, past: found, now: 20, want: do{start("app", 1, 0, 0)}},
		{name: "4.4 by the next run at once", pod: pod, past: crashed, now: 25, want: do{find("app", 2)}, wake: 50},
		{name: "4.4 which does not take it for found", pod: pod, past: history{crashed, find("app", 2)}, now: 25, wake: 35},
		{name: "4.4 nor forgets the failure", pod: pod, past: history{crashed, find("app", 2)}, now: 50, want: do{pull("app", 2, 4)}},
		{name: "4.4 if it is there", pod: pod, past: history{crashed, find("app", 2), come("app", 2)}, now: 25, want: do{start("app", 2, 1, 1)}},
		{name: "4.4 what is found for an older run changes nothing", pod: pod, past: history{crashed, find("app", 2), come("app", 1)}, now: 25, wake: 35},
		{name: "a pod that is to end looks for nothing", pod: pod, past: history{late, stopped(time.Second)}, now: 20, want: do{removeSandbox(1)}},
	}.check(t)
	statuses{
		{"4.4 it waits for the pull meanwhile", pod, looked, 20, "Pending; app ImagePullBackOff"},
		{"4.4 until it has come", pod, found, 20, "Pending; app ContainerCreating"},
	}.check(t)
}

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

var (
	firstImage  = lifecycle.Image{ID: "sha256:first", Archive: true}
	secondImage = lifecycle.Image{ID: "sha256:second"}
)

// pulledImage is the pull of an image for a run, and its outcome.
func pulledImage(a lifecycle.PullImage, image lifecycle.Image) history {
	return history{a, happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ImagePulled{Container: a.Container, For: a.For, Image: image, At: t}
	})}
}

func pullAgain(name string, n, level int, image lifecycle.Image) lifecycle.PullImage {
	return lifecycle.PullImage{Container: name, For: n, Level: level, Image: image, Imported: true}
}

func startImage(n, restarts, backoff int, image lifecycle.Image) lifecycle.StartContainer {
	return lifecycle.StartContainer{Ref: run("app", n), Sandbox: 1, Restarts: restarts, Backoff: backoff, ImageID: image.ID}
}

// TestDecideImage checks that a container runs the image of its newest pull, and that the next pull has it.
func TestDecideImage(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app", "other")
	first := lifecycle.PullImage{Container: "app", For: 1, Level: 1}
	got := history{up(), pulledImage(first, firstImage)}
	starting := history{got, startImage(1, 0, 0, firstImage)}
	crashed := history{starting, started("app", 1), tick(5), exited("app", 1, 1)}
	other := pullAgain("other", 1, 1, lifecycle.Image{})
	again := history{crashed, other, pullAgain("app", 2, 1, firstImage)}
	single := podOf(spec.RestartAlways, "app")
	decisions{
		{name: "first pull of a pod imports its archives", pod: single, past: history{up()}, want: do{first}},
		{name: "start has the image that was pulled", pod: single, past: got, want: do{startImage(1, 0, 0, firstImage)}},
		{
			name: "retried start has the same image", pod: single, past: history{starting, failed(startImage(1, 0, 0, firstImage), unavailable)},
			now: 2, want: do{startImage(1, 0, 0, firstImage)},
		},
		{name: "restart pulls with the image of the previous run", pod: single, past: crashed, now: 5, want: do{pullAgain("app", 2, 1, firstImage)}},
		{
			name: "restart runs the image that its pull returned", pod: single, past: history{crashed, pulledImage(pullAgain("app", 2, 1, firstImage), secondImage)},
			now: 5, want: do{startImage(2, 1, 1, secondImage)},
		},
		{name: "other containers do not import the archives again", pod: pod, past: history{starting, started("app", 1)}, now: 5, want: do{other}},
	}.check(t)

	want := []lifecycle.Action{pullAgain("app", 2, 1, firstImage), other}
	if diff := cmp.Diff(want, fold(again).Unresolved()); diff != "" {
		t.Errorf("pulls after a restart of the supervisor (-want +got):\n%s", diff)
	}
	want = []lifecycle.Action{startImage(1, 0, 0, firstImage)}
	if diff := cmp.Diff(want, fold(starting).Unresolved()); diff != "" {
		t.Errorf("starts after a restart of the supervisor (-want +got):\n%s", diff)
	}
}

// TestDecideFindImageAgain checks that a container whose pull backs off looks for the image of its previous run.
func TestDecideFindImageAgain(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	decisions{{
		name: "check for the image of the previous run", pod: pod, past: history{
			up(), pulledImage(lifecycle.PullImage{Container: "app", For: 1, Level: 1}, firstImage), startImage(1, 0, 0, firstImage), started("app", 1),
			tick(5), exited("app", 1, 1), tick(10), failing(pullAgain("app", 2, 3, firstImage), oops),
		}, now: 20, want: do{lifecycle.FindImage{Container: "app", For: 2, Image: firstImage}}, wake: 50,
	}}.check(t)
}

// TestImageAfterReboot checks that a pod keeps its images when the host is rebooted.
func TestImageAfterReboot(t *testing.T) {
	first := lifecycle.PullImage{Container: "app", For: 1, Level: 1}
	f := fold(history{up(), pulledImage(first, firstImage), startImage(1, 0, 0, firstImage), started("app", 1)})
	f = f.Apply(lifecycle.Booted{Saved: at(10), At: at(10).Add(time.Minute)})
	if got := f.Containers["app"].Image; got != firstImage {
		t.Errorf("image after a reboot: %+v, want %+v", got, firstImage)
	}
}

package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		{
			name: "4.4 check is repeated after 10 s", pod: pod, past: history{looked, failed(find("app", 1), oops)}, now: 30,
			want: do{find("app", 1)}, wake: 50,
		},
		{name: "4.4 pull is retried when its back-off has passed", pod: pod, past: looked, now: 50, want: do{pull("app", 1, 4)}},
		{
			name: "4.4 failed pull resets the time of the last check", pod: pod,
			past: history{looked, tick(50), pullFailed("app", 1, 4, lifecycle.ReasonErrImagePull)}, now: 59.999, wake: 60,
		},
		{name: "4.4 image that was found is used", pod: pod, past: found, now: 20, want: do{start("app", 1, 0, 0)}},
		{name: "4.4 next run checks its image at once", pod: pod, past: crashed, now: 25, want: do{find("app", 2)}, wake: 50},
		{
			name: "4.4 next run does not use the result of an earlier check", pod: pod, past: history{crashed, find("app", 2)}, now: 25,
			wake: 35,
		},
		{
			name: "4.4 next run keeps the back-off of the failed pull", pod: pod, past: history{crashed, find("app", 2)}, now: 50,
			want: do{pull("app", 2, 4)},
		},
		{
			name: "4.4 next run uses the image that it found", pod: pod, past: history{crashed, find("app", 2), imageFound("app", 2)},
			now: 25, want: do{start("app", 2, 1, 1)},
		},
		{
			name: "4.4 result of a check for an older run is ignored", pod: pod,
			past: history{crashed, find("app", 2), imageFound("app", 1)}, now: 25, wake: 35,
		},
		{name: "stopping pod checks no image", pod: pod, past: history{late, stopped(time.Second)}, now: 20, want: do{removeSandbox(1)}},
	}.check(t)
	statuses{
		{"4.4 status while the pull backs off", pod, looked, 20, "Pending; app ImagePullBackOff"},
		{"4.4 status after the image was found", pod, found, 20, "Pending; app ContainerCreating"},
	}.check(t)
}

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
			name: "retried start has the same image", pod: single,
			past: history{starting, failed(startImage(1, 0, 0, firstImage), unavailable)},
			now:  2, want: do{startImage(1, 0, 0, firstImage)},
		},
		{
			name: "restart pulls with the image of the previous run", pod: single, past: crashed, now: 5,
			want: do{pullAgain("app", 2, 1, firstImage)},
		},
		{
			name: "restart runs the image that its pull returned", pod: single,
			past: history{crashed, pulledImage(pullAgain("app", 2, 1, firstImage), secondImage)},
			now:  5, want: do{startImage(2, 1, 1, secondImage)},
		},
		{
			name: "other containers do not import the archives again", pod: pod, past: history{starting, started("app", 1)}, now: 5,
			want: do{other},
		},
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
			up(), pulledImage(lifecycle.PullImage{Container: "app", For: 1, Level: 1}, firstImage), startImage(1, 0, 0, firstImage),
			started("app", 1),
			tick(5), exited("app", 1, 1), tick(10), failing(pullAgain("app", 2, 3, firstImage), oops),
		}, now: 20, want: do{lifecycle.FindImage{Container: "app", For: 2, Image: firstImage}}, wake: 50,
	}}.check(t)
}

// TestImageAfterReboot checks that a pod keeps its images when the host is rebooted.
func TestImageAfterReboot(t *testing.T) {
	first := lifecycle.PullImage{Container: "app", For: 1, Level: 1}
	f := fold(history{up(), pulledImage(first, firstImage), startImage(1, 0, 0, firstImage), started("app", 1)})
	f = f.Apply(lifecycle.Booted{Saved: at(10), At: at(10).Add(time.Minute)})
	if got := f.Container("app").Image; got != firstImage {
		t.Errorf("image after a reboot: %+v, want %+v", got, firstImage)
	}
}

func addEphemeral(name string) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.EphemeralAdded{Container: spec.Container{Name: name, Image: "localhost/" + name}, At: t}
	}
}

func TestDecideEphemeral(t *testing.T) {
	pod := podOf(always, "init", "app")
	live := history{up(), ran("init", 1, 0), running("app", 1), addEphemeral("d")}
	rules := with(podOf(never, "side", "app"), own(never, rule(restartAll, "In", 42)))
	refused := lifecycle.Failure{Kind: lifecycle.FailureNotCreated}
	finish := func(name string) lifecycle.StopContainer {
		return lifecycle.StopContainer{Ref: run(name, 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonPodFinished}
	}
	decisions{
		{name: "image is pulled", pod: pod, past: live, now: 1, want: do{pull("d", 1, 1)}},
		{name: "starts when its image is present", pod: pod, past: history{live, pulled("d", 1)}, now: 1, want: do{start("d", 1, 0, 0)}},
		{
			name: "starts while an init container runs", pod: pod, past: history{up(), running("init", 1), addEphemeral("d")}, now: 1,
			want: do{pull("d", 1, 1)},
		},
		{
			name: "starts before the init container is pulled", pod: pod, past: history{up(), addEphemeral("d")}, now: 1,
			want: do{pull("d", 1, 1), pull("init", 1, 1)},
		},
		{name: "does not start without a sandbox", pod: pod, past: history{startSandbox(1), addEphemeral("d")}, now: 1},
		{name: "nothing to do while it runs", pod: pod, past: history{live, running("d", 1)}, now: 1},
		{name: "is not restarted, whatever the restart policy", pod: pod, past: history{live, ran("d", 1, 1)}, now: 1},
		{name: "is not restarted in a new sandbox", pod: podOf(always, "app"), past: history{
			up(), addEphemeral("d"), ran("d", 1, 1), tick(5), sandboxLost(1), sandboxRemoved(1), startSandbox(2),
			happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SandboxStarted{Sandbox: 2, At: t} }),
		}, now: 6, want: do{pull("app", 1, 1)}},
		{
			name: "failed creation is retried", pod: pod,
			past: history{live, tick(10), pulled("d", 1), failing(start("d", 1, 0, 0), refused)}, now: 10, wake: 20,
		},
		{
			name: "start is retried if the engine was unavailable", pod: pod,
			past: history{live, tick(10), pulled("d", 1), failing(start("d", 1, 0, 0), unavailable)}, now: 11,
			want: do{start("d", 1, 0, 0)},
		},
		{
			name: "is stopped with the pod", pod: pod, past: history{live, running("d", 1), tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{stop("app", 1, 9*time.Second), stop("d", 1, 9*time.Second)},
		},
		{
			name: "its pull is cancelled when the pod stops", pod: pod,
			past: history{up(), pull("d", 1, 1), addEphemeral("e"), pull("e", 1, 1), tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{lifecycle.CancelPull{Container: "e", For: 1}},
		},
		{
			name: "is stopped when the pod has finished", pod: podOf(never, "app"),
			past: history{up(), addEphemeral("d"), running("d", 1), tick(10), ran("app", 1, 0)}, now: 10, want: do{finish("d")},
		},
		{
			name: "pod waits for its exit", pod: podOf(never, "app"),
			past: history{up(), addEphemeral("d"), running("d", 1), tick(10), ran("app", 1, 0), finish("d")}, now: 10, wake: 40,
		},
		{
			name: "sidecars do not wait for it", pod: rules,
			past: history{up(), addEphemeral("d"), running("d", 1), running("side", 1), tick(10), ran("app", 1, 0)}, now: 10,
			want: do{finish("d"), finish("side")},
		},
		{
			name: "4.2 is not stopped by a restart of all containers", pod: rules,
			past: history{up(), addEphemeral("d"), running("d", 1), ran("side", 1, 0), ran("app", 1, 42)}, now: 1,
			want: do{lifecycle.StartRound{Round: 2, By: run("app", 1)}},
		},
	}.check(t)
}

func TestStatusEphemeral(t *testing.T) {
	app := podOf(always, "app")
	rules := with(podOf(never, "app"), own(never, rule(restartAll, "In", 42)))
	live := history{up(), running("app", 1), addEphemeral("e"), addEphemeral("d")}
	statuses{
		{"sorted by name, not counted as unready", app, live, 1, "Running; app Running ready; d ContainerCreating; e ContainerCreating"},
		{"running", app, history{live, running("d", 1)}, 1, "Running; app Running ready; d Running; e ContainerCreating"},
		{"terminated, not restarted", app, history{live, ran("d", 1, 1)}, 1, "Running; app Running ready; d Error(1); e ContainerCreating"},
		{
			"pod is Running while one runs", podOf(never, "app"),
			history{up(), ran("app", 1, 0), addEphemeral("d"), running("d", 1)},
			1,
			"Running; app Completed(0); d Running",
		},
		{
			"exit code does not affect the phase", podOf(never, "app"),
			history{up(), ran("app", 1, 0), addEphemeral("d"), ran("d", 1, 1)},
			1, "Succeeded; app Completed(0); d Error(1)",
		},
		{
			"one that never ran stays Waiting", podOf(never, "app"),
			history{up(), ran("app", 1, 0), addEphemeral("d")},
			1,
			"Succeeded; app Completed(0); d ContainerCreating",
		},
		{
			"4.2 a restart of all containers leaves its end as it was", rules,
			history{up(), addEphemeral("d"), ran("d", 1, 3), ran("app", 1, 42), lifecycle.StartRound{Round: 2, By: run("app", 1)}},
			1,
			"Running; app RestartingAllContainers after RestartingAllContainers(137) +1; d Error(3)",
		},
	}.check(t)
	s := lifecycle.StatusOf(app, fold(history{live, running("d", 1)}), at(2)).EphemeralContainerStatuses[0]
	if s.Started != nil || s.Ready {
		t.Errorf("started or ready is set: %+v", s)
	}
}

// TestEphemeralPullFails: an ephemeral container is removed when its image cannot be pulled for the third time. Its name can be used again.
// App containers stay, and so does one that has run.
func TestEphemeralPullFails(t *testing.T) {
	live := history{up(), running("app", 1), addEphemeral("d"), addEphemeral("e")}
	fails := func(name string, attempt, level int) history {
		return history{tick(10 * level), pullFailed(name, attempt, level, lifecycle.ReasonErrImagePull)}
	}
	cancelled := history{
		fails("d", 1, 1), fails("d", 1, 2), tick(30),
		lifecycle.PullImage{Container: "d", For: 1, Level: 3},
		lifecycle.CancelPull{Container: "d", For: 1},
		failed(lifecycle.PullImage{Container: "d", For: 1, Level: 3}, lifecycle.Failure{Message: "cancelled"}),
	}
	for name, test := range map[string]struct {
		past history
		want []string
	}{
		"twice":               {history{fails("d", 1, 1), fails("d", 1, 2)}, []string{"d", "e"}},
		"three times":         {history{fails("d", 1, 1), fails("d", 1, 2), fails("d", 1, 3)}, []string{"e"}},
		"of an app container": {history{fails("app", 2, 1), fails("app", 2, 2), fails("app", 2, 3)}, []string{"d", "e"}},
		"after it has run":    {history{ran("d", 1, 0), fails("d", 2, 3)}, []string{"d", "e"}},
		"cancelled":           {cancelled, []string{"d", "e"}},
		"engine unavailable": {history{
			fails("d", 1, 1), fails("d", 1, 2), tick(30), failing(lifecycle.PullImage{Container: "d", For: 1, Level: 3}, unavailable),
		}, []string{"d", "e"}},
		"added again": {history{fails("d", 1, 1), fails("d", 1, 2), fails("d", 1, 3), addEphemeral("d")}, []string{"e", "d"}},
	} {
		facts := fold(history{live, tick(5), test.past})
		var got []string
		for _, c := range facts.Ephemeral {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: ephemeral containers %v, want %v", name, got, test.want)
		}
		if _, known := facts.Containers["app"]; !known {
			t.Errorf("%s: the app container is gone", name)
		}
		if pull := facts.Container("d").Pull; name == "added again" && pull != (lifecycle.Pull{}) {
			t.Errorf("%s: its pull is %+v", name, pull)
		}
	}
	changes := fold(live).Changes
	if got := fold(history{live, fails("d", 1, 1), fails("d", 1, 2), fails("d", 1, 3)}).Changes; got != changes+1 {
		t.Errorf("the removal counts as %d changes, want 1", got-changes)
	}
}

func TestEphemeralAdded(t *testing.T) {
	facts := fold(history{running("app", 1), addEphemeral("d"), addEphemeral("d"), addEphemeral("app")})
	if len(facts.Ephemeral) != 1 || facts.Ephemeral[0].Image != "localhost/d" {
		t.Fatalf("ephemeral containers: %+v", facts.Ephemeral)
	}
	one, two := facts.Apply(addEphemeral("x")(at(2))), facts.Apply(addEphemeral("y")(at(2)))
	if one.Ephemeral[1].Name != "x" || two.Ephemeral[1].Name != "y" {
		t.Errorf("two containers added to the same facts: %v, %v", one.Ephemeral, two.Ephemeral)
	}
	pod := podOf(always, "app")
	pod.EphemeralContainers = []spec.Container{{Name: "d"}, {Name: "z"}}
	if found := facts.CatchUp(lifecycle.Found{Pod: pod}, at(2)).Ephemeral; len(found) != 2 || found[0].Image != "localhost/d" ||
		found[1].Name != "z" {
		t.Errorf("containers found in the engine: %+v", found)
	}
	for i := range 100 {
		facts = facts.Apply(addEphemeral(fmt.Sprintf("d%d", i))(at(2)))
	}
	if n := len(facts.Ephemeral); n != 64 {
		t.Errorf("%d ephemeral containers, want 64", n)
	}
}

package runtimetest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func testImages(w *scenario) {
	w.shell("true")
	for range 2 {
		if got := w.pull("c", lifecycle.Image{}); got.Pulled {
			w.Errorf("pull of a present image: %+v", got)
		}
	}
	c := &w.pod.Containers[0]
	find := func() (lifecycle.ImagePulled, error) {
		return w.Runtime.FindImage(w.ctx(), w.pod, lifecycle.FindImage{Container: "c", For: 3})
	}
	want := lifecycle.ImagePulled{Container: "c", For: 3, Image: w.pull("c", lifecycle.Image{}).Image}
	got, err := find()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		w.Errorf("find image: %v (-want +got):\n%s", err, diff)
	}
	c.ImagePullPolicy = spec.PullAlways
	_, err = find()
	w.wantFailure(err, lifecycle.FailureNotFound, "", "") // an image that must be pulled is not found
	c.Image, c.ImagePullPolicy = "localhost/podstead/none:1", spec.PullNever
	_, err = find()
	w.wantFailure(err, lifecycle.FailureNotFound, "", "")
	_, err = w.Runtime.PullImage(w.ctx(), w.pod, lifecycle.PullImage{Container: "c"}, func(lifecycle.Progress) {})
	w.wantFailure(err, lifecycle.FailureRetry, lifecycle.ReasonErrImageNeverPull, "localhost/podstead/none:1")
	w.pod = nil
}

// testRetag checks that a restart uses the image of the previous run, and a first run the image that the name refers to.
func testRetag(w *scenario) {
	w.shell("exit 1")
	w.sandbox(1)
	first := w.pull("c", lifecycle.Image{}).Image
	run := func(n int, image lifecycle.Image) {
		w.Helper()
		a := start(n)
		a.ImageID = image.ID
		got, err := w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, a)
		w.must(err)
		if got.ImageID != image.ID {
			w.Errorf("run %d uses image %s, want %s", n, got.ImageID, image.ID)
		}
		w.exit(a.Ref)
	}
	run(1, first)
	w.Retag()
	for _, policy := range []spec.PullPolicy{spec.PullIfNotPresent, spec.PullNever} {
		w.pod.Containers[0].ImagePullPolicy = policy
		if got := w.pull("c", first); got.Image != first {
			w.Errorf("policy %s: image %+v of the next run, want %+v", policy, got.Image, first)
		}
		got, err := w.Runtime.FindImage(w.ctx(), w.pod, lifecycle.FindImage{Container: "c", Image: first})
		if got.Image != first || err != nil {
			w.Errorf("policy %s: found %+v, %v, want %+v", policy, got.Image, err, first)
		}
	}
	run(2, first)
	w.Runtime = w.Reopen()
	w.must(w.Runtime.RemoveContainer(w.ctx(), w.uid, w.pod, attempt(1)))
	if got := w.pull("c", first); got.Image != first {
		w.Errorf("image %+v after a restart of the supervisor, want %+v", got.Image, first)
	}
	run(3, first)
	second := w.pull("c", lifecycle.Image{}).Image
	if second.ID == first.ID {
		w.Errorf("image of a container that has not run: %+v, the name refers to another one", second)
	}
	run(4, second)
	runs := w.inventory()[0].Runs
	if got := runs[len(runs)-1]; got.ImageID != second.ID {
		w.Errorf("the inventory has image %s of the newest run, want %s", got.ImageID, second.ID)
	}
}

// testKeepImages checks that a kept image can be started again although its name refers to another one and no run uses it, until it is
// released.
func testKeepImages(w *scenario) {
	w.shell("exit 1")
	w.sandbox(1)
	first := w.pull("c", lifecycle.Image{}).Image
	w.wantKept()
	absent := lifecycle.Image{ID: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
	w.must(w.Runtime.KeepImages(w.ctx(), "absent", []lifecycle.Image{absent}))
	for range 2 {
		w.must(w.Runtime.KeepImages(w.ctx(), "p", []lifecycle.Image{first, absent}))
		w.must(w.Runtime.KeepImages(w.ctx(), "other.pod", []lifecycle.Image{first}))
	}
	w.wantKept("other.pod", "p")
	w.Retag()
	w.must(w.Runtime.KeepImages(w.ctx(), "other.pod", nil))
	w.Runtime = w.Reopen()
	w.must(w.Collect(w.ctx()))
	w.wantKept("p")

	w.pod.Containers[0].ImagePullPolicy = spec.PullNever
	if got := w.pull("c", first); got.Image != first {
		w.Errorf("image %+v, want the kept one %+v", got.Image, first)
	}
	a := start(1)
	a.ImageID = first.ID
	if got, err := w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, a); err != nil || got.ImageID != first.ID {
		w.Errorf("the run uses image %q, %v, want the kept one %s", got.ImageID, err, first.ID)
	}
	w.exit(a.Ref)
	w.must(w.Runtime.RemoveContainer(w.ctx(), w.uid, w.pod, a.Ref))

	second := w.pull("c", lifecycle.Image{}).Image
	w.must(w.Runtime.KeepImages(w.ctx(), "p", []lifecycle.Image{second}))
	w.wantKept("p")
	w.must(w.Collect(w.ctx()))
	if got := w.pull("c", first); got.Image != second {
		w.Errorf("image %+v after the release of %s, want %+v", got.Image, first.ID, second)
	}
	a.ImageID = first.ID
	_, err := w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, a)
	w.wantFailure(err, lifecycle.FailureNotCreated, lifecycle.ReasonCreateContainerError, first.ID)
	w.must(w.Runtime.KeepImages(w.ctx(), "p", nil))
	w.must(w.Runtime.KeepImages(w.ctx(), "p", nil))
	w.wantKept()
}

// wantKept checks for which pods images are kept.
func (w *scenario) wantKept(want ...string) {
	w.Helper()
	got, err := w.Runtime.KeptImages(w.ctx())
	w.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("pods with kept images (-want +got):\n%s", diff)
	}
}

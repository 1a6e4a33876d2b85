package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// rolledOut applies a pod three times, each of which is a generation. The first two are ready. It returns when the pod itself is.
func (d *testDaemon) rolledOut(t *testing.T) {
	t.Helper()
	d.files.Changes = []change.Change{{Path: "labels.release", Old: `"1"`, New: `"2"`}}
	for i, labels := range []string{"", "labels.release = \"2\"\n", "labels.release = \"3\"\n"} {
		if _, err := d.client.Apply(t.Context(), applied("web", labels+app("main", "sleep 1000"))); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			d.files.Judge("web", api.GenerationReady, "")
		}
	}
	pod, err := d.client.Pod(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	complete := func(c api.PodChange) bool { return c.Object.Status.Outcome.State == api.RolloutComplete }
	d.await(t, pod.Metadata.UID, "pod that has stayed ready", complete)
}

func (d *testDaemon) rollout(t *testing.T, state api.RolloutState, message string, running int, newer bool) api.Rollout {
	t.Helper()
	r, err := d.client.Rollout(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if r.State != state || !strings.HasPrefix(r.Message, message) || r.Running != running || r.FileNewer != newer {
		t.Errorf("rollout: %s %q, generation %d, file newer: %v; want %s %q, %d, %v", r.State, r.Message, r.Running, r.FileNewer, state,
			message, running, newer)
	}
	return r
}

func TestRollout(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.rolledOut(t)
	r := d.rollout(t, api.RolloutProgressing, "generation 3 is not ready yet", 3, false)
	if g := r.Find(2); g == nil || g.Outcome != api.GenerationReady || !g.Kept || len(g.Changes) != 1 || g.Digest == "" ||
		!strings.HasPrefix(g.By, "podstead run, pid ") {
		t.Errorf("generation 2: %+v", g)
	}
	if g := r.Find(4); g != nil {
		t.Errorf("generation 4: %+v", g)
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), "sleep 1000") {
		t.Errorf("the rollout has the definition: %s, %v", text, err)
	}
	d.files.Judge("web", api.GenerationFailed, "no memory")
	d.rollout(t, api.RolloutFailed, "generation 3 failed: no memory", 3, false)
	d.files.Judge("web", api.GenerationReady, "")
	d.rollout(t, api.RolloutComplete, "", 3, false)
	d.files.Judge("web", api.GenerationRolledBack, "no memory")
	d.rollout(t, api.RolloutFailed, "generation 3 was rolled back: no memory; generation 2 is being restored", 2, true)
	d.files.Returned("web")
	r = d.rollout(t, api.RolloutFailed, "generation 3 was rolled back: no memory; generation 2 runs", 2, true)
	if g := r.RolledBack(); g == nil || g.Generation != 3 {
		t.Errorf("rolled back: %+v, want generation 3", g)
	}
	a, err := d.client.Apply(t.Context(), applied("web", "labels.release = \"3\"\n"+app("main", "sleep 1000")))
	if want := "generation 3 was rolled back: no memory; generation 2 runs"; err != nil || a.Outcome != api.PodUnchanged ||
		a.Instead != want {
		t.Errorf("apply: %+v, %v; want %q", a, err, want)
	}
}

// TestRolledBack checks that a pod whose update was rolled back shows that, and that the pod does not count as failed in the middle of the
// rollback.
func TestRolledBack(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.rolledOut(t)
	p, err := d.client.Pod(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	d.await(t, p.Metadata.UID, "container ready", ready)
	d.files.Judge("web", api.GenerationRolledBack, "no memory")
	p, err = d.client.Pod(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	want := api.Condition{
		Type: api.FileAccepted, Status: "False", Reason: api.ReasonRolledBack,
		Message: "generation 3 was rolled back: no memory; generation 2 runs",
	}
	if last := p.Status.Conditions[len(p.Status.Conditions)-1]; last != want {
		t.Errorf("condition %+v, want %+v", last, want)
	}
	why := func(healthy bool, text string) {
		t.Helper()
		e, err := d.client.Why(t.Context(), "web", 0)
		if err != nil || e.Healthy != healthy ||
			e.Text != "web is running and ready. The newest version of its file is not running: "+text {
			t.Errorf("why: %q, healthy: %v, %v", e.Text, e.Healthy, err)
		}
	}
	why(false, want.Message+".")
	r, err := d.client.UndoRollout(t.Context(), "web", api.UndoRequest{Generation: 1})
	if err != nil || r.Running != 1 || r.State != api.RolloutProgressing || !r.FileNewer {
		t.Fatalf("undo: %+v, %v", r, err)
	}
	d.files.Reached("web")
	d.rollout(t, api.RolloutComplete, "", 1, true) // as the pod, which may have failed
	d.files.Returned("web")
	r = d.rollout(t, api.RolloutComplete, "", 1, true)
	p, err = d.client.Pod(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	why(true, p.Status.Conditions[len(p.Status.Conditions)-1].Message+".")

	if err := d.files.Vanish(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	list, err := d.client.Pods(t.Context())
	if err != nil || len(list.Items) > 0 {
		t.Errorf("pods in the middle of a rollback: %+v, %v; want none", list.Items, err)
	}
	if all, err := d.client.WhyAll(t.Context(), 0); err != nil || len(all.Items) > 0 {
		t.Errorf("why in the middle of a rollback: %+v, %v; want none", all.Items, err)
	}
	if _, err := d.client.Pod(t.Context(), "web"); !isStatus(err, http.StatusNotFound) {
		t.Errorf("pod in the middle of a rollback: %v, want 404", err)
	}
	d.rollout(t, api.RolloutProgressing, "the pod is being created", 1, true)
}

func TestRolloutErrors(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.create(t, file("run", app("main", "sleep 1000")))
	d.rolledOut(t)
	d.files.Refuse(podfiles.File{Path: "/pods.d/bad.toml", Pod: "bad", Reason: api.ReasonInvalidFile})
	undo := func(pod string, generation int) error {
		_, err := d.client.UndoRollout(t.Context(), pod, api.UndoRequest{Generation: generation})
		return err
	}
	rollout := func(pod string) error {
		_, err := d.client.Rollout(t.Context(), pod)
		return err
	}
	for _, test := range []struct {
		err    error
		status int
		want   string
	}{
		{rollout("none"), http.StatusNotFound, `pod "none" has no generations: it does not exist`},
		{rollout("run"), http.StatusNotFound, `pod "run" has no generations: it has no file in the pods directory`},
		{undo("run", 0), http.StatusNotFound, `pod "run" has no generations: it has no file in the pods directory`},
		{undo("web", 3), http.StatusConflict, `generation 3 of pod "web" runs already`},
		{undo("web", 9), http.StatusConflict, `pod "web" has no generation 9`},
		{undo("web", -1), http.StatusBadRequest, "generation -1: must be at least 1"},
	} {
		if !isStatus(test.err, test.status) || !strings.HasPrefix(test.err.Error(), test.want) {
			t.Errorf("%v, want %d %s", test.err, test.status, test.want)
		}
	}
	r, err := d.client.Rollout(t.Context(), "bad")
	if err != nil || r.State != api.RolloutFailed || !r.FileNewer || !strings.Contains(r.Message, "InvalidFile") {
		t.Errorf("rollout of a file that is invalid: %+v, %v", r, err)
	}
	p, err := d.client.Pod(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.client.Stop(t.Context(), "web", client.StopOptions{Grace: new(time.Duration)}); err != nil {
		t.Fatal(err)
	}
	d.await(t, p.Metadata.UID, "pod at rest", atRest)
	d.rollout(t, api.RolloutFailed, "the pod is stopped: start it with podstead start web", 3, false)
}

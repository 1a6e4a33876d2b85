package server_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

func TestEphemeralContainer(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t, file("web", app("main", "trap 'exit 0' TERM; sleep 1000"))).Metadata.UID
	d.await(t, uid, "container ready", ready)
	q := api.EphemeralRequest{
		File: "debug.toml", UID: uid,
		Text: "name = \"debug\"\nimage = \"i\"\ncommand = [\"sh\", \"-c\", \"echo seen; sleep 0.1; exit 7\"]\n",
	}
	created, err := d.client.AddEphemeral(t.Context(), "web", q)
	if err != nil || len(created.Pod.Spec.EphemeralContainers) != 1 || len(created.Pod.Status.EphemeralContainerStatuses) != 1 {
		t.Fatalf("%+v, %v", created, err)
	}
	pod := d.await(t, uid, "termination of the container", func(c api.PodChange) bool {
		s := c.Object.Status.EphemeralContainerStatuses
		return len(s) == 1 && s[0].State.Terminated != nil
	})
	if end := pod.Status.EphemeralContainerStatuses[0]; end.State.Terminated.ExitCode != 7 || end.RestartCount != 0 || end.Ready {
		t.Errorf("status of the ephemeral container: %+v", end)
	}
	for _, query := range []client.OutputQuery{{}, {Runs: api.NewestRun, Containers: []string{"debug"}}} {
		if got, _ := d.read(t, "web", query, -1); !slices.Equal(got, []string{"debug/0 stdout: seen"}) {
			t.Errorf("output of %v: %q", query.Containers, got)
		}
	}
	if main := pod.Status.ContainerStatuses[0]; !main.Ready || main.RestartCount != 0 {
		t.Errorf("status of the app container: %+v", main)
	}
	for text, want := range map[string]int{
		q.Text: http.StatusConflict, "name = \"main\"\nimage = \"i\"\n": http.StatusConflict, "name = \"x\"\n": http.StatusBadRequest,
	} {
		_, err := d.client.AddEphemeral(t.Context(), "web", api.EphemeralRequest{File: "debug.toml", Text: text})
		if !isStatus(err, want) {
			t.Errorf("%q: %v, want %d", text, err, want)
		}
		if e, _ := errors.AsType[*api.Error](err); want == http.StatusBadRequest &&
			(len(e.Problems) != 1 || e.Problems[0].Path != "image") {
			t.Errorf("%q: problems %+v", text, e.Problems)
		}
	}
	q.UID = "another"
	if _, err := d.client.AddEphemeral(t.Context(), "web", q); !isStatus(err, http.StatusNotFound) {
		t.Errorf("other UID: %v, want 404", err)
	}
	if err := d.client.Stop(t.Context(), "web", client.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.client.AddEphemeral(t.Context(), "web",
		api.EphemeralRequest{File: "d", Text: "name = \"late\"\nimage = \"i\"\n"}); !isStatus(err, http.StatusConflict) {
		t.Errorf("terminating pod: %v, want 409", err)
	}
	d.await(t, uid, "pod at rest", atRest)
}

func TestConditionOfReadinessGate(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	q := file("web", "readinessGates = [{ conditionType = \"example.org/door\" }]\n"+app("main", "trap 'exit 0' TERM; sleep 1000"))
	uid := d.create(t, q).Metadata.UID
	readyIs := func(status string, reason api.Reason) func(api.PodChange) bool {
		return func(c api.PodChange) bool {
			for _, k := range c.Object.Status.Conditions {
				if k.Type == api.PodReady {
					return k.Status == status && k.Reason == reason
				}
			}
			return false
		}
	}
	d.await(t, uid, "pod that waits for its readiness gate", readyIs("False", api.ReasonReadinessGatesNotReady))
	for _, status := range []string{"True", "False", "Unknown", "True"} {
		pod, err := d.client.SetCondition(t.Context(), "web", "example.org/door",
			api.ConditionRequest{Status: status, Reason: "Why", Message: "because", UID: uid})
		if err != nil {
			t.Fatal(err)
		}
		want := readyIs("False", api.ReasonReadinessGatesNotReady)
		if status == "True" {
			want = readyIs("True", "")
		}
		if !want(api.PodChange{Object: pod}) {
			t.Errorf("condition %s: %+v", status, pod.Status.Conditions)
		}
		last := pod.Status.Conditions[len(pod.Status.Conditions)-1]
		if last.Type != "example.org/door" || last.Status != status || last.Reason != "Why" || last.Message != "because" {
			t.Errorf("condition %+v", last)
		}
	}
	if _, err := d.client.SetCondition(t.Context(), "web", "Ready",
		api.ConditionRequest{Status: "True"}); !isStatus(err, http.StatusNotFound) {
		t.Errorf("condition without a readiness gate: %v, want 404", err)
	}
	changes := 0
	for e, err := range d.client.Events(t.Context(), &client.EventQuery{UID: uid}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "ConditionChanged" {
			changes++
			if !strings.HasPrefix(e.Fields["by"], "podstead run, pid ") {
				t.Errorf("%+v: no requester", e)
			}
		}
	}
	if changes != 4 {
		t.Errorf("%d events ConditionChanged, want 4", changes)
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t, file("bad", "restartPolicy = \"Never\"\n"+app("main", "exit 3"))).Metadata.UID
	d.await(t, uid, "pod at rest", atRest)
	good := d.create(t, file("good", app("main", "trap 'exit 0' TERM; sleep 1000"))).Metadata.UID
	d.await(t, good, "container ready", ready)
	list, err := d.client.WhyAll(t.Context(), 3)
	if err != nil || len(list.Items) != 2 || list.Items[0].Healthy || !list.Items[1].Healthy {
		t.Errorf("%+v, %v", list, err)
	}
	if err := d.client.Stop(t.Context(), "bad", client.StopOptions{Delete: true}); err != nil {
		t.Fatal(err)
	}
	for limit := time.After(testTimeout); ; {
		changed := d.supervisor.Changed()
		if _, known := d.supervisor.Pod("bad"); !known {
			break
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatal("the pod is still there")
		}
	}
	e, err := d.client.Why(t.Context(), "bad", 3)
	if err != nil || e.UID != uid || e.State != api.PodStateDeleted || len(e.Containers) != 1 || len(e.Containers[0].Runs) != 1 {
		t.Errorf("of a deleted pod: %+v, %v", e, err)
	}
}

package api_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestEphemeralContainer(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{})
	uid := w.create(t, file("web", app("main", "trap 'exit 0' TERM; sleep 1000"))).Metadata.UID
	w.await(t, uid, "the container ready", ready)
	q := api.EphemeralRequest{File: "debug.toml", UID: uid, Text: "name = \"debug\"\nimage = \"i\"\ncommand = [\"sh\", \"-c\", \"echo seen; sleep 0.1; exit 7\"]\n"}
	made, err := w.client.AddEphemeral(t.Context(), "web", q)
	if err != nil || len(made.Pod.Spec.EphemeralContainers) != 1 || len(made.Pod.Status.EphemeralContainerStatuses) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	pod := w.await(t, uid, "its end", func(c api.PodChange) bool {
		s := c.Object.Status.EphemeralContainerStatuses
		return len(s) == 1 && s[0].State.Terminated != nil
	})
	if end := pod.Status.EphemeralContainerStatuses[0]; end.State.Terminated.ExitCode != 7 || end.RestartCount != 0 || end.Ready {
		t.Errorf("it ended as %+v", end)
	}
	for _, query := range []api.OutputQuery{{}, {Runs: api.NewestRun, Containers: []string{"debug"}}} {
		if got, _ := w.read(t, "web", query, -1); !slices.Equal(got, []string{"debug/0 stdout: seen"}) {
			t.Errorf("the output of %v: %q", query.Containers, got)
		}
	}
	if main := pod.Status.ContainerStatuses[0]; !main.Ready || main.RestartCount != 0 {
		t.Errorf("the pod's own container: %+v", main)
	}
	for text, want := range map[string]int{
		q.Text: http.StatusConflict, "name = \"main\"\nimage = \"i\"\n": http.StatusConflict, "name = \"x\"\n": http.StatusBadRequest,
	} {
		_, err := w.client.AddEphemeral(t.Context(), "web", api.EphemeralRequest{File: "debug.toml", Text: text})
		if !isStatus(err, want) {
			t.Errorf("%q: %v, want %d", text, err, want)
		}
		if e, _ := errors.AsType[*api.Error](err); want == http.StatusBadRequest && (len(e.Problems) != 1 || e.Problems[0].Path != "image") {
			t.Errorf("%q: the problems are %+v", text, e.Problems)
		}
	}
	q.UID = "another"
	if _, err := w.client.AddEphemeral(t.Context(), "web", q); !isStatus(err, http.StatusNotFound) {
		t.Errorf("of another UID: %v", err)
	}
	if err := w.client.Stop(t.Context(), "web", api.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.AddEphemeral(t.Context(), "web", api.EphemeralRequest{File: "d", Text: "name = \"late\"\nimage = \"i\"\n"}); !isStatus(err, http.StatusConflict) {
		t.Errorf("to a pod that ends: %v", err)
	}
	w.await(t, uid, "the pod at rest", atRest)
}

func TestConditionOfAReadinessGate(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{})
	q := file("web", "readinessGates = [{ conditionType = \"example.org/door\" }]\n"+app("main", "trap 'exit 0' TERM; sleep 1000"))
	uid := w.create(t, q).Metadata.UID
	is := func(status string, reason lifecycle.Reason) func(api.PodChange) bool {
		return func(c api.PodChange) bool {
			for _, k := range c.Object.Status.Conditions {
				if k.Type == lifecycle.PodReady {
					return k.Status == status && k.Reason == reason
				}
			}
			return false
		}
	}
	w.await(t, uid, "a pod that waits for its gate", is("False", lifecycle.ReasonReadinessGatesNotReady))
	for _, status := range []string{"True", "False", "Unknown", "True"} {
		pod, err := w.client.SetCondition(t.Context(), "web", "example.org/door", api.ConditionRequest{Status: status, Reason: "Why", Message: "because", UID: uid})
		if err != nil {
			t.Fatal(err)
		}
		want := is("False", lifecycle.ReasonReadinessGatesNotReady)
		if status == "True" {
			want = is("True", "")
		}
		if !want(api.PodChange{Object: pod}) {
			t.Errorf("with the condition %s: %+v", status, pod.Status.Conditions)
		}
		last := pod.Status.Conditions[len(pod.Status.Conditions)-1]
		if last.Type != "example.org/door" || last.Status != status || last.Reason != "Why" || last.Message != "because" {
			t.Errorf("the condition is %+v", last)
		}
	}
	if _, err := w.client.SetCondition(t.Context(), "web", "Ready", api.ConditionRequest{Status: "True"}); !isStatus(err, http.StatusNotFound) {
		t.Errorf("a condition that no gate waits for: %v", err)
	}
	told := 0
	for e, err := range w.client.Events(t.Context(), &api.EventQuery{UID: uid}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "ConditionChanged" {
			told++
			if !strings.HasPrefix(e.Fields["by"], "podstead run, pid ") {
				t.Errorf("%+v does not say who asked", e)
			}
		}
	}
	if told != 4 {
		t.Errorf("%d changes are told, want 4", told)
	}
}

func TestWhy(t *testing.T) {
	w := newWorld(t, fakeruntime.Options{})
	uid := w.create(t, file("bad", "restartPolicy = \"Never\"\n"+app("main", "exit 3"))).Metadata.UID
	w.await(t, uid, "the pod at rest", atRest)
	good := w.create(t, file("good", app("main", "trap 'exit 0' TERM; sleep 1000"))).Metadata.UID
	w.await(t, good, "the container ready", ready)
	list, err := w.client.WhyAll(t.Context(), 3)
	if err != nil || len(list.Items) != 2 || list.Items[0].Healthy || !list.Items[1].Healthy {
		t.Errorf("%+v, %v", list, err)
	}
	if err := w.client.Stop(t.Context(), "bad", api.StopOptions{Delete: true}); err != nil {
		t.Fatal(err)
	}
	for limit := time.After(patience); ; {
		changed := w.supervisor.Changed()
		if _, known := w.supervisor.Pod("bad"); !known {
			break
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatal("the pod is still there")
		}
	}
	e, err := w.client.Why(t.Context(), "bad", 3)
	if err != nil || e.UID != uid || e.State != explain.PodDeleted || len(e.Containers) != 1 || len(e.Containers[0].Runs) != 1 {
		t.Errorf("of a deleted pod: %+v, %v", e, err)
	}
}

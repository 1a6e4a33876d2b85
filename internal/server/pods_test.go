package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
)

func TestPodHasTheStructureOfKubectl(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	q := file("web", "restartPolicy = \"Never\"\n[labels]\napp = \"web\"\n"+app("main", "exit 0"))
	uid := d.create(t, q).Metadata.UID
	d.await(t, uid, "pod at rest", atRest)
	pod, err := d.client.Pod(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind, APIVersion string
		Metadata, Spec   map[string]any
		Status           struct {
			Phase             string
			HostIP            string
			HostIPs           []map[string]string
			ContainerStatuses []struct {
				Name  string
				State struct{ Terminated struct{ ExitCode *int } }
			}
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "Pod" || got.APIVersion != "v1" || got.Status.Phase != "Succeeded" {
		t.Errorf("kind %q, apiVersion %q, phase %q", got.Kind, got.APIVersion, got.Status.Phase)
	}
	if got.Metadata["name"] != "web" || got.Metadata["uid"] != uid || got.Metadata["creationTimestamp"] == nil {
		t.Errorf("metadata: %v", got.Metadata)
	}
	if got.Metadata["namespace"] != "default" {
		t.Errorf("namespace %v, want default", got.Metadata["namespace"])
	}
	if diff := cmp.Diff([]map[string]string{{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}}, got.Status.HostIPs); diff != "" ||
		got.Status.HostIP != "192.0.2.1" {
		t.Errorf("hostIP %q, hostIPs (-want +got):\n%s", got.Status.HostIP, diff)
	}
	if diff := cmp.Diff(map[string]any{"app": "web"}, got.Metadata["labels"]); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	for _, key := range []string{"name", "labels", "annotations", "podFileDir"} {
		if _, found := got.Spec[key]; found {
			t.Errorf("spec has the key %q", key)
		}
	}
	if got.Spec["restartPolicy"] != "Never" || got.Spec["containers"] == nil {
		t.Errorf("spec: %v", got.Spec)
	}
	if s := got.Status.ContainerStatuses; len(s) != 1 || s[0].Name != "main" || s[0].State.Terminated.ExitCode == nil {
		t.Errorf("container statuses: %+v", s)
	}
}

func TestCreateReturnsProblems(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	q := file("web", "restartPolici = \"Never\"\n"+app("main", "exit 0"))
	_, err := d.client.Create(t.Context(), q)
	e, ok := errors.AsType[*api.Error](err)
	if !ok || e.Status != http.StatusBadRequest {
		t.Fatalf("create: %v, want 400", err)
	}
	_, want := spec.Parse(q.File, []byte(q.Text))
	var got spec.Problems
	for _, p := range e.Problems {
		got = append(got, spec.Problem(p))
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("problems differ from those of spec.Parse (-want +got):\n%s", diff)
	}
}

func TestNameTaken(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	q := file("web", app("main", "sleep 1000"))
	q.Session = "one"
	first := d.create(t, q)
	if second := d.create(t, q); second.Metadata.UID != first.Metadata.UID {
		t.Errorf("second call of the same session: pod %s, want %s", second.Metadata.UID, first.Metadata.UID)
	}
	q.Session = "two"
	_, err := d.client.Create(t.Context(), q)
	e, ok := errors.AsType[*api.Error](err)
	if !ok || e.Status != http.StatusConflict {
		t.Fatalf("create: %v, want 409", err)
	}
	holder := fmt.Sprintf("podstead run, pid %d, uid %d", os.Getpid(), os.Getuid())
	if !strings.Contains(e.Message, holder) {
		t.Errorf("%q does not contain the owner, %q", e.Message, holder)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t, file("web", app("main", "sleep 1000"))).Metadata.UID
	d.await(t, uid, "container ready", ready)
	if err := d.client.Stop(t.Context(), "web", client.StopOptions{UID: "another"}); !isStatus(err, http.StatusNotFound) {
		t.Errorf("stop with another UID: %v, want 404", err)
	}
	// The process ignores its stop signal, so that it runs until the call with a grace period of 0.
	requested := time.Now()
	if err := d.client.Stop(t.Context(), "web", client.StopOptions{UID: uid}); err != nil {
		t.Fatal(err)
	}
	pod := d.await(t, uid, "deletionTimestamp", func(c api.PodChange) bool { return c.Object.Metadata.DeletionTimestamp != nil })
	const grace, rounding = 30 * time.Second, time.Second
	if at := *pod.Metadata.DeletionTimestamp; at.Before(requested.Add(grace-rounding)) || at.After(time.Now().Add(grace)) {
		t.Errorf("deletionTimestamp %v, want %v after %v", at, grace, requested)
	}
	if by := pod.Status.StoppedBy; !strings.HasPrefix(by, "podstead run, pid ") {
		t.Errorf("stopped by %q", by)
	}
	if grace := pod.Metadata.DeletionGracePeriodSeconds; grace == nil || *grace != 30 {
		t.Errorf("deletionGracePeriodSeconds %v, want 30", grace)
	}
	for _, shorter := range []time.Duration{12500 * time.Millisecond, time.Minute} { // a longer one changes nothing
		if err := d.client.Stop(t.Context(), "web", client.StopOptions{Grace: &shorter}); err != nil {
			t.Fatal(err)
		}
		d.await(t, uid, "shorter grace period", func(c api.PodChange) bool { return *c.Object.Metadata.DeletionGracePeriodSeconds == 13 })
	}
	now := time.Duration(0)
	if err := d.client.Stop(t.Context(), "web", client.StopOptions{Grace: &now, Delete: true}); err != nil {
		t.Fatal(err)
	}
	d.await(t, uid, "deletion of the pod", deleted)
	if _, err := d.client.Pod(t.Context(), "web"); !isStatus(err, http.StatusNotFound) {
		t.Errorf("get: %v, want 404", err)
	}
}

// TestDeletionTimestamp checks that a pod that exceeded its deadline has no deletion timestamp until a client stops it.
func TestDeletionTimestamp(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	// On a loaded host a short deadline can pass before the container runs. Then the test tries the next deadline.
	for _, limit := range []float64{0.1, 1, 5, 20} {
		uid := d.create(t, file("web", fmt.Sprintf("activeDeadlineSeconds = %g\n", limit)+app("main", "sleep 1000"))).Metadata.UID
		pod := d.await(t, uid, "deadline exceeded", func(c api.PodChange) bool { return c.Object.Status.StoppedBy != "" })
		if at, grace := pod.Metadata.DeletionTimestamp, pod.Metadata.DeletionGracePeriodSeconds; at != nil || grace != nil {
			t.Errorf("deletionTimestamp %v and deletionGracePeriodSeconds %v, want none", at, grace)
		}
		runs := pod.Status.ContainerStatuses[0].State.Running != nil // until the end of the grace period
		if err := d.client.Stop(t.Context(), "web", client.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		if runs {
			d.await(t, uid, "deletionTimestamp", func(c api.PodChange) bool { return c.Object.Metadata.DeletionTimestamp != nil })
		}
		now := time.Duration(0)
		if err := d.client.Stop(t.Context(), "web", client.StopOptions{Grace: &now, Delete: true}); err != nil {
			t.Fatal(err)
		}
		d.await(t, uid, "deletion of the pod", deleted)
		if runs {
			return
		}
	}
	t.Error("no container was started in time")
}

func isStatus(err error, status int) bool {
	e, ok := errors.AsType[*api.Error](err)
	return ok && e.Status == status
}

func TestSessions(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	q := file("web", app("main", "sleep 1000"))
	q.Session = "one"
	d.create(t, q)
	for session, want := range map[string]bool{"one": true, "two": false} {
		if got, err := d.client.Touch(t.Context(), session); got != want || err != nil {
			t.Errorf("touch session %s: %v, %v, want %v", session, got, err, want)
		}
	}
}

func TestVersionAndStopDaemon(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	v, err := d.client.Version(t.Context())
	if err != nil || v.Instance != "first" {
		t.Errorf("version: %+v, %v", v, err)
	}
	if err := d.client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if by := <-d.stops; !strings.HasPrefix(by, "podstead run, pid ") || !strings.HasSuffix(by, ", shutdown false") {
		t.Errorf("stop requested by %q", by)
	}
	if err := d.client.ShutDownDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if by := <-d.stops; !strings.HasSuffix(by, ", shutdown true") {
		t.Errorf("stop of all pods requested by %q", by)
	}
}

func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	h := &http.Client{Transport: dial(d.socket)}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/v1/nothing", "", http.StatusNotFound},
		{"GET", "/v1/pods?watch=perhaps", "", http.StatusBadRequest},
		{"GET", "/v1/events?after=x", "", http.StatusBadRequest},
		{"GET", "/v1/events?since=yesterday", "", http.StatusBadRequest},
		{"GET", "/v1/pods/none/output", "", http.StatusNotFound},
		{"DELETE", "/v1/pods/none", "", http.StatusNotFound},
		{"POST", "/v1/pods", "{", http.StatusBadRequest},
		{"POST", "/v1/pods", `{"file":"relative.toml"}`, http.StatusBadRequest},
		{"GET", "/v1/pods/none/why", "", http.StatusNotFound},
		{"POST", "/v1/pods/none/ephemeral", "{}", http.StatusNotFound},
		{"POST", "/v1/pods/none/ephemeral", "{", http.StatusBadRequest},
		{"PUT", "/v1/pods/none/conditions/a", `{"status":"True"}`, http.StatusNotFound},
		{"PUT", "/v1/pods/none/conditions/a", `{"status":"true"}`, http.StatusBadRequest},
		{"PUT", "/v1/pods/none/conditions/a", `{"status":"True","message":"` + strings.Repeat("x", 5000) + `"}`, http.StatusBadRequest},
		{"PUT", "/v1/pods/none/conditions/a", "", http.StatusBadRequest},
		{"POST", "/v1/files", "{", http.StatusBadRequest},
		{"POST", "/v1/files", `{"file":"relative.toml"}`, http.StatusBadRequest},
		{"POST", "/v1/files/prune", "{", http.StatusBadRequest},
		{"POST", "/v1/pods/none/start", "", http.StatusNotFound},
		{"POST", "/v1/pods/none/restart?container=c", "", http.StatusNotFound},
		{"GET", "/v1/health", "", http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://podstead"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := h.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var e api.Error
		err = json.NewDecoder(answer.Body).Decode(&e)
		_ = answer.Body.Close()
		if answer.StatusCode != c.want || err != nil || (c.want >= 300) != (e.Message != "") {
			t.Errorf("%s %s: %d %+v %v, want %d", c.method, c.path, answer.StatusCode, e, err, c.want)
		}
	}
}

func TestSlowReaderDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	h := &http.Client{Transport: dial(d.socket)}
	for _, path := range []string{"/v1/pods?watch", "/v1/events?follow"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://podstead"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := h.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
	}
	for i := range 50 {
		uid := d.create(t, file(fmt.Sprintf("pod-%d", i), "restartPolicy = \"Never\"\n"+app("main", "exit 0"))).Metadata.UID
		if i%10 == 0 {
			d.await(t, uid, "pod at rest", atRest)
		}
	}
}

// A container of the request must exist. The definition in the response has the changes.
func TestCreateInteractive(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	q := file("web", app("main", "sleep 3600"))
	q.Interactive = &api.Interactive{Container: "other", TTY: true}
	if _, err := d.client.Create(t.Context(), q); err == nil ||
		!strings.Contains(err.Error(), `container "other": not found in the containers of pod "web"`) {
		t.Errorf("%v", err)
	}
	q.Interactive.Container = "main"
	created, err := d.client.Create(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if c := created.Pod.Spec.Containers[0]; !c.Stdin || c.StdinOnce || !c.TTY || c.RestartPolicy != "Never" {
		t.Errorf("%+v", c)
	}
}

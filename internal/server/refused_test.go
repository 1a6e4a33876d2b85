package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
)

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t, file("web", app("main", "sleep 1000"))).Metadata.UID
	d.await(t, uid, "container ready", ready)
	d.files.Refuse(podfiles.File{
		Path: "/pods.d/bad.toml", Pod: "bad", Reason: api.ReasonInvalidFile,
		Problems: spec.Problems{
			{File: "/pods.d/bad.toml", Line: 3, Column: 5, Message: "unknown field"}, {File: "f", Message: "a warning", Warning: true},
		},
	})
	d.files.Refuse(podfiles.File{
		Path: "/pods.d/w.toml", Pod: "web", Reason: api.ReasonRejected, Refused: errors.New("pod web already exists"),
	})
	d.files.Refuse(podfiles.File{Path: "/pods.d/late.toml", Pod: "late", Refused: errors.New("the image is being pulled")})

	const message = "/pods.d/bad.toml:3:5: unknown field"
	list, err := d.client.Pods(t.Context())
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d pods, %v, want bad and web", len(list.Items), err)
	}
	bad, web := list.Items[0], list.Items[1]
	if s := bad.Status; bad.Metadata.Name != "bad" || bad.Metadata.UID != "" || s.Phase != "Failed" || s.Reason != "InvalidFile" ||
		s.Message != message {
		t.Errorf("refused file: %+v", bad)
	}
	last := web.Status.Conditions[len(web.Status.Conditions)-1]
	if last.Type != api.FileAccepted || last.Status != "False" || last.Reason != "Rejected" || last.Message != "pod web already exists" {
		t.Errorf("condition of the pod: %+v", last)
	}
	text, err := json.Marshal(bad)
	if want := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"bad","namespace":"default"},`; err != nil ||
		!strings.HasPrefix(string(text), want) {
		t.Errorf("refused file as JSON: %s, %v", text, err)
	}

	if pod, err := d.client.Pod(t.Context(), "bad"); err != nil || pod.Status.Reason != "InvalidFile" {
		t.Errorf("get: %+v, %v", pod.Status, err)
	}
	for name, call := range map[string]func() error{
		"stop":  func() error { return d.client.Stop(t.Context(), "bad", client.StopOptions{}) },
		"start": func() error { _, err := d.client.Start(t.Context(), "bad", ""); return err },
	} {
		if err := call(); !isStatus(err, http.StatusConflict) || !strings.Contains(err.Error(), message) {
			t.Errorf("%s a pod that does not exist: %v, want 409 with the errors of its file", name, err)
		}
	}
	e, err := d.client.Why(t.Context(), "bad", 0)
	if err != nil || e.Healthy || !strings.Contains(e.Text, message) {
		t.Errorf("why: %q, %v", e.Text, err)
	}
	if e, err := d.client.Why(t.Context(), "web", 0); err != nil || e.Healthy ||
		e.Text != "web is running and ready. The newest version of its file is not running: pod web already exists." {
		t.Errorf("why for a pod whose file is refused: %q, healthy %v, %v", e.Text, e.Healthy, err)
	}
	all, err := d.client.WhyAll(t.Context(), 0)
	if err != nil || len(all.Items) != 2 || all.Items[0].Text != e.Text {
		t.Errorf("why for all pods: %+v, %v", all, err)
	}
	if got, err := d.client.Delete(t.Context(), "bad", client.StopOptions{}); err != nil || got.File != "/pods.d/bad.toml" {
		t.Errorf("delete: %+v, %v", got, err)
	}
	if _, err := d.client.Pod(t.Context(), "bad"); !isStatus(err, http.StatusNotFound) {
		t.Errorf("get after delete: %v, want 404", err)
	}
}

// TestRejectedPod checks the status of a pod that admission has rejected: as in the kubelet, it has the reason, the message, the QoS class
// and its definition. Over the read-only socket, values of its environment are hidden.
func TestRejectedPod(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	text := app("one", "x") + "env.PASSWORD = \"" + password + "\"\nresources.requests.cpu = \"1\"\n" + app("two", "x")
	pod, found := spec.Parse("/pods.d/web.toml", []byte("name = \"web\"\n"+text))
	if pod == nil {
		t.Fatal(found)
	}
	d.files.Refuse(podfiles.File{
		Path: "/pods.d/web.toml", Pod: "web", Reason: api.ReasonRejected, Definition: pod, Next: time.Now().Add(time.Hour),
		Refused: &supervisor.RefusedError{Pod: "web", Refusals: []lifecycle.Refusal{
			{
				Reason: lifecycle.ReasonSysctlForbidden, Field: "securityContext.sysctls[0].name", Message: "forbidden sysctl",
				Hint: "allow it",
			},
			{Reason: lifecycle.ReasonNodePorts, Message: "in use"},
		}},
	})
	got, err := d.client.Pod(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	s := got.Status
	const message = "Pod was rejected: securityContext.sysctls[0].name: forbidden sysctl; NodePorts: in use"
	if s.Phase != api.PhaseFailed || s.Reason != "SysctlForbidden" || s.Message != message ||
		s.QOSClass != spec.QOSBurstable || len(s.ContainerStatuses) != 0 {
		t.Errorf("status %+v", s)
	}
	why, err := d.client.Why(t.Context(), "web", 0)
	const cause = "SysctlForbidden: securityContext.sysctls[0].name: forbidden sysctl; NodePorts: in use"
	if c := why.Cause; err != nil || c == nil || c.Message != cause || c.Hint != "allow it" {
		t.Errorf("explanation %+v, %v", c, err)
	}
	if !strings.Contains(why.Text, "; NodePorts: in use. Next attempt in ") {
		t.Errorf("explanation without the next attempt: %s", why.Text)
	}
	if len(got.Spec.Containers) != 2 || got.Spec.Containers[0].Env[0].Value != password {
		t.Errorf("spec %+v", got.Spec)
	}
	reader := client.New(d.socket+"-ro", "podstead get")
	read, err := reader.Pod(t.Context(), "web")
	list, listErr := reader.Pods(t.Context())
	if err != nil || listErr != nil || len(list.Items) != 1 {
		t.Fatal(err, listErr, list)
	}
	for _, p := range []api.Pod{read, list.Items[0]} {
		if env := p.Spec.Containers[0].Env; len(env) != 1 || env[0].Value != api.Hidden {
			t.Errorf("a reader sees the environment %+v", env)
		}
	}
	e, err := d.client.Why(t.Context(), "web", 0)
	if err != nil || !strings.Contains(e.Text, "forbidden sysctl") || e.Cause == nil || e.Cause.Reason != "SysctlForbidden" {
		t.Errorf("why: %+v, %v", e, err)
	}
}

// TestSeveralRefusedFiles checks that the reason of several files of a pod is that of the file that does not wait.
func TestSeveralRefusedFiles(t *testing.T) {
	t.Parallel()
	waits := podfiles.File{Path: "/pods.d/a.toml", Pod: "web", Refused: errors.New("the image is being pulled")}
	invalid := podfiles.File{Path: "/pods.d/b.toml", Pod: "web", Reason: api.ReasonInvalidFile}
	for _, files := range [][]podfiles.File{{waits, invalid}, {invalid, waits}} {
		d := newTestDaemon(t, fakeruntime.Options{})
		for _, f := range files {
			d.files.Refuse(f)
		}
		pod, err := d.client.Pod(t.Context(), "web")
		if err != nil || pod.Status.Reason != "InvalidFile" || !strings.Contains(pod.Status.Message, "the image is being pulled") {
			t.Errorf("%s first: %s: %s, %v; want InvalidFile with both messages", files[0].Path, pod.Status.Reason, pod.Status.Message, err)
		}
	}
}

// TestWatchRefusedFiles checks that a watch reports files that are refused, and their removal.
func TestWatchRefusedFiles(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var got []string
	for c, err := range d.client.Watch(ctx) {
		if err != nil {
			t.Fatalf("%v after %v", err, got)
		}
		switch got = append(got, c.Type+" "+c.Object.Metadata.Name); len(got) {
		case 1:
			d.files.Refuse(podfiles.File{Path: "/pods.d/bad.toml", Pod: "bad", Reason: api.ReasonInvalidFile})
			continue
		case 2:
			if _, err := d.client.Delete(ctx, "bad", client.StopOptions{}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		break
	}
	if diff := cmp.Diff([]string{"BOOKMARK ", "ADDED bad", "DELETED bad"}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

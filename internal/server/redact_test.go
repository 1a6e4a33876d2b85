package server_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// planted is the value of a secret.
const planted = "planted-value"

// newPlanted returns a daemon with a pod whose container has printed the value of a secret into its termination message.
func newPlanted(t *testing.T, secrets server.SecretSource) (d *testDaemon, uid string) {
	t.Helper()
	d = newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	d.secrets = secrets
	d.serve(t, "second")
	uid = d.create(t,
		file("web",
			"restartPolicy = \"Never\"\n"+app("main", "sleep 1000")+"env.A.secretKeyRef = { name = \"a\", key = \"key\" }\n")).Metadata.UID
	d.await(t, uid, "running container", func(c api.PodChange) bool {
		return len(c.Object.Status.ContainerStatuses) == 1 && c.Object.Status.ContainerStatuses[0].State.Running != nil
	})
	d.fake.Crash(uid, "main", lifecycle.Exit{Code: 3, Message: "login with " + planted + " failed"})
	d.await(t, uid, "pod at rest", atRest)
	return d, uid
}

// secretsFunc reads secrets.
type secretsFunc func(name string) (map[string][]byte, error)

func (f secretsFunc) Secret(_ *spec.Pod, name string) (map[string][]byte, error) { return f(name) }

// readable has one secret.
var readable = secretsFunc(func(string) (map[string][]byte, error) { return map[string][]byte{"key": []byte(planted)}, nil })

// eventsText returns the events of a pod as JSON.
func (d *testDaemon) eventsText(t *testing.T, redact bool) string {
	t.Helper()
	var b strings.Builder
	for e, err := range d.client.Events(t.Context(), &client.EventQuery{Pod: "web", Redact: redact}) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// TestRedactedPodsAndEvents: messages have no values of secrets if that is requested, and are the same otherwise.
func TestRedactedPodsAndEvents(t *testing.T) {
	t.Parallel()
	d, uid := newPlanted(t, readable)
	message := func(p *api.Pod) string { return p.Status.ContainerStatuses[0].State.Terminated.Message }
	list, err := d.client.RedactedPods(t.Context())
	if err != nil || len(list.Items) != 1 || message(&list.Items[0]) != "login with [redacted] failed" {
		t.Errorf("%+v, %v", list.Items, err)
	}
	if pod, err := d.client.Pod(t.Context(), "web"); err != nil || message(&pod) != "login with planted-value failed" {
		t.Errorf("the status of the pod has changed: %+v, %v", pod.Status, err)
	}
	if text := d.eventsText(t, false); !strings.Contains(text, planted) {
		t.Errorf("no event has the message:\n%s", text)
	}
	if text := d.eventsText(t, true); strings.Contains(text, planted) || !strings.Contains(text, "login with [redacted] failed") {
		t.Errorf("redacted events:\n%s", text)
	}
	// The events of a pod that was deleted: the values are not known any more.
	if _, err := d.client.Delete(t.Context(), "web", client.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	d.await(t, uid, "deleted pod", func(c api.PodChange) bool { return c.Type == api.Deleted })
	if text := d.eventsText(t, true); strings.Contains(text, planted) ||
		!strings.Contains(text, "[withheld: the secrets of the pod cannot be read]") || !strings.Contains(text, "Container started") {
		t.Errorf("redacted events of a deleted pod:\n%s", text)
	}
}

// TestWithheldMessages: if the secrets cannot be read, what the container has written is withheld.
func TestWithheldMessages(t *testing.T) {
	t.Parallel()
	d, _ := newPlanted(t, secretsFunc(func(string) (map[string][]byte, error) { return nil, errors.New("the disk fails") }))
	list, err := d.client.RedactedPods(t.Context())
	if err != nil ||
		list.Items[0].Status.ContainerStatuses[0].State.Terminated.Message != "[withheld: the secrets of the pod cannot be read]" {
		t.Errorf("%+v, %v", list.Items, err)
	}
	if text := d.eventsText(t, true); strings.Contains(text, planted) {
		t.Errorf("events:\n%s", text)
	}
	r, err := d.client.Redact(t.Context(), []string{"a", planted})
	if err != nil || !slices.Equal(r.Unreadable, []string{"web"}) || !slices.Equal(r.Texts, []string{"a", planted}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRedact replaces the values of the secrets of all pods.
func TestRedact(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	dir := filepath.Join(d.dir, "config", "secrets", "host")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("value-of-the-host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.create(t, file("a", app("main", "sleep 1000")+"env.A.secretKeyRef = { name = \"host\", key = \"key\" }\n"))
	d.create(t, file("b", app("main", "sleep 1000")+"[[secrets]]\nname = \"inline\"\ndata.key = \"value-in-the-file\"\n"))
	r, err := d.client.Redact(t.Context(), []string{"is value-of-the-host", "and value-in-the-file.", "", "nothing"})
	want := []string{"is [redacted]", "and [redacted].", "", "nothing"}
	if err != nil || !slices.Equal(r.Texts, want) || len(r.Unreadable) != 0 {
		t.Errorf("%+v, %v, want %q", r, err, want)
	}
	if r, err := d.client.Redact(t.Context(), nil); err != nil || len(r.Texts) != 0 {
		t.Errorf("without texts: %+v, %v", r, err)
	}
	for _, query := range []string{"/v1/pods?redact=maybe", "/v1/pods?redact&watch", "/v1/pods/a?redact=2", "/v1/events?redact=x"} {
		if status, text := d.getText(t, query); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	if status, text := d.getText(t, "/v1/pods/b?redact"); status != http.StatusOK || strings.Contains(text, "value-in-the-file") {
		t.Errorf("pod: %d %s", status, text)
	}
}

// getText requests a path, and returns the status and the body of the response.
func (d *testDaemon) getText(t *testing.T, path string) (status int, body string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://podstead"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&http.Client{Transport: dial(d.socket), Timeout: testTimeout}).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

package server_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor/explain"
)

// leaky is a pod that writes the values of its secrets to its log: of an inline one, and of one that is in a directory.
const leaky = `restartPolicy = "Never"
[[secrets]]
name = "inline"
data = { token = "planted-inline-value" }
[[containers]]
name = "main"
image = "i"
command = ["sh", "-c", "echo one; echo two; echo token=planted-inline-value; echo key=planted-file-value; exit 3"]
env.KEY.secretKeyRef = { name = "db", key = "key" }
volumeMounts.inline = "/inline"
[[volumes]]
name = "inline"
secret = { secretName = "inline" }
`

func TestWhyShowsEvidenceWithoutSecrets(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	secret := filepath.Join(d.dir, "config", "secrets", "db")
	if err := os.MkdirAll(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secret, "key"), []byte("planted-file-value\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	uid := d.create(t, file("leaky", leaky)).Metadata.UID
	d.await(t, uid, "pod at rest", atRest)
	logOf := func(lines int) []string {
		t.Helper()
		e, err := d.client.Why(t.Context(), "leaky", lines)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(e)
		if err != nil || bytes.Contains(text, []byte("planted")) {
			t.Errorf("a secret is in %s, %v", text, err)
		}
		if report := explain.Report(&e, time.Now()); strings.Contains(report, "planted") {
			t.Errorf("a secret is in\n%s", report)
		}
		if e.State != api.PodStateFailed || e.Cause.Exit.Code != 3 || len(e.Containers) != 1 || e.Containers[0].Evidence == nil {
			t.Fatalf("%+v", e)
		}
		return e.Containers[0].Evidence.Log
	}
	all := []string{"one", "two", "token=[redacted]", "key=[redacted]"}
	for lines, want := range map[int][]string{0: nil, 1: all[3:], api.DefaultEvidenceLines: all[1:], 1000: all} {
		if got := logOf(lines); !slices.Equal(got, want) {
			t.Errorf("%d lines: %q", lines, got)
		}
	}
	if err := os.Chmod(filepath.Join(secret, "key"), 0o644); err != nil { // so that it is not read
		t.Fatal(err)
	}
	if got := logOf(1); len(got) != 1 || !strings.Contains(got[0], "withheld") {
		t.Errorf("with a secret that cannot be read: %q", got)
	}
	if err := os.RemoveAll(secret); err != nil {
		t.Fatal(err)
	}
	if got := logOf(1); len(got) != 1 || !strings.Contains(got[0], "withheld") {
		t.Errorf("with a secret that was deleted after the container had run: %q", got)
	}
	for _, lines := range []int{-1, 1001} {
		if e, err := d.client.Why(t.Context(), "leaky", lines); err == nil {
			t.Errorf("%d lines: %+v", lines, e)
		}
	}
}

// TestWhyHasProbeAnswers checks that an explanation has the newest answers of the probes of each container.
func TestWhyHasProbeAnswers(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	var uid string
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	answer := api.ProbeAnswer{Probe: api.ProbeReadiness, Outcome: api.ProbeSuccess, Time: at}
	d.probes = func(of string) []api.ContainerProbeAnswer {
		if of != uid {
			return nil
		}
		return []api.ContainerProbeAnswer{{Container: "main", ProbeAnswer: answer}, {Container: "deleted", ProbeAnswer: answer}}
	}
	d.serve(t, "second")
	uid = d.create(t,
		file("web", "[[containers]]\nname = \"main\"\nimage = \"i\"\n[[containers]]\nname = \"other\"\nimage = \"i\"\n")).Metadata.UID
	e, err := d.client.Why(t.Context(), "web", 1)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]api.ProbeAnswer{}
	for i := range e.Containers {
		got[e.Containers[i].Name] = e.Containers[i].Probes
	}
	if diff := cmp.Diff(map[string][]api.ProbeAnswer{"main": {answer}, "other": nil}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

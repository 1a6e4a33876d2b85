package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

func TestCheckpointDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "pods")
	v, err := state.NewCheckpointDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := lifecycle.Instant{Boot: "b", Mono: time.Minute, Wall: time.Unix(1, 0).UTC()}
	want := state.Checkpoint{
		At: at,
		Starts: []lifecycle.ContainerStarted{
			{
				Ref: lifecycle.Ref{Container: "c", Round: 1, Attempt: 2}, ID: "id", Image: "i:1", ImageID: "sha256:1",
				Architecture: "amd64", At: at,
			},
		},
		Probes: []lifecycle.ProbeChanged{{
			ProbeRef: lifecycle.ProbeRef{Ref: lifecycle.Ref{Container: "c", Round: 1, Attempt: 2}, Kind: lifecycle.ProbeReadiness},
			Verdict:  lifecycle.VerdictSuccess, Count: 1, At: at,
		}},
		Signals:    []lifecycle.SignalSent{{Ref: lifecycle.Ref{Container: "c", Round: 1, Attempt: 2}, At: at}},
		Conditions: []lifecycle.Condition{{Type: lifecycle.PodReady, Status: "True", LastTransitionTime: at.Wall}},
	}
	for _, uid := range []string{"u1", "u2"} {
		if err := v.Save(uid, want); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := v.Delete("u2"); err != nil {
			t.Error(err)
		}
	}
	for name, text := range map[string]string{"bad.json": "{", "other.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := v.Load()
	if err == nil {
		t.Error("no error for an unreadable file")
	}
	if diff := cmp.Diff(map[string]state.Checkpoint{"u1": want, "bad": {}}, all); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Load(); err == nil {
		t.Error("no error for a missing directory")
	}
	if err := v.Save("u1", want); err == nil {
		t.Error("no error for a missing directory")
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Delete("u1"); err == nil {
		t.Error("no error for a file in place of the directory")
	}
	if _, err := state.NewCheckpointDir(dir); err == nil {
		t.Error("no error for a file in place of the directory")
	}
}

// TestCheckpointVersions: the checkpoint of a later version is kept until this version has one of its own. Fields that it added stay.
func TestCheckpointVersions(t *testing.T) {
	dir := t.TempDir()
	v, err := state.NewCheckpointDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"adds": `{"version":2,"minReader":1,"new":1}`, "newer": `{"version":2}`} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := v.Load()
	if _, adds := all["adds"]; len(all) != 1 || !adds || !errors.Is(err, statefile.ErrNewer) {
		t.Errorf("loaded %v, %v", all, err)
	}
	if err := v.Save("adds", state.Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"adds": `"new":1`, "newer": `{"version":2}`} {
		if text, err := os.ReadFile(filepath.Join(dir, name+".json")); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

package state

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pods")
	store, err := NewDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	now := lifecycle.Instant{Boot: "b", Mono: time.Hour, Wall: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	facts := lifecycle.Facts{UID: "u", Accepted: now}.
		Apply(lifecycle.Issued{Action: lifecycle.StartSandbox{Sandbox: 1, Round: 1}, At: now}).
		Apply(lifecycle.SandboxStarted{Sandbox: 1, IPs: []string{"10.0.0.1"}, At: now})
	pod := &spec.Pod{
		Name: "web", Secrets: []spec.Secret{{Name: "db", Data: spec.SecretData{"password": "hunter2"}}, {Name: "tls", Credential: "c"}},
	}
	want := Pod{SavedAt: now, Pod: pod, Owner: Owner{Session: "s", By: "me"}, Facts: facts}
	if err := store.Save(want); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cut.json", `{"version":1,"po`)
	write("other.json", `{"version":1,"savedAt":{"boot":"b"},"pod":{"name":"web"},"facts":{"uid":"u"}}`)
	write("null.json", `{"version":1,"savedAt":{"boot":"b"},"pod":{"name":"null"},"facts":{"uid":"u","containers":{"c":null}}}`)
	write("later.json", `{"version":2,"pods":[],"facts":{"uid":"later-uid"}}`)
	write("later.txt", "not ours")
	pods, unusable, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(pods) != 1 {
		t.Fatalf("%d state files were loaded, want 1", len(pods))
	}
	if diff := cmp.Diff(want, pods[0], cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("state file (-saved +loaded):\n%s", diff)
	}
	if len(unusable) != 4 {
		t.Fatalf("unusable: %v", unusable)
	}
	for _, u := range unusable {
		if _, err := os.Stat(u.File); err != nil || u.Err == nil || u.Kept != (u.Name == "later") ||
			strings.HasSuffix(u.File, ".unreadable") == u.Kept {
			t.Errorf("unusable: %+v, stat: %v", u, err)
		}
	}
	if i := slices.IndexFunc(unusable, func(u Unusable) bool { return u.Kept }); unusable[i].UID != "later-uid" {
		t.Errorf("file of a later version: %+v, want its UID", unusable[i])
	}
	if err := store.Delete("cut"); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "cut.*")); err != nil || len(left) > 0 {
		t.Errorf("files of a deleted pod: %v, %v", left, err)
	}
	if err := store.Delete("web"); err != nil {
		t.Fatal(err)
	}
	if pods, unusable, _ := store.Load(); len(pods) != 0 || len(unusable) != 1 {
		t.Errorf("second load: %v and %v, want only the file of the later version", pods, unusable)
	}
}

// TestDirNames checks pods with dots in their names, and with names that are too long for a file.
func TestDirNames(t *testing.T) {
	dir := t.TempDir()
	store, err := NewDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 252)
	names := []string{"web", "web.json", "web.v1", long + "b", long + "c"}
	slices.Sort(names)
	for _, name := range names {
		at := lifecycle.Instant{Boot: "b", Mono: 1, Wall: time.Unix(1, 0)}
		if err := store.Save(Pod{SavedAt: at, Pod: &spec.Pod{Name: name}, Facts: lifecycle.Facts{UID: "u"}}); err != nil {
			t.Fatal(err)
		}
	}
	loaded := func() (loaded []string) {
		t.Helper()
		pods, unusable, err := store.Load()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pods {
			loaded = append(loaded, p.Pod.Name)
		}
		for _, u := range unusable {
			loaded = append(loaded, "unusable "+u.Name)
		}
		slices.Sort(loaded)
		return loaded
	}
	if diff := cmp.Diff(names, loaded()); diff != "" {
		t.Errorf("pods (-saved +loaded):\n%s", diff)
	}
	later := []byte(`{"version":99,"pod":{"name":"` + long + `b"}}`)
	if err := os.WriteFile(store.files.Path(spec.FileName(long+"b")), later, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "web.json", "web.v1", long + "c"} {
		if err := store.Delete(name); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"unusable " + long + "b"}, loaded()); diff != "" {
		t.Errorf("after a delete (-want +loaded):\n%s", diff)
	}
}

// TestUnknownFields: what a later version added to a state file is still there after this version has written it, but not in the file of
// another pod with that name.
func TestUnknownFields(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "web.json")
	text := `{"version":2,"minReader":1,"savedAt":{"boot":"b","mono":1,"wall":"2026-01-01T00:00:00Z"},"pod":{"name":"web","newPod":1,` +
		`"containers":[{"name":"c","newContainer":1}]},` +
		`"owner":{"newOwner":1},"facts":{"uid":"u","round":1,"newFact":1,"sandbox":{"n":1,"newSandbox":1},` +
		`"containers":{"c":{"newest":{"container":"c","round":1,"attempt":2,"sandbox":1,"restarts":1,"newRun":1},"newContainerFact":1}}},` +
		`"newFile":1}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := NewDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	pods, unusable, err := store.Load()
	if err != nil || len(pods) != 1 {
		t.Fatalf("pods %v, unusable %v, %v", pods, unusable, err)
	}
	check := func(p Pod, lost ...string) {
		t.Helper()
		if err := store.Save(p); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(written), `{"version":1,`) {
			t.Errorf("written: %s, %v", written, err)
		}
		for _, name := range []string{
			"newPod", "newContainer", "newOwner", "newFact", "newSandbox", "newRun", "newContainerFact", "newFile",
		} {
			if strings.Contains(string(written), `"`+name+`":1`) == slices.Contains(lost, name) {
				t.Errorf("%s: lost is %t in %s", name, !slices.Contains(lost, name), written)
			}
		}
	}
	p := pods[0]
	check(p)
	p.SavedAt.Mono, p.Owner.By = 2, "me"
	check(p)
	at := lifecycle.Instant{Boot: "b", Mono: 3}
	p.Facts = p.Facts.Apply(lifecycle.Issued{
		Action: lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "c", Round: 1, Attempt: 3}, Sandbox: 1, Restarts: 2}, At: at,
	})
	check(p, "newRun")
	changed := *p.Pod
	changed.Labels = map[string]string{"a": "b"}
	p.Pod = &changed
	check(p, "newRun", "newPod", "newContainer")
	p.Facts = lifecycle.Facts{UID: "other"}
	check(p, "newPod", "newContainer", "newOwner", "newFact", "newSandbox", "newRun", "newContainerFact", "newFile")
}

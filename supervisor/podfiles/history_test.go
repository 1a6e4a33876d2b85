package podfiles

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// generationReady adds a generation with an image that was ready.
func generationReady(h *History, image string) {
	h.Begin(Generation{Digest: "digest of " + image, Definition: &Definition{
		Pod: &spec.Pod{Name: h.Pod}, Images: map[string]lifecycle.Image{"app": {ID: image}, "second": {ID: "same"}},
	}})
	h.Newest().Outcome = api.GenerationReady
	h.Trim()
}

// generationKept returns the numbers of the generations whose definition is kept.
func generationKept(h *History) string {
	var list []string
	for _, g := range h.Generations {
		if g.Definition != nil {
			list = append(list, fmt.Sprint(g.Number))
		}
	}
	return strings.Join(list, " ")
}

func TestBounds(t *testing.T) {
	h := &History{Pod: "web"}
	for i := range 50 {
		generationReady(h, fmt.Sprint("image", i))
		h.Begin(Generation{Digest: "bad", Definition: &Definition{Pod: &spec.Pod{Name: "web"}}})
		h.Newest().Outcome = api.GenerationFailed
	}
	h.Trim()
	if len(h.Generations) != maxGenerations || h.Last != 100 || h.Newest().Number != 100 {
		t.Errorf("%d generations, the last is %d of %d", len(h.Generations), h.Newest().Number, h.Last)
	}
	if got, want := generationKept(h), "95 97 99 100"; got != want {
		t.Errorf("kept: got %s, want %s", got, want)
	}
	want := []lifecycle.Image{{ID: "image47"}, {ID: "image48"}, {ID: "image49"}, {ID: "same"}}
	if diff := cmp.Diff(want, h.Images()); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

// TestReturnKeepsWhatRuns: the generation that runs is never dropped, however many follow it.
func TestReturnKeepsWhatRuns(t *testing.T) {
	h := &History{Pod: "web"}
	generationReady(h, "first")
	for i := range 6 {
		generationReady(h, fmt.Sprint("image", i))
	}
	target := h.Target(6)
	if target.Number != 5 {
		t.Fatalf("target: generation %d", target.Number)
	}
	h.Return(Instead{Digest: "x", Number: 5, Failed: 7, Why: "a test", Definition: target.Definition})
	if g := h.Running(); g.Number != 5 || h.Newest().Outcome != api.GenerationRolledBack || h.Newest().Message != "a test" {
		t.Errorf("runs %d, newest %+v", g.Number, h.Newest())
	}
	for range 2 * maxGenerations {
		c := h.Clone()
		c.Generations = append(c.Generations, Generation{Number: c.Last + 1, Outcome: api.GenerationFailed})
		c.Last++
		c.Trim()
		h = c
	}
	if g := h.Running(); g == nil || g.Number != 5 || g.Definition == nil {
		t.Errorf("the generation that runs was dropped: %+v", g)
	}
	h.Begin(Generation{Digest: "new"})
	if h.Instead != nil || h.Running().Digest != "new" {
		t.Error("a new generation does not run")
	}
}

// TestTargetAfterReturn: a definition that follows a generation that a person had requested returns to that one, and so does the next one.
func TestTargetAfterReturn(t *testing.T) {
	h := &History{Pod: "web"}
	for i := range 8 {
		generationReady(h, fmt.Sprint("image", i))
	}
	h.Return(Instead{Digest: "y", Number: 6, By: "a person", Definition: h.Find(6).Definition})
	for range 2 {
		h.Begin(Generation{Digest: "bad", Definition: &Definition{Pod: &spec.Pod{Name: "web"}}})
		bad := h.Newest().Number
		target := h.Target(bad)
		if target == nil || target.Number != 6 {
			t.Fatalf("generation %d returns to %+v, want 6", bad, target)
		}
		h.Return(Instead{Digest: "bad", Number: target.Number, Failed: bad, Why: "a test", Definition: target.Definition})
	}
}

func TestSuperseded(t *testing.T) {
	h := &History{Pod: "web"}
	h.Begin(Generation{Digest: "1"})
	h.Begin(Generation{Digest: "2"})
	if got := h.Find(1).Outcome; got != api.GenerationSuperseded {
		t.Errorf("got %s", got)
	}
	if h.Target(2) != nil || h.Find(3) != nil {
		t.Error("found a generation that does not exist")
	}
}

func TestPin(t *testing.T) {
	values := func(v string) map[string][]byte { return map[string][]byte{"key": []byte(v)} }
	d := &Definition{
		Pod: &spec.Pod{Name: "web", Secrets: []spec.Secret{{Name: "cred", Credential: "c"}}, Containers: []spec.Container{
			{Name: "app", ImagePullPolicy: spec.PullAlways},
			{Name: "unknown", ImagePullPolicy: spec.PullAlways},
			{Name: "never", ImagePullPolicy: spec.PullNever},
		}},
		Images: map[string]lifecycle.Image{"app": {ID: "a"}, "never": {ID: "b"}},
		Config: PinnedConfig{
			ConfigMaps: map[string]map[string][]byte{
				"same": values("1"), "differs": values("old"), "gone": values("old"), "binary": values("\xff"),
			},
			Secrets: map[string]map[string][]byte{"secret": values("old")},
		},
	}
	got := d.Pin(PinnedConfig{ConfigMaps: map[string]map[string][]byte{"same": values("1"), "differs": values("new")}}).Pod
	if diff := cmp.Diff([]spec.ConfigMap{
		{Name: "differs", Data: map[string]string{"key": "old"}}, {Name: "gone", Data: map[string]string{"key": "old"}},
	},
		got.ConfigMaps); diff != "" {
		t.Errorf("config maps (-want +got):\n%s", diff)
	}
	if len(got.Secrets) != 2 || got.Secrets[0].Credential != "c" || got.Secrets[0].Data != nil ||
		got.Secrets[1].Data["key"] != "old" {
		t.Errorf("secrets: %+v", got.Secrets)
	}
	for i, want := range []spec.PullPolicy{spec.PullIfNotPresent, spec.PullAlways, spec.PullNever} {
		if c := got.Containers[i]; c.ImagePullPolicy != want {
			t.Errorf("container %s: pull policy %s, want %s", c.Name, c.ImagePullPolicy, want)
		}
	}
	if d.Pod.Containers[0].ImagePullPolicy != spec.PullAlways || len(d.Pod.ConfigMaps) > 0 || d.Pod.Secrets[0].Credential == "" {
		t.Error("the definition was changed")
	}
}

// credentials are values of the host with a credential.
type credentials struct{ asked []string }

func (c *credentials) ConfigMap(*spec.Pod, string) (map[string][]byte, error) {
	return nil, fs.ErrNotExist
}

func (c *credentials) Secret(_ *spec.Pod, name string) (map[string][]byte, error) {
	c.asked = append(c.asked, name)
	return map[string][]byte{"key": []byte("plain")}, nil
}

// TestCredentialsAreNotKept: neither a new generation nor the file of an earlier version has the value of a credential.
func TestCredentialsAreNotKept(t *testing.T) {
	pod := &spec.Pod{Name: "web", Secrets: []spec.Secret{{Name: "cred", Credential: "c"}, {Name: "sealed", CredentialFile: "/c.cred"}}}
	for _, name := range []string{"cred", "sealed", "host"} {
		pod.Volumes = append(pod.Volumes, spec.Volume{Name: name, Secret: &spec.SecretVolume{SecretName: name}})
	}
	values := &credentials{}
	c, err := readConfig(values, pod)
	if err != nil || len(c.Secrets) != 1 || c.Secrets["host"] == nil || !slices.Equal(values.asked, []string{"host"}) {
		t.Errorf("kept %v, asked for %v, error %v", c.Secrets, values.asked, err)
	}
	h := &History{Pod: "web"}
	h.Begin(Generation{Digest: "1", Definition: &Definition{Pod: pod, Config: PinnedConfig{
		Secrets: map[string]map[string][]byte{"cred": {"c": []byte("plain")}, "host": {"key": []byte("kept")}},
	}}})
	if !h.forgetCredentials() || h.forgetCredentials() {
		t.Error("the value of an earlier version was not removed once")
	}
	if kept := h.Newest().Definition.Config.Secrets; len(kept) != 1 || kept["host"] == nil {
		t.Errorf("kept %v", kept)
	}
}

func TestDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "generations")
	d := NewHistoryDir(dir)
	if all, problems, err := d.Load(); len(all)+len(problems) > 0 || err != nil {
		t.Fatalf("a directory that does not exist: %v %v %v", all, problems, err)
	}
	h := &History{Pod: "web"}
	generationReady(h, "a")
	h.Newest().Definition.Pod.Secrets = []spec.Secret{{Name: "s", Data: spec.SecretData{"k": "hidden"}}}
	h.Newest().Definition.Config.Secrets = map[string]map[string][]byte{"host": {"k": {0xff}}}
	if err := d.Save(h); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("garbled.json", "{")
	write("other.json", `{"version":1,"pod":"web"}`)
	later := `{"version":999,"pod":"later","future":1}`
	write("later.json", later)
	d = NewHistoryDir(dir)
	all, problems, err := d.Load()
	if err != nil || len(problems) != 3 || len(all) != 1 {
		t.Fatalf("loaded %v, problems %v, error %v", all, problems, err)
	}
	if diff := cmp.Diff(h, all["web"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := d.Save(&History{Pod: "later"}); err != nil {
		t.Error(err)
	}
	if err := d.Delete("later"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "later.json")); err != nil || string(text) != later {
		t.Errorf("the file of a later version: %q %v", text, err)
	}
	for _, pod := range []string{"web", "garbled", "other", "absent"} {
		if err := d.Delete(pod); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v %v", entries, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode: %v %v", info.Mode(), err)
	}
}

// TestUnknownFields: fields that a later version added are kept until the generations are deleted.
func TestUnknownFields(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "web.json")
	text := `{"version":2,"minReader":1,"pod":"web","last":1,"generations":[{"generation":1,"digest":"a","since":{},"outcome":"Ready",` +
		`"added":1}],"new":true}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := NewHistoryDir(dir)
	all, problems, err := d.Load()
	if err != nil || len(problems) > 0 || all["web"] == nil {
		t.Fatalf("loaded %v, problems %v, error %v", all, problems, err)
	}
	all["web"].Last = 2
	saved := func() string {
		t.Helper()
		if err := d.Save(all["web"]); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := saved(); !strings.Contains(got, `"new":true`) || !strings.Contains(got, `"added":1`) || !strings.Contains(got, `"last":2`) {
		t.Errorf("saved %s", got)
	}
	if err := d.Delete("web"); err != nil {
		t.Fatal(err)
	}
	if got := saved(); strings.Contains(got, `"new"`) || strings.Contains(got, `"added"`) {
		t.Errorf("generations of a new pod have fields of a deleted one: %s", got)
	}
}

// TestHidden: values of secrets do not appear in logs.
func TestHidden(t *testing.T) {
	d := Definition{Pod: &spec.Pod{}, Config: PinnedConfig{Secrets: map[string]map[string][]byte{"s": {"k": []byte("s3cret")}}}}
	if text := fmt.Sprintf("%v %+v", d.Config, &d.Config); strings.Contains(text, "s3cret") {
		t.Error(text)
	}
	var back Definition
	if err := json.Unmarshal([]byte(`{}`), &back); err != nil || back.Pod == nil {
		t.Errorf("%+v %v", back, err)
	}
}

// TestOutcomesOnDisk: the words of outcomes are those of the files that earlier versions have written.
func TestOutcomesOnDisk(t *testing.T) {
	var h History
	const text = `{"pod":"web","generations":[{"outcome":"Progressing"},{"outcome":"Ready"},{"outcome":"Failed"},` +
		`{"outcome":"RolledBack"},{"outcome":"Superseded"}]}`
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	want := []api.GenerationOutcome{
		api.GenerationProgressing, api.GenerationReady, api.GenerationFailed, api.GenerationRolledBack, api.GenerationSuperseded,
	}
	for i, g := range h.Generations {
		if g.Outcome != want[i] {
			t.Errorf("outcome %q, want %q", g.Outcome, want[i])
		}
	}
	if len(h.Generations) != len(want) {
		t.Errorf("%d generations", len(h.Generations))
	}
}

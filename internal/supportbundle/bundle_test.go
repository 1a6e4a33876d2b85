package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/supervisor/event"
)

func writeFile(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newOptions returns options for a host without a daemon.
func newOptions(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	c := &config.Config{ConfigDir: at("etc"), StateDir: at("lib"), RunDir: at("run"), LogDir: at("log"), Socket: at("run/s")}
	c.Pods.Dir = at("etc/pods.d")
	return Options{
		Config: c, Client: client.New(c.Socket, "podstead support-bundle"), Tail: 10, Now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Versions: func(context.Context) any { return map[string]string{"version": "v1"} },
		Doctor:   func(context.Context) any { return []string{"fine"} },
	}
}

// unpack returns the files of an archive by name.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(compressed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || h.Mode != 0o600 {
			t.Errorf("%s: mode %o, %v", h.Name, h.Mode, err)
		}
		name, ok := strings.CutPrefix(h.Name, "podstead-support-20260304T050607Z/")
		if !ok {
			t.Errorf("%s is in another directory", h.Name)
		}
		files[name] = string(text)
	}
}

const planted = "planted-value"

// TestWithoutDaemon: the bundle has what can be read from files, without the secrets in files and without messages of events.
func TestWithoutDaemon(t *testing.T) {
	o := newOptions(t)
	writeFile(t, planted+"\n", o.Config.ConfigDir, "secrets", "db", "password")
	writeFile(t, `{"pod":{},"secrets":{"inline":{"key":"planted-inline"}}}`, o.Config.StateDir, "pods", "web.json")
	writeFile(t, `{"generations":[{"definition":{"config":{"secrets":{"old":{"key":"cGxhbnRlZC1vbGQ="}}}}}]}`, o.Config.StateDir,
		"generations", "web.json")
	writeFile(t,
		"level=WARN msg=\"Liveness probe failed: "+planted+
			" of a deleted pod \\\" x\" pod=web container=c attempt=1 reason=Unhealthy seq=7 cause=6\n"+
			"level=WARN msg=\"no login\" error=\"planted-value planted-inline planted-old\"\nlevel=INFO msg=ready\n", o.Config.StateDir,
		"daemon.log")
	writeFile(t, "goroutine 1", o.Config.RunDir, "crash")
	archive, manifest, err := Collect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, archive)
	for name, text := range files {
		if strings.Contains(text, "planted") {
			t.Errorf("%s has a secret:\n%s", name, text)
		}
	}
	want := "level=WARN msg=(event) pod=web container=c attempt=1 reason=Unhealthy seq=7 cause=6\n" +
		"level=WARN msg=\"no login\" error=\"[redacted] [redacted] [redacted]\"\nlevel=INFO msg=ready\n# output of a crash\ngoroutine 1"
	if diff := cmp.Diff(want, files["daemon.log"]); diff != "" {
		t.Errorf("daemon.log (-want +got):\n%s", diff)
	}
	if !strings.Contains(files["files.txt"], o.Config.ConfigDir+"/secrets/db/password\n") ||
		!strings.Contains(files["config.json"], `"socket": `) || files["versions.json"] != "{\n    \"version\": \"v1\"\n}\n" ||
		files["doctor.json"] == "" {
		t.Errorf("files:\n%s\nconfig.json:\n%s\nversions.json:\n%s", files["files.txt"], files["config.json"], files["versions.json"])
	}
	var m Manifest
	if err := json.Unmarshal([]byte(files["manifest.json"]), &m); err != nil || len(m.Files) != len(files)-1 {
		t.Errorf("manifest %+v, %v, but %d files", m, err, len(files))
	}
	if diff := cmp.Diff(manifest, m); diff != "" {
		t.Errorf("manifest in the archive (-want +got):\n%s", diff)
	}
	if len(m.Notes) != 1 || !strings.HasPrefix(m.Notes[0], "the daemon is not running: ") {
		t.Errorf("notes %q", m.Notes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Collect(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestSavedEventsAndLogs: without a daemon, events and logs come from files. What a pod prints whose secrets are not known is left out.
func TestSavedEventsAndLogs(t *testing.T) {
	o := newOptions(t)
	writeFile(t, planted, o.Config.ConfigDir, "secrets", "db", "password")
	for name, secrets := range map[string]string{
		"web":  `[{"name":"inline","data":["key"]}]`,
		"cred": `[{"name":"key","credential":"planted-key"}]`,
	} {
		writeFile(t, `{"pod":{"name":"`+name+`","containers":[{"name":"app"}],"secrets":`+secrets+`},`+
			`"secrets":{"inline":{"key":"planted-inline"}},"facts":{"uid":"uid-`+name+`"}}`, o.Config.StateDir, "pods", name+".json")
		writeFile(t, "2026-03-04T05:06:07.000000000Z stdout F first\n"+
			"2026-03-04T05:06:08.000000000Z stderr F has planted-value planted-inline\n",
			o.Config.LogDir, name+"_uid-"+name, "app", "0.log")
	}
	writeFile(t, "2026-03-04T05:06:09.000000000Z stdout F second\n", o.Config.LogDir, "web_uid-web", "app", "1.log")
	journal, err := event.NewDirJournal(filepath.Join(o.Config.StateDir, "events"))
	if err != nil {
		t.Fatal(err)
	}
	ring := event.NewRing(10)
	for _, pod := range []string{"web", "cred", "gone"} {
		e := event.New(api.EventFileInvalid, o.Now, pod, event.Fields{"then": "x", "error": "planted-value", "file": "f"})
		e.UID = "uid-" + pod
		ring.Add(e)
	}
	added, _ := ring.Since(0)
	if err := journal.Append(added); err != nil {
		t.Fatal(err)
	}
	archive, manifest, err := Collect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, archive)
	if got, want := files["pods/web/logs/app.log"], "1 2026-03-04T05:06:07Z stdout first\n"+
		"1 2026-03-04T05:06:08Z stderr has [redacted] [redacted]\n2 2026-03-04T05:06:09Z stdout second\n"; got != want {
		t.Errorf("log %q, want %q, notes %q", got, want, manifest.Notes)
	}
	for name, text := range files {
		if strings.Contains(text, "planted-value") || strings.Contains(text, "planted-inline") || strings.HasPrefix(name, "pods/cred") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	events := strings.Split(strings.TrimSpace(files["events.jsonl"]), "\n")
	if len(events) != 3 || !strings.Contains(events[0], "[redacted]") || strings.Count(files["events.jsonl"], `"message":"(event)"`) != 2 {
		t.Errorf("events:\n%s", files["events.jsonl"])
	}
	if notes := strings.Join(manifest.Notes, "\n"); !strings.Contains(notes, "pod cred: its logs and messages are withheld") {
		t.Errorf("notes:\n%s", notes)
	}
	o.NoLogs = true
	if archive, _, err = Collect(t.Context(), o); err != nil || unpack(t, archive)["pods/web/logs/app.log"] != "" {
		t.Errorf("logs with --no-logs, %v", err)
	}
}

// TestUnreadableSecrets: if not all secrets on the host can be read, there is no log.
func TestUnreadableSecrets(t *testing.T) {
	o := newOptions(t)
	writeFile(t, "no directory", o.Config.ConfigDir, "secrets")
	writeFile(t, "level=INFO msg="+planted+"\n", o.Config.StateDir, "daemon.log")
	archive, manifest, err := Collect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if files := unpack(t, archive); files["daemon.log"] != "" || files["versions.json"] == "" {
		t.Errorf("files %v", files)
	}
	if notes := strings.Join(manifest.Notes, "\n"); !strings.Contains(notes, "secrets: read secrets: ") ||
		!strings.Contains(notes, "log of the daemon: left out") {
		t.Errorf("notes:\n%s", notes)
	}
}

// TestFailedParts: a part that panics, fails, or takes too long is a note, and the others are in the bundle.
func TestFailedParts(t *testing.T) {
	o := newOptions(t)
	o.Doctor = func(context.Context) any { panic("a bug") }
	o.Versions = func(context.Context) any { return func() {} } // cannot be encoded
	o.HostRoot = t.TempDir()
	archive, manifest, err := Collect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	files, notes := unpack(t, archive), strings.Join(manifest.Notes, "\n")
	for _, want := range []string{
		"doctor: panic: a bug", "versions: json: unsupported type", "host: open " + o.HostRoot + "/proc/version",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in\n%s", want, notes)
		}
	}
	if files["config.json"] == "" || files["host.txt"] == "" || files["doctor.json"] != "" {
		t.Errorf("files %v", files)
	}
}

func TestLimits(t *testing.T) {
	var out bytes.Buffer
	c := &collector{archive: tar.NewWriter(&out), redactor: &redactor{local: plain.NewRedactor(nil)}}
	for i := range maxTotal / maxFile {
		if err := c.add(fmt.Sprint(i), make([]byte, maxFile+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.add("more", []byte("x")); err == nil || !strings.Contains(err.Error(), "more is left out: the maximum size") {
		t.Errorf("error %v", err)
	}
	if len(c.manifest.Notes) != maxTotal/maxFile || c.manifest.Files[0].Size != maxFile {
		t.Errorf("notes %q", c.manifest.Notes)
	}
	var lines tail
	for i := range 3 {
		lines.add(fmt.Sprint(i) + strings.Repeat("x", maxLog/2))
	}
	if len(lines.lines) != 1 || lines.lines[0][0] != '2' || lines.dropped != 2 {
		t.Errorf("%d lines, %d dropped", len(lines.lines), lines.dropped)
	}
	file := filepath.Join(t.TempDir(), "log")
	writeFile(t, "first line\nsecond\nthird\n", file)
	if text, err := tailOf(file, 12); err != nil || text != "third\n" {
		t.Errorf("tail %q, %v", text, err)
	}
}

// TestBatches: large texts are redacted in several requests, and an incomplete response is an error.
func TestBatches(t *testing.T) {
	requests, drop := 0, 0
	local := plain.NewRedactor([]string{"local-value"})
	r := &redactor{local: local, daemon: func(_ context.Context, texts []string) (api.Redacted, error) {
		requests++
		var out []string
		for _, text := range texts[drop:] {
			out = append(out, strings.ReplaceAll(text, planted, plain.Redacted))
		}
		return api.Redacted{Texts: out}, nil
	}}
	texts := []string{strings.Repeat("a", maxBatch), planted, strings.Repeat("b", 2*maxBatch), "local-value", ""}
	got, err := r.texts(t.Context(), texts)
	texts[1], texts[3] = plain.Redacted, plain.Redacted
	if diff := cmp.Diff(texts, got); diff != "" || err != nil || requests != 4 {
		t.Errorf("%d requests, %v, %s", requests, err, diff)
	}
	type value struct {
		B, A string
		L    []any
	}
	v, err := r.value(t.Context(), value{planted, "local-value", []any{int64(1 << 53), true, nil, "x " + planted}})
	text, _ := json.Marshal(v)
	if want := `{"A":"[redacted]","B":"[redacted]","L":[9007199254740992,true,null,"x [redacted]"]}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	drop = 1
	if _, err := r.texts(t.Context(), []string{planted}); err == nil {
		t.Error("an incomplete response is accepted")
	}
}

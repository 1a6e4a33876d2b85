package doctor

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/statefile"
)

func TestStateVersions(t *testing.T) {
	c := &config.Config{StateDir: t.TempDir(), RunDir: t.TempDir()}
	if r := stateVersions(c); r.grade != OK {
		t.Errorf("without files: %+v", r)
	}
	dir := filepath.Join(c.StateDir, "pods")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxFiles + 2 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("web%d.json", i)), []byte(`{"version":2}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := stateVersions(c)
	for _, part := range []string{
		"/pods/web0.json, ", " and 2 more: written by a later version: the file has version 2, at most 1 is supported",
	} {
		if r.grade != Warn || !strings.Contains(r.detail, part) {
			t.Errorf("%q is not in %+v", part, r)
		}
	}
}

var update = flag.Bool("update", false, "update docs/reference/state-files.md")

const referencePage = "../../docs/reference/state-files.md"

// TestReference compares docs/reference/state-files.md with the table. This updates the page:
//
//	go test ./internal/doctor -run TestReference -update
func TestReference(t *testing.T) {
	want := stateFilesPage()
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not up to date, run go test ./internal/doctor -run TestReference -update (-want +got):\n%s", referencePage, diff)
	}
}

func stateFilesPage() string {
	var b strings.Builder
	b.WriteString("# State files\n\n```console\n# head -c 40 " +
		"/var/lib/podstead/pods/web.json\n{\"version\":1,\"savedAt\":{\"boot\":\"c78589be-\n```\n\n" +
		"These are the files that the daemon reads again after it or the host has restarted. `STATE` is the [state " +
		"directory](configuration.md), by default\n" +
		"`/var/lib/podstead`. `RUN` is the directory for runtime state, by default `/run/podstead`, which is cleared at boot. Only root " +
		"can read the files.\n\n" +
		"| File | Content | Version | If it is lost |\n| --- | --- | --- | --- |\n")
	for _, f := range stateFiles() {
		version := ""
		if f.format != nil {
			version = fmt.Sprint(f.format.Version)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.path, f.content, version, f.lost)
	}
	b.WriteString(`
Files without a version belong to containerd, runc or containers, or have no fields. containerd has versions of its own.

## Versions

A file begins with the version that wrote it, and with the lowest version that can read it (` + "`minReader`" +
		`) if that differs. A journal has a line with both
before the events that a daemon has appended.

A file ends with a checksum of all that is before it (` + "`_sum`" +
		`, CRC-32C). If it is wrong, the file is damaged. Files of earlier versions have none, and
are read. Who changes a file by hand removes the checksum. Journals have none: a line that cannot be read is left out, and the others are shown.

| A later version | What this version does |
| --- | --- |
| adds fields (` + "`minReader`" +
		` is at most the version in the table) | uses the file, and keeps fields that it does not know when it writes the file. Fields of a container's run are dropped when the container restarts, and those of a definition when the definition changes. Fields of the definition of a generation are dropped |
| changes fields: state of a pod | does not touch the file or the pod. Containers keep running without supervision, the status is ` +
		"`NewerState`" + `, and the event ` + "`StateUnsupported`" + ` is emitted. ` + "`podstead delete --force`" + ` deletes the pod |
| changes fields: journal | keeps the events and does not show them. The event ` + "`StateUnsupported`" + ` replaces them |
| changes fields: ` + "`STATE/network.json`" + ` | the daemon does not start, containers keep running |
| changes fields: ` + "`STATE/users.json`" + ` | pods with a user namespace neither start nor are deleted |
| changes fields: schedule | does not touch the file. Times count from the start of the daemon |
| changes fields: generations | does not touch the file, and the pod has no generations. It runs what its file defines |
| changes fields: checkpoint, quarantine, ` + "`RUN/network.json`" +
		`, lists of images, reports | ignores the file, and replaces it when it has content of its own; ` + "`RUN/network.json`" +
		` is renamed |

` + "`podstead doctor`" + ` reports files that only a later version understands.
`)
	return b.String()
}

// TestFlippedBits flips each bit of a file of each format. The file is damaged then.
func TestFlippedBits(t *testing.T) {
	content := map[string]any{"text": "abc", "number": 10, "list": []any{1.5, true, map[string]any{}}}
	for _, f := range stateFiles() {
		if f.format == nil || strings.HasSuffix(f.path, ".jsonl") {
			continue
		}
		text, err := f.format.Encode(content, statefile.Unknown{})
		if err != nil || f.format.Check(text) != nil {
			t.Fatalf("%s: %v, %v", f.path, err, f.format.Check(text))
		}
		sum := strings.Index(string(text), `,"_sum"`)
		for i := range text {
			for bit := range 8 {
				flipped := slices.Clone(text)
				flipped[i] ^= 1 << bit
				err := f.format.Check(flipped)
				if err == nil && (i <= sum || !bytes.Equal(flipped[:sum], text[:sum])) {
					t.Errorf("%s: no error for %s", f.path, flipped)
				}
				if errors.Is(err, statefile.ErrNewer) {
					t.Errorf("%s: %s is taken for a file of a later version", f.path, flipped)
				}
			}
		}
	}
}

func TestNewer(t *testing.T) {
	c := &config.Config{StateDir: t.TempDir(), RunDir: t.TempDir()}
	for path, text := range map[string]string{
		"pods/old.json": `{"version":1}`, "pods/adds.json": `{"version":2,"minReader":1}`, "pods/newer.json": `{"version":2}`,
		"network.json":   `{"version":7}`,
		"events/a.jsonl": "{\"version\":2}\n{\"seq\":1}\n{\"version\":1}\n{\"seq\":2}\n",
		"events/b.jsonl": "\n{\"version\":2}\n{\"seq\":1}\n",
		"users.json":     "damaged",
	} {
		path = filepath.Join(c.StateDir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, reason := newerFiles(c)
	want := []string{c.StateDir + "/pods/newer.json", c.StateDir + "/events/b.jsonl", c.StateDir + "/network.json"}
	if diff := cmp.Diff(want, files); diff != "" || reason == nil {
		t.Errorf("files (-want +got, %v):\n%s", reason, diff)
	}
	if files, reason := newerFiles(&config.Config{StateDir: t.TempDir(), RunDir: t.TempDir()}); len(files) > 0 || reason != nil {
		t.Errorf("without files: %v, %v", files, reason)
	}
}

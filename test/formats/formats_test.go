// Package formats checks that this version reads the state files of all earlier versions.
//
// The files in testdata were written by the real programs, except those for quarantine and damage. A directory has the files of one
// version of a format. They never change: hosts have such files. TestWriteFormats in test/faults writes the files of a new version,
// except those for quarantine, damage and generations.
package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/state"
)

// readers read all files of a directory, and write what they have read into the files of another.
var readers = map[string]struct {
	format statefile.Format
	copy   func(t *testing.T, from, to string)
}{
	"pod":         {state.Format, copyPods},
	"checkpoint":  {state.CheckpointFormat, copyCheckpoints},
	"journal":     {event.Format, copyJournal},
	"quarantine":  {state.QuarantineFormat, copyQuarantine},
	"network":     {network.StateFormat, copyNetwork},
	"leases":      {network.LeaseFormat, copyLeases},
	"users":       {namespace.IDsFormat, copyUsers},
	"damage":      {engine.DamageFormat, copyDamage},
	"generations": {podfiles.HistoryFormat, copyGenerations},
}

// elsewhere are formats that are read by the tests of their own packages.
var elsewhere = map[string]string{"images": "runtime/engine", "life": "internal/daemon"}

// TestEarlierVersions reads the files of each version and writes them again. Nothing but the version may differ. A version that changes
// more needs the files that it makes of the earlier ones beside them, in a directory with the suffix "-now".
func TestEarlierVersions(t *testing.T) {
	for name, reader := range readers {
		dirs, err := filepath.Glob(filepath.Join("testdata", name, "v*"))
		if err != nil {
			t.Fatal(err)
		}
		if current := filepath.Join("testdata", name, fmt.Sprintf("v%d", reader.format.Version)); name != "quarantine" &&
			name != "damage" && name != "generations" && !exists(current) {
			t.Errorf("%s: no files of the current version, write them with go test -tags e2e -run TestWriteFormats ./test/faults -update",
				name)
		}
		for _, dir := range dirs {
			if strings.HasSuffix(dir, "-now") {
				continue
			}
			t.Run(dir, func(t *testing.T) { checkVersion(t, name, dir) })
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func checkVersion(t *testing.T, name, dir string) {
	from, to, want := t.TempDir(), t.TempDir(), dir
	if err := os.CopyFS(from, os.DirFS(dir)); err != nil { // readers may rename files
		t.Fatal(err)
	}
	readers[name].copy(t, from, to)
	if exists(dir + "-now") {
		want = dir + "-now"
	}
	files, err := filepath.Glob(filepath.Join(want, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, file := range files {
		got := values(t, filepath.Join(to, filepath.Base(file)))
		if diff := cmp.Diff(values(t, file), got); diff != "" {
			t.Errorf("%s (-written by the earlier version +read):\n%s", file, diff)
		}
	}
}

// values returns the JSON values of the lines of a file, without version and checksum.
func values(t *testing.T, path string) (list []any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		var v any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if len(line) == 0 || d.Decode(&v) != nil {
			continue
		}
		if object, is := v.(map[string]any); is {
			delete(object, "version")
			delete(object, "minReader")
			delete(object, "_sum")
			if len(object) == 0 {
				continue
			}
		}
		list = append(list, v)
	}
	return list
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func copyPods(t *testing.T, from, to string) {
	store, err := state.NewDir(from)
	check(t, err)
	pods, unusable, err := store.Load()
	check(t, err)
	for _, u := range unusable {
		t.Errorf("unusable: %+v", u)
	}
	written, err := state.NewDir(to) // it has no unknown fields, so all fields must have been understood
	check(t, err)
	for i := range pods {
		check(t, written.Save(pods[i]))
	}
}

func copyCheckpoints(t *testing.T, from, to string) {
	store, err := state.NewCheckpointDir(from)
	check(t, err)
	all, err := store.Load()
	check(t, err)
	written, err := state.NewCheckpointDir(to)
	check(t, err)
	for uid, c := range all {
		check(t, written.Save(uid, c))
	}
}

func copyJournal(t *testing.T, from, to string) {
	journal, err := event.NewDirJournal(from)
	check(t, err)
	events, err := journal.Load()
	check(t, err)
	written, err := event.NewDirJournal(to)
	check(t, err, written.Append(events))
}

func copyQuarantine(t *testing.T, from, to string) {
	dir, err := state.NewQuarantine(from, t.TempDir())
	check(t, err)
	entries, err := dir.Judge("", time.Now())
	check(t, err)
	for uid, e := range entries {
		text, err := json.Marshal(e)
		check(t, err, os.WriteFile(filepath.Join(to, uid+".json"), text, 0o600))
	}
}

func copyGenerations(t *testing.T, from, to string) {
	histories, problems, err := podfiles.NewHistoryDir(from).Load()
	check(t, append(problems, err)...)
	written := podfiles.NewHistoryDir(to)
	for _, h := range histories {
		check(t, written.Save(h))
	}
}

func copyNetwork(t *testing.T, from, to string) {
	s, err := network.LoadState(t.Context(), slog.New(slog.DiscardHandler), filepath.Join(from, "network.json"))
	check(t, err)
	s.Unknown = statefile.Unknown{}
	check(t, s.Write(filepath.Join(to, "network.json")))
}

func copyLeases(t *testing.T, from, to string) {
	path := filepath.Join(from, "network.json")
	var head struct{ BootID string }
	text, err := os.ReadFile(path)
	check(t, err, json.Unmarshal(text, &head))
	f, found, err := network.LoadLeases(t.Context(), slog.New(slog.DiscardHandler), path, head.BootID)
	check(t, err)
	if !found {
		t.Error("no leases")
	}
	f.Unknown = statefile.Unknown{}
	check(t, f.Write(filepath.Join(to, "network.json")))
}

func copyUsers(t *testing.T, from, to string) {
	path := filepath.Join(from, "users.json")
	var want struct{ Pods map[string]uint32 }
	text, err := os.ReadFile(path)
	check(t, err, json.Unmarshal(text, &want))
	got := map[string]uint32{}
	ranges := namespace.NewIDRanges(path, "none", "none")
	for uid := range want.Pods {
		r, err := ranges.Find(uid)
		check(t, err)
		got[uid] = r.First
	}
	text, err = json.Marshal(map[string]any{"pods": got})
	check(t, err, os.WriteFile(filepath.Join(to, "users.json"), text, 0o600))
}

func copyDamage(t *testing.T, from, to string) {
	reports, err := engine.Journal{Dir: from}.Reports()
	check(t, err)
	check(t, engine.Journal{Dir: to}.Add(reports))
}

// TestFlippedBytes changes a bit of each byte of a file of each format, with content of the real program. It is damaged, or says the same.
func TestFlippedBytes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "v1", "*.json"))
	check(t, err)
	formats := map[string]bool{}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(filepath.Dir(file)))
		if formats[name] {
			continue // one of each format is enough
		}
		formats[name] = true
		f := statefile.Format{Version: 1}
		if reader, is := readers[name]; is {
			f = reader.format
		}
		old, err := os.ReadFile(file)
		check(t, err)
		var content map[string]json.RawMessage
		_, err = f.Decode(old, &content)
		check(t, err)
		delete(content, "version")
		for member := range content {
			if member <= "_sum" {
				t.Errorf("%s: versions before the checksum must write all members of a file behind it, not %q", name, member)
			}
		}
		text, err := f.Encode(content, statefile.Unknown{})
		check(t, err)
		sum := bytes.LastIndex(text, []byte(`,"_sum"`))
		for i := range text {
			flipped := bytes.Clone(text)
			flipped[i] ^= 1 << (i % 8)
			if f.Check(flipped) == nil && i <= sum {
				t.Errorf("%s: no error after a change of byte %d of %d", name, i, len(text))
			}
		}
	}
	if len(formats) < len(readers)-2 { // the journal has lines, and some have no files of version 1
		t.Errorf("files of %d formats", len(formats))
	}
}

// TestAllFormats expects that no directory of testdata is forgotten.
func TestAllFormats(t *testing.T) {
	entries, err := os.ReadDir("testdata")
	check(t, err)
	for _, e := range entries {
		if _, is := readers[e.Name()]; !is && elsewhere[e.Name()] == "" {
			t.Errorf("no test reads testdata/%s", e.Name())
		}
	}
	if len(entries) != len(readers)+len(elsewhere) {
		t.Errorf("%d formats have files, want %d", len(entries), len(readers)+len(elsewhere))
	}
}

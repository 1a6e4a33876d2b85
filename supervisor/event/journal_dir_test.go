package event

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

func newDirJournal(t *testing.T) (*DirJournal, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "events")
	j, err := NewDirJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return j, dir
}

func eventOf(seq uint64, pod, message string) Event {
	return Event{
		Seq: seq, Cause: seq / 2, Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Level: api.EventWarning,
		Kind: api.EventContainerFailed, Reason: "Exited",
		Pod: pod, UID: "u-" + pod, Container: "c", Attempt: 2, Fields: map[string]string{"code": "3"}, Message: message,
	}
}

func numbers(events []Event) (list []uint64) {
	for _, e := range events {
		list = append(list, e.Seq)
	}
	return list
}

func TestDirJournal(t *testing.T) {
	j, dir := newDirJournal(t)
	events := []Event{eventOf(1, "web", "a"), eventOf(2, "db", "b"), eventOf(3, "../web", "c"), eventOf(4, "", "d"), eventOf(5, "web", "e")}
	if err := j.Append(events); err != nil {
		t.Fatal(err)
	}
	for range 2 { // by this journal, and by one that is opened again
		all, err := j.Load()
		if diff := cmp.Diff(events, all); diff != "" || err != nil {
			t.Errorf("all (-want +got, %v):\n%s", err, diff)
		}
		for pod, want := range map[string][]uint64{"web": {1, 5}, "db": {2}, "../web": {3}, "": {4}, "none": nil} {
			got, err := j.Read(pod)
			if diff := cmp.Diff(want, numbers(got)); diff != "" || err != nil {
				t.Errorf("of %q (-want +got, %v):\n%s", pod, err, diff)
			}
		}
		if j, err = NewDirJournal(dir); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(dir); len(entries) != 3 || err != nil {
		t.Errorf("the files are %v, %v", entries, err)
	}
}

// TestDirJournalSize writes the events of a crash loop of years, and expects the newest in two small files.
func TestDirJournalSize(t *testing.T) {
	j, dir := newDirJournal(t)
	size := func() (n int64) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			st, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			n += st.Size()
		}
		return n
	}
	seq := uint64(0)
	for range 20 {
		for range 100 {
			seq++
			if err := j.Append([]Event{eventOf(seq, "web", strings.Repeat("x", 200))}); err != nil {
				t.Fatal(err)
			}
		}
		if n := size(); n > 2*maxJournal {
			t.Fatalf("the files have %d bytes", n)
		}
		if j, _ = NewDirJournal(dir); j == nil {
			t.Fatal("the journal is empty")
		}
	}
	events, err := j.Read("web")
	if err != nil || len(events) < 100 || events[len(events)-1].Seq != seq {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		if want := seq - uint64(len(events)-1-i); e.Seq != want {
			t.Fatalf("Seq %d, want %d", e.Seq, want)
		}
	}
	if err := j.Append([]Event{eventOf(seq+1, "web", strings.Repeat("x", maxLine))}); err != nil || size() > 2*maxJournal {
		t.Errorf("append of an event over the limit: %v", err)
	}
}

// TestDirJournalLongBatch expects the newest events of a batch that exceeds the file size.
func TestDirJournalLongBatch(t *testing.T) {
	j, dir := newDirJournal(t)
	var batch []Event
	for seq := uint64(1); seq <= 1000; seq++ {
		batch = append(batch, eventOf(seq, "web", strings.Repeat("x", 200)))
	}
	if err := j.Append(batch); err != nil {
		t.Fatal(err)
	}
	events, err := j.Read("web")
	if err != nil || len(events) < 100 {
		t.Fatalf("%d events: %v", len(events), err)
	}
	if diff := cmp.Diff(batch[len(batch)-len(events):], events); diff != "" {
		t.Errorf("the newest events (-want +got):\n%s", diff)
	}
	if st, err := os.Stat(filepath.Join(dir, "web"+journalExt)); err != nil || st.Size() > maxJournal {
		t.Errorf("the file has %d bytes, want %d at most: %v", st.Size(), maxJournal, err)
	}
}

// TestDirJournalTruncatedLine truncates the last line or fills it with zeros, as a power failure does.
func TestDirJournalTruncatedLine(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"truncated":  func(b []byte) []byte { return b[:len(b)-10] },
		"zero bytes": func(b []byte) []byte { return append(b[:len(b)-10], make([]byte, 4096)...) },
		"no newline": func(b []byte) []byte { return b[:len(b)-1] },
		"foreign":    func(b []byte) []byte { return append(b, "{\"seq\":\"x\"}\n[]\nnull\n{}\n"...) },
	} {
		t.Run(name, func(t *testing.T) {
			j, dir := newDirJournal(t)
			if err := j.Append([]Event{eventOf(1, "web", "a"), eventOf(2, "web", "b")}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "web.jsonl")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if j, err = NewDirJournal(dir); err != nil {
				t.Fatal(err)
			}
			if err := j.Append([]Event{eventOf(3, "web", "c")}); err != nil {
				t.Fatal(err)
			}
			if err := j.Append([]Event{eventOf(3, "web", "c"), eventOf(4, "web", "d")}); err != nil { // the first is a duplicate
				t.Fatal(err)
			}
			want := []uint64{1, 2, 3, 4}
			if name == "truncated" || name == "zero bytes" {
				want = []uint64{1, 3, 4}
			}
			events, err := j.Load()
			if diff := cmp.Diff(want, numbers(events)); diff != "" || err != nil {
				t.Errorf("events (-want +got, %v):\n%s", err, diff)
			}
		})
	}
}

// TestDirJournalVersions: events of a later version are kept and reported, and their numbers are not used again.
func TestDirJournalVersions(t *testing.T) {
	j, dir := newDirJournal(t)
	if err := j.Append([]Event{eventOf(1, "web", "a")}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "web"+journalExt)
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "{\"version\":1}\n") {
		t.Fatalf("journal: %s, %v", text, err)
	}
	text = append(text, `
{"version":2,"minReader":1,"new":1}
{"seq":2,"pod":"web","kind":"NewKind","message":"b","new":{}}
{"version":3}
{"seq":3,"pod":"web","kind":"PodAccepted","message":"means something else"}
{"seq":4,"pod":"web"}
`...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if j, err = NewDirJournal(dir); err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]Event{eventOf(5, "web", "c")}); err != nil {
		t.Fatal(err)
	}
	events, err := j.Load()
	if diff := cmp.Diff([]uint64{1, 2, 4, 5}, numbers(events)); diff != "" || err != nil {
		t.Fatalf("events (-want +got, %v):\n%s", err, diff)
	}
	if e := events[2]; e.Kind != api.EventStateUnsupported || e.Pod != "web" ||
		!strings.Contains(e.Message, path+": written by a later version: the file has version 3") {
		t.Errorf("event in place of those of the later version: %+v", e)
	}
	if now, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(now), string(text)) {
		t.Errorf("the journal changed to %s, %v", now, err)
	}
}

func TestDirJournalRetain(t *testing.T) {
	j, dir := newDirJournal(t)
	for i := range maxRemoved + 10 {
		name := fmt.Sprintf("p%02d", i)
		if err := j.Append([]Event{eventOf(uint64(i+1), name, "a")}); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-1000) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, name+".jsonl"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Append([]Event{eventOf(1000, "", "a")}); err != nil {
		t.Fatal(err)
	}
	if err := j.Retain([]string{"p00"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"p00": 1, "p01": 0, "p09": 0, "p10": 1, "p41": 1, "": 1} {
		if events, err := j.Read(name); len(events) != want || err != nil {
			t.Errorf("pod %q has %d events, want %d: %v", name, len(events), want, err)
		}
	}
}

// TestDirJournalRetainsOthers: removed runs of a schedule leave room for the pods that were removed before them.
func TestDirJournalRetainsOthers(t *testing.T) {
	j, dir := newDirJournal(t)
	names := []string{"web", "db-1"}
	for i := range 2 * maxRemoved {
		names = append(names, fmt.Sprintf("minutely-%d", 29933000+i))
	}
	names = append(names, "minutely-manual-1796004059", "other-29933400")
	for i, name := range names {
		if err := j.Append([]Event{eventOf(uint64(i+1), name, "a")}); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-1000) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, name+".jsonl"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Retain(nil); err != nil {
		t.Fatal(err)
	}
	events, err := j.Load()
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, e := range events {
		kept = append(kept, e.Pod)
	}
	want := append([]string{"web", "db-1"}, names[len(names)-2-(maxRuns-1):]...)
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestDirJournalErrors(t *testing.T) {
	j, dir := newDirJournal(t)
	if err := j.Append([]Event{eventOf(1, "web", "a")}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "db.jsonl"), 0o700); err != nil { // cannot be written
		t.Fatal(err)
	}
	if err := j.Append([]Event{eventOf(2, "db", "a"), eventOf(3, "web", "b")}); err == nil ||
		!strings.Contains(err.Error(), "write journal of db") {
		t.Errorf("append: %v", err)
	}
	if events, err := j.Read("web"); len(events) != 2 || err != nil {
		t.Errorf("written events: %v, %v", numbers(events), err)
	}
	if _, err := j.Read("db"); err == nil {
		t.Error("no error for an unreadable file")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, loading := j.Load()
	for what, err := range map[string]error{"append": j.Append([]Event{eventOf(4, "web", "a")}), "load": loading, "retain": j.Retain(nil)} {
		if err == nil {
			t.Errorf("%s: no error without the directory", what)
		}
	}
	if _, err := NewDirJournal(filepath.Join(os.DevNull, "events")); err == nil {
		t.Error("no error for a directory below a device")
	}
}

// TestDirJournalNames checks that each pod has files of its own, also with a long name, or with dots as in the name of another file.
func TestDirJournalNames(t *testing.T) {
	j, dir := newDirJournal(t)
	names := []string{"web", "web.1", "web.1.jsonl", strings.Repeat("a", 252) + "b", strings.Repeat("a", 252) + "c"}
	for range 3 {
		for i, name := range names {
			if err := j.Append([]Event{eventOf(uint64(i+1), name, "x")}); err != nil {
				t.Fatal(err)
			}
			if err := j.rotate(fileOf(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, name := range names {
		if events, err := j.Read(name); err != nil || len(events) != 1 || events[0].Seq != uint64(i+1) {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(names) {
		t.Errorf("%d files, %v; want one for each pod", len(entries), err)
	}
	if events, err := j.Load(); err != nil || len(events) != len(names) {
		t.Errorf("loaded %d events, %v; want %d", len(events), err, len(names))
	}
}

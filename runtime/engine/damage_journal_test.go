package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestJournal: files that are set aside keep their content, and the oldest are deleted.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	j := Journal{filepath.Join(dir, "damaged")}
	if list, err := j.Reports(); err != nil || len(list) != 0 {
		t.Errorf("reports of an empty journal: %v, %v", list, err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var first DamageReport
	for i := range maxReports + 1 {
		file := filepath.Join(dir, "meta.db")
		if err := os.WriteFile(file, []byte(fmt.Sprint(i)), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := j.SetAside(file, reasonPage, "page 3 has a bad header", now.Add(time.Duration(i)*time.Second))
		if err == nil {
			err = j.Add([]DamageReport{r})
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = r
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file was not moved: %v", err)
		}
	}
	if name := filepath.Base(first.Aside); name != "meta.db.20260102T030405.000Z.bad-page" {
		t.Errorf("name %q", name)
	}
	if _, err := os.Stat(first.Aside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the oldest file was kept: %v", err)
	}
	list, err := j.Reports()
	if err != nil || len(list) != maxReports {
		t.Fatalf("%d reports, %v", len(list), err)
	}
	if text, err := os.ReadFile(list[0].Aside); err != nil || string(text) != "1" {
		t.Errorf("content %q, %v", text, err)
	}
	if r, err := j.SetAside(filepath.Join(dir, "none"), reasonMissing, "file is missing", now); err != nil || r.Aside != "" {
		t.Errorf("missing file: %+v, %v", r, err)
	}
}

// TestDamagedJournal: a journal that cannot be read is replaced by the next report.
func TestDamagedJournal(t *testing.T) {
	j := Journal{t.TempDir()}
	if err := os.WriteFile(j.file(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Reports(); err == nil || !strings.Contains(err.Error(), j.file()) {
		t.Errorf("error %v, want the file", err)
	}
	if err := j.Add([]DamageReport{{File: "f"}}); err != nil {
		t.Fatal(err)
	}
	if list, err := j.Reports(); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestCheckState(t *testing.T) {
	for file, good := range map[string]string{
		"state.json": `{"id":"c1","init_process_pid":7,"init_process_start":9,"cgroup_paths":{"memory":"/c1"}}`, // of runc
		"status":     `{"pid":7,"process-start-time":9,"cgroup-path":"/p/x","scope":"","bundle":"/run/c1"}`,     // of crun
	} {
		for text, reason := range map[string]string{
			good: "", "": reasonEmpty, "garbage": reasonContent, good[:40]: reasonContent, "{}": reasonContent,
			strings.Replace(good, "c1", "c2", 1): reasonContent, strings.Replace(good, ":7", ":0", 1): reasonContent,
		} {
			dir := filepath.Join(t.TempDir(), "c1")
			path := filepath.Join(dir, file)
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
			err := checkState(path)
			if found, is := errors.AsType[*damageError](err); is != (reason != "") || is && found.Reason != reason || !is && err != nil {
				t.Errorf("%s %q: %v, want %q", file, text, err, reason)
			}
		}
	}
}

func TestCheckRecord(t *testing.T) {
	message := func(text string) []byte {
		b, err := proto.Marshal(&anypb.Any{TypeUrl: "spec", Value: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	at, err := time.Now().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	container := []string{"v1", "podstead", "containers", "id"}
	for _, test := range []struct {
		buckets []string
		key     string
		value   []byte
		ok      bool
	}{
		{container, "createdat", at, true},
		{container, "createdat", at[1:], false},
		{container, "spec", message("{}"), true},
		{container, "spec", message("{"), false},
		{container, "spec", []byte{0xff}, false},
		{container, "image", []byte{0xff}, true},
		{append(container, "labels"), "spec", []byte("a label"), true},
		{container[:1], "version", []byte{4}, true},
	} {
		if err := checkRecord(test.buckets, []byte(test.key), test.value); (err == nil) != test.ok {
			t.Errorf("%s = %q: %v", test.key, test.value, err)
		}
	}
}

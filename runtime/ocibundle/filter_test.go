package ocibundle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// world is a store with a bundle and a compiled filter.
type world struct {
	*testing.T
	store                     filterStore
	bundle, program, compiled string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t, filterStore{filepath.Join(dir, "filters")}, dir, filepath.Join(dir, "crun"), filepath.Join(dir, "seccomp.bpf")}
	w.write(w.program, "#!/bin/sh\n", 0o755)
	w.write(w.compiled, "12345678", 0o600)
	w.specify(`{"defaultAction":"a"}`)
	return w
}

func (w *world) write(path, text string, mode os.FileMode) {
	w.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.Fatal(err)
	}
}

// specify writes a specification with a profile.
func (w *world) specify(profile string) {
	w.Helper()
	w.write(filepath.Join(w.bundle, "config.json"),
		`{"ociVersion":"1.0.2","other":{"b":1,"a":1e3},"linux":{"x":[],"seccomp":`+profile+`}}`, 0o640)
}

// use prepares the bundle. It returns the annotation of the specification, and whether the compiled filter was kept.
func (w *world) use() (annotation string, kept bool) {
	w.Helper()
	keep, err := w.store.Use(w.bundle, w.program)
	if err != nil {
		w.Fatal(err)
	}
	if keep != nil {
		if err := keep(w.compiled); err != nil {
			w.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(w.bundle, "config.json"))
	if err != nil {
		w.Fatal(err)
	}
	var s struct{ Annotations map[string]string }
	if err := json.Unmarshal(text, &s); err != nil {
		w.Fatal(err)
	}
	return s.Annotations[filterAnnotation], keep != nil
}

// mustKeep keeps the filter, which must not be there yet.
func (w *world) mustKeep(why string) {
	w.Helper()
	if annotation, kept := w.use(); annotation != "" || !kept {
		w.Errorf("%s: a filter was used: %q", why, annotation)
	}
}

// mustUse uses the kept filter.
func (w *world) mustUse(filter string) {
	w.Helper()
	if annotation, kept := w.use(); annotation != base64.StdEncoding.EncodeToString([]byte(filter)) || kept {
		w.Errorf("annotation %q, kept %v, want the filter %q", annotation, kept, filter)
	}
}

func TestUse(t *testing.T) {
	w := newWorld(t)
	w.mustKeep("the first container")
	w.mustUse("12345678")
	text, err := os.ReadFile(filepath.Join(w.bundle, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"annotations":{%q:"MTIzNDU2Nzg="},"linux":{"x":[],"seccomp":{"defaultAction":"a"}},"ociVersion":"1.0.2",`+
		`"other":{"b":1,"a":1e3}}`,
		filterAnnotation)
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("specification (-want +got):\n%s", diff)
	}
	for path, mode := range map[string]os.FileMode{
		filepath.Join(w.bundle, "config.json"): 0o640, w.store.Dir: 0o700 | os.ModeDir, w.file(): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: mode %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
}

// file returns the path of the only filter.
func (w *world) file() string {
	w.Helper()
	all, err := filepath.Glob(filepath.Join(w.store.Dir, "*"))
	if err != nil || len(all) != 1 {
		w.Fatalf("%v, %v, want one filter", all, err)
	}
	return all[0]
}

// A filter is compiled again when something has changed on which it depends, and if its file is not usable.
func TestCompiledAgain(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"another profile": func(w *world) { w.specify(`{"defaultAction":"b"}`) },
		"upgraded runtime": func(w *world) {
			w.write(w.program+".new", "#!/bin/sh\n", 0o755)
			if err := os.Rename(w.program+".new", w.program); err != nil {
				w.Fatal(err)
			}
		},
		"truncated file": func(w *world) {
			if err := os.Truncate(w.file(), 3); err != nil {
				w.Fatal(err)
			}
		},
		"damaged file": func(w *world) {
			text, err := os.ReadFile(w.file())
			if err != nil {
				w.Fatal(err)
			}
			w.write(w.file(), string(bytes.Replace(text, []byte("12345678"), []byte("12345679"), 1)), 0o600)
		},
		"old file":             func(w *world) { w.age(maxAge + time.Minute) },
		"file from the future": func(w *world) { w.age(-time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mustKeep("the first container")
			w.specify(`{"defaultAction":"a"}`)
			change(w)
			w.write(w.compiled, "abcdefgh", 0o600)
			w.mustKeep(name)
			w.mustUse("abcdefgh")
		})
	}
}

func (w *world) age(by time.Duration) {
	w.Helper()
	modified := time.Now().Add(-by)
	if err := os.Chtimes(w.file(), modified, modified); err != nil {
		w.Fatal(err)
	}
}

func TestNothingToKeep(t *testing.T) {
	w := newWorld(t)
	for _, spec := range []string{`{}`, `{"linux":{}}`, `{"linux":{"seccomp":null}}`, `{"linux":null,"annotations":null}`} {
		w.write(filepath.Join(w.bundle, "config.json"), spec, 0o600)
		if keep, err := w.store.Use(w.bundle, w.program); keep != nil || err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
	if keep, err := w.store.Use(t.TempDir(), w.program); keep != nil || err != nil {
		t.Errorf("without a specification: %v", err)
	}
	w.specify(`{}`)
	keep, err := w.store.Use(w.bundle, w.program)
	if err != nil {
		t.Fatal(err)
	}
	if err := keep(w.compiled + ".runc"); err != nil { // no such file
		t.Error(err)
	}
	for _, text := range []string{"", "1234567", string(make([]byte, 8*4097))} {
		w.write(w.compiled, text, 0o600)
		if err := keep(w.compiled); err == nil {
			t.Errorf("a file with %d bytes was kept", len(text))
		}
	}
	if all, _ := filepath.Glob(filepath.Join(w.store.Dir, "*")); len(all) > 0 {
		t.Errorf("kept: %q", all)
	}
}

func TestUseErrors(t *testing.T) {
	w := newWorld(t)
	if _, err := w.store.Use(w.bundle, w.program+"-missing"); err == nil {
		t.Error("no error without an OCI runtime")
	}
	w.write(filepath.Join(w.bundle, "config.json"), `{"linux": []}`, 0o600)
	if _, err := w.store.Use(w.bundle, w.program); err == nil {
		t.Error("no error with an unreadable specification")
	}
}

// The oldest filters are removed.
func TestManyFilters(t *testing.T) {
	w := newWorld(t)
	w.mustKeep("the oldest")
	w.age(time.Hour)
	oldest := w.file()
	for i := range maxFilters + 3 {
		w.specify(fmt.Sprintf(`{"defaultAction":"%d"}`, i))
		w.mustKeep("another")
	}
	if all, _ := filepath.Glob(filepath.Join(w.store.Dir, "*")); len(all) != maxFilters {
		t.Errorf("%d filters, want %d", len(all), maxFilters)
	}
	if _, err := os.Stat(oldest); err == nil {
		t.Error("the oldest filter was kept")
	}
	w.mustUse("12345678")
}

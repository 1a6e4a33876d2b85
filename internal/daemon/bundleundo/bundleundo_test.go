package bundleundo

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/podstead/podstead/internal/statefile"
)

// world is a host: files before the bundle, and with it. A missing file is one that the bundle adds or removes.
type world struct {
	dir           string
	before, after map[string]string
	record        *Record
}

func newWorld(t *testing.T) *world {
	w := &world{dir: t.TempDir()}
	w.before = map[string]string{
		"pods/same.toml": "same 1", "pods/old.yaml": "moved 1", "maps/shop/a": "1", "maps/shop/gone": "2", "maps/shop/empty": "",
	}
	w.after = map[string]string{
		"pods/same.toml": "same 2", "pods/moved.toml": "moved 2", "pods/new.toml": "new", "maps/shop/a": "3", "maps/shop/b": "4",
		"maps/shop/empty": "",
		"maps/new/c":      "5",
	}
	path := func(name string) string { return filepath.Join(w.dir, name) }
	for _, name := range []string{"pods", "maps/shop"} {
		if err := os.MkdirAll(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	digest := func(name string) string { return Digest([]byte(w.after[name])) }
	w.record = &Record{
		Bundle: "shop.bundle",
		Pods: []Pod{
			{
				Name: "same", File: path("pods/same.toml"), Digest: digest("pods/same.toml"),
				Earlier: &File{path("pods/same.toml"), []byte("same 1"), 0o600, nil},
			},
			{
				Name: "moved", File: path("pods/moved.toml"), Digest: digest("pods/moved.toml"),
				Earlier: &File{path("pods/old.yaml"), []byte("moved 1"), 0o600, nil},
			},
			{Name: "new", File: path("pods/new.toml"), Digest: digest("pods/new.toml")},
		},
		Objects: []Object{
			{
				Dir: path("maps/shop"), Existed: true, Mode: 0o600,
				Earlier: map[string][]byte{"a": []byte("1"), "gone": []byte("2"), "empty": nil},
				Digests: map[string]string{"a": digest("maps/shop/a"), "b": digest("maps/shop/b"), "empty": digest("maps/shop/empty")},
			},
			{Dir: path("maps/new"), Mode: 0o600, Digests: map[string]string{"c": digest("maps/new/c")}},
		},
	}
	return w
}

// put makes a file have a content, or removes it.
func (w *world) put(t *testing.T, name string, from map[string]string) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	text, exists := from[name]
	if !exists {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) files(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(w.dir, path)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// names returns all files, without old.yaml: it is removed after moved.toml was written, as the daemon does.
func (w *world) names() []string {
	all := map[string]bool{}
	for _, from := range []map[string]string{w.before, w.after} {
		for name := range from {
			all[name] = true
		}
	}
	delete(all, "pods/old.yaml")
	delete(all, "pods/moved.toml")
	var names []string
	for name := range all {
		names = append(names, name)
	}
	return names
}

// TestUndo: a power cut leaves each file as it was before or as the bundle has it, during the application and during an undo. From
// each of these states, the undo restores all files.
func TestUndo(t *testing.T) {
	w := newWorld(t)
	names := w.names()
	for moved := range 3 {
		for state := range 1 << len(names) {
			for i, name := range names {
				from := w.before
				if state&(1<<i) != 0 {
					from = w.after
				}
				w.put(t, name, from)
			}
			w.put(t, "pods/moved.toml", []map[string]string{w.before, w.after, w.after}[moved])
			w.put(t, "pods/old.yaml", []map[string]string{w.before, w.before, w.after}[moved])
			if err := w.record.Undo(); err != nil {
				t.Fatal(err)
			}
			if found := w.files(t); !maps.Equal(found, w.before) {
				t.Fatalf("state %b, %d: files %v, want %v", state, moved, found, w.before)
			}
			if _, err := os.Stat(filepath.Join(w.dir, "maps/new")); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("the directory of a new config map remains: %v", err)
			}
		}
	}
}

// TestUndoKeepsOthers: files that a person has changed or removed since are kept.
func TestUndoKeepsOthers(t *testing.T) {
	w := newWorld(t)
	changed := map[string]string{
		"pods/same.toml": "by hand", "pods/new.toml": "by hand", "maps/shop/a": "by hand", "maps/shop/gone": "by hand",
		"maps/shop/empty": "by hand",
		"maps/new/c":      "by hand", "maps/new/d": "by hand", "pods/old.yaml": "by hand", "pods/moved.toml": "moved 2",
	}
	for name := range changed {
		w.put(t, name, changed)
	}
	if err := w.record.Undo(); err != nil {
		t.Fatal(err)
	}
	if found := w.files(t); !maps.Equal(found, changed) {
		t.Errorf("files %v, want %v", found, changed)
	}
	for name := range changed {
		w.put(t, name, nil)
	}
	for _, dir := range []string{"maps/shop", "maps/new"} {
		if err := os.Remove(filepath.Join(w.dir, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.record.Undo(); err != nil {
		t.Fatal(err)
	}
	if found := w.files(t); len(found) > 0 {
		t.Errorf("files %v were restored", found)
	}
}

// TestUndoOfUnfinishedValue: the value of a config map that was being written at a power cut is removed, with the directory if that is new.
func TestUndoOfUnfinishedValue(t *testing.T) {
	w := newWorld(t)
	for _, name := range w.names() {
		w.put(t, name, w.before)
	}
	unfinished := map[string]string{"maps/new/.podstead-tmp-c-1": "5", "maps/shop/.podstead-tmp-b-1": "3"}
	for name := range unfinished {
		w.put(t, name, unfinished)
	}
	if err := w.record.Undo(); err != nil {
		t.Fatal(err)
	}
	for name := range w.files(t) {
		if _, known := unfinished[name]; known {
			t.Errorf("%s is left", name)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "maps/new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the new config map: %v", err)
	}
}

// TestOwners: the owners and modes of files are restored, also if only the content was restored. A record of an earlier version has no
// owners.
func TestOwners(t *testing.T) {
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	other := Owner{UID: os.Getuid(), GID: os.Getgid(), Mode: 0o440}
	if os.Getuid() == 0 {
		other.UID, other.GID = 1234, 5678
	} else if i := slices.IndexFunc(groups, func(gid int) bool { return gid != other.GID }); i >= 0 {
		other.GID = groups[i]
	}
	for _, bundled := range []bool{true, false} {
		w := newWorld(t)
		pod, object := w.record.Pods[0].Earlier, &w.record.Objects[0]
		pod.Mode, pod.Owner = 0o440, &other
		object.Owners = map[string]*Owner{"a": &other}
		from, restore := w.after, w.record.Undo
		if !bundled {
			from, restore = w.before, w.record.RestoreOwners
		}
		for _, name := range w.names() {
			w.put(t, name, from)
		}
		if err := restore(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{pod.Path, filepath.Join(object.Dir, "a")} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if owner := OwnerOf(info); *owner != other {
				t.Errorf("%s: %+v, want %+v", path, *owner, other)
			}
		}
		if info, err := os.Stat(filepath.Join(object.Dir, "gone")); err != nil || OwnerOf(info).UID != os.Getuid() ||
			info.Mode().Perm() != object.Mode {
			t.Errorf("a file whose owner is not recorded: %v, %v", info, err)
		}
	}
}

// TestRecord: the record outlives its writer, and only one process can hold it.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	l, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(dir); !errors.Is(err, ErrBusy) {
		t.Errorf("second lock: %v", err)
	}
	if r, err := l.Pending(); r != nil || err != nil {
		t.Error(r, err)
	}
	if err := l.Begin(&Record{Bundle: "a", Objects: []Object{{Earlier: map[string][]byte{"k": []byte("secret")}}}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(Path(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = Acquire(dir); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if r, err := l.Pending(); err != nil || r.Bundle != "a" || string(r.Objects[0].Earlier["k"]) != "secret" {
		t.Error(r, err)
	}
	if err := l.End(); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Pending(); r != nil || err != nil {
		t.Error(r, err)
	}
	if err := os.WriteFile(Path(dir), []byte(`{"version":9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Pending(); !errors.Is(err, statefile.ErrNewer) {
		t.Errorf("a later version: %v", err)
	}
}

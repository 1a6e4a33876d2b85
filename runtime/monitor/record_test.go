package monitor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
)

// TestSettle has what becomes of a container whose monitor has died, by its record and what is found of it.
func TestSettle(t *testing.T) {
	for _, test := range []struct {
		name     string
		phase    Phase
		starting bool
		found    found
		want     verdict
	}{
		{"the OCI runtime was not called", Creating, false, found{}, verdict{remove: true}},
		{"created in part", Creating, false, found{exists: true}, verdict{remove: true}},
		{"created, and its process was killed", Creating, false, found{status: statusCreated}, verdict{remove: true}},
		{"created completely", Creating, false, found{exists: true, status: statusCreated}, verdict{phase: Created}},
		{"stopped before it was adopted", Creating, false, found{exists: true, status: statusStopped}, verdict{remove: true}},
		{"created", Created, false, found{exists: true}, verdict{phase: Created}},
		{"created, and exited", Created, false, found{}, verdict{phase: Exited, ended: true}},
		{"not started", Created, true, found{exists: true, status: statusCreated}, verdict{phase: Created}},
		{"started", Created, true, found{exists: true, status: statusRunning}, verdict{phase: Running}},
		{"started, a zombie", Created, true, found{exists: true, status: statusStopped}, verdict{phase: Running}},
		{"the OCI runtime does not answer", Created, true, found{exists: true}, verdict{phase: Created}},
		{"started, and gone", Created, true, found{}, verdict{phase: Exited, ended: true}},
		{"running", Running, true, found{exists: true}, verdict{phase: Running}},
		{"exited while nobody watched", Running, true, found{}, verdict{phase: Exited, ended: true}},
		{"exited, recorded, a zombie", Running, true, found{exists: true, recorded: true}, verdict{phase: Exited}},
		{"exited, recorded", Exited, true, found{recorded: true}, verdict{phase: Exited}},
		{"its exit was recorded before the phase of the creation", Created, true, found{recorded: true}, verdict{phase: Exited}},
	} {
		r := record{Phase: test.phase, Starting: test.starting}
		if got := r.settle(test.found); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestRecords writes and reads records, and reads damaged ones.
func TestRecords(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, recordFile)
	var got record
	if err := readRecord(path, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no record: %v", err)
	}
	want := record{
		Format: Format, Create: Create{ID: "a", Bundle: "/b", Rootfs: []Mount{{Type: "bind", Options: []string{"ro"}}}}, Phase: Running,
		PID: 7, Start: 9, Orphans: true, Cgroup: "/c", Memory: "/m", Unified: true, Starting: true, InputClosed: true,
	}
	for range 2 { // over an existing one
		if err := writeRecord(path, want); err != nil {
			t.Fatal(err)
		}
	}
	if err := readRecord(path, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("files: %v, want one", entries)
	}
	if err := writeRecord(filepath.Join(dir, "missing", "x"), want); err == nil {
		t.Error("wrote a record without directory")
	}
	large := `"` + strings.Repeat("x", maxRecord) + `"`
	for name, text := range map[string]string{"empty": "", "part": `{"format":1,"cre`, "large": large} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readRecord(path, &got); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error with the path", name, err)
		}
	}
	if err := errors.Join(readable(Format), readable(Format-1)); err != nil {
		t.Error(err)
	}
	if err := readable(Format + 1); err == nil {
		t.Error("a record of a later format is read")
	}
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "7", "a.b_c-D", strings.Repeat("f", maxName)} {
		if err := checkName("x", good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "-a", "a\n", "a b", strings.Repeat("f", maxName+1)} {
		if err := checkName("x", bad); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestCheckCreate rejects containers that would be created elsewhere than they are looked for.
func TestCheckCreate(t *testing.T) {
	good := func() Create {
		return Create{ID: "a", Bundle: "/b/a", Runtime: Runtime{Binary: "runc", Root: "/r"}, Output: "podstead-log:///l"}
	}
	r := good()
	if err := r.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Create){
		"ID":       func(r *Create) { r.ID = "../a" },
		"sandbox":  func(r *Create) { r.Sandbox = "a/b" },
		"bundle":   func(r *Create) { r.Bundle = "b" },
		"root":     func(r *Create) { r.Runtime.Root = "/r/../x" },
		"/":        func(r *Create) { r.Bundle = "/" },
		"binary":   func(r *Create) { r.Runtime.Binary = "" },
		"output":   func(r *Create) { r.Output = "file:///x" },
		"terminal": func(r *Create) { r.Terminal, r.Output = true, "" },
	} {
		r := good()
		change(&r)
		if err := r.check(); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

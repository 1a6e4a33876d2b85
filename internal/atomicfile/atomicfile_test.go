package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var writers = map[string]func(string, []byte, fs.FileMode) error{"durable": Write, "ordered": WriteOrdered, "volatile": WriteVolatile}

func TestWrite(t *testing.T) {
	for name, write := range writers {
		t.Run(name, func(t *testing.T) { testWrite(t, write) })
	}
}

func testWrite(t *testing.T, write func(string, []byte, fs.FileMode) error) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, content := range []string{"first", "second, and longer", ""} {
		if err := write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("after writing %q the file contains %q, %v", content, got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v; want 0600", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the directory contains %v, want the file alone", entries)
	}
}

func TestFailedWriteKeepsOldContent(t *testing.T) {
	for name, write := range writers {
		t.Run(name, func(t *testing.T) { testWriteFailure(t, write) })
	}
}

func testWriteFailure(t *testing.T, write func(string, []byte, fs.FileMode) error) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken") // a directory cannot be replaced by a file
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := write(path, []byte("x"), 0o600); err == nil {
		t.Error("replacing a directory succeeded")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the directory contains %v, want no temporary file", entries)
	}
	if err := write(filepath.Join(dir, "absent", "file"), nil, 0o600); err == nil {
		t.Error("writing to a missing directory succeeded")
	}
	for _, file := range []string{path, filepath.Join(dir, "absent", "file")} {
		err := write(file, nil, 0o600)
		if err == nil || strings.Contains(err.Error(), prefix) || !strings.HasPrefix(err.Error(), "write "+file+": ") {
			t.Errorf("%v, want an error that names %s and no temporary file", err, file)
		}
	}
}

func TestRemoveAndSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, name := range []string{"file", prefix + "1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 || entries[0].Name() != "file" {
		t.Errorf("after Sweep the directory contains %v, want the file alone", entries)
	}
	for range 2 { // the second time it does not exist
		if err := Remove(path); err != nil {
			t.Error(err)
		}
	}
	if err := Sweep(filepath.Join(dir, "absent")); err == nil {
		t.Error("sweeping a missing directory succeeded")
	}
}

func TestSweepOf(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "network.json")
	for _, name := range []string{"network.json", prefix + "network.json-1", prefix + "network.json-22", prefix + "other.json-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := SweepOf(path); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 || entries[0].Name() != prefix+"other.json-1" || entries[1].Name() != "network.json" {
		t.Errorf("after SweepOf the directory contains %v, want the file and what is another's", entries)
	}
	if err := SweepOf(filepath.Join(dir, "absent", "file")); err != nil {
		t.Error(err)
	}
}

func TestSweepRemovesLeftoversOfWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	crash := func(f *os.File) error {
		if err := os.WriteFile(f.Name()+"7", nil, 0o600); err != nil { // as left by a killed write
			t.Fatal(err)
		}
		return nil
	}
	if err := write(path, nil, 0o600, crash); err != nil {
		t.Fatal(err)
	}
	if err := SweepOf(path); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("the directory contains %v, want the file alone", entries)
	}
}

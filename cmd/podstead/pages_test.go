package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPagesOfHints: a hint names the page that is installed, or its address. Each page that the program names exists.
func TestPagesOfHints(t *testing.T) {
	root := t.TempDir()
	installed := "/usr/share/doc/podstead/docs/howto/run-a-pod.md"
	if err := os.MkdirAll(filepath.Dir(root+installed), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+installed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{err: &out, hostRoot: root}
	a.note("see docs/howto/run-a-pod.md and docs/reference/api.md")
	want := "podstead: see " + installed + " and https://github.com/podstead/podstead/blob/main/docs/reference/api.md\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range page.FindAllString(string(source), -1) {
			found++
			if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if found < 5 {
		t.Errorf("%d pages in the sources", found)
	}
}

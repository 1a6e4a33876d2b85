package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBadFiles gives every bad file of package spec to the command line: it says file and line, and has status 2.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("../../spec/testdata/bad/*.toml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d bad files, %v; want at least 20", len(files), err)
	}
	place := regexp.MustCompile(`(?m)^[^:\n]+\.toml:(\d+):`)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(file, ".toml") + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"validate", "run"} {
				var out, errors bytes.Buffer
				a := &app{in: strings.NewReader(""), out: &out, err: &errors}
				if status := a.run(t.Context(), []string{command, file}); status != statusUsage {
					t.Errorf("%s: status %d, want %d; stderr:\n%s", command, status, statusUsage, errors.String())
				}
				line := place.FindStringSubmatch(errors.String())
				if line == nil {
					t.Fatalf("%s names no line:\n%s", command, errors.String())
				}
				if !regexp.MustCompile(`(?m)^(\S*:)?` + line[1] + `:`).Match(want) {
					t.Errorf("%s names line %s, the golden file says\n%s", command, line[1], want)
				}
			}
		})
	}
}

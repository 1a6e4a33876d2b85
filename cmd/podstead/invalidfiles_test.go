package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestInvalidFiles passes every invalid file of package spec to validate and run. Both print file and line, and exit with code 2.
func TestInvalidFiles(t *testing.T) {
	files, err := filepath.Glob("../../spec/testdata/bad/*.toml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d invalid files, %v; want at least 20", len(files), err)
	}
	location := regexp.MustCompile(`(?m)^[^:\n]+\.toml:(\d+):`)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(file, ".toml") + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"validate", "run"} {
				var stdout, stderr bytes.Buffer
				a := &app{in: strings.NewReader(""), out: &stdout, err: &stderr}
				if code := a.run(t.Context(), []string{command, file}); code != statusUsage {
					t.Errorf("%s: exit code %d, want %d; stderr:\n%s", command, code, statusUsage, stderr.String())
				}
				line := location.FindStringSubmatch(stderr.String())
				if line == nil {
					t.Fatalf("%s: no line in\n%s", command, stderr.String())
				}
				if !regexp.MustCompile(`(?m)^(\S*:)?` + line[1] + `:`).Match(want) {
					t.Errorf("%s: line %s, want a line of\n%s", command, line[1], want)
				}
			}
		})
	}
}

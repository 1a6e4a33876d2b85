package spec

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata/bad")

// TestBadFiles compares the problems of invalid files with the golden files.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d bad files: %v", len(files), err)
	}
	manifests, err := filepath.Glob("testdata/bad/*.[yj]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, manifests...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pod, problems := Parse(filepath.Base(file), data)
			if pod != nil || len(problems.Errors()) == 0 {
				t.Fatalf("the file was accepted: %v", problems)
			}
			got := report(problems)
			golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("problems differ from %s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

// TestGoodFiles checks that valid files with all fields have no problems.
func TestGoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d good files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pod, problems := parse(file, data, Options{})
			if pod == nil || len(problems) > 0 {
				t.Errorf("problems in a valid file:\n%v", problems)
			}
		})
	}
}

// report formats problems as the command line does.
func report(problems Problems) string {
	var b strings.Builder
	for _, p := range problems {
		if p.Warning {
			b.WriteString("warning: ")
		}
		b.WriteString(p.String() + "\n")
		if p.Hint != "" {
			b.WriteString("hint: " + p.Hint + "\n")
		}
	}
	return b.String()
}

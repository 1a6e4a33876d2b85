package converter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/spec"
)

// FuzzConvert converts Compose files: there is no panic, and the pods of a project without errors are valid.
func FuzzConvert(f *testing.F) {
	paths, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no test data: %v", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if filepath.Base(file.Name) == "compose.yaml" {
				f.Add(file.Data)
			}
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, "compose.yaml"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		compose.IsCompose(data)
		q := request(dir)
		q.AllowLoss = true
		r := Convert(t.Context(), q)
		if (r.Manifest == nil) != (len(r.Problems.Errors()) > 0) {
			t.Fatalf("a manifest of %d bytes, and problems: %v", len(r.Manifest), r.Problems)
		}
		if r.Manifest == nil {
			return
		}
		if _, problems := (spec.Options{AllowLoss: true}).ParseParts("compose.json", r.Manifest); len(problems.Errors()) > 0 {
			t.Fatalf("the pods are invalid: %v", problems)
		}
	})
}

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/config"
)

func TestStateVersions(t *testing.T) {
	c := &config.Config{StateDir: t.TempDir(), RunDir: t.TempDir()}
	if r := stateVersions(c); r.grade != OK {
		t.Errorf("without files: %+v", r)
	}
	dir := filepath.Join(c.StateDir, "pods")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxFiles + 2 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("web%d.json", i)), []byte(`{"version":2}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := stateVersions(c)
	for _, part := range []string{"/pods/web0.json, ", " and 2 more: written by a later version: the file has version 2, at most 1 is supported"} {
		if r.grade != Warn || !strings.Contains(r.detail, part) {
			t.Errorf("%q is not in %+v", part, r)
		}
	}
}

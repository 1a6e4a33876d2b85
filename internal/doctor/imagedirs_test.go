package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestImageDirsResult(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.tar")
	if err := os.WriteFile(bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := map[string]string{bad: "truncated", filepath.Join(dir, "gone.tar"): "truncated"}
	if r := imageDirsResult(failed, []string{dir}); r.grade != Warn || r.detail != bad+": truncated" ||
		r.hint != "replace or remove the archives" {
		t.Errorf("with a bad archive: %+v", r)
	}
	delete(failed, bad)
	if r := imageDirsResult(failed, []string{dir, "/usr/share"}); r.grade == Warn || r.detail != dir+", /usr/share" {
		t.Errorf("with one that was removed: %+v", r)
	}
}

package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImageList reads the lists of images of all versions, and writes them again.
func TestImageList(t *testing.T) {
	files, err := filepath.Glob("../../test/formats/testdata/images/v*/images.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, file := range files {
		list, err := readImageList(file)
		if err != nil || len(list) != 1 || !strings.HasSuffix(list[0].Name, "/localhost/podstead/busybox:1") ||
			list[0].Target.Digest.Validate() != nil || list[0].Target.Size == 0 {
			t.Errorf("%s: images %+v, %v", file, list, err)
		}
		path := filepath.Join(t.TempDir(), "images.json")
		if err := writeImageList(path, list); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(written), `{"version":1,`) {
			t.Errorf("written: %s, %v", written, err)
		}
		again, err := readImageList(path)
		if diff := cmp.Diff(list, again); diff != "" || err != nil {
			t.Errorf("%s (-read +read again, %v):\n%s", file, err, diff)
		}
	}
	later := filepath.Join(t.TempDir(), "images.json")
	if err := os.WriteFile(later, []byte(`{"version":9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readImageList(later); err == nil {
		t.Error("no error for a later version")
	}
}

func readImageList(path string) ([]listedImage, error) {
	var l imageList
	_, err := ImageListFormat.Read(path, &l)
	return l.Images, err
}

package daemon

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLifeFile reads the file of a running daemon of all versions.
func TestLifeFile(t *testing.T) {
	files, err := filepath.Glob("../../test/formats/testdata/life/v*/daemon.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var l life
		if unknown, err := LifeFormat.Decode(text, &l); err != nil || l.PID == 0 || len(l.Boot) != 36 || l.Started == 0 {
			t.Errorf("%s: %+v, %v, %v", file, l, unknown, err)
		}
	}
}

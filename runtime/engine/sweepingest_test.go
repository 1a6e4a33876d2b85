package engine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/plugins/content/local"
	digest "github.com/opencontainers/go-digest"
)

// TestSweepIngests empties or removes the files that a power failure does not keep.
func TestSweepIngests(t *testing.T) {
	root := t.TempDir()
	if err := sweepIngests(t.Context(), root); err != nil {
		t.Errorf("sweep without content: %v", err)
	}
	store, err := local.NewStore(filepath.Join(root, contentDir))
	if err != nil {
		t.Fatal(err)
	}
	dir := func(ref string) string {
		return filepath.Join(root, contentDir, "ingest", digest.FromString(ref).Encoded())
	}
	for _, ref := range []string{"whole", "ref", "startedat", "updatedat", "data", "other", "noref"} {
		w, err := store.Writer(t.Context(), content.WithRef(ref))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("partial")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		switch ref {
		case "ref", "startedat", "updatedat":
			err = os.Truncate(filepath.Join(dir(ref), ref), 0)
		case "data":
			err = os.Remove(filepath.Join(dir(ref), "data"))
		case "noref":
			err = os.Remove(filepath.Join(dir(ref), "ref"))
		case "other":
			err = os.WriteFile(filepath.Join(dir(ref), "ref"), []byte("whole"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := sweepIngests(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(root, contentDir, "ingest", "*"))
	if want := []string{dir("whole")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v, want %v", left, err, want)
	}
	if status, err := store.Status(t.Context(), "whole"); err != nil || status.Offset != int64(len("partial")) {
		t.Errorf("status of what can be resumed: %+v, %v", status, err)
	}
}

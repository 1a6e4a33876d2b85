package files

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/filecopy"
)

// TestMaxCopies checks that a copy beyond the limit fails at once, with an error that says that it can be repeated.
func TestMaxCopies(t *testing.T) {
	s, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if !s.copies.TryAcquire(maxCopies) { // the copies in progress
		t.Fatalf("less than %d copies at a time", maxCopies)
	}
	_, stat := s.Stat(t.Context(), "uid", "c", "/x")
	_, read := s.Read(t.Context(), "uid", "c", "/x", io.Discard)
	for method, err := range map[string]error{"stat": stat, "read": read} {
		e, ok := errors.AsType[*filecopy.Error](err)
		if !ok || e.Kind != filecopy.Busy || !strings.Contains(e.Error(), "8 copies are in progress") {
			t.Errorf("%s: got %v", method, err)
		}
	}
	if s.copies.TryAcquire(1) {
		t.Error("a copy that was refused has made room")
	}
}

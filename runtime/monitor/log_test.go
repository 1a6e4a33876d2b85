package monitor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestLogIsBounded writes far more than the log may have. The newest lines stay.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), LogFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stderr := os.Stderr
	os.Stderr = f
	defer func() { os.Stderr = stderr }()
	line := bytes.Repeat([]byte("x"), 1000)
	for i := range 5 * maxLog / len(line) {
		logf("%s %d", line, i)
	}
	logf("last")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > maxLog+2*len(line) {
		t.Errorf("the log has %d bytes", len(text))
	}
	want := fmt.Appendf(nil, " %d\n%s: last\n", 5*maxLog/len(line)-1, Name)
	if !bytes.HasSuffix(text, want) || len(text) < maxLog/4 {
		t.Errorf("the log has %d bytes, and ends with %q; want %q", len(text), text[len(text)-min(len(text), 100):], want)
	}
}

package ondemand_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
)

// TestLogIsRotated writes more than a daemon's log may have while the daemon runs. Only the end stays, without a gap, and a panic would be
// in it.
func TestLogIsRotated(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "daemon.log")
	stderr, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	log := ondemand.NewLog(path, stderr, int(stderr.Fd()))
	const lines = 50_000
	for n := range lines {
		if _, err := fmt.Fprintf(log, "line %d %s\n", n, strings.Repeat("x", 90)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stderr.WriteString("panic: a bug\n"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, name := range []string{"daemon.old.log", "daemon.log"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 1<<20+200 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		all = append(all, text...)
	}
	var first int
	if _, err := fmt.Sscanf(string(all), "line %d", &first); err != nil || first == 0 {
		t.Errorf("the first line is %d, %v", first, err)
	}
	if n := bytes.Count(all, []byte("line ")); n != lines-first {
		t.Errorf("%d lines from line %d on, want %d", n, first, lines-first)
	}
	if !bytes.HasSuffix(all, []byte("\npanic: a bug\n")) || len(entries) != 2 {
		t.Errorf("%d files, the end is %q", len(entries), all[len(all)-50:])
	}
}

// TestOtherLogIsNotRotated: a daemon whose standard error is another file, such as /dev/null or that of a service, does not rotate it.
func TestOtherLogIsNotRotated(t *testing.T) {
	dir := t.TempDir()
	stderr, err := os.Create(filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	log := ondemand.NewLog(filepath.Join(dir, "daemon.log"), stderr, int(stderr.Fd()))
	for range 3 {
		if _, err := log.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := stderr.Stat(); err != nil || st.Size() != 3<<20 {
		t.Errorf("%v, %v", st, err)
	}
}

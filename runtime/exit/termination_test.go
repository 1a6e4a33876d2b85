package exit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app", "1")
	var r messageReader
	if text, err := r.Read(t.Context(), path); text != "" || err != nil {
		t.Errorf("missing file: %q, %v", text, err)
	}
	if err := CreateMessage(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("created file: %v, %v", info, err)
	}
	for _, test := range []struct {
		name, text, want string
	}{
		{"empty", "", ""},
		{"short", "disk is full\n", "disk is full\n"},
		{"long", strings.Repeat("a", 5000) + "end", strings.Repeat("a", 4093) + "end"},
		{"invalid UTF-8", "a\xffb", "a\uFFFDb"},
		{"longer after invalid UTF-8 is replaced", "\xff" + strings.Repeat("aé", 1365), "\uFFFD" + strings.Repeat("aé", 1364) + "a"},
	} {
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Read(t.Context(), path); got != test.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", test.name, got, err, test.want)
		}
	}
	if err := CreateMessage(path); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(t.Context(), path); got == "" || err != nil {
		t.Errorf("created twice: %q, %v; want the existing message", got, err)
	}
	// A container can extend the file to any size.
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(t.Context(), path); len(got) != maxMessage || err != nil {
		t.Errorf("file of 1 TiB: %d bytes, %v", len(got), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", path); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(t.Context(), path); got != "" || err == nil {
		t.Errorf("symbolic link: %q, %v", got, err)
	}
	if err := CreateMessage(path); err == nil {
		t.Error("a symbolic link was accepted")
	}
	if err := unix.Unlink(path); err != nil {
		t.Fatal(err)
	}
}

// TestHeldFile: a lease delays neither the creation nor the reader.
func TestHeldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1")
	if err := CreateMessage(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	if err := CreateMessage(path); err != nil {
		t.Error(err)
	}
	var r messageReader
	if _, err := r.Read(t.Context(), path); !errors.Is(err, guard.ErrHeld) {
		t.Errorf("held file: %v", err)
	}
}

func TestFromLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	if text, err := messageFromLog(t.Context(), path); text != "" || err != nil {
		t.Errorf("missing log: %q, %v", text, err)
	}
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, "2026-01-02T03:04:05.000000000Z stderr F line %d\n", i)
	}
	log.WriteString("2026-01-02T03:04:05.000000000Z stdout P half \n2026-01-02T03:04:05.000000000Z stdout F and half\n")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := messageFromLog(t.Context(), path)
	if err != nil || !strings.HasPrefix(got, "line 21\nline 22\n") || !strings.HasSuffix(got, "line 99\nhalf and half\n") {
		t.Errorf("%q, %v, want the last 80 lines", got, err)
	}
	if err := os.WriteFile(path, []byte("2026-01-02T03:04:05.000000000Z stdout P DONE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = messageFromLog(t.Context(), path); err != nil || got != "DONE" {
		t.Errorf("%q, %v, want the line without a newline", got, err)
	}
	long := "2026-01-02T03:04:05.000000000Z stdout F " + strings.Repeat("x", 9000) + "end\n"
	if err := os.WriteFile(path, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err = messageFromLog(t.Context(), path)
	if err != nil || len(got) != maxLogBytes || !strings.HasSuffix(got, "xend\n") {
		t.Errorf("%d bytes %q, %v, want the last 2048", len(got), got, err)
	}
}

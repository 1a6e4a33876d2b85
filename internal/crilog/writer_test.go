package crilog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// open returns the writer of a log with a stopped clock.
func open(t testing.TB, path string, o Options) *writer {
	t.Helper()
	w := newWriter(path, o)
	w.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("elsewhere", 3600)) }
	t.Cleanup(func() {
		w.stopCompression()
		if w.limit != nil {
			w.limit.cancel(w.now())
		}
		_ = w.closeFile()
	})
	return w
}

// copyAll writes all output of a stream, as a [Feed] writes the last chunk.
func copyAll(w *writer, s Stream, out string) {
	b := batch{stream: s}
	w.append(&b, []byte(out), true)
	w.flush(&b)
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWriterFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod/app/0.log")
	w := open(t, path, Options{})
	copyAll(w, Stdout, "one\n\ntwo\n")
	copyAll(w, Stderr, "no end")
	copyAll(w, Stdout, strings.Repeat("a", maxPart)+"bc\n")
	want := "2026-01-02T02:04:05.000000000Z stdout F one\n" +
		"2026-01-02T02:04:05.000000000Z stdout F \n" +
		"2026-01-02T02:04:05.000000000Z stdout F two\n" +
		"2026-01-02T02:04:05.000000000Z stderr P no end\n" +
		"2026-01-02T02:04:05.000000000Z stdout P " + strings.Repeat("a", maxPart) + "\n" +
		"2026-01-02T02:04:05.000000000Z stdout F bc\n"
	if diff := cmp.Diff(want, content(t, path)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestOwnLineAfterUnendedLine checks that a line of podstead is not joined with what the container wrote last.
func TestOwnLineAfterUnendedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	w := open(t, path, Options{Rate: Rate{Lines: 1}})
	copyAll(w, Stderr, "no end")
	copyAll(w, Stdout, "dropped\n")
	w.limit.notice(w.limit.cancel(w.now()))
	got := texts(t, path, ReadOptions{})
	if len(got) != 2 || got[0] != "no end" || !strings.HasPrefix(got[1], "podstead: 1 lines dropped") {
		t.Errorf("lines %q", got)
	}
}

func TestWriterAppendsAfterTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, []byte("2026-01-02T02:04:04.000000000Z stdout F whole\n2026-01-02T02:04:04.0000"), 0o600); err != nil {
		t.Fatal(err)
	}
	copyAll(open(t, path, Options{}), Stdout, "next\n")
	if diff := cmp.Diff([]string{"whole", "next"}, texts(t, path, ReadOptions{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWriterRotates(t *testing.T) {
	tests := []struct {
		keep  int
		files []string // the last line of each file, the newest first
	}{
		{1, []string{"line 29"}},
		{3, []string{"line 29", "line 27", "line 24"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("keep %d", tt.keep), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "0.log")
			w := open(t, path, Options{MaxBytes: 190, Keep: tt.keep})
			for i := range 30 {
				copyAll(w, Stdout, fmt.Sprintf("line %d\n", i))
			}
			var got []string
			for i := range tt.keep {
				text := content(t, rotated(path, i))
				if len(text) > 190 {
					t.Errorf("file %d has %d bytes", i, len(text))
				}
				got = append(got, text[strings.LastIndex(text, "line"):len(text)-1])
			}
			if diff := cmp.Diff(tt.files, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if names, _ := filepath.Glob(dir + "/*"); len(names) != tt.keep {
				t.Errorf("files: %v", names)
			}
		})
	}
}

// A log that cannot be written does not block the container, and reports later what is missing.
func TestWriterDropsUnwritableLines(t *testing.T) {
	tests := []struct {
		name, cause string
		// spoil is called before each output.
		spoil  func(t *testing.T, w *writer)
		repair func(t *testing.T, w *writer)
	}{
		{
			name: "disk full", cause: "no space left on device",
			spoil: func(t *testing.T, w *writer) {
				full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				if w.file != nil {
					_ = w.file.Close()
				}
				w.file = full
			},
			repair: func(*testing.T, *writer) {},
		},
		{
			name: "no directory", cause: "not a directory",
			spoil: func(t *testing.T, w *writer) {
				_ = w.closeFile()
				if err := os.RemoveAll(filepath.Dir(w.path)); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Dir(w.path), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			repair: func(t *testing.T, w *writer) { remove(t, filepath.Dir(w.path)) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app/0.log")
			w := open(t, path, Options{})
			tt.spoil(t, w)
			copyAll(w, Stdout, "lost 1\nlost 2\n")
			tt.spoil(t, w)
			copyAll(w, Stderr, "lost 3\n")
			tt.repair(t, w)
			copyAll(w, Stdout, "kept\n")
			copyAll(w, Stdout, "kept too\n")
			got := texts(t, path, ReadOptions{})
			if len(got) != 3 || got[1] != "kept" || got[2] != "kept too" {
				t.Fatalf("log: %q", got)
			}
			for _, want := range []string{"3 lines (141 bytes)", "since 2026-01-02T02:04:05.000000000Z", "are lost: " + tt.cause} {
				if !strings.Contains(got[0], want) {
					t.Errorf("notice %q does not contain %q", got[0], want)
				}
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{16, 128, 4096, 100 << 10} {
		b.Run(fmt.Sprintf("line of %d", size), func(b *testing.B) {
			w := open(b, filepath.Join(b.TempDir(), "0.log"), Options{})
			line := strings.Repeat("x", size-1) + "\n"
			out := strings.Repeat(line, 1<<20/size)
			b.SetBytes(int64(len(out)))
			b.ReportAllocs()
			for b.Loop() {
				copyAll(w, Stdout, out)
			}
		})
	}
}

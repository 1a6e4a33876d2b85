package crilog

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFollowerSkipsAndCounts checks a reader that is slower than the rotation: it gets each line of the files that it can read, in order,
// and the exact number of lines that it missed. The same holds while files are compressed.
func TestFollowerSkipsAndCounts(t *testing.T) {
	for _, compress := range []bool{false, true} {
		t.Run(fmt.Sprintf("compress %v", compress), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "0.log")
			w := open(t, path, Options{MaxBytes: 2000, Keep: 3, Compress: compress})
			written := 0
			more := func(n int) {
				for range n {
					copyAll(w, Stdout, fmt.Sprintf("line %d\n", written))
					written++
				}
			}
			more(10)
			until := make(chan struct{})
			next, skipped, skips, bytes := 0, 0, 0, int64(0)
			for e, err := range Read(t.Context(), path, ReadOptions{Until: until}) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Skipped != nil {
					skips++
					skipped += int(e.Skipped.Lines)
					bytes += e.Skipped.Bytes
					next += int(e.Skipped.Lines)
					continue
				}
				if got := string(e.Text); got != "line "+strconv.Itoa(next) || e.Number != int64(next+1) {
					t.Fatalf("got %q with number %d, want line %d", got, e.Number, next)
				}
				if next++; next == 5 || next%700 == 0 {
					more(500) // many rotations while the reader does nothing
				}
				if next == written && !closed(until) {
					if written < 3000 {
						more(1)
						continue
					}
					close(until)
				}
			}
			if next != written {
				t.Errorf("the reader reached line %d of %d", next, written)
			}
			if skips < 2 || skipped < 500 || bytes < int64(skipped)*40 || bytes > int64(skipped)*80 {
				t.Errorf("%d skips of %d lines and %d bytes", skips, skipped, bytes)
			}
		})
	}
}

// TestSkipAfterUnnumberedFiles checks the log of a shim of an earlier version, whose files have no tags: a gap has an unknown size.
func TestSkipAfterUnnumberedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	file := func(name, text string) {
		if err := os.WriteFile(name, []byte("2026-01-01T00:00:00Z stdout F "+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file(path, "one")
	until := make(chan struct{})
	var got []string
	for e, err := range Read(t.Context(), path, ReadOptions{Until: until}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Skipped != nil {
			got = append(got, strconv.FormatInt(e.Skipped.Lines, 10))
			continue
		}
		if got = append(got, string(e.Text)); len(got) == 1 {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			file(rotated(path, 1), "three")
			file(path, "four")
			close(until)
		}
	}
	if diff := cmp.Diff([]string{"one", "-1", "three", "four"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNumbersContinue checks that the numbers of lines continue after a writer has opened the log again.
func TestNumbersContinue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	for i := range 20 {
		w := open(t, path, Options{MaxBytes: 500, Keep: 2})
		copyAll(w, Stdout, fmt.Sprintf("line %d\n%s\n", 2*i, strings.Repeat("x", i)))
		if err := w.closeFile(); err != nil {
			t.Fatal(err)
		}
	}
	var last Entry
	for e, err := range Read(t.Context(), path, ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	if last.Number != 40 || !last.Numbered {
		t.Errorf("number of the last line: %d (%v), want 40", last.Number, last.Numbered)
	}
}

// TestCountLongLines checks that the writer counts a line of several MiB as the reader yields it, and both streams.
func TestCountLongLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	w := open(t, path, Options{MaxBytes: 64 << 20})
	copyAll(w, Stdout, strings.Repeat("x", 2*maxLine+5)+"\n"+strings.Repeat("y", maxLine)+"\n")
	copyAll(w, Stderr, "short\nno end")
	n := len(texts(t, path, ReadOptions{Complete: true}))
	if w.total.Lines != int64(n) {
		t.Errorf("written %d lines, read %d", w.total.Lines, n)
	}
	st, err := os.Stat(path)
	if err != nil || w.total.Bytes != st.Size() {
		t.Errorf("written %d bytes, the file has %d (%v)", w.total.Bytes, st.Size(), err)
	}
	again := open(t, path, Options{})
	if err := again.open(); err != nil {
		t.Fatal(err)
	}
	if again.total != w.total {
		t.Errorf("counted %+v, want %+v", again.total, w.total)
	}
}

func TestRateLimit(t *testing.T) {
	tests := []struct {
		name string
		rate Rate
		size int // of a line
		want int // lines of the first second
	}{
		{"lines", Rate{Lines: 100}, 10, 100},
		{"bytes", Rate{Bytes: 1000}, 10, 100},
		{"a line larger than the bucket", Rate{Bytes: 1000}, 5000, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "0.log")
			w := open(t, path, Options{Rate: tt.rate})
			now := w.now()
			w.now = func() time.Time { return now }
			line := strings.Repeat("x", tt.size-1) + "\n"
			copyAll(w, Stdout, strings.Repeat(line, 1000))
			if got := len(texts(t, path, ReadOptions{})); got != tt.want {
				t.Errorf("%d lines in the first second, want %d", got, tt.want)
			}
			now = now.Add(6 * time.Second)
			copyAll(w, Stderr, line)
			w.limit.notice(w.limit.cancel(now))
			lines := texts(t, path, ReadOptions{})
			want := fmt.Sprintf("podstead: %d lines dropped in 6s (rate limit %v)", 1000-tt.want, tt.rate)
			if len(lines) != tt.want+2 || lines[len(lines)-1] != want {
				t.Errorf("%d lines, the last is %q, want %q", len(lines), lines[len(lines)-1], want)
			}
		})
	}
}

// TestRateLimitEndsLongLine checks that a line whose later parts are dropped is not joined with the next line.
func TestRateLimitEndsLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	w := open(t, path, Options{Rate: Rate{Lines: 2}})
	now := w.now()
	w.now = func() time.Time { return now }
	copyAll(w, Stdout, strings.Repeat("x", 4*maxPart)+"\n")
	now = now.Add(time.Minute)
	copyAll(w, Stdout, "next\n")
	lines := texts(t, path, ReadOptions{})
	if len(lines) < 2 || len(lines[0]) != 2*maxPart || lines[1] != "next" {
		t.Errorf("%d lines", len(lines))
	}
}

func TestCompress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path+compressedExt, []byte("left by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, path, Options{MaxBytes: 64 << 10, Keep: 4, Compress: true})
	var want []string
	for i := range 4000 {
		line := fmt.Sprintf("line %d of a log that can be compressed", i)
		want = append(want, line)
		copyAll(w, Stdout, line+"\n")
	}
	compressed := func() (n int) {
		for i := 1; i < 4; i++ {
			if strings.HasPrefix(content(t, rotated(path, i)), string(gzipMagic)) {
				n++
			}
		}
		return n
	}
	w.mu.Lock()
	c := w.compression
	w.mu.Unlock()
	if c != nil {
		<-c.done
	}
	// The last rotation may have been while the compression finished.
	if done, err := w.compressOne(make(chan struct{})); err != nil || compressed() < 3 {
		t.Fatalf("%d files are compressed, want 3 (done %v, %v)", compressed(), done, err)
	}
	got := texts(t, path, ReadOptions{})
	if diff := cmp.Diff(want[len(want)-len(got):], got); diff != "" || len(got) < 1500 {
		t.Errorf("%d lines (-want +got)\n%s", len(got), diff)
	}
	if diff := cmp.Diff(want[len(want)-1500:], texts(t, path, ReadOptions{Tail: 1500})); diff != "" {
		t.Errorf("tail (-want +got)\n%s", diff)
	}
	// A damaged file ends where it is damaged, the others are read.
	if err := os.Truncate(rotated(path, 2), 500); err != nil {
		t.Fatal(err)
	}
	rest := texts(t, path, ReadOptions{})
	if len(rest) >= len(got) || rest[0] != got[0] || rest[len(rest)-1] != want[len(want)-1] {
		t.Errorf("%d lines of a damaged log, %d before", len(rest), len(got))
	}
	if names, _ := filepath.Glob(path + "*"); len(names) != 4 {
		t.Errorf("files: %v", names)
	}
}

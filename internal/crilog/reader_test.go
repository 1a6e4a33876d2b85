package crilog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// texts returns a log's lines.
func texts(t testing.TB, path string, o ReadOptions) []string {
	t.Helper()
	var got []string
	for e, err := range Read(t.Context(), path, o) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(e.Text))
	}
	return got
}

func TestRead(t *testing.T) {
	const files = "2026-01-01T00:00:00Z stdout F one\n" +
		"2026-01-01T00:00:01Z stdout P tw\n" +
		"2026-01-01T00:00:01Z stderr P thr\n" +
		"2026-01-01T00:00:02Z stdout F o\n" +
		"2026-01-01T00:00:02Z stderr F ee\n" +
		"garbage\n" +
		"2026-01-01T00:00:03Z stdout F four\n" +
		"---\n" +
		"2026-01-01T00:00:04Z stdout F five\n" +
		"2026-01-01T00:00:05Z stdout F six\n" +
		"---\n" +
		"2026-01-01T00:00:06Z stdout F seven\n"
	tests := []struct {
		name string
		opt  ReadOptions
		want []string
	}{
		{"all", ReadOptions{}, []string{"one", "two", "three", "four", "five", "six", "seven"}},
		{"tail within a file", ReadOptions{Tail: 1}, []string{"seven"}},
		{"tail of a whole file", ReadOptions{Tail: 3}, []string{"five", "six", "seven"}},
		{"tail over files", ReadOptions{Tail: 4}, []string{"four", "five", "six", "seven"}},
		{"tail counts lines, not parts", ReadOptions{Tail: 6}, []string{"two", "three", "four", "five", "six", "seven"}},
		{"tail longer than the log", ReadOptions{Tail: 100}, []string{"one", "two", "three", "four", "five", "six", "seven"}},
		{"no existing lines", ReadOptions{Tail: -1}, nil},
	}
	path := filepath.Join(t.TempDir(), "[a]*.log")
	parts := strings.Split(files, "---\n")
	for i, text := range parts {
		if err := os.WriteFile(rotated(path, len(parts)-1-i), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, texts(t, path, tt.opt)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestReadWithoutFile(t *testing.T) {
	if got := texts(t, filepath.Join(t.TempDir(), "none/0.log"), ReadOptions{}); got != nil {
		t.Errorf("got %q", got)
	}
}

func TestReadEndsWithoutNewline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	long := strings.Repeat("x", 2*maxPart)
	w := open(t, path, Options{})
	copyAll(w, Stdout, "one\n"+long)
	copyAll(w, Stderr, "two\nend")
	for tail, want := range map[int][]string{0: {"one", "two", long, "end"}, 1: {"end"}, 2: {"two", "end"}, 3: {"two", long, "end"}} {
		if diff := cmp.Diff(want, texts(t, path, ReadOptions{Tail: tail})); diff != "" {
			t.Errorf("tail %d (-want +got)\n%s", tail, diff)
		}
	}
	for e, err := range Read(t.Context(), path, ReadOptions{}) {
		if want := len(e.Text) != 3 || string(e.Text) == "end"; err != nil || e.Partial != want {
			t.Errorf("%.10q: partial %v, want %v (%v)", e.Text, e.Partial, want, err)
		}
	}
}

// TestReadEnds has a container that writes as fast as its log is read, so that the log is rotated all the time.
func TestReadEnds(t *testing.T) {
	for tail, want := range map[int]string{0: "1 2 3 4 5 6 7 8 9 10", 2: "9 10"} {
		path := filepath.Join(t.TempDir(), "0.log")
		w := open(t, path, Options{MaxBytes: 256, Keep: 50})
		n := 0
		write := func(lines int) {
			for range lines {
				n++
				copyAll(w, Stdout, strconv.Itoa(n)+"\n")
			}
		}
		write(10)
		var got []string
		for e, err := range Read(t.Context(), path, ReadOptions{Tail: tail}) {
			if err != nil || e.Skipped != nil {
				t.Fatalf("tail %d: %+v, %v", tail, e, err)
			}
			if got = append(got, string(e.Text)); n > 200 {
				break
			}
			write(10)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("tail %d: got %s, want %s", tail, text, want)
		}
	}
}

// TestReadComplete checks that an incomplete line at the end is left out, so that as many lines are read as by a reader that waits for
// more.
func TestReadComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	const text = "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:01Z stdout P tw\n2026-01-01T00:00:02Z stderr F three\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "three"}, texts(t, path, ReadOptions{Complete: true})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReadSplitsEndlessLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	w := open(t, path, Options{})
	copyAll(w, Stdout, strings.Repeat("x", 3*maxLine)+"\n")
	var length, n int
	for e, err := range Read(t.Context(), path, ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		length, n = length+len(e.Text), n+1
		if len(e.Text) > 2*maxLine {
			t.Errorf("a line of %d bytes", len(e.Text))
		}
	}
	if length != 3*maxLine || n < 2 {
		t.Errorf("got %d bytes in %d lines", length, n)
	}
}

// A follower reads each line once and in order, while two writers cause frequent rotation.
func TestFollowOverRotation(t *testing.T) {
	const lines = 20000
	path := filepath.Join(t.TempDir(), "later/0.log")
	until := make(chan struct{})
	read := make(chan map[Stream]int, 1)
	started := make(chan struct{}, 1)
	go func() {
		next := map[Stream]int{}
		for e, err := range Read(t.Context(), path, ReadOptions{Until: until}) {
			if err != nil {
				t.Error(err)
				break
			}
			select {
			case started <- struct{}{}:
			default:
			}
			if want := fmt.Sprintf("line %d", next[e.Stream]); string(e.Text) != want {
				t.Errorf("%s: got %q, want %q", e.Stream, e.Text, want)
				break
			}
			next[e.Stream]++
		}
		read <- next
	}()
	// Keep enough files, because a reader may lose files that are removed.
	w := open(t, path, Options{MaxBytes: 20000, Keep: 1000})
	copyAll(w, Stdout, "line 0\n")
	select {
	case <-started:
	case <-time.After(time.Minute):
		t.Fatal("the follower read nothing")
	}
	var wg sync.WaitGroup
	for s, first := range map[Stream]int{Stdout: 1, Stderr: 0} {
		wg.Go(func() {
			for i := first; i < lines; i++ {
				copyAll(w, s, fmt.Sprintf("line %d\n", i))
			}
		})
	}
	wg.Wait()
	close(until)
	if diff := cmp.Diff(map[Stream]int{Stdout: lines, Stderr: lines}, <-read); diff != "" {
		t.Errorf("lines (-want +got)\n%s", diff)
	}
}

func TestSlowFollowerLosesOnlyRemovedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	w := open(t, path, Options{MaxBytes: 1000, Keep: 2})
	copyAll(w, Stdout, "first\n")
	until := make(chan struct{})
	var got []string
	for e, err := range Read(t.Context(), path, ReadOptions{Until: until}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, string(e.Text)); len(got) == 1 {
			for i := range 1000 {
				copyAll(w, Stdout, fmt.Sprintf("line %d\n", i))
			}
			close(until)
		}
	}
	if len(got) < 10 || got[len(got)-1] != "line 999" {
		t.Errorf("got %q", got)
	}
}

// The writer truncates a line that it could write only partially.
func TestFollowOverTruncation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	const whole, torn = "2026-01-01T00:00:00Z stdout F whole\n", "2026-01-01T00:00:00Z stdout F to"
	if err := os.WriteFile(path, []byte(whole+torn), 0o600); err != nil {
		t.Fatal(err)
	}
	until := make(chan struct{})
	var got []string
	for e, err := range Read(t.Context(), path, ReadOptions{Until: until}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, string(e.Text)); len(got) == 1 {
			if err := os.Truncate(path, int64(len(whole))); err != nil {
				t.Fatal(err)
			}
			copyAll(open(t, path, Options{}), Stdout, "the next, which is longer\n")
			close(until)
		}
	}
	if diff := cmp.Diff([]string{"whole", "the next, which is longer"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFollowEndsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	copyAll(open(t, path, Options{}), Stdout, "one\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range Read(ctx, path, ReadOptions{Until: make(chan struct{})}) {
		last = err
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("got %v", last)
	}
}

func BenchmarkRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "0.log")
	copyAll(open(b, path, Options{}), Stdout, strings.Repeat(strings.Repeat("x", 99)+"\n", 50000))
	for name, o := range map[string]ReadOptions{"all": {}, "tail of 10": {Tail: 10}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(content(b, path))))
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range Read(b.Context(), path, o) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

package crilog

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	tests := []struct {
		name, line string
		want       Entry
		bad        bool
	}{
		{
			name: "full", line: "2026-01-02T03:04:05.000000678Z stdout F hello",
			want: Entry{Time: at, Stream: Stdout, Partial: false, Text: []byte("hello")},
		},
		{
			name: "partial", line: "2026-01-02T03:04:05.000000678Z stderr P he",
			want: Entry{Time: at, Stream: Stderr, Partial: true, Text: []byte("he")},
		},
		{
			name: "leading and trailing spaces", line: "2026-01-02T03:04:05.000000678Z stdout F  a b ",
			want: Entry{Time: at, Stream: Stdout, Partial: false, Text: []byte(" a b ")},
		},
		{
			name: "empty line", line: "2026-01-02T03:04:05.000000678Z stdout F ",
			want: Entry{Time: at, Stream: Stdout, Partial: false, Text: []byte{}},
		},
		{
			name: "empty line whose last space was trimmed", line: "2026-01-02T03:04:05.000000678Z stdout F",
			want: Entry{Time: at, Stream: Stdout},
		},
		{
			name: "other zone", line: "2026-01-02T05:04:05.000000678+02:00 stdout F x",
			want: Entry{Time: at, Stream: Stdout, Partial: false, Text: []byte("x")},
		},
		{
			name: "more tags", line: "2026-01-02T03:04:05.000000678Z stdout P:new x",
			want: Entry{Time: at, Stream: Stdout, Partial: true, Text: []byte("x")},
		},
		{
			name: "first of a file", line: "2026-01-02T03:04:05.000000678Z stdout F:lines=7:bytes=812 x",
			want: Entry{Time: at, Stream: Stdout, Text: []byte("x"), start: &Count{7, 812}},
		},
		{
			name: "incomplete tags", line: "2026-01-02T03:04:05.000000678Z stdout F:lines=7 x",
			want: Entry{Time: at, Stream: Stdout, Text: []byte("x")},
		},
		{
			name: "negative tags", line: "2026-01-02T03:04:05.000000678Z stdout F:lines=-7:bytes=1 x",
			want: Entry{Time: at, Stream: Stdout, Text: []byte("x")},
		},
		{name: "empty", line: "", bad: true},
		{name: "no tag", line: "2026-01-02T03:04:05Z stdout", bad: true},
		{name: "unknown tag", line: "2026-01-02T03:04:05Z stdout X x", bad: true},
		{name: "unknown stream", line: "2026-01-02T03:04:05Z stdin F x", bad: true},
		{name: "no time", line: "yesterday stdout F x", bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.line))
			if (err != nil) != tt.bad {
				t.Fatalf("error: %v", err)
			}
			if got.Time.Equal(tt.want.Time) {
				got.Time = tt.want.Time
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(Entry{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// FuzzParse tests that no line causes a panic and that parsed entries are written back unchanged.
func FuzzParse(f *testing.F) {
	f.Add([]byte("2026-01-02T03:04:05.000000678Z stdout F hello"))
	f.Add([]byte("2026-01-02T03:04:05Z stderr P:x:y \xff\x00"))
	f.Add([]byte("2026-01-02T03:04:05Z stdout F"))
	f.Add([]byte("  F"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Parse(line)
		if err != nil {
			return
		}
		stamp := e.Time.UTC().AppendFormat(nil, timeFormat)
		again, err := Parse(bytes.TrimSuffix(appendEntry(nil, stamp, e.Stream, e.Partial, e.Text), []byte{'\n'}))
		if err != nil {
			t.Fatalf("%q: written back: %v", line, err)
		}
		if !again.Time.Equal(e.Time) || again.Stream != e.Stream || again.Partial != e.Partial || !bytes.Equal(again.Text, e.Text) {
			t.Fatalf("%q: got %+v, then %+v", line, e, again)
		}
	})
}

// FuzzCopy tests that any output is read back unchanged, however it is split.
func FuzzCopy(f *testing.F) {
	f.Add([]byte("a\nb\n\nno end"), 3)
	f.Add([]byte(strings.Repeat("x", 3*maxPart)+"\n"), 5000)
	f.Add([]byte(strings.Repeat("y", maxPart)+"\n"), maxPart)
	f.Fuzz(func(t *testing.T, out []byte, chunk int) {
		f := openFed(t, Options{})
		path := f.o.Path
		for part := range slices.Chunk(out, max(chunk, 1)) {
			f.put(Stdout, string(part))
		}
		f.finish()
		var got []byte
		for e, err := range Read(t.Context(), path, ReadOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(append(got, e.Text...), '\n')
		}
		want := out
		if len(out) > 0 && out[len(out)-1] != '\n' {
			want = append(bytes.Clone(out), '\n') // EOF terminates the line
		}
		if !bytes.Equal(want, got) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

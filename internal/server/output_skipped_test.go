package server_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/crilog"
)

// TestSlowFollowerIsToldWhatItMissed checks a client that does not read while the log is rotated many times: it gets each line once and in
// order, or gets the number of lines that it missed. So does one that continues from a position after a rotation.
func TestSlowFollowerIsToldWhatItMissed(t *testing.T) {
	t.Parallel()
	d, path := newLogged(t)
	log, err := crilog.OpenFeed(crilog.FeedOptions{
		Dir: t.TempDir(), Path: path, Log: crilog.Options{MaxBytes: 100 << 10, Keep: 3, Compress: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	written := 0
	write := func(lines int) {
		for end := written + lines; written < end; {
			block := 0
			for range min(10, end-written) {
				n, err := fmt.Fprintf(in, "%d %s\n", written, strings.Repeat("x", 1000))
				if err != nil {
					t.Fatal(err)
				}
				block += n
				written++
			}
			_, err := log.Splice(crilog.Stdout, int(out.Fd()), block)
			if err = errors.Join(err, log.Flush()); err != nil {
				t.Fatal(err)
			}
		}
	}
	next, skipped := 0, 0
	follow := func(from api.Positions, last int) {
		t.Helper()
		q := client.OutputQuery{Follow: true, From: from, Skipped: func(container string, s api.Skipped) {
			if container != "main" || s.Lines <= 0 {
				t.Fatalf("%s: skipped %+v", container, s)
			}
			next += int(s.Lines)
			skipped += int(s.Lines)
		}}
		for l, err := range d.client.Output(t.Context(), "web", q) {
			if err != nil {
				t.Fatal(err)
			}
			if text, _, _ := strings.Cut(l.Line, " "); text != strconv.Itoa(next) {
				t.Fatalf("line %s, want %d (skipped %d)", text, next, skipped)
			}
			from.Advance(l)
			if next++; next == 10 {
				write(4000) // the client does not read, for less than the write timeout of the server
			}
			if next == written || last > 0 && next >= last {
				break
			}
		}
	}
	write(50)
	at := api.Positions{}
	follow(at, 0)
	if next != written || skipped < 1000 {
		t.Errorf("the client reached line %d of %d and skipped %d", next, written, skipped)
	}
	// A second connection continues in a file that was removed.
	write(2000)
	skipped = 0
	follow(at, written)
	if next != written || skipped < 1000 || at["main"].Lines != written {
		t.Errorf("the client reached line %d of %d and skipped %d, position %+v", next, written, skipped, at["main"])
	}
	if at["main"].Attempt != 0 {
		t.Errorf("position %+v", at["main"])
	}
}

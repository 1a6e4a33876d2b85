package daemon

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// TestLogDoesNotBlock has a log file that blocks, as on a frozen disk.
func TestLogDoesNotBlock(t *testing.T) {
	r, w := io.Pipe() // a write blocks until it is read
	log, flush := NewLog(w)
	line := strings.Repeat("x", 1000)
	for range 2 * maxBufferedLog / len(line) {
		log.InfoContext(t.Context(), "line", slog.String("text", line))
	}
	var read bytes.Buffer
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(&read, r)
		done <- err
	}()
	flush()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(read.String(), line); n < 900 || read.Len() > 3*maxBufferedLog {
		t.Errorf("%d lines, %d bytes were written, want about 1,000 lines (of 1,000 bytes, with their keys)", n, read.Len())
	}
	if !strings.Contains(read.String(), "log lines were dropped") {
		t.Error("the log does not say that lines were dropped")
	}
}

// TestLogIsCompleteAfterFlush: nothing is lost when the daemon exits.
func TestLogIsCompleteAfterFlush(t *testing.T) {
	var out bytes.Buffer
	log, flush := NewLog(&out)
	for range 100 {
		log.InfoContext(t.Context(), "line")
	}
	flush()
	if n := strings.Count(out.String(), "msg=line\n"); n != 100 {
		t.Errorf("%d lines, want 100", n)
	}
}

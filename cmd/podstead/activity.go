package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/plain"
)

const (
	// activityDelay is how long a command waits before the line appears, and the time between two updates.
	activityDelay = time.Second
	// clearLine moves the cursor of a terminal to the first column, and erases the line (ECMA-48: EL).
	clearLine = "\r\x1b[K"
)

// activityLine shows in the last line of a terminal what a command waits for, and since when. It is safe for concurrent use.
type activityLine struct {
	terminal io.Writer
	width    func() int
	text     string
	started  time.Time
	stop     chan struct{}
	stopped  sync.WaitGroup

	mu    sync.Mutex
	drawn bool
}

// startActivity shows a text after a second, until [activityLine.Stop]. The function returns the columns of the terminal.
func startActivity(terminal io.Writer, width func() int, text string) *activityLine {
	l := &activityLine{terminal: terminal, width: width, text: plain.Text(text), started: time.Now(), stop: make(chan struct{})}
	l.stopped.Go(l.update)
	return l
}

func (l *activityLine) update() {
	tick := time.NewTicker(activityDelay)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.stop:
			return
		}
		l.mu.Lock()
		l.draw()
		l.mu.Unlock()
	}
}

// Stop erases the line.
func (l *activityLine) Stop() {
	close(l.stop)
	l.stopped.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

// Writer returns a writer that erases the line before it writes to w, which may be the same terminal.
func (l *activityLine) Writer(w io.Writer) io.Writer { return activityWriter{l, w} }

type activityWriter struct {
	line *activityLine
	w    io.Writer
}

// Write implements io.Writer.
func (w activityWriter) Write(b []byte) (int, error) {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	w.line.erase()
	return w.w.Write(b)
}

// draw writes the line. The caller holds the mutex.
func (l *activityLine) draw() {
	line := []rune(fmt.Sprintf("%s (%v)", l.text, time.Since(l.started).Truncate(time.Second)))
	_, _ = io.WriteString(l.terminal, clearLine+string(line[:min(len(line), max(0, l.width()-1))]))
	l.drawn = true
}

// erase removes the line, if it is drawn. The caller holds the mutex.
func (l *activityLine) erase() {
	if l.drawn {
		_, _ = io.WriteString(l.terminal, clearLine)
		l.drawn = false
	}
}

// waiting shows on a terminal what the command waits for, until the returned function is called. Elsewhere it shows nothing.
func (a *app) waiting(format string, args ...any) (done func()) {
	width := a.width()
	if width == nil {
		return func() {}
	}
	out, err := a.out, a.err
	line := startActivity(err, width, fmt.Sprintf(format, args...))
	a.out, a.err = line.Writer(out), line.Writer(err)
	return func() {
		a.out, a.err = out, err
		line.Stop()
	}
}

// listed returns names for a text, and only the number of those after the third.
func listed(names map[string]string) string {
	const most = 3
	list := slices.Sorted(maps.Values(names))
	if more := len(list) - most; more > 0 {
		list = append(list[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

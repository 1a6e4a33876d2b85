// Package activity shows in the last line of a terminal what a command waits for, and since when.
package activity

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/plain"
)

const (
	// delay is how long a command waits before the line appears, and the time between two updates.
	delay = time.Second
	// clearLine moves the cursor of a terminal to the first column, and erases the line (ECMA-48: EL).
	clearLine = "\r\x1b[K"
)

// Line is the line of a terminal. It is safe for concurrent use.
type Line struct {
	terminal io.Writer
	width    func() int
	text     string
	started  time.Time
	stop     chan struct{}
	stopped  sync.WaitGroup

	mu    sync.Mutex
	drawn bool
}

// Start shows a text after a second, until [Line.Stop]. The function returns the columns of the terminal.
func Start(terminal io.Writer, width func() int, text string) *Line {
	l := &Line{terminal: terminal, width: width, text: plain.Text(text), started: time.Now(), stop: make(chan struct{})}
	l.stopped.Go(l.update)
	return l
}

func (l *Line) update() {
	tick := time.NewTicker(delay)
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
func (l *Line) Stop() {
	close(l.stop)
	l.stopped.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

// Writer returns a writer that erases the line before it writes to w, which may be the same terminal.
func (l *Line) Writer(w io.Writer) io.Writer { return writer{l, w} }

type writer struct {
	line *Line
	w    io.Writer
}

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	w.line.erase()
	return w.w.Write(b)
}

// draw writes the line. The caller holds the mutex.
func (l *Line) draw() {
	line := []rune(fmt.Sprintf("%s (%v)", l.text, time.Since(l.started).Truncate(time.Second)))
	_, _ = io.WriteString(l.terminal, clearLine+string(line[:min(len(line), max(0, l.width()-1))]))
	l.drawn = true
}

// erase removes the line, if it is drawn. The caller holds the mutex.
func (l *Line) erase() {
	if l.drawn {
		_, _ = io.WriteString(l.terminal, clearLine)
		l.drawn = false
	}
}

package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
)

// clearLine moves the cursor of a terminal to the first column, and erases the line (ECMA-48: EL).
const clearLine = "\r\x1b[K"

// Progress shows the progress of the image pulls, imports and unpacking of a pod in the last line of the terminal, together with those of
// other pods. Nil removes the line.
func (t *Text) Progress(p *api.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case p == nil:
		t.fetching, t.meters = nil, nil
	case len(p.Status.Pulling) == 0:
		delete(t.fetching, p.Metadata.UID)
	default:
		if t.fetching == nil {
			t.fetching, t.meters = map[string][]progressLine{}, map[string]*meter{}
		}
		t.fetching[p.Metadata.UID] = t.fetchingOf(p)
	}
	if t.line() != t.drawn {
		t.erase()
		t.draw()
	}
}

// fetchingOf are the lines for what a pod pulls and imports. Containers that wait for the same archive or image have the same line. The
// caller holds the mutex.
func (t *Text) fetchingOf(p *api.Pod) (lines []progressLine) {
	now := time.Now()
	for container, progress := range p.Status.Pulling {
		what := Fetching(p, container, progress)
		if t.meters[what] == nil {
			t.meters[what] = &meter{}
		}
		lines = append(lines, progressOf(what, progress.Done, progress.Total, t.meters[what].rate(now, progress.Done)))
	}
	return lines
}

// Fetching is what is fetched or unpacked for a container.
func Fetching(p *api.Pod, container string, progress api.Progress) string {
	if progress.Archive != "" {
		return fmt.Sprintf("Importing image archive %q", progress.Archive)
	}
	image := progress.Image
	if c := p.Spec.Container(container); image == "" && c != nil {
		image = c.Image
	}
	if progress.Unpacking {
		return fmt.Sprintf("Unpacking image %q", image)
	}
	return fmt.Sprintf("Pulling image %q", image)
}

// erase removes the line of the progress, if there is one. The caller holds the mutex.
func (t *Text) erase() {
	if t.drawn != "" {
		_, _ = io.WriteString(t.Err, clearLine)
		t.drawn = ""
	}
}

// draw writes the line of the progress, if there is one. The caller holds the mutex.
func (t *Text) draw() {
	if t.drawn = t.line(); t.drawn != "" {
		_, _ = io.WriteString(t.Err, t.drawn)
	}
}

// line returns the progress, cut to the width of the terminal; empty: there is none, or no terminal. The caller holds the mutex.
func (t *Text) line() string {
	lines := map[string]progressLine{}
	for _, list := range t.fetching {
		for _, line := range list {
			lines[line.what] = line
		}
	}
	if len(lines) == 0 || t.Width == nil {
		return ""
	}
	more := ""
	if n := len(lines) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	width := max(0, t.Width()-1)
	runes := []rune(plain.Text(lines[slices.Sorted(maps.Keys(lines))[0]].fit(more, width)))
	return string(runes[:min(len(runes), width)])
}

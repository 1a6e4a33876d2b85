package view

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
)

// clearLine moves the cursor of a terminal to the first column, and erases the line (ECMA-48: EL).
const clearLine = "\r\x1b[K"

// Progress shows the progress of the image pulls and imports of a pod in the last line of the terminal, together with those of other pods.
// Nil removes the line.
func (t *Text) Progress(p *api.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case p == nil:
		t.fetching = nil
	case len(p.Status.Pulling) == 0:
		delete(t.fetching, p.Metadata.UID)
	default:
		if t.fetching == nil {
			t.fetching = map[string][]string{}
		}
		t.fetching[p.Metadata.UID] = fetching(p)
	}
	if t.line() != t.drawn {
		t.erase()
		t.draw()
	}
}

// fetching are the texts for what a pod pulls and imports, sorted. Containers that wait for the same archive or image have one text.
func fetching(p *api.Pod) []string {
	texts := map[string]bool{}
	for container, progress := range p.Status.Pulling {
		texts[fetchingText(p, container, progress)] = true
	}
	return slices.Sorted(maps.Keys(texts))
}

func fetchingText(p *api.Pod, container string, progress api.Progress) string {
	text := fmt.Sprintf("Importing image archive %q", progress.Archive)
	if progress.Archive == "" {
		image := ""
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers, p.Spec.EphemeralContainers) {
			if c.Name == container {
				image = c.Image
			}
		}
		text = fmt.Sprintf("Pulling image %q", image)
	}
	if progress.Total > 0 {
		text += fmt.Sprintf(": %s of %s (%d%%)", Size(progress.Done), Size(progress.Total),
			progress.Done*100/progress.Total)
	}
	return text
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
	texts := map[string]bool{}
	for _, list := range t.fetching {
		for _, text := range list {
			texts[text] = true
		}
	}
	if len(texts) == 0 || t.Width == nil {
		return ""
	}
	line := slices.Sorted(maps.Keys(texts))[0]
	if more := len(texts) - 1; more > 0 {
		line = fmt.Sprintf("%s and %d more", line, more)
	}
	runes := []rune(plain.Text(line))
	return string(runes[:min(len(runes), max(0, t.Width()-1))])
}

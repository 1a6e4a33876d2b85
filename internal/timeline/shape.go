package timeline

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxShapes bounds the elements for what happened in a picture, apart from vertical lines.
	maxShapes = 4000
	// maxCell bounds how coarse a picture becomes, in pixels.
	maxCell = 512
)

// shape is an element for things of one kind that are close to each other.
type shape struct {
	class string
	count int
	from  time.Time
	to    time.Time // the latest end
	boxes []box     // one for each pixel at most
	label string    // of a single thing
	text  string    // of the first
	same  bool      // all have this text
}

// box is a place on the axis, in pixels.
type box struct{ from, to float64 }

// thing is something that is drawn at a time.
type thing struct {
	Span

	class, label, text string
}

// shapes joins things of one kind that begin in the same cell of the axis, and are not longer than that. The things must be in the order of
// their start.
func (d *drawing) shapes(things []thing, cell float64) []shape {
	type place struct {
		cell  float64
		shape int
	}
	var out []shape
	open := map[string]place{} // the shape of a class that takes what begins in its cell
	for i := range things {
		t := &things[i]
		if t.To.Before(d.From) || t.From.After(d.To) {
			continue
		}
		b := box{d.x(t.From), d.x(t.To)}
		at, isWide := math.Floor(b.from/cell), b.to-b.from >= max(cell, minLabel)
		if o, is := open[t.class]; is && !isWide && o.cell == at {
			out[o.shape].join(t, b)
			continue
		}
		if delete(open, t.class); !isWide {
			open[t.class] = place{at, len(out)}
		}
		out = append(out, shape{
			class: t.class, count: 1, from: t.From, to: t.To, boxes: []box{b}, label: t.label, text: t.text, same: true,
		})
	}
	return out
}

// join adds a thing to a shape.
func (s *shape) join(t *thing, b box) {
	s.count++
	s.same = s.same && s.text == t.text
	if t.To.After(s.to) {
		s.to = t.To
	}
	if n := len(s.boxes) - 1; b.from < s.boxes[n].from+1 {
		s.boxes[n].to = max(s.boxes[n].to, b.to)
		return
	}
	s.boxes = append(s.boxes, b)
}

// width is the width of a shape, in pixels.
func (s *shape) width() float64 { return s.boxes[len(s.boxes)-1].to - s.boxes[0].from }

// narrow reports whether no box is wide enough for a pattern.
func (s *shape) narrow() bool {
	return !slices.ContainsFunc(s.boxes, func(b box) bool { return b.to-b.from >= minPattern })
}

// title is what a shape stands for, for people.
func (d *drawing) title(s *shape) string {
	text := s.text
	if s.count > 1 {
		text = fmt.Sprintf("%d times, the first: %s", s.count, s.text)
		if s.same {
			text = fmt.Sprintf("%d times: %s", s.count, s.text)
		}
	}
	if s.from.Equal(s.to) {
		return d.clock(s.from) + " " + text
	}
	if s.count > 1 {
		return fmt.Sprintf("%s to %s, %s", d.clock(s.from), d.clock(s.to), text)
	}
	return fmt.Sprintf("%s to %s (%s), %s", d.clock(s.from), d.clock(s.to), elapsed(s.to.Sub(s.from)), text)
}

// x is the place of a time on the axis, in pixels.
func (d *drawing) x(t time.Time) float64 {
	part := float64(t.Sub(d.From)) / float64(d.To.Sub(d.From))
	return d.left + min(max(part, 0), 1)*(plotRight-d.left)
}

// path draws the boxes of a shape as rectangles that are at least 1.5 pixels wide.
func (s *shape) path(y, height float64) string {
	var b strings.Builder
	for _, o := range s.boxes {
		w := max(o.to-o.from, 1.5)
		fmt.Fprintf(&b, "M%s %sh%sv%sh-%sz", px(o.from), px(y), px(w), px(height), px(w))
	}
	return b.String()
}

// tickPath draws the boxes of a shape as ticks whose top is at y.
func (s *shape) tickPath(y float64) string {
	form := "M%s %sm-.8 0h1.6v7h-1.6z"
	switch TickKind(s.class) {
	case ProbeFailed:
	case Trouble:
		form = "M%s %sl3.5 3.5l-3.5 3.5l-3.5-3.5z"
	case Request:
		form = "M%s %sl4 7h-8z"
	}
	var b strings.Builder
	for _, o := range s.boxes {
		fmt.Fprintf(&b, form, px(o.from), px(y))
	}
	return b.String()
}

// px is a number of pixels as text.
func px(f float64) string { return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64) }

package timeline

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/internal/plain"
)

// Sizes of a picture in pixels.
const (
	width     = 1200.0
	plotRight = width - 24
	minLeft   = 90.0 // of the axis
	maxLeft   = 300.0

	titleY    = 24.0
	summaryY  = 43.0
	labelTop  = 50.0
	labelRow  = 15.0
	maxRows   = 4 // of labels of lines
	markCell  = 4.0
	stripRow  = 22.0
	strip     = 9.0
	laneRow   = 34.0
	bar       = 18.0
	axisRow   = 26.0
	legendRow = 20.0

	character  = 6.4 // width of a letter
	minLabel   = 8.0 // width of a bar that is an element of its own
	minPattern = 5.0 // width of a bar with a pattern
)

// drawing is a picture while it is drawn.
type drawing struct {
	*Picture

	b      strings.Builder
	prefix string // of the IDs
	inline bool   // see [Inline]
	left   float64
	marks  []shape
	labels []label // of the marks
	rows   int     // of labels
	used   map[string]bool
	lanes  []lane
}

// lane is the shapes of a lane.
type lane struct{ gaps, bars, stops, ticks []shape }

// label is the place of the label of a mark.
type label struct {
	text string
	row  int // less than 0: there is no place
}

// SVG draws pictures below each other, as one document.
func SVG(pictures []Picture) []byte { return svg(pictures, "", false) }

// Inline draws a picture as an element of a page that has [Style] in its own style sheet. Each element for what happened has its first and
// last time in milliseconds since 1970 in data-from and data-to, and its lane, if it is in one, in data-lane. The document has the ends of
// its axis: the times in data-begin and data-end, the places in data-left and data-right.
func Inline(p Picture) []byte { return svg([]Picture{p}, "", true) }

// svg draws a document. Its IDs begin with a prefix, so that one page can have several documents.
func svg(pictures []Picture, prefix string, inline bool) []byte {
	var titles, descriptions []string
	var body strings.Builder
	height, axis := 0.0, ""
	for i := range pictures {
		d := draw(&pictures[i], prefix, inline)
		fmt.Fprintf(&body, "<g transform=\"translate(0 %s)\">\n%s</g>\n", px(height), d.b.String())
		height += d.height()
		if inline {
			axis = fmt.Sprintf(" data-begin=\"%d\" data-end=\"%d\" data-left=\"%s\" data-right=\"%s\"",
				d.From.UnixMilli(), d.To.UnixMilli(), px(d.left), px(plotRight))
		}
		titles = append(titles, pictures[i].Title)
		descriptions = append(descriptions, d.description())
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="tl" viewBox="0 0 %[1]s %[2]s" width="%[1]s" height="%[2]s" role="img" `+
		"aria-labelledby=\"%[3]stitle %[3]sdesc\"%[4]s>\n", px(width), px(height), prefix, axis)
	fmt.Fprintf(&b, "<title id=\"%stitle\">Timeline of %s</title>\n", prefix, escape(strings.Join(titles, ", ")))
	fmt.Fprintf(&b, "<desc id=\"%sdesc\">%s</desc>\n", prefix, escape(strings.Join(descriptions, " ")))
	if !inline {
		fmt.Fprintf(&b, "<style>%s</style>\n", Style)
	}
	b.WriteString("<defs>\n")
	for _, p := range patterns {
		fmt.Fprintf(&b, "<pattern id=\"%s%s\" %s</pattern>\n", prefix, p.class, p.content)
	}
	fmt.Fprintf(&b, "</defs>\n<rect class=\"bg\" width=\"%s\" height=\"%s\"/>\n%s</svg>\n", px(width), px(height), body.String())
	return []byte(b.String())
}

// escape makes a text safe in a document.
func escape(s string) string { return html.EscapeString(plain.Text(s)) }

// draw draws a picture.
func draw(p *Picture, prefix string, inline bool) *drawing {
	d := &drawing{Picture: p, prefix: prefix, inline: inline, used: map[string]bool{}, left: minLeft}
	if !p.To.After(p.From) {
		copied := *p
		copied.To = p.From.Add(time.Second)
		d.Picture = &copied
	}
	for i := range p.Lanes {
		d.left = min(max(d.left, textWidth(p.Lanes[i].Name)+24), maxLeft)
	}
	d.join()
	d.placeLabels()

	d.text("name", 16, titleY, "start", p.Title)
	d.text("note", 16, summaryY, "start", d.fit(p.Summary, plotRight-16))
	d.background()
	d.strip()
	for i := range d.lanes {
		d.lane(i)
	}
	d.drawMarks()
	d.legend()
	return d
}

// join computes the shapes, as coarse as needed so that there are not too many.
func (d *drawing) join() {
	type things struct{ gaps, bars, stops, ticks []thing }
	lists := make([]things, len(d.Lanes))
	for i := range d.Lanes {
		l, t := &d.Lanes[i], &lists[i]
		for _, g := range l.Gaps {
			t.gaps = append(t.gaps, thing{g.Span, string(g.Kind), "", g.Text})
		}
		for i := range l.Bars {
			b := &l.Bars[i]
			t.bars = append(t.bars, thing{b.Span, string(b.Outcome), b.Label, b.Text})
			if !b.Stop.IsZero() {
				t.stops = append(t.stops, thing{Span{b.Stop, b.To}, stopping, "", "being stopped"})
			}
		}
		for _, k := range l.Ticks {
			t.ticks = append(t.ticks, thing{Span{k.At, k.At}, string(k.Kind), "", k.Text})
		}
		for _, list := range [][]thing{t.gaps, t.bars, t.stops, t.ticks} {
			order.Sort(list, func(a, b thing) int { return a.From.Compare(b.From) })
		}
	}
	d.lanes = make([]lane, len(lists))
	for cell := 1.0; ; cell *= 2 {
		count := 0
		for i := range lists {
			t := &lists[i]
			l := lane{d.shapes(t.gaps, cell), d.shapes(t.bars, cell), d.shapes(t.stops, cell), d.shapes(t.ticks, cell)}
			d.lanes[i] = l
			count += len(l.gaps) + len(l.bars) + len(l.stops) + len(l.ticks)
		}
		if count <= maxShapes || cell >= maxCell {
			break
		}
	}
	var marks []thing
	for _, m := range d.Marks {
		marks = append(marks, thing{Span{m.At, m.At}, string(m.Kind), m.Label, m.Text})
	}
	order.Sort(marks, func(a, b thing) int { return a.From.Compare(b.From) })
	d.marks = d.shapes(marks, markCell)
}

// placeLabels gives the labels of the marks rows in which they do not overlap.
func (d *drawing) placeLabels() {
	var ends [maxRows]float64
	for i := range d.marks {
		m := &d.marks[i]
		text := m.label
		if m.count > 1 {
			text = fmt.Sprintf("%s ×%d", m.label, m.count)
		}
		l, x := label{text, -1}, m.boxes[0].from
		from, to := labelBox(x, text)
		for row := range ends {
			if l.row < 0 && ends[row] <= from {
				l.row, ends[row] = row, to+8
				d.rows = max(d.rows, row+1)
			}
		}
		d.labels = append(d.labels, l)
	}
}

// labelBox is the place of a label beside a line: right of it, or left of it near the right edge. Its letter has a disk at the line.
func labelBox(x float64, text string) (from, to float64) {
	w := textWidth(text) + 11
	if x+w > width-4 {
		return x - w, x + 7
	}
	return x - 7, x + w
}

func textWidth(s string) float64 { return float64(len([]rune(s))) * character }

// fit shortens a text to a width.
func (d *drawing) fit(s string, width float64) string {
	if r := []rune(s); textWidth(s) > width {
		return string(r[:max(int(width/character)-1, 0)]) + "…"
	}
	return s
}

// The places of the parts of a picture, from top to bottom.
func (d *drawing) stripTop() float64 { return labelTop + float64(d.rows)*labelRow + 8 }

func (d *drawing) lanesTop() float64 {
	if d.Ready == nil {
		return d.stripTop()
	}
	return d.stripTop() + stripRow
}

func (d *drawing) lanesBottom() float64 { return d.lanesTop() + float64(len(d.Lanes))*laneRow }

func (d *drawing) legendTop() float64 { return d.lanesBottom() + axisRow + 10 }

func (d *drawing) height() float64 { return d.legendTop() + float64(d.legendRows())*legendRow + 10 }

// background draws the axis, its lines, and when the host was off.
func (d *drawing) background() {
	top, bottom := d.stripTop()-4, d.lanesBottom()+4
	for i := range d.Lanes {
		if i%2 == 0 {
			d.printf("<rect class=\"stripe\" x=\"8\" y=\"%s\" width=\"%s\" height=\"%s\"/>\n",
				px(d.lanesTop()+float64(i)*laneRow), px(plotRight), px(laneRow))
		}
	}
	end := 0.0
	for _, t := range d.axis() {
		x := d.x(t.at)
		d.printf("<path class=\"grid\" d=\"M%s %sV%s\"/>\n", px(x), px(top), px(bottom))
		half := textWidth(t.label) / 2
		if at := min(x, width-half-4); at-half > end {
			d.text("tick", at, bottom+16, "middle", t.label)
			end = at + half + 6
		}
	}
	d.printf("<path class=\"axis\" d=\"M%s %sH%s\"/>\n", px(d.left), px(bottom), px(plotRight))
	for _, s := range d.shapes(spans(d.Off, off, "host off"), 1) {
		d.element(&s, "", s.path(top, bottom-top))
	}
}

// spans are the things for times.
func spans(list []Span, class, text string) []thing {
	out := make([]thing, len(list))
	for i, s := range list {
		out[i] = thing{s, class, "", text}
	}
	return out
}

// strip draws when the pod was ready.
func (d *drawing) strip() {
	if d.Ready == nil {
		return
	}
	y := d.stripTop() + (stripRow-strip)/2
	d.text("lane", d.left-10, y+strip, "end", "ready")
	d.printf("<rect class=\"track\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"/>\n", px(d.left), px(y), px(plotRight-d.left), px(strip))
	for cell := 1.0; ; cell *= 2 {
		list := d.shapes(spans(d.Ready, ready, "pod ready"), cell)
		if len(list) > maxShapes/4 && cell < maxCell {
			continue
		}
		for i := range list {
			d.element(&list[i], "", list[i].path(y, strip))
		}
		return
	}
}

// lane draws a lane.
func (d *drawing) lane(i int) {
	l, shapes := &d.Lanes[i], &d.lanes[i]
	top := d.lanesTop() + float64(i)*laneRow + 4
	d.printf("<g class=\"lane\"><title>%s</title>", escape(l.Name))
	d.text("lane", d.left-10, top+bar-5, "end", d.fit(l.Name, d.left-24))
	d.printf("</g>\n")
	if n := len(l.Bars); n > 1 {
		d.text("few", d.left-10, top+bar+7, "end", plural(n, "run"))
	}
	for _, s := range shapes.gaps {
		d.element(&s, l.Name, s.path(top+5, bar-10))
	}
	for _, s := range shapes.bars {
		d.element(&s, l.Name, s.path(top, bar))
	}
	for _, s := range shapes.stops {
		d.element(&s, l.Name, s.path(top, bar))
	}
	for _, s := range shapes.bars {
		if s.count == 1 && s.width() > textWidth(s.label)+8 {
			d.text("inside", s.boxes[0].from+5, top+bar-5, "start", s.label)
		}
	}
	for _, s := range shapes.ticks {
		d.element(&s, l.Name, s.tickPath(top+bar+1))
	}
}

// drawMarks draws the vertical lines with their labels.
func (d *drawing) drawMarks() {
	bottom := d.lanesBottom() + 4
	for i := range d.marks {
		m, l := &d.marks[i], &d.labels[i]
		x, top := m.boxes[0].from, d.stripTop()-6
		if l.row >= 0 {
			top = labelTop + float64(l.row)*labelRow + 7
		}
		d.used[m.class] = true
		d.printf("<g %sclass=\"mark m-%s\"><title>%s</title><path d=\"M%s %sV%s\"/>",
			d.data(m, ""), m.class, escape(d.title(m)), px(x), px(top), px(bottom))
		if l.row >= 0 {
			d.printf("<circle cx=\"%s\" cy=\"%s\" r=\"6\"/>", px(x), px(top))
			d.text("letter", x, top+3.5, "middle", kindOf(m.class).letter)
			if from, _ := labelBox(x, l.text); from < x-7 {
				d.text("label", x-10, top+4, "end", l.text)
			} else {
				d.text("label", x+10, top+4, "start", l.text)
			}
		}
		d.printf("</g>\n")
	}
}

// element draws a shape with its title.
func (d *drawing) element(s *shape, lane, path string) {
	d.used[s.class] = true
	fill := d.fill(s.class)
	if isPattern(s.class) && s.narrow() {
		fill = fmt.Sprintf("class=\"n-%s\" ", s.class)
	}
	d.printf("<path %s%sd=\"%s\"><title>%s</title></path>\n", d.data(s, lane), fill, path, escape(d.title(s)))
}

// fill is the attribute with which a class is filled.
func (d *drawing) fill(class string) string {
	if isPattern(class) {
		return fmt.Sprintf("fill=\"url(#%s%s)\" ", d.prefix, class)
	}
	return fmt.Sprintf("class=\"%s\" ", class)
}

// legendItems are the kinds that the picture has.
func (d *drawing) legendItems() []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !d.used[k.class] })
}

const swatch = 20.0

// legendRows is the number of rows of the legend.
func (d *drawing) legendRows() int { return d.eachItem(func(kind, float64, int) {}) }

// eachItem calls do with each item of the legend and its place, and returns the number of rows.
func (d *drawing) eachItem(do func(k kind, x float64, row int)) int {
	x, row := 16.0, 0
	for _, k := range d.legendItems() {
		w := swatch + 6 + textWidth(k.legend) + 18
		if x+w > width && x > 16 {
			x, row = 16, row+1
		}
		do(k, x, row)
		x += w
	}
	return row + 1
}

// legend draws what the forms and colours stand for.
func (d *drawing) legend() {
	d.eachItem(func(k kind, x float64, row int) {
		y := d.legendTop() + float64(row)*legendRow
		sample := shape{class: k.class, boxes: []box{{x, x + swatch}}}
		switch {
		case k.letter != "":
			d.printf("<g class=\"mark m-%s\"><circle cx=\"%s\" cy=\"%s\" r=\"6\"/>", k.class, px(x+swatch/2), px(y+6))
			d.text("letter", x+swatch/2, y+9.5, "middle", k.letter)
			d.printf("</g>\n")
		case k.class == string(ProbeFailed), k.class == string(Trouble), k.class == string(Request):
			sample.boxes[0].from += swatch / 2
			d.printf("<path %sd=\"%s\"/>\n", d.fill(k.class), sample.tickPath(y+3))
		default:
			if k.class == stopping { // it is drawn over a run
				d.printf("<path %sd=\"%s\"/>\n", d.fill(string(Running)), sample.path(y, 12))
			}
			d.printf("<path %sd=\"%s\"/>\n", d.fill(k.class), sample.path(y, 12))
		}
		d.text("note", x+swatch+6, y+10, "start", k.legend)
	})
}

// data returns the attributes of an element of [Inline].
func (d *drawing) data(s *shape, lane string) string {
	if !d.inline {
		return ""
	}
	return fmt.Sprintf("data-from=\"%d\" data-to=\"%d\" data-lane=\"%s\" ", s.from.UnixMilli(), s.to.UnixMilli(), escape(lane))
}

// text draws a text.
func (d *drawing) text(class string, x, y float64, anchor, s string) {
	if s == "" {
		return
	}
	d.printf("<text class=\"%s\" x=\"%s\" y=\"%s\"", class, px(x), px(y))
	if anchor != "start" {
		d.printf(" text-anchor=\"%s\"", anchor)
	}
	d.printf(">%s</text>\n", escape(s))
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

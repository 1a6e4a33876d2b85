package tui

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/podstead/podstead/internal/plain"
)

// style is how a text looks. Colours are those that the terminal has for the 16 names.
type style string

const (
	normal  style = ""
	bold    style = "1"
	dim     style = "2"
	inverse style = "7"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
	blue    style = "34"
	magenta style = "35"
	cyan    style = "36"
)

// isColour reports whether a style is missing without colours. Texts must differ without it.
func (s style) isColour() bool { return strings.HasPrefix(string(s), "3") }

// span is a text with a style. The text can have any characters.
type span struct {
	text  string
	style style
}

// line is a line of the screen.
type line []span

func text(s string) line { return line{{text: s}} }

// note is a line with what is said about the others.
func note(s string) line { return line{{s, dim}} }

// screen makes lines a text for the terminal.
type screen struct {
	width, height int
	method        ansi.Method // how the terminal counts the columns of a character
	colour        bool
}

// clean makes a text harmless and its width known.
func clean(s string) string { return plain.Text(strings.ReplaceAll(s, "\t", "    ")) }

// columns is the width of a text that is clean.
func (s *screen) columns(text string) int { return s.method.StringWidth(text) }

const (
	// maxCharacter bounds what is shown as one character, in bytes. The longest emoji have 35.
	maxCharacter = 64
	// maxMarks bounds the marks that are combined with one character of a longer text.
	maxMarks = 8
)

// characters returns the characters of a text that is clean, with their columns. A log can have a character of 10 KB: it is divided, and
// has at most [maxMarks] marks. So is one of more than two columns, such as joined emoji in a terminal that does not join them.
func (s *screen) characters(text string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for text != "" {
			cluster, width := ansi.FirstGraphemeCluster(text, s.method)
			text = text[len(cluster):]
			if len(cluster) <= maxCharacter && width <= 2 {
				if !yield(cluster, width) {
					return
				}
				continue
			}
			marks := 0
			for len(cluster) > 0 {
				_, size := utf8.DecodeRuneInString(cluster)
				one := cluster[:size]
				cluster, width = cluster[size:], s.columns(one)
				if marks++; width > 0 {
					marks = 0
				}
				if marks <= maxMarks && !yield(one, width) {
					return
				}
			}
		}
	}
}

// cut cuts a text that is clean to a width. [ansi.Method.Truncate] counts joined characters as one, which most terminals do not.
func (s *screen) cut(text string, width int) string {
	var b strings.Builder
	used, room := 0, 0 // room: the length of what leaves a column for the ellipsis
	for c, w := range s.characters(text) {
		if used += w; used > width {
			if width < 1 {
				return ""
			}
			return b.String()[:room] + "…"
		}
		b.WriteString(c)
		if used < width {
			room = b.Len()
		}
	}
	return b.String()
}

// after returns a text that is clean without its first columns. [ansi.Method.Cut] returns the first ones if the method is WcWidth. The
// rest of a wide character that is divided is spaces.
func (s *screen) after(text string, left int) string {
	if left <= 0 {
		return text
	}
	var b strings.Builder
	used := 0
	for c, w := range s.characters(text) {
		switch {
		case used >= left && (b.Len() > 0 || w > 0): // marks belong to the character before
			b.WriteString(c)
		case used < left && used+w > left:
			b.WriteString(strings.Repeat(" ", used+w-left))
		}
		used += w
	}
	return b.String()
}

// fit cuts a text to a width, or fills it up with spaces.
func (s *screen) fit(text string, width int) string {
	text = s.cut(clean(text), width)
	return text + strings.Repeat(" ", max(width-s.columns(text), 0))
}

// wrap divides a text into lines, each after an indent. It keeps line breaks.
func (s *screen) wrap(text string, style style, indent string) []line {
	var out []line
	for part := range strings.SplitSeq(text, "\n") {
		wrapped := s.method.Wrap(clean(part), max(s.width-len(indent), 10), " ")
		for row := range strings.SplitSeq(wrapped, "\n") {
			out = append(out, line{{text: indent}, {strings.TrimRight(row, " "), style}})
		}
	}
	return out
}

// render returns a line without its first columns, cut to the width. A marked line is inverse over the whole width.
func (s *screen) render(l line, left int, marked bool) string {
	var b strings.Builder
	used := 0
	for _, sp := range l {
		t := clean(sp.text)
		if left > 0 {
			w := s.columns(t)
			t = s.after(t, left)
			left = max(left-w, 0)
		}
		t = s.cut(t, s.width-used)
		used += s.columns(t)
		b.WriteString(s.styled(t, sp.style, marked))
	}
	if marked && used < s.width {
		b.WriteString(s.styled(strings.Repeat(" ", s.width-used), normal, true))
	}
	return b.String()
}

func (s *screen) styled(text string, look style, marked bool) string {
	if !s.colour && look.isColour() {
		look = normal
	}
	codes := string(look)
	if marked {
		codes = strings.Trim(string(inverse)+";"+codes, ";")
	}
	if codes == "" || text == "" {
		return text
	}
	return "\x1b[" + codes + "m" + text + "\x1b[m"
}

// scroll is the place in a text that is larger than the screen.
type scroll struct {
	top, left int
	// following keeps the last line on the screen.
	following bool
}

const leftStep = 10 // columns of a step to the side

// key moves the text of count lines over a place of height lines. It reports whether the key does.
func (v *scroll) key(key string, count, height int) bool {
	last := max(count-height, 0)
	to := min(v.top, last)
	switch key {
	case "j", "down":
		to++
	case "k", "up":
		to--
	case "pgdown", "ctrl+f", "space":
		to += max(height-1, 1)
	case "pgup", "ctrl+b":
		to -= max(height-1, 1)
	case "g", "home":
		to = 0
	case "G", "end":
		to = last
	case "right":
		v.left += leftStep
		return true
	case "left":
		v.left = max(v.left-leftStep, 0)
		return true
	default:
		return false
	}
	v.top = min(max(to, 0), last)
	v.following = v.top == last
	return true
}

// visible returns the range of the lines on the screen.
func (v *scroll) visible(count, height int) (from, to int) {
	last := max(count-height, 0)
	if v.following {
		v.top = last
	}
	v.top = min(v.top, last)
	return v.top, min(v.top+height, count)
}

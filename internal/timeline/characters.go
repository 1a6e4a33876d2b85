package timeline

import (
	"slices"
	"time"
)

// Character is a character of a timeline in a terminal.
type Character struct {
	Rune  rune
	Class string // the kind of what it stands for, such as [Failed] or [BackOff]; empty: nothing
}

// Row is a row of a timeline in a terminal. All rows have the same number of characters.
type Row struct {
	Name       string // of a container; empty: another row
	Characters []Character
}

// Meaning is what a character stands for.
type Meaning struct {
	Character

	Text string
}

// run is the character of a run. Its last one is that of its outcome.
const run = '━'

// characters are those of the kinds that are not lines, which have their letters.
var characters = map[string]rune{
	string(Running): run, string(Succeeded): '+', string(Failed): 'x', string(OOMKilled): 'O', string(Stopped): ']', string(Lost): '?',
	stopping: '-', string(BackOff): '·', string(Pull): '~', string(ProbeFailed): 'p', string(Trouble): '!', string(Request): 'r',
	ready: '=', off: '/',
}

// severity are the kinds that a character can have, the one that is drawn over all others last.
var severity = []string{
	off, string(Pull), string(BackOff), ready, string(Running), string(Succeeded), string(Stopped), string(Lost), string(Failed),
	string(OOMKilled), stopping, string(Request), string(ProbeFailed), string(Trouble),
	string(Phase), string(Daemon), string(Host), string(Requested), string(Update), string(Boot), string(PodTrouble),
}

// grid is a picture in characters while it is drawn.
type grid struct {
	*Picture

	width int
}

// Characters draws a picture in characters: a row for the lines, if there are some, one for each container with one below it for its ticks,
// and the axis. Of what happened at one character, it has what is worst.
func Characters(p Picture, width int) (rows []Row, meanings []Meaning) {
	if !p.To.After(p.From) {
		p.To = p.From.Add(time.Second)
	}
	g := &grid{Picture: &p, width: max(width, 1)}
	if len(p.Marks) > 0 {
		row := g.row("")
		for _, m := range p.Marks {
			g.put(row, Span{m.At, m.At}, characterOf(string(m.Kind)))
		}
		rows = append(rows, row)
	}
	if p.Ready != nil {
		row := g.row("ready")
		g.spans(row, p.Ready, ready)
		rows = append(rows, row)
	}
	for i := range p.Lanes {
		rows = append(rows, g.lane(&p.Lanes[i])...)
	}
	rows = append(rows, g.axisRow())
	for _, k := range kinds {
		if slices.ContainsFunc(rows, func(r Row) bool { return r.has(k.class) }) {
			meanings = append(meanings, Meaning{characterOf(k.class), k.legend})
		}
	}
	return rows, meanings
}

func (g *grid) row(name string) Row {
	row := Row{name, make([]Character, g.width)}
	for i := range row.Characters {
		row.Characters[i].Rune = ' '
	}
	return row
}

// has reports whether a row has a character of a class.
func (r *Row) has(class string) bool {
	return slices.ContainsFunc(r.Characters, func(c Character) bool { return c.Class == class })
}

// characterOf is the character of a kind.
func characterOf(class string) Character {
	if letter := kindOf(class).letter; letter != "" {
		return Character{[]rune(letter)[0], class}
	}
	return Character{characters[class], class}
}

// lane draws a container.
func (g *grid) lane(l *Lane) []Row {
	row := g.row(l.Name)
	g.spans(row, g.Off, off)
	for _, gap := range l.Gaps {
		g.put(row, gap.Span, characterOf(string(gap.Kind)))
	}
	for _, b := range l.Bars {
		class := string(b.Outcome)
		g.put(row, b.Span, Character{run, class})
		if before := b.To.Add(-g.To.Sub(g.From) / time.Duration(g.width)); !b.Stop.IsZero() && before.After(b.Stop) {
			g.put(row, Span{b.Stop, before}, characterOf(stopping))
		}
		g.put(row, Span{b.To, b.To}, characterOf(class))
	}
	if len(l.Ticks) == 0 {
		return []Row{row}
	}
	below := g.row("")
	for _, t := range l.Ticks {
		g.put(below, Span{t.At, t.At}, characterOf(string(t.Kind)))
	}
	return []Row{row, below}
}

func (g *grid) spans(row Row, list []Span, class string) {
	for _, s := range list {
		g.put(row, s, characterOf(class))
	}
}

// column is the place of a time. It can be outside.
func (g *grid) column(t time.Time) int {
	return int(float64(t.Sub(g.From)) / float64(g.To.Sub(g.From)) * float64(g.width))
}

// put draws a character over a time, at least once, where nothing worse is.
func (g *grid) put(row Row, s Span, c Character) {
	if s.To.Before(g.From) || s.From.After(g.To) {
		return
	}
	from, to := max(g.column(s.From), 0), min(g.column(s.To), g.width-1)
	level := slices.Index(severity, c.Class)
	for i := min(from, g.width-1); i <= to; i++ {
		if before := row.Characters[i]; before.Class == "" || level >= slices.Index(severity, before.Class) {
			row.Characters[i] = c
		}
	}
}

// axisRow has the times of the ticks that have room.
func (g *grid) axisRow() Row {
	row := g.row("")
	end := 0
	for _, t := range g.axis() {
		at, label := g.column(t.at), []rune("|"+t.label)
		if at < end || at+len(label) > g.width {
			continue
		}
		for i, r := range label {
			row.Characters[at+i].Rune = r
		}
		end = at + len(label) + 1
	}
	return row
}

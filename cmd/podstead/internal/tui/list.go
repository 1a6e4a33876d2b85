package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/podstead/podstead/cmd/podstead/internal/live"
	"github.com/podstead/podstead/internal/view"
)

const (
	// wideScreen is the number of columns from which the list has the reason of each pod.
	wideScreen = 120
	columnGap  = 2
	// minName is the least width of the column of names, and minState that of states.
	minName, minState = 16, 12
)

// listView is the list of pods.
type listView struct {
	common

	cursor   string // the identity of the pod at the cursor
	at       int    // its place
	selected map[string]bool
}

func newList(m *model) *listView {
	return &listView{
		common:   m.common("podstead get --watch", "enter details  l logs  d describe  r restart  s shell  / filter  ? help  q quit"),
		selected: map[string]bool{},
	}
}

func identity(r *live.Row) string { return r.Name + " " + r.UID }

// title counts the pods that need a person.
func (v *listView) title() string {
	if v.wanted != "" {
		return fmt.Sprintf("%d of %d pods, filter %q", len(v.shown()), len(v.rows), v.wanted)
	}
	counts := map[live.Need]int{}
	for i := range v.rows {
		counts[v.rows[i].Need]++
	}
	out := fmt.Sprintf("%d pods", len(v.rows))
	if len(v.rows) == 1 {
		out = "1 pod"
	}
	for _, c := range []struct {
		need live.Need
		text string
	}{{live.Failing, "need attention"}, {live.Noticed, "restarted"}, {live.Moving, "starting or stopping"}} {
		if counts[c.need] > 0 {
			out += fmt.Sprintf(", %d %s", counts[c.need], c.text)
		}
	}
	return out
}

// shown are the pods that the filter selects.
func (v *listView) shown() []*live.Row {
	var out []*live.Row
	for i := range v.rows {
		r := &v.rows[i]
		if contains(v.wanted, r.Name+" "+r.Status) {
			out = append(out, r)
		}
	}
	return out
}

// contains reports whether a text has another one, in any case.
func contains(wanted, text string) bool {
	return wanted == "" || strings.Contains(strings.ToLower(text), strings.ToLower(wanted))
}

func (v *listView) update(msg tea.Msg) tea.Cmd {
	if l, is := msg.(live.List); is {
		known := map[string]bool{}
		for i := range l.Pods {
			known[l.Pods[i].Name] = true
		}
		for name := range v.selected {
			if !known[name] {
				delete(v.selected, name)
			}
		}
		v.find(v.shown()) // the cursor stays at its pod from the first list on
	}
	return nil
}

// find returns the place of the cursor. If its pod is gone, it is the place where that was.
func (v *listView) find(rows []*live.Row) int {
	if at := slices.IndexFunc(rows, func(r *live.Row) bool { return identity(r) == v.cursor }); at >= 0 {
		v.at = at
	}
	v.at = max(min(v.at, len(rows)-1), 0)
	if len(rows) > 0 {
		v.cursor = identity(rows[v.at])
	}
	return v.at
}

func (v *listView) key(key string) (tea.Cmd, bool) {
	rows := v.shown()
	at, page := v.find(rows), max(v.height()-4, 1)
	name, row := "", (*live.Row)(nil)
	if len(rows) > 0 {
		name, row = rows[at].Name, rows[at]
	}
	switch key {
	case "j", "down":
		at++
	case "k", "up":
		at--
	case "pgdown", "ctrl+f":
		at += page
	case "pgup", "ctrl+b":
		at -= page
	case "g", "home":
		at = 0
	case "G", "end":
		at = len(rows) - 1
	case "space":
		if v.selected[name] {
			delete(v.selected, name)
		} else if name != "" {
			v.selected[name] = true
		}
		at++
	case "l":
		return v.logs(name), true
	case "esc":
		if v.wanted != "" || len(v.selected) == 0 {
			return nil, false
		}
		clear(v.selected)
	default:
		return v.podKey(key, name, row)
	}
	if len(rows) > 0 {
		v.at = min(max(at, 0), len(rows)-1)
		v.cursor = identity(rows[v.at])
	}
	return nil, true
}

// logs opens the logs of the selected pods, or of the one at the cursor.
func (v *listView) logs(name string) tea.Cmd {
	names := []string{name}
	if len(v.selected) > 0 {
		names = nil
		for selected := range v.selected {
			names = append(names, selected)
		}
		slices.Sort(names)
	}
	switch {
	case slices.Equal(names, []string{""}):
		return nil
	case len(names) > live.MaxLogPods:
		v.notice, v.failed = fmt.Sprintf("logs: select at most %d pods", live.MaxLogPods), true
		return nil
	}
	l := newLogs(v.model, names)
	return v.push(l, l.follow())
}

var header = []string{"NAME", "STATE", "READY", "RESTARTS", "CPU", "MEMORY", "AGE"}

// leastNeeded are the columns that a narrow screen leaves out, in this order.
var leastNeeded = []int{5, 4, 6, 3}

// cells are those of a pod.
func (v *listView) cells(r *live.Row) []string {
	cells := []string{r.Name, r.Status, r.Ready, fmt.Sprint(r.Restarts), "-", "-", "-"}
	if !r.LastRestart.IsZero() {
		cells[3] += " (" + age(v.now.Sub(r.LastRestart)) + " ago)"
	}
	if r.CPU != nil {
		const nanoInMilli = 1_000_000
		cells[4] = fmt.Sprintf("%dm", (*r.CPU+nanoInMilli-1)/nanoInMilli)
	}
	if r.Memory != nil {
		cells[5] = view.Size(*r.Memory)
	}
	if r.Limit != nil && v.screen.width >= wideScreen {
		cells[5] += " of " + view.Size(*r.Limit)
	}
	if !r.Created.IsZero() {
		cells[6] = age(v.now.Sub(r.Created))
	}
	return cells
}

func age(d time.Duration) string { return view.Age(d) }

// widths are those of the columns; 0: it is left out. If there is not enough room, states and names are shortened, then columns are left
// out.
func (v *listView) widths(table [][]string) []int {
	widths := make([]int, len(header))
	for _, cells := range table {
		for i, c := range cells {
			widths[i] = max(widths[i], v.screen.columns(clean(c)))
		}
	}
	total := (len(widths)-1)*columnGap + 1 // with the mark of selected pods
	for _, w := range widths {
		total += w
	}
	if v.screen.width >= wideScreen {
		widths[0] = min(widths[0], 40)
		return widths
	}
	least := total - max(widths[0]-minName, 0) - max(widths[1]-minState, 0)
	for _, column := range leastNeeded {
		if least <= v.screen.width {
			break
		}
		least -= widths[column] + columnGap
		total -= widths[column] + columnGap
		widths[column] = 0
	}
	for _, shrink := range []struct{ column, least int }{{1, minState}, {0, minName}, {1, 8}, {0, 8}} {
		less := min(max(total-v.screen.width, 0), max(widths[shrink.column]-shrink.least, 0))
		widths[shrink.column] -= less
		total -= less
	}
	return widths
}

// looks are the colours of the states.
var looks = map[live.Need]style{live.Failing: red, live.Noticed: yellow, live.Moving: cyan, live.Well: green, live.Over: dim}

func (v *listView) draw(height int) []string {
	s, rows := &v.screen, v.shown()
	at := v.find(rows)
	if len(rows) == 0 {
		why := "Waiting for the list of pods."
		if v.listed {
			why = "No pods. Run podstead apply FILE to create one."
		}
		if len(v.rows) > 0 {
			why = "The filter selects no pod."
		}
		return []string{"", s.render(text(" "+why), 0, false)}
	}
	var reason []line // of the pod at the cursor
	if s.width < wideScreen && rows[at].Need <= live.Moving {
		reason = s.wrap(rows[at].Text, looks[rows[at].Need], " ")
		reason = reason[:min(len(reason), 3)]
	}
	place := max(height-1-len(reason), 1)
	if at < v.scroll.top {
		v.scroll.top = at
	}
	v.scroll.top = max(v.scroll.top, at-place+1)
	from, to := v.scroll.visible(len(rows), place)
	table := [][]string{header}
	for _, r := range rows {
		table = append(table, v.cells(r))
	}
	widths := v.widths(table)
	out := []string{s.render(v.line(table[0], widths, " ", "WHY", dim), 0, false)}
	for i := from; i < to; i++ {
		r, mark, why := rows[i], " ", ""
		if v.selected[r.Name] {
			mark = "*"
		}
		if r.Need <= live.Moving {
			why = r.Text
		}
		l := v.line(table[i+1], widths, mark, why, normal)
		l[2].style = looks[r.Need]
		out = append(out, s.render(l, 0, i == at))
	}
	out = append(out, make([]string, place-(to-from))...)
	for _, l := range reason {
		out = append(out, s.render(l, 0, false))
	}
	return out
}

// line aligns cells. A wide screen has the reason after them.
func (v *listView) line(cells []string, widths []int, mark, why string, look style) line {
	l := line{{mark, yellow}}
	gap := ""
	for i, c := range cells {
		if widths[i] > 0 {
			l = append(l, span{gap + v.screen.fit(c, widths[i]), look})
			gap = strings.Repeat(" ", columnGap)
		}
	}
	if v.screen.width >= wideScreen {
		l = append(l, span{gap + why, dim})
	}
	return l
}

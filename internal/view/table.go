package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
)

// TableOptions are the options of a table of pods.
type TableOptions struct {
	Wide   bool // more columns
	Labels bool // a column with the labels
	// Namespace adds the namespace as the first column.
	Namespace bool
	NoHeader  bool
}

// Table prints pods as a table.
func Table(s Screen, pods []api.Pod, o TableOptions, now time.Time) error {
	rows := make([][]string, 0, len(pods)+1)
	if !o.NoHeader {
		rows = append(rows, o.header())
	}
	for i := range pods {
		rows = append(rows, o.row(&pods[i], now))
	}
	return s.Table(rows)
}

func (o TableOptions) header() []string {
	columns := []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"}
	if o.Wide {
		columns = append(columns, "UID", "OWNER")
	}
	if o.Labels {
		columns = append(columns, "LABELS")
	}
	if o.Namespace {
		columns = slices.Insert(columns, 0, "NAMESPACE")
	}
	return columns
}

// row returns the row of a pod.
func (o TableOptions) row(p *api.Pod, now time.Time) []string {
	age := "<unknown>" // of a file that is refused
	if created := p.Metadata.CreationTimestamp; !created.IsZero() {
		age = Age(now.Sub(created))
	}
	columns := []string{p.Metadata.Name, Ready(p), markedStatus(p), Restarts(p, now), age, cmp.Or(p.Status.PodIP, "<none>")}
	switch {
	case p.Status.Schedule != nil:
		columns[2] = scheduleStatus(p, now)
	case o.Wide:
		columns[2] = wideStatus(p, now)
	}
	if o.Wide {
		columns = append(columns, p.Metadata.UID, cmp.Or(p.Status.Owner, "<none>"))
	}
	if o.Labels {
		columns = append(columns, labelsOf(p))
	}
	if o.Namespace {
		columns = slices.Insert(columns, 0, p.Metadata.Namespace)
	}
	return columns
}

// escaped returns cells with hidden characters escaped.
func escaped(row []string) []string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = plain.Text(strings.ReplaceAll(cell, "\t", " "))
	}
	return cells
}

// labelsOf returns the LABELS column: the labels sorted by key.
func labelsOf(p *api.Pod) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(p.Metadata.Labels)) {
		list = append(list, key+"="+p.Metadata.Labels[key])
	}
	return cmp.Or(strings.Join(list, ","), "<none>")
}

// Watch prints pods as they change, in columns of fixed width.
type Watch struct {
	W       io.Writer
	Width   int // columns of the terminal; 0: not a terminal, rows have any length
	Options TableOptions

	printed map[string]string // the columns of the newest row of each pod, by UID; by name if it has none
}

// Print prints the row of a pod, with the header before the first one. It prints nothing if no column but AGE has changed.
func (t *Watch) Print(p *api.Pod, now time.Time) error {
	rows := [][]string{escaped(t.Options.row(p, now))}
	if t.printed == nil {
		t.printed = map[string]string{}
		if !t.Options.NoHeader {
			rows = [][]string{t.Options.header(), rows[0]}
		}
	}
	columns := []string{Ready(p), markedStatus(p), Restarts(p, time.Time{}), p.Status.PodIP}
	if t.Options.Labels {
		columns = append(columns, labelsOf(p))
	}
	key, text := cmp.Or(p.Metadata.UID, p.Metadata.Name), strings.Join(columns, " ")
	if t.printed[key] == text {
		return nil
	}
	t.printed[key] = text
	widths := t.widths()
	for _, cells := range rows {
		for j := range cells {
			if t.Width > 0 {
				cells[j] = shortenColumn(cells[j], j, widths[j])
			}
		}
		if err := printPadded(t.W, cells, widths); err != nil {
			return err
		}
	}
	return nil
}

// widths returns the widths of the columns. On a terminal, a row fits, and the last column has the rest of it.
func (t *Watch) widths() []int {
	widths, headers := []int{24, 7, 24, 16, 8, 18, 38, 24, 24}, columnWidths([][]string{t.Options.header()})
	if t.Options.Namespace {
		widths = slices.Insert(widths, 0, 10)
	}
	widths = widths[:len(headers)]
	if t.Width > 0 {
		limit := t.Width - (len(widths) - 1) // without the spaces between columns
		fit(widths, headers, limit)
		for _, w := range widths {
			limit -= w
		}
		widths[len(widths)-1] += max(limit, 0)
	}
	return widths
}

// printPadded prints cells, each but the last one with at least the given width.
func printPadded(w io.Writer, cells []string, widths []int) error {
	var b strings.Builder
	for i, cell := range cells {
		if i == len(cells)-1 {
			b.WriteString(cell)
			break
		}
		fmt.Fprintf(&b, "%-*s ", widths[i], cell)
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// Rows prints rows as they come, in columns that become wider if a cell requires it. All rows must have the same number of cells.
type Rows struct {
	W      io.Writer
	Header []string // nil: none

	widths []int // nil: nothing is printed yet
}

// Print prints a row, with the header before the first one.
func (r *Rows) Print(row []string) error {
	rows := [][]string{row}
	if r.widths == nil && r.Header != nil {
		rows = [][]string{r.Header, row}
	}
	for i, row := range rows {
		rows[i] = escaped(row)
		for j, cell := range rows[i] {
			if j >= len(r.widths) {
				r.widths = append(r.widths, 0)
			}
			r.widths[j] = max(r.widths[j], utf8.RuneCountInString(cell)+2)
		}
	}
	for _, row := range rows {
		if err := printPadded(r.W, row, r.widths); err != nil {
			return err
		}
	}
	return nil
}

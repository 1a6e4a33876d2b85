package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
)

// Table prints pods as a table with a header.
func Table(w io.Writer, pods []api.Pod, wide bool, now time.Time) error {
	rows := make([][]string, 0, len(pods)+1)
	rows = append(rows, header(wide))
	for i := range pods {
		rows = append(rows, row(&pods[i], wide, now))
	}
	return Columns(w, rows)
}

func header(wide bool) []string {
	columns := []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"}
	if wide {
		columns = append(columns, "UID", "OWNER")
	}
	return columns
}

// row returns the row of a pod.
func row(p *api.Pod, wide bool, now time.Time) []string {
	age := "<unknown>" // of a file that is refused
	if created := p.Metadata.CreationTimestamp; !created.IsZero() {
		age = Age(now.Sub(created))
	}
	columns := []string{p.Metadata.Name, Ready(p), Status(p), Restarts(p, now), age, cmp.Or(p.Status.PodIP, "<none>")}
	if wide {
		columns[2] = wideStatus(p, now)
		columns = append(columns, p.Metadata.UID, cmp.Or(p.Status.Owner, "<none>"))
	}
	return columns
}

// Columns prints rows with aligned columns.
func Columns(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(t, strings.Join(escaped(row), "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// escaped returns cells with hidden characters escaped.
func escaped(row []string) []string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = plain.Text(strings.ReplaceAll(cell, "\t", " "))
	}
	return cells
}

// Watch prints pods as they change, in columns of fixed width.
type Watch struct {
	W    io.Writer
	Wide bool

	printed map[string]string // the columns of the newest row of each pod, by UID; by name if it has none
}

// Print prints the row of a pod, with the header before the first one. It prints nothing if no column but AGE has changed.
func (t *Watch) Print(p *api.Pod, now time.Time) error {
	rows := [][]string{escaped(row(p, t.Wide, now))}
	if t.printed == nil {
		rows = [][]string{header(t.Wide), rows[0]}
		t.printed = map[string]string{}
	}
	columns := strings.Join([]string{Ready(p), Status(p), Restarts(p, time.Time{}), p.Status.PodIP}, " ")
	key := cmp.Or(p.Metadata.UID, p.Metadata.Name)
	if t.printed[key] == columns {
		return nil
	}
	t.printed[key] = columns
	for _, cells := range rows {
		widths := []int{24, 7, 24, 16, 8, 0, 38, 0}
		widths[len(cells)-1] = 0
		if len(cells) > 6 {
			widths[5] = 18
		}
		var b strings.Builder
		for i, cell := range cells {
			fmt.Fprintf(&b, "%-*s", widths[i], cell)
			if i < len(cells)-1 {
				b.WriteByte(' ')
			}
		}
		if _, err := fmt.Fprintln(t.W, b.String()); err != nil {
			return err
		}
	}
	return nil
}

package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/podstead/podstead/api"
)

// Table prints pods, one a row, under a header.
func Table(w io.Writer, pods []api.Pod, wide bool, now time.Time) error {
	rows := make([][]string, 0, len(pods)+1)
	rows = append(rows, header(wide))
	for i := range pods {
		rows = append(rows, Row(&pods[i], wide, now))
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

// Row is the row of one pod.
func Row(p *api.Pod, wide bool, now time.Time) []string {
	columns := []string{
		p.Metadata.Name, Ready(p), Status(p), Restarts(p, now), Age(now.Sub(p.Metadata.CreationTimestamp)),
		cmp.Or(p.Status.PodIP, "<none>"),
	}
	if wide {
		columns = append(columns, p.Metadata.UID, cmp.Or(p.Status.Owner, "<none>"))
	}
	return columns
}

// Columns prints rows with aligned columns.
func Columns(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(t, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// Watch prints pods as they change, in columns that keep their width.
type Watch struct {
	W    io.Writer
	Wide bool

	shown map[string]string // what the newest row of each pod says, by UID
}

// Print prints one row, and before the first the header. A change that no column shows is not printed.
func (t *Watch) Print(p *api.Pod, now time.Time) error {
	rows := [][]string{Row(p, t.Wide, now)}
	if t.shown == nil {
		rows = [][]string{header(t.Wide), rows[0]}
		t.shown = map[string]string{}
	}
	says := strings.Join([]string{Ready(p), Status(p), Restarts(p, time.Time{}), p.Status.PodIP}, " ")
	if t.shown[p.Metadata.UID] == says {
		return nil
	}
	t.shown[p.Metadata.UID] = says
	for _, row := range rows {
		widths := []int{24, 7, 24, 16, 8, 0, 38, 0}
		widths[len(row)-1] = 0
		if len(row) > 6 {
			widths[5] = 18
		}
		var b strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&b, "%-*s", widths[i], cell)
			if i < len(row)-1 {
				b.WriteByte(' ')
			}
		}
		if _, err := fmt.Fprintln(t.W, b.String()); err != nil {
			return err
		}
	}
	return nil
}

package timeline

import (
	"fmt"
	"strings"
)

// maxRowsOfTable bounds the rows of a table.
const maxRowsOfTable = 5000

// Page is a page with pictures and tables.
type Page struct {
	Title    string
	Text     string // lines for people; it may be empty
	Pictures []Picture
	Tables   []Table // after a table of the containers
}

// Table is a table. Its first row has the titles of the columns.
type Table struct {
	Title string
	Rows  [][]string
}

// HTML returns the page as one file.
func (p *Page) HTML() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%[1]s</title>
<style>%[2]s</style>
</head>
<body>
<h1>%[1]s</h1>
`, escape(p.Title), pageStyle)
	if p.Text != "" {
		b.WriteString("<pre>")
		for line := range strings.Lines(p.Text) {
			b.WriteString(escape(strings.TrimSuffix(line, "\n")) + "\n")
		}
		b.WriteString("</pre>\n")
	}
	for i := range p.Pictures {
		fmt.Fprintf(&b, "<div class=\"wide\" tabindex=\"0\">\n%s</div>\n", svg(p.Pictures[i:i+1], fmt.Sprintf("t%d-", i+1), false))
	}
	for _, t := range append([]Table{p.containers()}, p.Tables...) {
		t.write(&b)
	}
	b.WriteString("</body>\n</html>\n")
	return []byte(b.String())
}

// containers is a table with what the pictures show of each container.
func (p *Page) containers() Table {
	header := []string{"POD", "CONTAINER", "RUNS"}
	for _, o := range outcomes {
		header = append(header, strings.ToUpper(kindOf(string(o)).noun))
	}
	t := Table{Title: "Containers", Rows: [][]string{append(header, "FAILED PROBES")}}
	for i := range p.Pictures {
		for k := range p.Pictures[i].Lanes {
			l := &p.Pictures[i].Lanes[k]
			row := []string{p.Pictures[i].Title, l.Name, fmt.Sprint(len(l.Bars))}
			for _, o := range outcomes {
				row = append(row, fmt.Sprint(l.count(o)))
			}
			probes := 0
			for _, tick := range l.Ticks {
				if tick.Kind == ProbeFailed {
					probes++
				}
			}
			t.Rows = append(t.Rows, append(row, fmt.Sprint(probes)))
		}
	}
	return t
}

// write writes a table, with a bounded number of rows.
func (t *Table) write(b *strings.Builder) {
	if len(t.Rows) < 2 {
		return
	}
	fmt.Fprintf(b, "<h2>%s</h2>\n<div class=\"wide\" tabindex=\"0\"><table>\n", escape(t.Title))
	cells := func(row []string, tag, attributes string) {
		b.WriteString("<tr>")
		for _, cell := range row {
			fmt.Fprintf(b, "<%s%s>%s</%s>", tag, attributes, escape(cell), tag)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("<thead>")
	cells(t.Rows[0], "th", ` scope="col"`)
	b.WriteString("</thead>\n<tbody>\n")
	rows := t.Rows[1:]
	for _, row := range rows[:min(len(rows), maxRowsOfTable)] {
		cells(row, "td", "")
	}
	b.WriteString("</tbody>\n</table></div>\n")
	if more := len(rows) - maxRowsOfTable; more > 0 {
		fmt.Fprintf(b, "<p>%d more rows are not shown.</p>\n", more)
	}
}

const pageStyle = `
:root{color-scheme:light dark}
body{margin:1.5rem;font:14px/1.45 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;background:#fff;color:#1f2328}
h1{font-size:1.4rem}
h2{font-size:1.1rem;margin-top:2rem}
.wide{overflow-x:auto}
.wide svg{display:block;min-width:900px;max-width:1600px;width:100%;height:auto}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse}
th,td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #d8dee4;vertical-align:top}
th{font-size:.8rem}
td:first-child{white-space:nowrap}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}th,td{border-color:#30363d}}
`

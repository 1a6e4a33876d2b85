package timeline_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/timeline"
)

var update = flag.Bool("update", false, "update the files in testdata")

var start = time.Date(2026, 5, 4, 22, 30, 0, 0, time.UTC)

// at is a time of a picture, in minutes.
func at(minutes float64) time.Time { return start.Add(time.Duration(minutes * float64(time.Minute))) }

func span(from, to float64) timeline.Span { return timeline.Span{From: at(from), To: at(to)} }

// night is a picture with all kinds of what is drawn.
func night() timeline.Picture {
	p := timeline.Picture{
		Title: "web", Summary: "web: Running, 5 restarts", From: at(0), To: at(300), Elapsed: true,
		Ready: []timeline.Span{span(3, 40), span(100, 299)}, Off: []timeline.Span{span(80, 95)},
		Lanes: []timeline.Lane{{
			Name: "server",
			Bars: []timeline.Bar{
				{Span: span(2, 40), Outcome: timeline.Failed, Label: "exit 1", Text: "exited with code 1 (Error)"},
				{Span: span(45, 80), Outcome: timeline.Lost, Label: "lost", Text: "lost with the host"},
				{Span: span(95, 180), Outcome: timeline.OOMKilled, Label: "OOM-killed", Text: "exited with code 137 (OOMKilled)"},
				{Span: span(180, 240), Stop: at(220), Outcome: timeline.Stopped, Label: "stopped", Text: "exited with code 143 (Error)"},
				{Span: span(240, 300), Outcome: timeline.Running, Label: "running", Text: "running"},
			},
			Gaps: []timeline.Gap{
				{Span: span(0, 2), Kind: timeline.Pull, Text: "pulling the image"},
				{Span: span(40, 45), Kind: timeline.BackOff, Text: "back-off"},
			},
			Ticks: []timeline.Tick{
				{At: at(20), Kind: timeline.ProbeFailed, Text: "Liveness probe failed: timeout"},
				{At: at(44), Kind: timeline.Trouble, Text: "Error: no such file"},
				{At: at(220), Kind: timeline.Request, Text: "Restarting container server, requested by uid 0"},
			},
		}, {
			Name: "migrate",
			Bars: []timeline.Bar{{Span: span(2, 30), Outcome: timeline.Succeeded, Label: "exit 0", Text: "exited with code 0"}},
		}},
	}
	for i, kind := range []timeline.MarkKind{
		timeline.Host, timeline.Boot, timeline.Update, timeline.Requested, timeline.Daemon, timeline.PodTrouble, timeline.Phase,
	} {
		m := timeline.Mark{At: at(80 + 15*float64(i)), Kind: kind, Label: string(kind), Text: "text of " + string(kind)}
		p.Marks = append(p.Marks, m)
	}
	return p
}

// golden compares a document with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: run go test ./internal/timeline -update, and look at the file (-want +got):\n%s", path, diff)
	}
}

// elements returns the numbers of elements of a document by name. A document that is not well-formed is an error.
func elements(t *testing.T, document []byte) map[string]int {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(document)))
	if strings.HasPrefix(string(document), "<!doctype html>") {
		d.AutoClose = []string{"meta"} // all other elements are closed
	}
	d.Strict = d.AutoClose == nil
	counts, ids := map[string]int{}, map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if e, is := token.(xml.StartElement); is {
			counts[e.Name.Local]++
			for _, a := range e.Attr {
				if a.Name.Local == "id" && ids[a.Value] {
					t.Errorf("two elements have the ID %q", a.Value)
				}
				ids[a.Value] = ids[a.Value] || a.Name.Local == "id"
			}
		}
	}
}

func TestSVG(t *testing.T) {
	got := timeline.SVG([]timeline.Picture{night()})
	golden(t, "night.svg", got)
	elements(t, got)
	for _, want := range []string{
		`role="img"`, "<title id=", "<desc id=", "prefers-color-scheme:dark",
		"Container server: 5 runs, 1 running, 1 failed, 1 OOM-killed, 1 stopped, 1 lost.",
		"1 probe failure, 1 start or pull failure, 1 restart request, 1 boot, 1 host event, 1 update, 1 request",
		"<title>40m to 45m (5m), back-off</title>",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the picture does not have %s", want)
		}
	}
}

// TestSeveral checks that a document has each picture once, below the one before.
func TestSeveral(t *testing.T) {
	other := night()
	other.Title = "db"
	one, two := timeline.SVG([]timeline.Picture{night()}), timeline.SVG([]timeline.Picture{night(), other})
	a, b := elements(t, one), elements(t, two)
	if b["path"] <= 2*a["path"]-20 || b["svg"] != 1 {
		t.Errorf("%v\n%v", a, b)
	}
	if !strings.Contains(string(two), "Timeline of web, db") {
		t.Error("the title does not have both pods")
	}
}

func TestHTML(t *testing.T) {
	other := night()
	page := timeline.Page{
		Title: "Simulation", Text: "first line\nsecond line\n", Pictures: []timeline.Picture{night(), other},
		Tables: []timeline.Table{{Title: "Events", Rows: [][]string{{"TIME", "EVENT"}, {"1s", "Container started"}}}, {Title: "Empty"}},
	}
	got := page.HTML()
	counts := elements(t, got)
	want := map[string]int{"svg": 2, "table": 2, "tr": 7, "pre": 1, "h1": 1, "h2": 2, "script": 0, "img": 0, "link": 0}
	for name, n := range want {
		if counts[name] != n {
			t.Errorf("%d elements %s, want %d", counts[name], name, n)
		}
	}
	text := strings.ReplaceAll(string(got), `xmlns="http://www.w3.org/2000/svg"`, "")
	for _, never := range []string{"http:", "https:", "src=", "href=", "@import"} {
		if strings.Contains(text, never) {
			t.Errorf("the page has %s", never)
		}
	}
	if row := "<td>web</td><td>server</td><td>5</td><td>1</td><td>0</td><td>1</td>"; !strings.Contains(text, row) {
		t.Errorf("the page has no row %s", row)
	}
}

// TestTables checks that a page with many events stays bounded, and reports what is left out.
func TestTables(t *testing.T) {
	rows := [][]string{{"TIME"}}
	for i := range 12_000 {
		rows = append(rows, []string{fmt.Sprint(i)})
	}
	page := timeline.Page{Title: "p", Tables: []timeline.Table{{Title: "Events", Rows: rows}}}
	text := string(page.HTML())
	if n := strings.Count(text, "<tr>"); n != 5001 || !strings.Contains(text, "7000 more rows are not shown") {
		t.Errorf("%d rows", n)
	}
}

// TestEscapes has markup and characters that XML forbids in every text of a picture and of a page.
func TestEscapes(t *testing.T) {
	const hostile = "\"'><script>alert(1)</script><!--&amp;]]>\x00\x1b[2J\u202e\xff\ufffe"
	p := night()
	p.Title, p.Summary = hostile, hostile
	for i := range p.Lanes {
		l := &p.Lanes[i]
		l.Name = hostile
		for k := range l.Bars {
			l.Bars[k].Label, l.Bars[k].Text = hostile, hostile
		}
		for k := range l.Gaps {
			l.Gaps[k].Text = hostile
		}
		for k := range l.Ticks {
			l.Ticks[k].Text = hostile
		}
	}
	for i := range p.Marks {
		p.Marks[i].Label, p.Marks[i].Text = hostile, hostile
	}
	page := timeline.Page{
		Title: hostile, Text: hostile + "\n" + hostile, Pictures: []timeline.Picture{p},
		Tables: []timeline.Table{{Title: hostile, Rows: [][]string{{hostile}, {hostile}}}},
	}
	for name, document := range map[string][]byte{"svg": timeline.SVG([]timeline.Picture{p}), "html": page.HTML()} {
		if counts := elements(t, document); counts["script"] > 0 {
			t.Errorf("%s: a text has become an element", name)
		}
		for _, never := range []string{"<script", "<!--", "\x00", "\x1b", "\u202e", "\xff", "\ufffe"} {
			if strings.Contains(string(document), never) {
				t.Errorf("%s has %q", name, never)
			}
		}
	}
}

// TestBounded draws much more than a picture has pixels.
func TestBounded(t *testing.T) {
	p := timeline.Picture{Title: "p", From: at(0), To: at(1440), Elapsed: true, Ready: []timeline.Span{}}
	for i := range 20 {
		l := timeline.Lane{Name: fmt.Sprintf("app-%02d", i)}
		for k := range 5000 {
			from := float64(k) * 1440 / 5000
			o := timeline.Failed
			if k%3 == 0 {
				o = timeline.OOMKilled
			}
			l.Bars = append(l.Bars, timeline.Bar{Span: span(from, from+.1), Outcome: o, Label: "exit 1", Text: "exited with code 1"})
			l.Gaps = append(l.Gaps, timeline.Gap{Span: span(from+.1, from+.2), Kind: timeline.BackOff, Text: "back-off"})
			l.Ticks = append(l.Ticks, timeline.Tick{At: at(from), Kind: timeline.ProbeFailed, Text: fmt.Sprint("failed ", k)})
			if i == 0 {
				p.Ready = append(p.Ready, span(from, from+.1))
				p.Off = append(p.Off, span(from, from+.1))
				p.Marks = append(p.Marks, timeline.Mark{At: at(from), Kind: timeline.Update, Label: "update", Text: "update"})
			}
		}
		p.Lanes = append(p.Lanes, l)
	}
	document := timeline.SVG([]timeline.Picture{p})
	total := 0
	for _, n := range elements(t, document) {
		total += n
	}
	if total > 10_000 || len(document) > 3<<20 {
		t.Errorf("%d elements, %d bytes", total, len(document))
	}
	if !strings.Contains(string(document), "times: back-off") || !strings.Contains(string(document), "times, the first: failed 0") {
		t.Error("what is merged has no count")
	}
}

// TestMerged checks that bars closer than a pixel become one element with their number, and that others do not.
func TestMerged(t *testing.T) {
	p := timeline.Picture{From: at(0), To: at(1000), Elapsed: true, Lanes: []timeline.Lane{{Name: "app"}}}
	for _, from := range []float64{100, 100.1, 100.2, 300} {
		p.Lanes[0].Bars = append(p.Lanes[0].Bars, timeline.Bar{
			Span: span(from, from+.05), Outcome: timeline.Failed, Label: "exit 1", Text: "exited with code 1",
		})
	}
	text := string(timeline.SVG([]timeline.Picture{p}))
	for _, want := range []string{"<title>1h40m to 1h40m15s, 3 times: exited with code 1</title>", "<title>5h to 5h0m3s (3s), exited"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("no element %s", want)
		}
	}
}

// TestZoom checks the part of a picture: what is outside is not counted, and what reaches into it keeps its times, also those of other
// days.
func TestZoom(t *testing.T) {
	bar := func(from, to float64) timeline.Bar {
		return timeline.Bar{Span: span(from, to), Outcome: timeline.Failed, Text: "exited"}
	}
	p := timeline.Picture{
		Title: "p", From: at(0), To: at(3000),
		Marks: []timeline.Mark{{At: at(5), Kind: timeline.Update}, {At: at(1505), Kind: timeline.Update}},
		Lanes: []timeline.Lane{{
			Name: "app", Bars: []timeline.Bar{bar(0, 10), bar(20, 1505), bar(1506, 1507), bar(1600, 1700)},
			Gaps:  []timeline.Gap{{Span: span(10, 20), Kind: timeline.BackOff}, {Span: span(1505, 1506), Kind: timeline.BackOff}},
			Ticks: []timeline.Tick{{At: at(7), Kind: timeline.ProbeFailed}, {At: at(1506), Kind: timeline.ProbeFailed}},
		}},
	}
	zoomed := p.Zoom(at(1500), at(1510))
	text := string(timeline.Inline(zoomed))
	for _, want := range []string{
		"Container app: 2 runs, 2 failed.", "1 probe failure, 1 update.", fmt.Sprintf(`data-begin="%d"`, at(1500).UnixMilli()),
		fmt.Sprintf(`data-end="%d"`, at(1510).UnixMilli()), `data-left="90" data-right="1176"`,
		"2026-05-04 22:50:00 to 23:35:00 (24h45m), exited",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if len(p.Lanes[0].Bars) != 4 || len(p.Marks) != 2 {
		t.Errorf("the picture has changed: %+v", p)
	}
}

// TestAxis checks the labels of axes.
func TestAxis(t *testing.T) {
	zone := time.FixedZone("east", 2*60*60)
	for _, tt := range []struct {
		from    time.Time
		length  time.Duration
		elapsed bool
		want    []string // the first labels
	}{
		{start, 0, true, []string{"0s", "100ms", "200ms"}},
		{start, 10 * time.Second, true, []string{"0s", "1s", "2s"}},
		{start, 30 * time.Minute, true, []string{"0s", "5m", "10m"}},
		{start, 24 * time.Hour, true, []string{"0s", "3h", "6h"}},
		{start, 366 * 24 * time.Hour, true, []string{"0s", "768h", "1536h"}},
		{start, 6 * time.Hour, false, []string{"23:00", "May 5", "01:00"}},
		{start.In(zone), 6 * time.Hour, false, []string{"01:00", "02:00"}},
		{start.Add(time.Second), 10 * time.Second, false, []string{"22:30:01", "22:30:02"}},
		{start, 40 * 24 * time.Hour, false, []string{"May 5", "May 9"}},
	} {
		text := string(timeline.SVG([]timeline.Picture{{From: tt.from, To: tt.from.Add(tt.length), Elapsed: tt.elapsed}}))
		var got []string
		for line := range strings.Lines(text) {
			if rest, is := strings.CutPrefix(line, `<text class="tick"`); is {
				_, label, _ := strings.Cut(strings.TrimSuffix(rest, "</text>\n"), ">")
				got = append(got, label)
			}
		}
		if len(got) < 3 || len(got) > 13 || !cmp.Equal(got[:len(tt.want)], tt.want) {
			t.Errorf("%v from %v: %q, want %q", tt.length, tt.from, got, tt.want)
		}
	}
}

// TestCharacters compares a picture in characters with testdata, and draws it in any width.
func TestCharacters(t *testing.T) {
	var b strings.Builder
	rows, meanings := timeline.Characters(night(), 100)
	for _, r := range rows {
		fmt.Fprintf(&b, "%-8s", r.Name)
		for _, c := range r.Characters {
			b.WriteRune(c.Rune)
		}
		b.WriteByte('\n')
	}
	for _, m := range meanings {
		fmt.Fprintf(&b, "%c %s\n", m.Rune, m.Text)
	}
	const file = "testdata/night.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	pictures := []timeline.Picture{night(), {}, {From: at(0), To: at(0), Lanes: night().Lanes, Marks: night().Marks}}
	for _, p := range pictures {
		for width := range 40 {
			rows, _ := timeline.Characters(p, width)
			for _, r := range rows {
				if len(r.Characters) != max(width, 1) {
					t.Fatalf("width %d: %d characters", width, len(r.Characters))
				}
			}
		}
	}
}

package tui

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/podstead/podstead/cmd/podstead/internal/live"
)

// TestRender checks which part of a line is on the screen, for terminals that join characters and those that do not.
func TestRender(t *testing.T) {
	const joined = "👩\u200d💻"
	for _, test := range []struct {
		text         string
		left, width  int
		wc, grapheme string
	}{
		{"0123456789abcdefghij", 0, 8, "0123456…", "0123456…"},
		{"0123456789abcdefghij", 10, 20, "abcdefghij", "abcdefghij"},
		{"0123456789abcdefghij", 10, 8, "abcdefg…", "abcdefg…"},
		{"0123456789abcdefghij", 20, 8, "", ""},
		{"漢字漢字漢字", 3, 20, " 漢字漢字", " 漢字漢字"},
		{"漢字漢字漢字", 4, 5, "漢字…", "漢字…"},
		{"ae\u0301i", 1, 20, "e\u0301i", "e\u0301i"},
		{"ae\u0301i", 2, 20, "i", "i"},
		{joined + "x", 2, 20, "💻x", "x"},
		{joined + joined, 0, 3, "👩\u200d…", joined + "…"},
		{"漢字", 0, 1, "…", "…"},
		{"漢字", 0, 0, "", ""},
	} {
		for method, want := range map[ansi.Method]string{ansi.WcWidth: test.wc, ansi.GraphemeWidth: test.grapheme} {
			s := screen{width: test.width, method: method}
			if got := s.render(text(test.text), test.left, false); got != want {
				t.Errorf("%q after %d columns, %d wide, method %d: %q, want %q", test.text, test.left, test.width, method, got, want)
			}
		}
	}
}

// TestHugeCharacters checks that characters of many runes are divided, and that few of their marks are on the screen.
func TestHugeCharacters(t *testing.T) {
	for _, method := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
		s := screen{width: 200, method: method}
		for name, huge := range map[string]string{
			"syllable": strings.Repeat("ᄀ", 4000),
			"marks":    "a" + strings.Repeat("\u0301", 4000) + "b",
			"joiners":  strings.Repeat("👩\u200d", 2000),
		} {
			if got := s.columns(s.render(text(huge), 0, false)); method == ansi.WcWidth && name != "marks" && got < 199 {
				t.Errorf("%s has %d columns", name, got)
			}
			for left := range 5 {
				got := s.render(text(huge), left, false)
				if s.columns(got) > 200 || len(got) > 200*4 {
					t.Fatalf("%s after %d columns, method %d: %d columns, %d bytes", name, left, method, s.columns(got), len(got))
				}
			}
		}
	}
}

// TestMoveAside checks the text after the keys right and left.
func TestMoveAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.lists <- pods()
		f.lines["crash"] = make(chan []live.Line, 1)
		f.lines["crash"] <- []live.Line{{Container: "app", Time: ago(0), Text: "0123456789" + strings.Repeat("a long text ", 10) + "end"}}
		d := drive(t, f, 40, 24)
		d.press("l right right")
		d.shows("\n789a long text")
		d.press("right right right right right right right right right right")
		d.shows("ng text end\n")
		d.press("left left left left left left left left left left left left left")
		d.shows(" app 0123456789a long")
		d.press("esc d right")
		d.shows("ash\n")
		d.press("esc ? right right")
		d.shows("\n     one line down or up\n")
	})
}

// TestQuestions checks that a question is readable in all its parts before it is answered, and where the end of a long text is.
func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := newFake(), pods()
		l.Pods[0].Name = strings.Repeat("very-long-name-", 10) + "end"
		l.Pods[3].Containers = strings.Split("abcdefghijklmn", "")
		f.lists <- l
		d := drive(t, f, 60, 24)
		d.press("r")
		if got := strings.ReplaceAll(d.plainScreen(), "\n", ""); !strings.Contains(got, l.Pods[0].Name+`"?(y/n)`) {
			t.Errorf("the question is cut:\n%s", d.plainScreen())
		}
		d.m.screen.height = 4
		d.shows(tooSmall)
		d.press("y")
		d.shows(tooSmall)
		d.press("r")
		d.shows(tooSmall)
		d.m.screen.width, d.m.screen.height = 9, 24
		d.press("r")
		d.m.screen.width = 60
		d.shows(tooSmall)
		if len(f.actions) > 0 {
			t.Errorf("actions %q that the user could not read", f.actions)
		}
		d.press("j j j s")
		d.shows("podstead exec -it web -c CONTAINER -- sh", "1 a", "9 i", "a j", "e n")
		d.press("e")
		if len(f.shell) != 1 || f.shell[0] != "web n" {
			t.Errorf("shells %q", f.shell)
		}
		d.press("/ " + strings.Repeat("x ", 70) + "e n d")
		d.shows("xxxend\n")
		if at := d.m.View().Cursor.X; at != 59 {
			t.Errorf("the cursor is in column %d", at)
		}
	})
}

// TestSamePods checks that actions reach the pod at the cursor if others have its name, and none for a file that is refused. No command is
// shown for a name that is special to a shell.
func TestSamePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.lists <- live.List{Pods: []live.Row{
			{Name: "web", Status: "Failed", Need: live.Failing, Refused: true},
			{Name: "web", UID: "old", Need: live.Moving},
			{Name: "web", UID: "new", Need: live.Well},
			{Name: "-o;reboot.toml", Need: live.Failing, Refused: true},
			{Name: "scheduled", Need: live.Failing, Scheduled: true}, // its last run has failed
		}}
		d := drive(t, f, 80, 24)
		d.press("r")
		d.shows("its file is refused")
		d.press("j j r y k r y")
		d.press("j j j S y")
		if got := strings.Join(f.actions, ", "); got != "restart web new, restart web old, start scheduled " {
			t.Errorf("actions %s", got)
		}
		d.press("k d")
		d.shows("describe -o;reboot.toml")
		if got := d.plainScreen(); strings.Contains(got, "podstead describe") {
			t.Errorf("a command for a name that is special to a shell:\n%s", got)
		}
	})
}

// TestCursorStays checks that the cursor stays at the first pod, before it was moved too. Esc deselects pods.
func TestCursorStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := newFake(), pods()
		f.lists <- l
		d := drive(t, f, 80, 24)
		l.Pods = append([]live.Row{{Name: "first", UID: "0", Status: "Failed", Need: live.Failing}}, l.Pods...)
		f.lists <- l
		d.settle()
		d.press("r y")
		if len(f.actions) != 1 || f.actions[0] != "restart crash 1" {
			t.Errorf("actions %q", f.actions)
		}
		d.press("space / n o n e enter l")
		d.shows("logs crash")
		d.press("esc esc")
		d.shows("*crash")
		d.press("esc")
		if strings.Contains(d.plainScreen(), "*crash") {
			t.Error("the pod is still selected")
		}
	})
}

// TestShellWithoutDaemon checks that no shell is opened while the daemon is lost, since it would start one. An error that arrives while a
// prompt is open stays until it was seen.
func TestShellWithoutDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.lists <- pods()
		d := drive(t, f, 80, 24)
		d.press("s")
		f.lists <- live.Lost{Error: "daemon unavailable"}
		d.settle()
		d.press("y")
		d.shows(`exec pod "crash": daemon unavailable`)
		d.press("s")
		d.shows(`exec pod "crash": daemon unavailable`)
		if d.press("y"); len(f.shell) > 0 {
			t.Errorf("shells %q", f.shell)
		}
		d.press(":")
		d.m.Update(done{"it failed", true})
		d.press("x esc")
		d.shows("it failed")
	})
}

// TestQuiet checks that a daemon that does not respond is not shown as live.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.lists <- pods()
		d := drive(t, f, 80, 24)
		d.after(quietTime)
		d.shows("  live\n")
		d.after(2 * time.Second)
		d.shows("no update for 17s\n")
		f.lists <- pods()
		d.settle()
		d.shows("  live\n")
	})
}

// TestLogOrder checks the place of lines that are late, of logs that are read later, and of lines that were written after the clock was
// set.
func TestLogOrder(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	var lines []live.Line
	for _, l := range []struct {
		container string
		at        time.Duration
		text      string
	}{
		{"a", 0, "1"},
		{"a", time.Hour, "4"},
		{"b", 2 * time.Second, "2"}, // the log of another container, read later
		{"b", 3 * time.Second, "3"},
		{"a", time.Hour - 2*time.Second, "before 4"},
		{"a", 0, "5"}, // the clock was set
		{"b", 4 * time.Second, "7"},
		{"a", time.Second, "6"},
	} {
		lines = insert(lines, live.Line{Container: l.container, Time: start.Add(l.at), Text: l.text})
	}
	var got []string
	for _, l := range lines {
		got = append(got, l.Text)
	}
	if got, want := strings.Join(got, ", "), "1, 2, 3, before 4, 4, 5, 6, 7"; got != want {
		t.Errorf("lines %s, want %s", got, want)
	}
}

// TestLogLimits checks that the text of logs is bounded, that lines on the screen stay with a filter too, and that logs that are late are
// marked.
func TestLogLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.lists <- pods()
		f.lines["crash"] = make(chan []live.Line)
		d := drive(t, f, 120, 24)
		d.press("l")
		write := func(lines int, before time.Duration, text string) {
			batch := make([]live.Line, lines)
			for i := range batch {
				batch[i] = live.Line{Pod: "crash", Container: "app", Time: ago(before), Text: text}
			}
			f.lines["crash"] <- batch
			d.settle()
		}
		v, _ := d.m.current().(*logView)
		write(live.MaxBatch, 16*time.Second, "even")
		d.shows("500 lines, behind by 16s")
		write(1, 16*time.Second, "odd")
		if got := d.plainScreen(); strings.Contains(got, "behind") {
			t.Errorf("a batch that is not full:\n%s", got)
		}
		write(live.MaxBatch, 16*time.Second, "even")
		d.after(lagTime + time.Second)
		if got := d.plainScreen(); strings.Contains(got, "behind") {
			t.Errorf("no batch for some time:\n%s", got)
		}
		for range 4 {
			write(live.MaxBatch, 0, "even")
			write(live.MaxBatch, 0, "odd")
		}
		d.press("/ e v e n enter g pgdown pgdown")
		top := v.scroll.top
		write(maxLines-len(v.lines)+7, 0, "odd")
		if len(v.lines) != maxLines || v.skipped != 7 || top < 20 || v.scroll.top != top-7 {
			t.Errorf("%d lines, %d skipped, the first on the screen is %d, before %d", len(v.lines), v.skipped, v.scroll.top, top)
		}
		const long = 10_000
		write(maxBytes/long+100, 0, strings.Repeat("x", long))
		bytes := 0
		for _, l := range v.lines {
			bytes += len(l.Text)
		}
		if bytes > maxBytes || bytes < maxBytes-long || len(v.matches) > 0 {
			t.Errorf("%d bytes, %d lines that the filter selects", bytes, len(v.matches))
		}
	})
}

// TestNarrowList checks that a narrow screen has whole columns, the names before others.
func TestNarrowList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for width, want := range map[int]string{
			30: " NAME          STATE     READY\n",
			40: " NAME                STATE         READY\n",
			60: " NAME                  STATE         READY  RESTARTS     AGE\n",
			70: " NAME                     STATE         READY  RESTARTS     CPU    AGE\n",
		} {
			f := newFake()
			f.lists <- pods()
			drive(t, f, width, 24).shows(want)
		}
	})
}

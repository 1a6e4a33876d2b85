package tui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/live"
	"github.com/podstead/podstead/internal/plain"
)

var update = flag.Bool("update", false, "write the screens of testdata")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	if name := os.Getenv(helperVariable); name != "" {
		os.Exit(helper(name))
	}
	flag.Parse()
	os.Exit(m.Run())
}

// fakeSource is a daemon in memory.
type fakeSource struct {
	lists   chan any
	details map[string]*live.Detail
	lines   map[string]chan []live.Line // by the first pod; closed: all logs are complete
	asked   int                         // requests for details
	opened  int                         // logs that are followed
	actions []string
	err     error // of actions
	shell   []string
}

func newFake() *fakeSource {
	return &fakeSource{lists: make(chan any, 10), details: map[string]*live.Detail{}, lines: map[string]chan []live.Line{}}
}

func (f *fakeSource) Pods(ctx context.Context, _ *time.Location, show func(any) error) error {
	for {
		select {
		case l := <-f.lists:
			if err := show(l); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *fakeSource) Pod(_ context.Context, name string, _ *time.Location) (*live.Detail, error) {
	f.asked++
	if d := f.details[name]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("no such pod %q", name)
}

func (f *fakeSource) Logs(ctx context.Context, names []string, _ int, show func([]live.Line) error) error {
	f.opened++
	defer func() { f.opened-- }()
	for {
		select {
		case lines, open := <-f.lines[names[0]]:
			if !open {
				return nil
			}
			if err := show(lines); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *fakeSource) options() *Options {
	act := func(verb string) func(context.Context, string, string) error {
		return func(_ context.Context, name, uid string) error {
			f.actions = append(f.actions, verb+" "+name+" "+uid)
			return f.err
		}
	}
	return &Options{
		Source:   f,
		Describe: func(_ context.Context, name string) (string, error) { return "Name:  " + name + "\nReady:  1/1\n", nil },
		Manifest: func(context.Context, string) (string, error) { return "", errors.New("no such pod") },
		Restart:  act("restart"), Stop: act("stop"), Start: act("start"),
		Shell: func(_ context.Context, pod, container string) *exec.Cmd {
			f.shell = append(f.shell, pod+" "+container)
			return exec.Command("true")
		},
	}
}

// driver runs a model in a bubble of synctest.
type driver struct {
	t    *testing.T
	m    *model
	msgs chan tea.Msg
	quit bool
}

func drive(t *testing.T, f *fakeSource, width, height int) *driver {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		time.Sleep(2 * time.Second) // until the last tick
	})
	d := &driver{t: t, msgs: make(chan tea.Msg, 1000)}
	d.m = newModel(ctx, f.options(), func(msg tea.Msg) { d.msgs <- msg })
	d.m.screen.width, d.m.screen.height = width, height
	d.run(d.m.Init())
	d.settle()
	return d
}

// run runs commands as bubbletea does.
func (d *driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, one := range msg {
				d.run(one)
			}
		default:
			d.msgs <- msg
		}
	}()
}

// settle handles messages until there are none.
func (d *driver) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-d.msgs:
			if _, quit := msg.(tea.QuitMsg); quit {
				d.quit = true
			}
			_, cmd := d.m.Update(msg)
			d.run(cmd)
		default:
			return
		}
	}
}

func (d *driver) after(wait time.Duration) {
	for range wait / time.Second {
		time.Sleep(time.Second)
		d.settle()
	}
}

var keys = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "space": tea.KeySpace, "down": tea.KeyDown, "up": tea.KeyUp,
	"right": tea.KeyRight, "left": tea.KeyLeft, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd,
}

// press presses keys, which are separated by spaces.
func (d *driver) press(list string) {
	for key := range strings.FieldsSeq(list) {
		msg := tea.KeyPressMsg{Text: key, Code: []rune(key)[0]}
		if code, special := keys[key]; special {
			msg = tea.KeyPressMsg{Code: code}
		} else if letter, is := strings.CutPrefix(key, "ctrl+"); is {
			msg = tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
		}
		_, cmd := d.m.Update(msg)
		d.run(cmd)
		d.settle()
	}
}

func (d *driver) screen() string { return strings.Join(d.m.draw(), "\n") }

var codes = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// plainScreen is the screen without styles.
func (d *driver) plainScreen() string {
	lines := strings.Split(codes.ReplaceAllString(d.screen(), ""), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// shows checks that the screen has texts.
func (d *driver) shows(wanted ...string) {
	d.t.Helper()
	for _, want := range wanted {
		if got := d.plainScreen(); !strings.Contains(got, want) {
			d.t.Errorf("no %q on the screen:\n%s", want, got)
		}
	}
}

// golden compares the screen with a file of testdata.
func (d *driver) golden(name string) {
	d.t.Helper()
	file, got := filepath.Join("testdata", name+".txt"), d.plainScreen()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		d.t.Errorf("go test ./cmd/podstead/internal/tui -update writes the screen; -want +got:\n%s", diff)
	}
}

func ago(d time.Duration) time.Time { return time.Now().Add(-d) }

// pods is a list with all needs.
func pods() live.List {
	return live.List{Pods: []live.Row{
		{
			Name: "crash", UID: "1", Status: "CrashLoopBackOff", Ready: "0/1", Need: live.Failing, Restarts: 7,
			LastRestart: ago(40 * time.Second), Created: ago(time.Hour),
			Text:       "crash restarted 7 times because it exited with code 3 after 12ms. Next restart in 2m40s.",
			Containers: []string{"crasher"},
		},
		{
			Name: "a-pod-with-a-long-name-of-a-deployment-7f9d8b6c5d-x2x4q", UID: "2", Status: "Running", Ready: "1/1", Need: live.Noticed,
			Restarts: 1, LastRestart: ago(30 * time.Minute), Created: ago(3 * 24 * time.Hour), CPU: new(uint64(2_500_000)),
			Memory: new(uint64(34 << 20)), Limit: new(uint64(64 << 20)), Text: "restarted once because it was OOM-killed.",
		},
		{
			Name: "new", UID: "3", Status: "ContainerCreating", Ready: "0/1", Need: live.Moving, Created: ago(2 * time.Second),
			Text: "new: starting.",
		},
		{
			Name: "web", UID: "4", Status: "Running", Ready: "2/2", Need: live.Well, Created: ago(5 * time.Hour),
			CPU: new(uint64(1_200_000_000)), Memory: new(uint64(3 << 30)), Text: "web is ready.", Containers: []string{"app", "proxy"},
		},
		{Name: "job", UID: "5", Status: "Completed", Ready: "0/1", Need: live.Over, Created: ago(26 * time.Hour), Text: "job completed."},
	}}
}

// crashed is the detail of the pod crash.
func crashed() *live.Detail {
	cause := &api.Cause{
		Kind: api.CauseExited, Container: "crasher", Hint: "see the log",
		Exit: &api.ContainerExit{Code: 3, Reason: "Error", StartedAt: ago(61 * time.Second), FinishedAt: ago(time.Minute)},
	}
	d := &live.Detail{Explanation: api.Explanation{
		Pod: "crash", UID: "1", State: api.PodStateNotReady, Restarts: 2, Cause: cause,
		Next: time.Now().Add(20 * time.Second),
		Containers: []api.ExplainedContainer{{
			Name: "crasher", State: api.ContainerWaiting, Reason: "CrashLoopBackOff", Restarts: 2, Cause: cause, WillRestart: true,
			RestartCauses: []api.RestartCause{{Cause: cause, Count: 2, Last: ago(time.Minute)}},
			Probes:        []api.ProbeAnswer{{Probe: api.ProbeReadiness, Outcome: api.ProbeFailure, Time: ago(2 * time.Minute)}},
		}},
	}}
	d.Exits = []live.Exit{{
		Container: "crasher", Command: "podstead logs crash -c crasher --previous --tail 20",
		Exit:     &api.ContainerExit{Code: 3, Reason: "Error", FinishedAt: ago(time.Minute)},
		Evidence: api.Evidence{Log: []string{"starting", "\x1b[2Jcleared"}, TerminationMessage: "the disk is full"},
	}}
	event := func(seq, cause uint64, before time.Duration, kind api.EventKind, level api.EventLevel, message string) {
		e := api.Event{
			Seq: seq, Cause: cause, Time: ago(before), Kind: kind, Level: level, Reason: string(kind), Pod: "crash", Message: message,
		}
		if seq > 1 {
			e.Container, e.Attempt, e.Fields = "crasher", 1, map[string]string{"code": "3"}
		}
		d.Events = append(d.Events, e)
	}
	event(1, 0, 10*time.Minute, api.EventPodAccepted, api.EventNormal, "Pod accepted")
	event(2, 1, 9*time.Minute, api.EventContainerStarted, api.EventNormal, "Container started")
	event(3, 2, 5*time.Minute, api.EventContainerFailed, api.EventWarning, "Container exited with code 3 (Error)")
	event(4, 3, 4*time.Minute, api.EventContainerStarted, api.EventNormal, "Container started")
	event(5, 4, time.Minute, api.EventContainerFailed, api.EventWarning, "Container exited with code 3 (Error)")
	event(6, 5, time.Minute, api.EventContainerBackOff, api.EventWarning, "Back-off 20s restarting failed container\x1b[31m")
	return d
}

// TestScreens compares the screens with those of testdata.
func TestScreens(t *testing.T) {
	for name, test := range map[string]struct {
		width, height int
		keys          string
	}{
		"list-80":    {80, 24, "G"},
		"list-200":   {200, 60, "j space j"},
		"filter":     {80, 12, "/ c r a enter"},
		"details-80": {80, 40, "enter"},
		"details":    {140, 45, "enter + + +"},
		"logs":       {80, 12, "space j j j space l"},
		"describe":   {80, 8, "d"},
		"restart":    {80, 12, "j j j r"},
		"shell":      {80, 12, "j j j s"},
		"help":       {80, 50, "?"},
		"small":      {30, 6, "j"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.details["crash"] = crashed()
				f.lines["crash"] = make(chan []live.Line, 1)
				f.lines["crash"] <- lines()
				f.lists <- pods()
				d := drive(t, f, test.width, test.height)
				d.press(test.keys)
				d.golden(name)
			})
		})
	}
}

// lines are lines of hostile containers.
func lines() []live.Line {
	line := func(pod, stream, text string) live.Line {
		return live.Line{Pod: pod, Container: "app", Stream: stream, Time: time.Now(), Text: text}
	}
	return []live.Line{
		line("web", "stdout", "GET / 200"), line("crash", "stderr", "\x1b[31mred\x1b[0m \x07 \x9b2J"),
		line("web", "stdout", "漢字 👩\u200d💻 é"), line("web", "stdout", "a\tb\tc"), line("crash", "stdout", strings.Repeat("long ", 40)),
		line("crash", live.Note, "the log is complete"),
	}
}

// TestHostile checks that no text reaches the terminal with characters that control it, and that all screens fit, in any size.
func TestHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const evil = "\x1b[2J\x1b]0;title\x07\u202e\x9b31m漢字👩\u200d💻\u0301\t\r\n\x00\xff"
		f, l := newFake(), pods()
		for i := range l.Pods {
			r := &l.Pods[i]
			r.Status, r.Text = r.Status+evil, r.Text+evil+strings.Repeat("漢", 100)
		}
		l.Pods[0].Name = evil
		l.Pods[3].Containers = []string{evil, "b"}
		detail := crashed()
		detail.Containers[0].Name, detail.Cause.Container, detail.Cause.Hint, detail.NotDurable = evil, evil, evil, evil
		detail.Events[4].Message, detail.Events[4].Container, detail.Exits[0].Evidence.Log[0] = evil, evil, evil
		f.details[evil] = detail
		f.details["web"] = detail
		f.lines["web"] = make(chan []live.Line, 1)
		all := lines()
		all[0].Text, all[1].Container, all[2].Pod = evil, evil, evil
		f.lines["web"] <- all
		f.lists <- l
		f.err = errors.New(evil)
		d := drive(t, f, 80, 24)
		check := func(what string) {
			t.Helper()
			for _, width := range []int{1, 2, 3, 10, 30, 79, 80, 119, 120, 200} {
				for _, height := range []int{1, 2, 3, 5, 24, 60} {
					for _, colour := range []bool{false, true} {
						d.m.screen = screen{width: width, height: height, colour: colour}
						screen := d.screen()
						hidden := func(r rune) bool { return r != '\n' && plain.Hidden(r) }
						if strings.ContainsFunc(codes.ReplaceAllString(screen, ""), hidden) {
							t.Fatalf("%s, %d×%d: %q", what, width, height, screen)
						}
						if !colour && regexp.MustCompile(`\x1b\[[0-9;]*3[0-7]`).MatchString(screen) {
							t.Fatalf("%s has colours: %q", what, screen)
						}
						rows := strings.Split(screen, "\n")
						for _, row := range rows {
							if got := ansi.StringWidthWc(row); got > width {
								t.Errorf("%s, %d×%d: %d columns: %q", what, width, height, got, row)
							}
						}
						if len(rows) != height {
							t.Errorf("%s, %d×%d: %d lines", what, width, height, len(rows))
						}
					}
				}
			}
			d.m.screen = screen{width: 80, height: 24}
		}
		check("list")
		for _, step := range []struct{ keys, what string }{
			{"enter", "details of a hostile name"},
			{"r", "restart of a hostile name"},
			{"esc d", "description"},
			{"esc j j j s", "shell"},
			{"esc r", "question"},
			{"y", "error"},
			{"l", "logs"},
			{"right right", "moved logs"},
			{"/ 漢", "filtered logs"},
			{"esc esc enter", "details"},
			{"G", "events"},
			{"?", "help"},
		} {
			d.press(step.keys)
			check(step.what)
		}
		d.m.Update(live.Lost{Error: evil})
		check("lost")
	})
}

// TestActions checks that actions ask, name their command, and report their result.
func TestActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.lists <- pods()
		f.details["web"] = crashed()
		d := drive(t, f, 80, 24)
		d.press("j j j r")
		d.shows(`Run "podstead restart web"? (y/n)`)
		d.press("x")
		d.shows("canceled")
		d.press("r y")
		d.shows("pod/web restarted")
		d.press("enter ctrl+k y")
		d.shows("pod/web stopping")
		d.press("S y")
		f.err = errors.New("DELETE /v1/pods/{name} is not allowed over the read-only socket, which is for those who look")
		d.press("ctrl+k y")
		d.shows("is not allowed over the read-only\n", "socket, which is for those who look")
		if diff := cmp.Diff([]string{"restart web 4", "stop web 4", "start web 4", "stop web 4"}, f.actions); diff != "" {
			t.Errorf("actions (-want +got):\n%s", diff)
		}
		d.press("s 2")
		d.press("esc g s y")
		if diff := cmp.Diff([]string{"web proxy", "crash "}, f.shell); diff != "" {
			t.Errorf("shells (-want +got):\n%s", diff)
		}
		l := pods()
		l.Pods = l.Pods[1:]
		d.press("enter")
		f.lists <- l
		d.settle()
		d.press("r")
		d.shows(`no such pod "crash"`)
	})
}

// TestKeys checks the prompts, and which keys leave a page and the program.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.lists <- pods()
		d := drive(t, f, 80, 24)
		d.press("/ w e b backspace enter")
		d.shows(`1 of 5 pods, filter "we"`, "web")
		if strings.Contains(d.plainScreen(), "crash") {
			t.Error("the filter selects another pod")
		}
		d.press("enter")
		d.shows(`no such pod "web"`)
		d.press("esc")
		d.shows(`filter "we"`)
		d.press("esc")
		d.shows("crash")
		d.press("/ q esc : n o n s e n s e enter")
		d.shows(`unknown command "nonsense"`)
		d.press("y")
		d.shows("no such pod")
		d.press("y")
		d.m.Update(tea.KeyPressMsg{Code: tea.KeyEscape, Mod: tea.ModAlt}) // Esc twice
		d.shows("5 pods")
		d.press("enter ? ? : p o d s enter")
		d.shows("5 pods")
		d.press("G j k up g down end home pgdown pgup ctrl+f ctrl+b")
		if d.m.pages[0].(*listView).at != 0 {
			t.Error("the cursor is not at the first pod")
		}
		for _, quit := range []string{"q", "ctrl+c", ": q enter", "/ ctrl+c", "enter q"} {
			d.quit = false
			if d.press(quit); !d.quit {
				t.Errorf("%s does not quit", quit)
			}
			d.press("esc")
		}
	})
}

// TestLive checks that the cursor stays at its pod, that the details are requested again after changes and after some time, and that the
// screen shows whether it is current.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d := drive(t, f, 80, 24)
		d.shows("connecting", "Waiting for the list of pods.")
		f.lists <- live.List{}
		d.settle()
		d.shows("0 pods", "podstead apply FILE")
		f.lists <- pods()
		d.settle()
		d.shows("live", "5 pods, 1 need attention, 1 restarted, 1 starting or stopping")
		d.press("j j j")
		l := pods()
		l.Pods[0], l.Pods[3] = l.Pods[3], l.Pods[0]
		l.Pods[0].Status = "Failed"
		f.details["web"] = crashed()
		d.press("enter")
		f.lists <- l
		d.settle()
		f.lists <- l
		d.settle()
		if f.asked != 2 {
			t.Errorf("%d requests for details", f.asked)
		}
		d.after(2 * refreshInterval)
		if f.asked != 4 {
			t.Errorf("%d requests for details after some time", f.asked)
		}
		f.lists <- live.Lost{Error: "daemon unavailable"}
		d.settle()
		d.after(5 * time.Second)
		d.shows("not current for 5s: daemon unavailable")
		f.lists <- live.Failed{Error: "broken"}
		d.settle()
		d.shows("not current for 5s: broken")
		f.lists <- l
		d.press("esc")
		d.shows("live")
		if v := d.m.pages[0].(*listView); v.shown()[v.at].Name != "web" {
			t.Error("the cursor is at another pod")
		}
		d.after(2 * refreshInterval)
		if f.asked != 4 {
			t.Errorf("%d requests for details that are closed", f.asked)
		}
	})
}

// TestManyLines checks that logs are bounded, follow while their end is visible, and end with their page.
func TestManyLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.lists <- pods()
		f.lines["crash"] = make(chan []live.Line)
		d := drive(t, f, 80, 24)
		d.press("l")
		start := time.Now()
		write := func(from, to int) {
			var batch []live.Line
			for i := from; i < to; i++ {
				at := start.Add(time.Duration(i^1) * time.Millisecond) // each second line comes late
				batch = append(batch, live.Line{Pod: "crash", Container: "app", Time: at, Text: fmt.Sprintf("line %d.", i)})
			}
			f.lines["crash"] <- batch
			d.settle()
		}
		for i := range 50 {
			write(500*i, 500*(i+1))
		}
		v, _ := d.m.current().(*logView)
		if len(v.lines) != maxLines || cap(v.lines) > 4*maxLines || v.skipped != 15_000 {
			t.Errorf("%d lines, %d in memory, %d skipped", len(v.lines), cap(v.lines), v.skipped)
		}
		d.shows("line 24998.", "line 24999.")
		if strings.Index(d.plainScreen(), "24999") > strings.Index(d.plainScreen(), "24998") {
			t.Error("lines are not in the order of their times")
		}
		d.press("k")
		d.shows("not following", "line 24978.")
		write(25_000, 25_500)
		d.shows("line 24978.")
		d.press("/ 2 5 4 9 9 enter")
		d.shows(`filter "25499": 1 of 10000 lines`)
		write(254_990, 254_992)
		d.shows("3 of 10000 lines", "line 254991.")
		d.press("esc G")
		write(300_000, 300_010)
		d.shows("line 300009.")
		close(f.lines["crash"])
		d.settle()
		d.shows("complete")
		d.press("esc")
		f.lines["crash"] = make(chan []live.Line)
		d.press("l")
		if f.opened != 1 {
			t.Errorf("%d logs are followed", f.opened)
		}
		if d.press("esc"); f.opened != 0 {
			t.Errorf("%d logs are followed after the page", f.opened)
		}
	})
}

// BenchmarkDraw draws a list of 200 pods.
func BenchmarkDraw(b *testing.B) {
	m := newModel(b.Context(), newFake().options(), nil)
	m.screen.width, m.screen.height = 200, 60
	for i := range 200 {
		r := pods().Pods[i%5]
		r.Name = fmt.Sprintf("pod-%03d", i)
		m.rows = append(m.rows, r)
	}
	for b.Loop() {
		m.draw()
	}
}

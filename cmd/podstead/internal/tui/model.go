package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/podstead/podstead/cmd/podstead/internal/live"
)

// model is the program: the list of pods, a stack of pages on it, and the line at the bottom. It is used by one goroutine. Others send it
// messages.
type model struct {
	Options

	ctx context.Context //nolint:containedctx // commands end with the program
	// send sends a message to the model. It must be called by commands only: the model cannot wait for itself.
	send   func(tea.Msg)
	out    *terminal // nil in tests of the model
	shown  *tea.View // the last one; nil: none
	now    time.Time
	screen screen

	rows   []live.Row
	listed bool
	lost   string // why the list is not current; empty: it is
	since  time.Time
	// updated is the time of the last list.
	updated time.Time

	pages  []page // the first is the list
	prompt *prompt
	notice string // the result of the last action, until the next key
	failed bool   // the notice is an error
	crash  *crash // nil: none
}

// page is what the screen shows between its first and its last line.
type page interface {
	title() string
	// update receives all messages, also those for other pages.
	update(msg tea.Msg) tea.Cmd
	// key handles a key, and reports whether it is one of the page.
	key(key string) (tea.Cmd, bool)
	// draw returns the lines for a place of this height.
	draw(height int) []string
	parts() *common
}

// common is what all pages have. The context ends with the page.
type common struct {
	*model

	command string // of podstead, that shows the same; empty: there is none
	keys    string
	wanted  string // the filter: lines must contain it
	scroll  scroll
	ctx     context.Context //nolint:containedctx // requests end with the page
	cancel  context.CancelFunc
}

func (m *model) common(command, keys string) common {
	c := common{model: m, command: command, keys: keys}
	c.ctx, c.cancel = context.WithCancel(m.ctx)
	return c
}

func (c *common) parts() *common { return c }

// height is the number of lines of a page.
func (m *model) height() int { return max(m.screen.height-2, 1) }

// taken is sent when the terminal is no longer late: the screen can change.
type taken struct{}

// quietTime is the age of the list from which the screen shows it: the daemon does not respond, or is slow.
const quietTime = 3 * live.StatsInterval

// tick is sent each second: the screen has ages.
type tick time.Time

func ticks() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

func newModel(ctx context.Context, o *Options, send func(tea.Msg)) *model {
	m := &model{
		Options: *o, ctx: ctx, send: send, now: time.Now(), screen: screen{width: 80, height: 24, colour: o.Colour},
	}
	m.pages = []page{newList(m)}
	return m
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd {
	return tea.Batch(ticks(), do(func() tea.Msg {
		_ = m.Source.Pods(m.ctx, time.Local, func(v any) error { // it fails when the program ends
			m.send(v)
			return context.Cause(m.ctx)
		})
		return nil
	}))
}

func (m *model) current() page { return m.pages[len(m.pages)-1] }

// push opens a page.
func (m *model) push(v page, load tea.Cmd) tea.Cmd {
	m.pages = append(m.pages, v)
	return load
}

// pop closes the page above the list.
func (m *model) pop() {
	if len(m.pages) > 1 {
		m.current().parts().cancel()
		m.pages = m.pages[:len(m.pages)-1]
	}
}

// row returns the line of a pod by its name; nil: there is none.
func (m *model) row(name string) *live.Row {
	for i := range m.rows {
		if m.rows[i].Name == name {
			return &m.rows[i]
		}
	}
	return nil
}

// Update implements [tea.Model]. A panic ends the program: bubbletea would print it to stderr, which can be a file.
func (m *model) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer func() {
		if value := recover(); value != nil {
			m.crash, cmd = newCrash(value), tea.Quit
		}
	}()
	return m, m.handle(msg)
}

func (m *model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return m.press(&msg)
	case tea.PasteMsg:
		if m.prompt != nil {
			return m.prompt.add(msg.Content)
		}
		return nil
	case tea.WindowSizeMsg:
		m.screen.width, m.screen.height = msg.Width, msg.Height
	case tea.ModeReportMsg:
		if msg.Mode == ansi.ModeUnicodeCore && msg.Value != ansi.ModeNotRecognized { // as the renderer of bubbletea
			m.screen.method = ansi.GraphemeWidth
		}
	case tick:
		m.now = time.Time(msg)
		return tea.Batch(ticks(), m.update(msg))
	case live.List:
		m.rows, m.listed, m.lost, m.updated = msg.Pods, true, "", m.now
	case live.Lost:
		m.lose(msg.Error)
	case live.Failed:
		m.lose(msg.Error)
	case *crash:
		m.crash = msg
		return tea.Quit
	case stopped:
		return m.suspend()
	case done:
		m.notice, m.failed = msg.text, msg.failed
	}
	return m.update(msg)
}

// fail shows an error until the next key.
func (m *model) fail(err string) { m.notice, m.failed = err, true }

func (m *model) lose(err string) {
	if m.lost == "" {
		m.since = m.now
	}
	m.lost = err
}

// update passes a message to all pages.
func (m *model) update(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	for _, v := range m.pages {
		cmds = append(cmds, v.update(msg))
	}
	return tea.Batch(cmds...)
}

// press handles a key.
func (m *model) press(msg *tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	if key == "alt+esc" { // Esc twice, in one read
		esc := tea.KeyPressMsg{Code: tea.KeyEscape}
		return tea.Batch(m.press(&esc), m.press(&esc))
	}
	if m.prompt == nil {
		m.notice = "" // with a prompt, it was not on the screen yet
	}
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case key == "ctrl+z":
		return m.suspend()
	case m.prompt != nil:
		return m.prompt.press(key, msg.Text)
	}
	if cmd, is := m.current().key(key); is {
		return cmd
	}
	switch key {
	case "q":
		return tea.Quit
	case ":":
		m.ask(&prompt{label: ":", enter: m.run})
	case "?":
		return m.run("help")
	case "/":
		filter := &m.current().parts().wanted
		m.ask(&prompt{label: "/", text: *filter, change: func(text string) { *filter = text }, cancel: func() { *filter = "" }})
	case "esc":
		if filter := &m.current().parts().wanted; *filter != "" {
			*filter = ""
		} else {
			m.pop()
		}
	}
	return nil
}

// run runs a command of the prompt.
func (m *model) run(command string) tea.Cmd {
	switch strings.TrimSpace(command) {
	case "":
	case "q", "q!", "quit":
		return tea.Quit
	case "help":
		if m.current().title() == helpTitle {
			return nil
		}
		return m.push(newText(m, helpTitle, "podstead help tui", help), nil)
	case "pods", "po", "pod":
		for len(m.pages) > 1 {
			m.pop()
		}
	default:
		m.fail(fmt.Sprintf("unknown command %q: use :q, :pods or :help", command))
	}
	return nil
}

// View implements [tea.Model]. A panic ends the program, as in Update.
func (m *model) View() (v tea.View) {
	defer func() {
		if value := recover(); value != nil && m.crash == nil {
			m.crash = newCrash(value)
			go m.send(tea.QuitMsg{}) // the program does not receive it before View returns
		}
	}()
	if m.shown != nil && m.out.late() {
		return *m.shown
	}
	v = tea.NewView(strings.Join(m.draw(), "\n"))
	v.AltScreen = true
	if p := m.prompt; p != nil {
		at := 0
		if lines := p.lines(); lines != nil {
			for _, sp := range lines[len(lines)-1] {
				at += m.screen.columns(sp.text)
			}
		}
		v.Cursor = tea.NewCursor(min(at, m.screen.width-1), m.screen.height-1)
	}
	m.shown = &v
	return v
}

// draw returns the lines of the screen.
func (m *model) draw() []string {
	foot := m.foot()
	height := max(m.screen.height-1-len(foot), 1)
	body := m.current().draw(height)
	body = append(body, make([]string, max(height-len(body), 0))...)
	out := append([]string{m.head()}, body[:height]...)
	return append(out, foot...)[:max(m.screen.height, 1)]
}

// head is the first line: the page, and whether it is current.
func (m *model) head() string {
	state, look := "live", green
	switch {
	case m.lost != "":
		state, look = "not current for "+age(m.now.Sub(m.since))+": "+m.lost, red
	case !m.listed:
		state, look = "connecting", yellow
	case m.now.Sub(m.updated) > quietTime:
		state, look = "no update for "+age(m.now.Sub(m.updated)), yellow
	}
	state = strings.TrimRight(m.screen.fit(state, max(m.screen.width*2/3, 1)), " ")
	title := m.screen.fit(" "+m.current().title(), max(m.screen.width-m.screen.columns(state)-2, 0))
	return m.screen.render(line{{title + " ", bold}, {state, look}}, 0, false)
}

// foot is the last line: a prompt, the result of an action, which can have several lines, or the keys and the command of the page.
func (m *model) foot() (out []string) {
	most := 4
	var lines []line
	switch page := m.current().parts(); {
	case m.prompt != nil:
		lines, most = m.prompt.lines(), m.screen.height
		if lines == nil {
			lines = m.screen.wrap(tooSmall, red, " ")
		}
	case m.notice != "" && m.failed:
		lines = m.screen.wrap(m.notice, red, " ")
	case m.notice != "":
		lines = m.screen.wrap(m.notice, green, " ")
	default:
		lines = []line{{{" " + page.keys, dim}}}
		if room := m.screen.width - len(page.keys) - m.screen.columns(page.command) - 4; page.command != "" && room > 0 {
			lines[0] = append(lines[0], span{text: strings.Repeat(" ", room) + "$ "}, span{page.command, cyan})
		}
	}
	for _, l := range lines[:min(len(lines), most, max(m.screen.height-2, 1))] {
		out = append(out, m.screen.render(l, 0, false))
	}
	return out
}

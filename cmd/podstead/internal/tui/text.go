package tui

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// textView shows a text.
type textView struct {
	common

	name  string
	lines []string
}

// loaded is the text of a view.
type loaded struct {
	view *textView
	text string
	err  error
}

func newText(m *model, name, command, text string) *textView {
	return &textView{common: m.common(command, "/ filter  esc back  ? help  q quit"), name: name, lines: strings.Split(text, "\n")}
}

// load requests the text.
func (v *textView) load(get func(context.Context) (string, error)) tea.Cmd {
	v.lines = []string{"Waiting for the daemon."}
	return do(func() tea.Msg {
		text, err := get(v.ctx)
		return loaded{v, text, err}
	})
}

func (v *textView) title() string { return v.name }

func (v *textView) update(msg tea.Msg) tea.Cmd {
	if l, is := msg.(loaded); is && l.view == v {
		v.lines = strings.Split(strings.TrimRight(l.text, "\n"), "\n")
		if l.err != nil {
			v.lines = []string{l.err.Error()}
		}
	}
	return nil
}

func (v *textView) shown() []string {
	return slices.DeleteFunc(slices.Clone(v.lines), func(l string) bool { return !contains(v.wanted, l) })
}

func (v *textView) key(key string) (tea.Cmd, bool) {
	return nil, v.scroll.key(key, len(v.shown()), v.height())
}

func (v *textView) draw(height int) (out []string) {
	lines := v.shown()
	from, to := v.scroll.visible(len(lines), height)
	for _, l := range lines[from:to] {
		out = append(out, v.screen.render(text(" "+l), v.scroll.left, false))
	}
	return out
}

const helpTitle = "Help"

// help describes the keys.
const help = `Keys in all views

  j k, arrows           one line down or up
  PgDn PgUp, Ctrl-F Ctrl-B
                        one page down or up. Space: one page down, except in
                        the list
  g G, Home End         first or last line
  left right            move long lines to the side
  /                     filter, Esc removes the filter
  Esc                   back to the view before
  :q  q  Ctrl-C         quit
  :pods  :help          the list of pods, this page
  Ctrl-Z                suspend

Keys of a pod, in the list and in its details

  Enter                 details: why the pod is in its state, timeline,
                        last exits, events
  l                     logs. In the list, those of the selected pods
  d                     page of podstead describe
  y                     pod as YAML
  s                     shell in a container
  r                     restart
  Ctrl-K                stop
  S                     start
  Space                 in the list, select the pod for logs. Esc deselects
                        all pods

Restart, stop, start and shell show the command and ask before they run.
Without a daemon, no shell is opened.

Keys in details

  t                     go to the timeline
  + -                   shorter or longer time in the timeline

Logs follow while the last line is on the screen. G follows again.

The list begins with pods that are not ready or whose file or state needs
a correction. Then come those that restarted within the last hour, that
start or stop, that are ready, and that completed or were stopped.`

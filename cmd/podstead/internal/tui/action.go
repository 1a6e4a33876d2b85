package tui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/podstead/podstead/cmd/podstead/internal/live"
)

// prompt is the line at the bottom while it asks for something.
type prompt struct {
	model       *model
	label, text string
	answers     map[string]func() tea.Cmd // the keys of a question; nil: a text
	change      func(text string)         // called after each key of a text; nil: ignored
	enter       func(text string) tea.Cmd // called with a complete text; nil: ignored
	cancel      func()                    // nil: ignored
}

func (m *model) ask(p *prompt) {
	p.model = m
	m.prompt = p
}

func (p *prompt) line() string { return p.label + p.text }

// maxPrompt bounds a text, in bytes.
const maxPrompt = 200

// add adds to a text.
func (p *prompt) add(text string) tea.Cmd {
	if p.answers == nil && len(p.text)+len(text) <= maxPrompt {
		p.text += text
		p.changed()
	}
	return nil
}

func (p *prompt) changed() {
	if p.change != nil {
		p.change(p.text)
	}
}

// press handles a key.
func (p *prompt) press(key, text string) tea.Cmd {
	if p.answers != nil {
		p.model.prompt = nil
		if answer := p.answers[key]; answer != nil {
			return answer()
		}
		p.model.notice, p.model.failed = "canceled", false
		return nil
	}
	switch key {
	case "esc":
		p.model.prompt = nil
		if p.cancel != nil {
			p.cancel()
		}
	case "enter":
		p.model.prompt = nil
		if p.enter != nil {
			return p.enter(p.text)
		}
	case "backspace":
		if p.text == "" {
			p.model.prompt = nil
			return nil
		}
		runes := []rune(p.text)
		p.text = string(runes[:len(runes)-1])
		p.changed()
	case "ctrl+u":
		p.text = ""
		p.changed()
	default:
		return p.add(text)
	}
	return nil
}

// done is the result of an action.
type done struct {
	text   string
	failed bool
}

// action changes a pod.
type action struct {
	verb, past string
	request    func(o *Options, ctx context.Context, name, uid string) error
}

// actions are those of the keys.
var actions = map[string]action{
	"r":      {"restart", "restarted", func(o *Options, ctx context.Context, name, uid string) error { return o.Restart(ctx, name, uid) }},
	"ctrl+k": {"stop", "stopping", func(o *Options, ctx context.Context, name, uid string) error { return o.Stop(ctx, name, uid) }},
	"S":      {"start", "started", func(o *Options, ctx context.Context, name, uid string) error { return o.Start(ctx, name, uid) }},
}

// podKey handles the keys that open a view of a pod or change it.
func (m *model) podKey(key, name string) (tea.Cmd, bool) {
	a, isAction := actions[key]
	switch {
	case key != "enter" && key != "d" && key != "y" && key != "s" && !isAction:
		return nil, false
	case name == "":
		return nil, true
	case key == "enter":
		v := newPod(m, name)
		return m.push(v, v.load()), true
	case key == "d":
		v := newText(m, "describe "+name, command("describe", name), "")
		return m.push(v, v.load(func(ctx context.Context) (string, error) { return m.Describe(ctx, name) })), true
	case key == "y":
		v := newText(m, "pod "+name, command("get", name, "-o", "yaml"), "")
		return m.push(v, v.load(func(ctx context.Context) (string, error) { return m.Manifest(ctx, name) })), true
	case !live.ValidName(name): // the commands are for a shell
		m.notice, m.failed = fmt.Sprintf("no such pod %q", name), true
		return nil, true
	case key == "s":
		m.shell(name)
		return nil, true
	}
	row := m.row(name)
	if row == nil {
		m.notice, m.failed = fmt.Sprintf("no such pod %q", name), true
		return nil, true
	}
	uid := row.UID
	m.ask(&prompt{
		label: fmt.Sprintf("Run %q? (y/n) ", command(a.verb, name)),
		answers: map[string]func() tea.Cmd{"y": func() tea.Cmd {
			m.notice, m.failed = a.verb+" pod/"+name, false
			return do(func() tea.Msg {
				if err := a.request(&m.Options, m.ctx, name, uid); err != nil {
					return done{fmt.Sprintf("%s pod %q: %v", a.verb, name, err), true}
				}
				return done{"pod/" + name + " " + a.past, false}
			})
		}},
	})
	return nil, true
}

// shell opens a shell in a container of a pod, which the user chooses if there are several.
func (m *model) shell(name string) {
	var containers []string
	if row := m.row(name); row != nil {
		containers = row.Containers
	}
	p := &prompt{label: fmt.Sprintf("Run %q? (y/n) ", command("exec", "-it", name, "--", "sh"))}
	p.answers = map[string]func() tea.Cmd{"y": func() tea.Cmd { return m.exec(name, "") }}
	if len(containers) > 1 {
		p.label = "Shell in container: "
		p.answers = map[string]func() tea.Cmd{}
		for i, c := range containers[:min(len(containers), 9)] {
			p.label += fmt.Sprintf("%d %s  ", i+1, c)
			p.answers[fmt.Sprint(i+1)] = func() tea.Cmd { return m.exec(name, c) }
		}
	}
	m.ask(p)
}

// exec gives the terminal to a shell until it exits.
func (m *model) exec(pod, container string) tea.Cmd {
	cmd := m.Shell(m.ctx, pod, container)
	var errors bytes.Buffer // the output of the shell is in the terminal
	cmd.Stderr = &errors
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		if err == nil {
			return done{"the shell in pod/" + pod + " has exited", false}
		}
		reason, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(errors.String()), "podstead: "), "\n")
		return done{fmt.Sprintf("exec pod %q: %s", pod, cmp.Or(reason, err.Error())), true}
	})
}

// command is a command of podstead for a shell; empty: a name has characters that are special to it.
func command(args ...string) string {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") && !live.ValidName(arg) {
			return ""
		}
	}
	return "podstead " + strings.Join(args, " ")
}

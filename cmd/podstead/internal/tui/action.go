package tui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
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
	if m.prompt = p; p.answers != nil && p.lines() == nil {
		p.refuse()
	}
}

const tooSmall = "the screen is too small to ask"

// refuse closes a question that is not readable.
func (p *prompt) refuse() { p.model.prompt, p.model.notice, p.model.failed = nil, tooSmall, true }

// lines are the question, or the end of the text; nil: the screen is too small for the question.
func (p *prompt) lines() []line {
	s := &p.model.screen
	if p.answers == nil {
		t := clean(p.label + p.text)
		return []line{{{s.after(t, s.columns(t)+1-s.width), bold}}} // with a column for the cursor
	}
	lines := s.wrap(p.label, bold, "")
	if len(lines) > s.height-2 || slices.ContainsFunc(lines, func(l line) bool { return s.columns(l[1].text) > s.width }) {
		return nil
	}
	return lines
}

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
		if p.lines() == nil { // the screen was larger
			p.refuse()
			return nil
		}
		p.model.prompt = nil
		if answer := p.answers[key]; answer != nil {
			return answer()
		}
		if p.model.notice == "" {
			p.model.notice, p.model.failed = "canceled", false
		}
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

// podKey handles the keys that open a view of a pod or change it. The row is the one that the screen shows: several can have its name; nil:
// the pod is gone.
func (m *model) podKey(key, name string, row *live.Row) (tea.Cmd, bool) {
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
		v := newText(m, "describe "+name, command("describe %s", name), "")
		return m.push(v, v.load(func(ctx context.Context) (string, error) { return m.Describe(ctx, name) })), true
	case key == "y":
		v := newText(m, "pod "+name, command("get %s -o yaml", name), "")
		return m.push(v, v.load(func(ctx context.Context) (string, error) { return m.Manifest(ctx, name) })), true
	case row == nil, !live.ValidName(name): // the commands are for a shell
		m.fail(fmt.Sprintf("no such pod %q", name))
		return nil, true
	case row.Refused: // without a UID, the request would reach another pod of this name
		m.fail(fmt.Sprintf("pod %q does not exist: its file is refused", name))
		return nil, true
	case key == "s":
		m.shell(name, row.Containers)
		return nil, true
	}
	uid := row.UID
	m.ask(&prompt{
		label: fmt.Sprintf("Run %q? (y/n) ", command(a.verb+" %s", name)),
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
func (m *model) shell(name string, containers []string) {
	if m.lost != "" { // podstead exec would start a daemon
		m.fail(fmt.Sprintf("exec pod %q: %s", name, m.lost))
		return
	}
	p := &prompt{label: fmt.Sprintf("Run %q? (y/n) ", command("exec -it %s -- sh", name))}
	p.answers = map[string]func() tea.Cmd{"y": func() tea.Cmd { return m.exec(name, "") }}
	if len(containers) > 1 {
		p.label = fmt.Sprintf("Run %q? Select a container:\n", command("exec -it %s -c CONTAINER -- sh", name))
		p.answers = map[string]func() tea.Cmd{}
		const choices = "123456789abcdefghijklmnopqrstuvwxyz"
		for i, c := range containers[:min(len(containers), len(choices))] {
			p.label += fmt.Sprintf("%c %s  ", choices[i], c)
			p.answers[choices[i:i+1]] = func() tea.Cmd { return m.exec(name, c) }
		}
		if more := len(containers) - len(choices); more > 0 {
			p.label += fmt.Sprintf("and %d more, without a key", more)
		}
	}
	m.ask(p)
}

// shell is a command that has the terminal after what the program has written.
type shell struct {
	*exec.Cmd

	model *model
}

func (s shell) SetStdin(in io.Reader) { s.Stdin = in }
func (s shell) SetStdout(io.Writer)   { s.Stdout = s.model.Out } // a file, so that it is the terminal for the command too
func (s shell) SetStderr(io.Writer)   {}

// Run runs the command.
func (s shell) Run() error {
	if !s.model.out.wait() {
		return errors.New("the terminal takes no output")
	}
	return s.Cmd.Run()
}

// exec gives the terminal to a shell until it exits.
func (m *model) exec(pod, container string) tea.Cmd {
	if m.lost != "" { // since the question
		m.fail(fmt.Sprintf("exec pod %q: %s", pod, m.lost))
		return nil
	}
	cmd := m.Shell(m.ctx, pod, container)
	var stderr bytes.Buffer // the output of the shell is in the terminal
	cmd.Stderr = &stderr
	return tea.Exec(shell{cmd, m}, func(err error) tea.Msg {
		if err == nil {
			return done{"the shell in pod/" + pod + " has exited", false}
		}
		reason, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(stderr.String()), "podstead: "), "\n")
		if exited, is := strings.CutPrefix(reason, "command terminated with "); is { // the shell has the exit code of its last command
			return done{"the shell in pod/" + pod + " exited with " + exited, false}
		}
		return done{fmt.Sprintf("exec pod %q: %s", pod, cmp.Or(reason, err.Error())), true}
	})
}

// command is a command of podstead for a shell, with the name of a pod; empty: the name has characters that are special to it.
func command(format, name string) string {
	if !live.ValidName(name) {
		return ""
	}
	return fmt.Sprintf("podstead "+format, name)
}

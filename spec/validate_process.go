package spec

import (
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// processSize bounds the environment and the arguments of a container, and the
// commands of its probes. Variables with values from elsewhere count as empty:
// the runtime checks again.
func (v *validator) processSize(c *Container) {
	vars := map[string]string{}
	var size ProcessSize
	for i := range c.Env {
		e := &c.Env[i]
		value, ok := Expand(e.Value, vars, size.Left())
		if before, defined := vars[e.Name]; defined {
			size.Remove(e.Name, before)
		}
		size.Add(e.Name, value)
		if !ok || size.Left() < 0 {
			v.bad(&e.Value, "%s", processTooLarge)
			return
		}
		vars[e.Name] = value
	}
	for _, list := range [][]string{c.Command, c.Args} {
		v.argumentSize(list, vars, &size)
	}
	plain := c.PlainVariables()
	for _, p := range []*Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil && p.Exec != nil {
			v.argumentSize(p.Exec.Command, plain, &ProcessSize{})
		}
	}
}

// argumentSize adds the size of arguments.
func (v *validator) argumentSize(list []string, vars map[string]string, size *ProcessSize) {
	for i := range list {
		arg, ok := Expand(list[i], vars, size.Left())
		size.Add(arg)
		if !ok || size.Left() < 0 {
			v.bad(&list[i], "%s", processTooLarge)
			return
		}
	}
}

// shellCommand is a line that passes a command to a shell, in quotes.
var shellCommand = lazyregexp.New(`^(\S+) -c (?:"([^"]*)"|'([^']*)')$`)

// words warns of a command whose only element is a line of several words: no
// program has this name.
func (v *validator) words(command *[]string) {
	if hint := WordsHint(*command); hint != "" {
		v.advise(CodeCommandInOneString, hint, "the program has this whole line as its name", &(*command)[0])
	}
}

// WordsHint returns how to write a command whose only element is a line of
// several words; empty: it is no such command.
func WordsHint(command []string) string {
	if len(command) != 1 || !strings.Contains(command[0], " ") {
		return ""
	}
	line := command[0]
	words := strings.Fields(line)
	if m := shellCommand.FindStringSubmatch(line); m != nil {
		words = []string{m[1], "-c", m[2] + m[3]}
	} else if strings.ContainsAny(line, `"'`+"`$|&;<>\\") {
		words = []string{"sh", "-c", line}
	}
	for i := range words {
		words[i] = quote(words[i])
	}
	return "write each word as an element: [" + strings.Join(words, ", ") + "]"
}

// PlainVariables returns the variables of a container that have a value in the
// pod file, as it is there. Probes expand references to these (Kubernetes:
// ExecAction.command).
func (c *Container) PlainVariables() map[string]string {
	vars := map[string]string{}
	for _, e := range c.Env {
		delete(vars, e.Name) // the later one wins, even if its value is unknown here
		if e.ValueFrom == nil {
			vars[e.Name] = e.Value
		}
	}
	return vars
}

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [FIELD]",
		Short: "Describe a field of pod files",
		Long: `Describe a field of pod files, with its short form and its long form if it has both, and with its fields if it is a
table. The field is a path, such as containers.livenessProbe. Without one, the fields of a pod are listed. No daemon is
needed.`,
		Example: `  # List the fields of a pod
  podstead explain

  # Show the short form of ports, and what it stands for
  podstead explain containers.ports

  # Describe a field as kubectl does
  podstead explain pod.spec.containers.livenessProbe.httpGet`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "%s takes one field", commandName(cmd))
			}
			return nil
		},
		ValidArgsFunction: completeFields,
		RunE:              func(_ *cobra.Command, args []string) error { return a.explainField(strings.Join(args, "")) },
	}
}

func (a *app) explainField(path string) error {
	e, err := spec.Explain(path)
	if unknown, is := errors.AsType[*spec.FieldError](err); is {
		f := &failure{status: statusUsage, err: err}
		if unknown.Hint != "" {
			f.hints = []string{unknown.Hint}
		}
		return f
	}
	if err != nil {
		return err
	}
	if e.Path != "" {
		fmt.Fprintf(a.out, "FIELD: %s\nTYPE:  %s\n\n", e.Path, e.Type)
	}
	fmt.Fprintln(a.out, e.Description)
	for _, form := range e.Forms {
		if form.Description != "" {
			fmt.Fprintf(a.out, "\n%s\n", form.Description)
		}
		fmt.Fprintf(a.out, "\nSHORT FORM:\n%s\nLONG FORM:\n%s", indentLines(form.Short), indentLines(form.Long))
	}
	if len(e.Fields) == 0 {
		return nil
	}
	rows := [][]string{{"FIELD", "TYPE", "DESCRIPTION"}}
	for _, f := range e.Fields {
		rows = append(rows, []string{f.Name, f.Type, f.Description})
	}
	fmt.Fprintln(a.out)
	return a.screen().Table(rows)
}

// indentLines returns a text with each line indented.
func indentLines(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

// completeFields completes the path of a field, one step after the other.
func completeFields(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	prefix := ""
	if i := strings.LastIndexByte(word, '.'); i >= 0 {
		prefix = word[:i+1]
	}
	e, err := spec.Explain(prefix)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, f := range e.Fields {
		if strings.HasPrefix(prefix+f.Name, word) {
			found = append(found, plain.Text(prefix+f.Name))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/show"
	"github.com/podstead/podstead/internal/plain"
)

// objectFormats are the output formats of kubectl for objects.
var objectFormats = []string{
	"json", "yaml", "name", "jsonpath=", "jsonpath-as-json=", "jsonpath-file=", "go-template=", "go-template-file=",
}

// columnFormats are the output formats of kubectl for tables of columns.
var columnFormats = []string{"custom-columns=", "custom-columns-file="}

// outputFormat is the value of -o of commands that print pods.
type outputFormat struct {
	name     string        // without the expression
	template show.Template // of jsonpath and go-template; nil: another format
	columns  *show.Columns // of custom-columns; nil: another format
}

// parseFormat parses the value of -o. The value of a format that ends with -file is the path of a file with the expression.
func (a *app) parseFormat(cmd *cobra.Command, text string) (f outputFormat, err error) {
	name, expression, _ := strings.Cut(text, "=")
	f.name = name
	kind, isFile := strings.CutSuffix(name, "-file")
	if isFile {
		file, err := os.ReadFile(expression)
		if err != nil {
			return f, usage(cmd, "--output %s: %w", name, err)
		}
		expression = string(file)
	}
	switch {
	case kind == "jsonpath":
		f.template, err = show.ParseTemplate(expression)
	case name == "jsonpath-as-json":
		f.template, err = show.ParseJSONTemplate(expression)
	case kind == "go-template":
		f.template, err = show.ParseGoTemplate(expression)
	case kind == "custom-columns" && isFile:
		f.columns, err = show.ParseColumnsFile(expression)
	case kind == "custom-columns":
		f.columns, err = show.ParseColumns(expression)
	}
	if err != nil {
		return f, usage(cmd, "--output %s: %w", name, err)
	}
	return f, nil
}

// columnRows returns the rows of the format custom-columns.
func (f *outputFormat) columnRows(pods ...api.Pod) ([][]string, error) {
	var rows [][]string
	for i := range pods {
		object, err := show.Object(&pods[i])
		if err != nil {
			return nil, err
		}
		row, err := f.columns.Row(object)
		if err != nil {
			return nil, fmt.Errorf("--output %s: %w", f.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// printObject prints a pod or a list of pods as JSON, as YAML, or with a template.
func (a *app) printObject(f *outputFormat, v any) error {
	if f.template != nil {
		return a.printTemplate(f, v)
	}
	return a.encode(f.name, v)
}

// printTemplate prints the text of a template for a value. As in kubectl, no line break follows.
func (a *app) printTemplate(f *outputFormat, v any) error {
	object, err := show.Object(v)
	if err != nil {
		return err
	}
	text, err := f.template.Text(object)
	if err != nil {
		return fmt.Errorf("--output %s: %w", f.name, err)
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = plain.Text(lines[i])
	}
	_, err = fmt.Fprint(a.out, strings.Join(lines, "\n"))
	return err
}

// encode prints a value as indented JSON or as YAML.
func (a *app) encode(format string, v any) error {
	text, err := encoded(format, v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", text)
	return err
}

// encoded returns a value as indented JSON or as YAML.
func encoded(format string, v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "    ")
	if err == nil && format == "yaml" {
		text, err = plain.YAML(text)
	}
	if err != nil {
		return nil, err
	}
	return plain.JSON(text), nil
}

// formats adds the flag -o and rejects formats that are not supported. A format that ends with = has an expression after it.
func formats(cmd *cobra.Command, format *string, supported ...string) {
	list := strings.Join(supported, ", ")
	cmd.Flags().StringVarP(format, "output", "o", "", "output `format`: "+list+" (default text)")
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		is := func(s string) bool { return *format == s || strings.HasSuffix(s, "=") && strings.HasPrefix(*format, s) }
		if *format != "" && !slices.ContainsFunc(supported, is) {
			return usage(cmd, "output format %q is not supported: must be one of %s", *format, list)
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
	completeFlag(cmd, "output", supported...)
}

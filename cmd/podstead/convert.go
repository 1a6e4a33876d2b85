package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
)

func (a *app) convertCommand() *cobra.Command {
	var short bool
	var o spec.Options
	cmd := &cobra.Command{
		Use:   "convert FILE|-",
		Short: "Convert a pod file or a manifest to a pod file in TOML",
		Long: `Print the definition of a pod file or a Kubernetes manifest as a pod file in TOML. The file - is standard input. Every
field has its long form, the notation of the Pod API; with --short, the short one, where there is one: podstead explain
shows both. The definition, relative paths and the comments of a pod file stay the same. No daemon is needed.

Fields that only a cluster needs are left out with a warning.

Exit codes: 0 done, 2 the file is invalid.`,
		Example: `  # Convert a manifest to a pod file
  podstead convert web.yaml --short >converted.toml

  # Show what the short forms of a pod file stand for
  podstead convert web.toml

  # Convert the output of another program
  kubectl get pod web -o yaml | podstead convert -`,
		Args:              exactlyOneFile,
		ValidArgsFunction: completeFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return a.convert(args[0], o, short) },
	}
	cmd.Flags().BoolVar(&short, "short", false, "write short forms, such as ports = [\"8080:80\"]")
	lossFlags(cmd, &o)
	return cmd
}

// exactlyOneFile requires one pod file.
func exactlyOneFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage(cmd, "%s takes one pod file", commandName(cmd))
	}
	return fileArguments(cmd, args)
}

func (a *app) convert(path string, o spec.Options, short bool) error {
	given, err := a.readText(path)
	if err != nil {
		return err
	}
	text, problems := o.Convert(path, given, short)
	for _, p := range problems {
		a.problem(api.Problem(p))
	}
	if text == nil {
		return invalidFiles(nil)
	}
	return a.printLines(string(text))
}

// printLines prints a pod file. Its strings have no hidden characters, but comments may have.
func (a *app) printLines(text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(a.out, plain.Text(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

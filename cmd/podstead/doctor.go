package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/doctor"
)

func (a *app) doctorCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that this host can run pods",
		Long: `Check that this host can run pods. Every check reports its result and, if there is a problem, a hint.
Nothing is changed, apart from a temporary file in each directory, and no daemon is started.

Exit codes: 0 pods can run, 1 pods cannot run.`,
		Example: `  # Check this host
  podstead doctor

  # List the checks that failed
  podstead doctor -o json | jq '.[] | select(.grade == "fail")'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd, format) },
	}
	formats(cmd, &format, "json")
	return cmd
}

func (a *app) doctor(cmd *cobra.Command, format string) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	findings := doctor.Run(cmd.Context(), c, api.NewClient(c.Socket, cmd.CommandPath()), version)
	if format == "json" {
		if err := a.encode(format, findings); err != nil {
			return err
		}
	} else {
		a.printFindings(findings)
	}
	failed := func(f doctor.Finding) bool { return f.Grade == doctor.Fail }
	if i := slices.IndexFunc(findings, failed); i >= 0 {
		return &failure{status: statusFailed, err: fmt.Errorf("this host cannot run pods: %s: %s", findings[i].Check, findings[i].Detail)}
	}
	return nil
}

func (a *app) printFindings(findings []doctor.Finding) {
	colours := map[doctor.Grade]string{doctor.OK: "32", doctor.Warn: "33", doctor.Fail: "31"}
	for _, f := range findings {
		grade := fmt.Sprintf("%-4s", f.Grade)
		if a.colour() {
			grade = "\x1b[" + colours[f.Grade] + "m" + grade + "\x1b[0m"
		}
		fmt.Fprintf(a.out, "%s  %-16s %s\n", grade, f.Check, f.Detail)
		if f.Hint != "" {
			fmt.Fprintf(a.out, "      hint: %s\n", f.Hint)
		}
	}
}

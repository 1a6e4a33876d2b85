package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/doctor"
	"github.com/podstead/podstead/internal/plain"
)

func (a *app) doctorCommand() *cobra.Command {
	var format string
	var repair bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that this host can run pods",
		Long: `Check that this host can run pods. Every check reports its result and, if there is a problem, a hint.
Nothing is changed, apart from a temporary file in each directory, and no daemon is started.

With --repair, all files of the container engine are checked first, including the content of images. Damaged files
are set aside, and containers that depend on them are killed. They start again with the daemon. Damaged images are
deleted and pulled again. The daemon must be stopped. It checks its databases itself when it starts, so --repair is
only necessary if images are damaged, or if the daemon does not start.

Exit codes: 0 pods can run, 1 pods cannot run.`,
		Example: `  # Check this host
  podstead doctor

  # List the checks that failed
  podstead doctor -o json | jq '.[] | select(.grade == "fail")'

  # Check and repair the files of the container engine
  podstead daemon stop && podstead doctor --repair`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd, format, repair) },
	}
	formats(cmd, &format, "json", "yaml")
	cmd.Flags().BoolVar(&repair, "repair", false, "check and repair the files of the container engine; the daemon must be stopped")
	return cmd
}

func (a *app) doctor(cmd *cobra.Command, format string, repair bool) error {
	c, err := a.loadConfig(cmd, nil)
	invalid, _ := errors.AsType[*config.FileError](err)
	if err != nil && invalid == nil {
		return err
	}
	if repair {
		if err := a.repair(cmd.Context(), c); err != nil {
			return err
		}
	}
	done := a.waiting("Checking this host")
	daemon := a.running(client.New(c.Socket, commandPath(cmd)))
	findings := doctor.Run(cmd.Context(), c, invalid, daemon, version, socketUnits(cmd.Context()))
	done()
	if format != "" {
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

// repair repairs the files of the container engine. Its results go to standard error, because standard output has the findings.
func (a *app) repair(ctx context.Context, c *config.Config) error {
	reports, err := doctor.Repair(ctx, c)
	for _, r := range reports {
		a.note("repaired %s", doctor.Describe(r))
	}
	if daemon.InUse(err) {
		return &failure{
			status: statusFailed, err: fmt.Errorf("repair: %w", err), hints: []string{"stop the daemon with podstead daemon stop"},
		}
	}
	if err != nil {
		return &failure{status: statusFailed, err: fmt.Errorf("repair: %w", err)}
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
		fmt.Fprintf(a.out, "%s  %-16s %s\n", grade, f.Check, plain.Text(f.Detail))
		if f.Hint != "" {
			fmt.Fprintln(a.out, plain.Text("      hint: "+f.Hint))
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// planFlags are the flags of plan.
type planFlags struct {
	files           []string
	prune, exitCode bool
	onlyChanges     bool // print no unchanged pods
	level, format   string
	spec            spec.Options
}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [-f] FILE|DIR|-...",
		Short: "Show what apply would change",
		Long: `Show what podstead apply would do with the same files, field by field, with the effect of each change on the running
pod: in place, at the next start, restart of a container, restart or replacement of the pod. An image archive that was
replaced is a change of the containers that use it. Nothing is changed. Values of secrets are not shown. Without files,
--prune shows the pods whose files were lost.

Exit codes: 0 done, 2 a file is invalid, 6 apply would change something (only with --exit-code).`,
		Example: `  # Show what apply would change
  podstead plan web.toml

  # Show also which pods --prune would delete
  podstead plan pods/ --prune

  # Check in a script whether a host is up to date
  podstead plan pods/ --exit-code >/dev/null`,
		Args: func(cmd *cobra.Command, args []string) error {
			return podFilesUnlessPruning(cmd, append(args, f.files...), f.prune)
		},
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.plan(cmd, append(args, f.files...), &f) },
	}
	fileFlag(cmd, &f.files)
	cmd.Flags().BoolVar(&f.prune, "prune", false, "show the pods that apply --prune would delete")
	cmd.Flags().BoolVar(&f.exitCode, "exit-code", false, "exit with code 6 if apply would change something")
	lossFlags(cmd, &f.spec, "v")
	levelFlag(cmd, &f.level)
	formats(cmd, &f.format, "json", "yaml")
	a.addProjectFlags(cmd)
	return cmd
}

func (a *app) plan(cmd *cobra.Command, paths []string, f *planFlags) error {
	files, err := a.readApplied(cmd, paths, f.spec, f.level)
	if err != nil {
		return err
	}
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	list := api.AppliedList{Items: []api.Applied{}}
	var errs []error
	for _, file := range files {
		file.request.DryRun = true
		result, err := client.Apply(cmd.Context(), file.request)
		if err != nil {
			errs = append(errs, fmt.Errorf("plan pod %q: %w", file.pod, err))
			continue
		}
		list.Items = append(list.Items, result)
		a.noteRolledBack(cmd.Context(), client, &result)
	}
	if f.prune && len(errs) == 0 {
		q := pruneRequest(files)
		q.DryRun = true
		pruned, err := client.Prune(cmd.Context(), q)
		errs = append(errs, err)
		list.Items = append(list.Items, pruned.Items...)
	}
	changes := list
	if f.onlyChanges {
		changes.Items = slices.DeleteFunc(slices.Clone(list.Items), func(p api.Applied) bool { return p.Outcome == api.PodUnchanged })
	}
	if err := a.printPlan(f.format, &changes); err != nil {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if f.exitCode && slices.ContainsFunc(list.Items, func(p api.Applied) bool { return p.Outcome != api.PodUnchanged }) {
		return &failure{status: statusChanges, err: errChanges}
	}
	return nil
}

func (a *app) printPlan(format string, list *api.AppliedList) error {
	if format != "" {
		return a.encode(format, list)
	}
	for i := range list.Items {
		for _, line := range view.Planned(&list.Items[i]) {
			fmt.Fprintln(a.out, plain.Text(line))
		}
	}
	return nil
}

func (a *app) diffCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Long: `Show what podstead apply would do with the same files, as podstead plan does, and return the exit codes of kubectl diff.
Nothing is changed.

Exit codes: 0 apply would change nothing, 1 apply would change something, more than 1 failure.`,
		Args:              func(cmd *cobra.Command, args []string) error { return podFileArguments(cmd, append(args, f.files...)) },
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.diff(cmd, append(args, f.files...), &f) },
	}
	fileFlag(cmd, &f.files)
	lossFlags(cmd, &f.spec, "v")
	levelFlag(cmd, &f.level)
	return cmd
}

// diff prints a plan. Changes have exit code 1, and failures another one.
func (a *app) diff(cmd *cobra.Command, paths []string, f *planFlags) error {
	f.exitCode, f.onlyChanges = true, true
	err := a.plan(cmd, paths, f)
	if err == nil {
		return nil
	}
	switch explain(err).status {
	case statusChanges:
		return &failure{status: statusFailed, err: errExited}
	case statusFailed: // means changes here
		failed := &failure{status: statusUsage, err: err}
		if inner, ok := errors.AsType[*failure](err); ok {
			failed.hints = inner.hints
		}
		return failed
	}
	return err
}

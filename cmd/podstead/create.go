package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// The commands in this file do what the same words do in kubectl.

func (a *app) createCommand() *cobra.Command {
	f := applyFlags{create: true}
	cmd := &cobra.Command{
		Use:   "create FILE|DIR|-...",
		Short: "Create pods from files",
		Long: `Write pod files to the pods directory, as podstead apply does. A pod that exists is not changed, and is an error. The other
pods are created nevertheless.

Exit codes: 0 done, 1 failure, also if a pod exists, 2 a file is invalid, 5 timeout.`,
		Example: `  # Create a pod
  podstead create -f web.toml

  # Create a pod, and wait until it is ready
  podstead create -f web.toml --wait --timeout 2m`,
		Args:              func(cmd *cobra.Command, args []string) error { return podFileArguments(cmd, append(args, f.files...)) },
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.apply(cmd, append(args, f.files...), &f) },
	}
	cmd.Flags().SortFlags = false
	fileFlag(cmd, &f.files)
	f.waitFlags(cmd)
	levelFlag(cmd, &f.level)
	cmd.AddCommand(hidden(createHints, func(_ *cobra.Command, name string) error {
		return fmt.Errorf("create %s: is not supported: only pods are created, from files", name)
	})...)
	return cmd
}

func (a *app) diffCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "diff FILE|DIR|-...",
		Short: "Show what apply would change, with exit code 1 for changes",
		Long: `Show what podstead apply would do with the same files, as podstead plan does, and return the exit codes of kubectl diff.
Nothing is changed.

Exit codes: 0 apply would change nothing, 1 apply would change something, more than 1 failure.`,
		Example: `  # Show what apply would change
  podstead diff -f web.toml || true

  # Apply files only if they change something
  podstead diff -f pods/ >/dev/null || podstead apply -f pods/`,
		Args:              func(cmd *cobra.Command, args []string) error { return podFileArguments(cmd, append(args, f.files...)) },
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.diff(cmd, append(args, f.files...), &f) },
	}
	cmd.Flags().SortFlags = false
	fileFlag(cmd, &f.files)
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

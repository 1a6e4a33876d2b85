package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

func (a *app) editCommand() *cobra.Command {
	var ready readiness
	cmd := &cobra.Command{
		Use:   "edit POD",
		Short: "Edit the file of a pod",
		Long: `Open a copy of a pod's file in the pods directory with the editor of the environment variable KUBE_EDITOR, VISUAL or
EDITOR, or vi. When the editor exits, check the copy and apply it like podstead apply. If it is invalid, the editor opens again with the
errors at the top of the file. A file that was not changed is not applied.

Pods of podstead run have no file in the pods directory: edit the file that they were started from.`,
		Example: `  # Edit a pod
  podstead edit web

  # Edit a pod with another editor, and wait until it is ready
  EDITOR=nano podstead edit web --wait`,
		Args:              onePod,
		ValidArgsFunction: a.completeOnePod,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.edit(cmd, args, &ready) },
	}
	cmd.Flags().SortFlags = false
	ready.waitFlags(cmd)
	return cmd
}

func (a *app) edit(cmd *cobra.Command, args []string, ready *readiness) error {
	if err := ready.check(cmd); err != nil {
		return err
	}
	w, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	pod, err := w.Client.Pod(cmd.Context(), podName(cmd, args))
	if err != nil {
		return err
	}
	name, file := pod.Metadata.Name, pod.Status.File
	if file == "" {
		return &failure{
			status: statusFailed, err: fmt.Errorf("pod %q has no file in the pods directory: %s created it", name, pod.Status.Owner),
			hints: []string{"edit the file that it was created from"},
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var result api.Applied
	err = a.editText(cmd.Context(), filepath.Base(file), string(text), func(ctx context.Context, edited string) (err error) {
		if now, err := os.ReadFile(file); err != nil || string(now) != string(text) {
			return errors.Join(fmt.Errorf("the file %s has been changed since", file), err)
		}
		result, err = applyEdited(ctx, w.Client, name, api.ApplyRequest{File: file, Text: edited})
		return err
	})
	if errors.Is(err, errUnchanged) {
		a.note("%v, nothing was applied", err)
		return nil
	}
	if err != nil {
		err = fmt.Errorf("edit pod %q: %w", name, err)
		if _, ok := errors.AsType[*invalidEdit](err); ok {
			return &failure{status: statusUsage, err: err}
		}
		return err
	}
	fmt.Fprintln(a.out, plain.Text(view.Applied(&result)))
	if !ready.wait {
		a.noteRolledBack(cmd.Context(), w.Client, &result)
		return nil
	}
	err = a.rolledBack(cmd, w.Client, &result)
	return errors.Join(err, a.awaitReady(cmd, w, goalsOf([]api.Applied{result}, []api.Pod{pod}), ready))
}

// applyEdited applies an edited pod file. The error is *invalidEdit if the file is to be corrected.
func applyEdited(ctx context.Context, client *api.Client, name string, q api.ApplyRequest) (api.Applied, error) {
	q.DryRun = true
	planned, err := client.Apply(ctx, q)
	if problems := problemsOf(err); len(problems) > 0 {
		invalid := &invalidEdit{}
		for _, p := range problems {
			invalid.problems = append(invalid.problems, plain.Text(spec.Problem(p).String()))
		}
		return planned, invalid
	}
	if err != nil {
		return planned, err
	}
	if planned.Pod != name {
		return planned, &invalidEdit{problems: []string{fmt.Sprintf("name: must remain %q: a pod cannot be renamed, apply a new file instead", name)}}
	}
	q.DryRun = false
	return client.Apply(ctx, q)
}

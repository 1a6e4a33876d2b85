package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// bundleApplyFlags are the flags of bundle apply.
type bundleApplyFlags struct {
	dryRun bool
	level  string
	readiness
}

func (a *app) bundleApplyCommand() *cobra.Command {
	var f bundleApplyFlags
	cmd := &cobra.Command{
		Use:   "apply FILE|-",
		Short: "Create or update the pods of a bundle",
		Long: `Verify a bundle, import its images, write its config maps and secrets, and apply its pod files. Nothing is changed if a part of the
bundle is damaged or missing, if it is for another platform, if an image must be signed and is not, if a pod is invalid or not admitted, or if the disk has too little space.

Either all pods of the bundle are applied or none: after a failure, the pod files, config maps, secrets and names of images are as they were before. With
--wait, a pod that does not become ready is such a failure. If the command is killed or the host loses power, the daemon undoes the
bundle within 10 seconds, or when it starts. Names that existed refer to their earlier images again.
The images of the bundle are kept for an hour, and then as long as a pod or a generation for a rollback uses them.

A bundle from standard input is first copied to a temporary file ($TMPDIR).

Exit codes: 0 done, 1 failure, 2 the bundle has an invalid pod file, 5 timeout.`,
		Example: `  # Apply a bundle, and return to the state before if a pod does not become ready
  podstead bundle apply shop.bundle --wait

  # Verify a bundle, and show what it would change
  podstead bundle apply shop.bundle --dry-run`,
		Args:              oneBundle,
		ValidArgsFunction: completeBundles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.applyBundle(cmd, args[0], &f) },
	}
	cmd.Flags().SortFlags = false
	f.waitFlags(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "verify the bundle and print what would change, and change nothing")
	levelFlag(cmd, &f.level)
	return cmd
}

func (a *app) applyBundle(cmd *cobra.Command, path string, f *bundleApplyFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	file, err := a.openBundle(path)
	if err != nil {
		return argumentError(fmt.Errorf("apply bundle %q: %w", path, err))
	}
	defer file.Close()
	t, err := bundle.Begin(cmd.Context(), file, c)
	if err != nil {
		return fmt.Errorf("apply bundle %q: %w", path, err)
	}
	defer t.Close()
	t.Note, t.Transfer = a.note, &view.Transfer{W: a.err, Width: a.width()}
	if err := a.carryOut(cmd, t, f); err != nil {
		return fmt.Errorf("apply bundle %q: %w", path, err)
	}
	return nil
}

// carryOut checks what is in a bundle, and applies it unless --dry-run is given.
func (a *app) carryOut(cmd *cobra.Command, t *bundle.Transaction, f *bundleApplyFlags) error {
	if err := a.checkBundle(cmd, t, f.level); err != nil {
		return err
	}
	w, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	plans, err := t.Plan(cmd.Context(), w.Client, f.dryRun)
	if err != nil {
		return err
	}
	if f.dryRun {
		for i := range plans {
			fmt.Fprintln(a.out, plain.Text(view.Applied(&plans[i]))+" (dry run)")
		}
		return nil
	}
	// From here on an interruption is a failure: what was done is undone.
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	cmd.SetContext(ctx)
	return t.Apply(ctx, plans, func(results []api.Applied, before []api.Pod) error {
		return a.appliedBundle(cmd, w, f, results, before)
	})
}

// checkBundle checks everything that can be checked without the daemon.
func (a *app) checkBundle(cmd *cobra.Command, t *bundle.Transaction, policy string) error {
	level, err := a.level(cmd, policy)
	if err != nil {
		return err
	}
	var errs []error
	var pods []readPod
	for _, p := range t.Bundle.Pods {
		file := t.File(p)
		pod, err := a.acceptFile(file, t.Bundle.Text[p.File], spec.Options{}, level)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := t.CheckPod(p, pod); err != nil {
			errs = append(errs, err)
		}
		pods = append(pods, readPod{file, pod})
	}
	if len(a.waitCycles(cmd, pods)) > 0 || len(errs) > 0 {
		return invalidFiles(errs)
	}
	return t.CheckHost()
}

// appliedBundle prints the results of the pod files, and waits for the pods with --wait.
func (a *app) appliedBundle(cmd *cobra.Command, w *watcher, f *bundleApplyFlags, results []api.Applied, before []api.Pod) error {
	for i := range results {
		fmt.Fprintln(a.out, plain.Text(view.Applied(&results[i])))
		if !f.wait {
			a.noteRolledBack(cmd.Context(), w.Client, &results[i])
		}
	}
	a.noteBoot(cmd.Context(), w.Client, before, results)
	if !f.wait {
		return nil
	}
	var errs []error
	for i := range results {
		errs = append(errs, a.rolledBack(cmd, w.Client, &results[i]))
	}
	errs = append(errs, a.awaitReady(cmd, w, goalsOf(results, before), &f.readiness))
	return errors.Join(errs...)
}

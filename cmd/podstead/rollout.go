package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
)

func (a *app) rolloutCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "rollout",
		Short: "Show updates of pods, and return to earlier definitions",
		Long: `Show the generations of a pod of the pods directory, and return to an earlier one. Each changed definition is a
generation. If a pod file has the table [update], and an update fails or is not ready within readyWithinSeconds, the pod
returns to the last generation that was ready. The file is kept, and is carried out again when it is changed.`,
		Example: `  # Wait until an update is ready
  podstead rollout status web

  # Return to the last generation that was ready
  podstead rollout undo web`,
	}, a.rolloutStatusCommand(), a.rolloutHistoryCommand(), a.rolloutUndoCommand(),
		anotherName("restart POD...", "podstead restart", a.restartCommand()))
	cmd.AddCommand(hidden([]commandHint{
		{[]string{"pause", "resume"}, "keep the pod as it is by not applying the file, or stop it with podstead stop POD"},
	}, func(cmd *cobra.Command, name string) error {
		const text = "%s %s is not supported: a pod has one instance, so an update has no part that could be paused"
		return fmt.Errorf(text, commandName(cmd), name)
	})...)
	return cmd
}

// rolloutStatusFlags are the flags of rollout status.
type rolloutStatusFlags struct {
	watch   bool
	timeout time.Duration
}

func (a *app) rolloutStatusCommand() *cobra.Command {
	var f rolloutStatusFlags
	cmd := &cobra.Command{
		Use:   "status POD",
		Short: "Show the progress of an update",
		Long: `Show the progress of an update, and wait until the pod is ready with the newest definition of its file and has stayed so for
its minimum ready time, or has succeeded. If a container fails before, or the update was rolled back, print why. After
rollout undo, wait for the generation that was requested; after a restart, for the pod.

Exit codes: 0 done, 1 the update failed or was rolled back, 3 no such pod in the pods directory, 5 timeout.`,
		Example: `  # Wait until the update of a pod is ready
  podstead rollout status web

  # Show the present state, and do not wait
  podstead rollout status web --watch=false`,
		Args:              onePod,
		ValidArgsFunction: a.completeOnePod,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.rolloutStatus(cmd, podName(cmd, args), &f) },
	}
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", true, "wait until the update is done")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "maximum `duration` of the wait, 0 for none")
	return cmd
}

func (a *app) rolloutStatus(cmd *cobra.Command, pod string, f *rolloutStatusFlags) error {
	w, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	if f.watch {
		return a.awaitRollout(cmd, w, pod, 0, f.timeout)
	}
	r, err := w.Client.Rollout(cmd.Context(), pod)
	if err != nil {
		return err
	}
	return a.rolledOut(cmd, w, pod, &r)
}

// awaitRollout waits until the newest definition of a pod is complete or has failed. If a generation is not 0, it fails as soon as the pod
// is to run another one.
func (a *app) awaitRollout(cmd *cobra.Command, w *watcher, pod string, generation int, timeout time.Duration) error {
	ctx := cmd.Context()
	if timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = limited
	}
	look := func(ctx context.Context) (api.Rollout, error) {
		r, err := w.Client.Rollout(ctx, pod)
		if err == nil && generation > 0 && r.Running != generation {
			err = fmt.Errorf("rollout of pod %q: the pod was changed to generation %d in the meantime", pod, r.Running)
		}
		return r, err
	}
	printed := ""
	r, err := wait.RolledOut(ctx, w, look, func(r *api.Rollout) {
		if r.State == api.RolloutProgressing && r.Message != printed {
			printed = r.Message
			a.printProgress(pod, r)
		}
	})
	if errors.Is(err, context.DeadlineExceeded) && cmd.Context().Err() == nil {
		a.printWhy(cmd, w.Client, pod)
		return fmt.Errorf("rollout of pod %q: %w", pod, &failure{status: statusTimeout, err: fmt.Errorf("timed out after %v", timeout)})
	}
	if err != nil {
		return err
	}
	return a.rolledOut(cmd, w, pod, &r)
}

// rolledOut prints a rollout, and returns why it has failed.
func (a *app) rolledOut(cmd *cobra.Command, w *watcher, pod string, r *api.Rollout) error {
	switch r.State {
	case api.RolloutComplete:
		_, err := fmt.Fprintf(a.out, "pod %q successfully rolled out\n", pod)
		return err
	case api.RolloutProgressing:
		a.printProgress(pod, r)
		return nil
	case api.RolloutFailed:
	}
	a.printWhy(cmd, w.Client, pod)
	return fmt.Errorf("rollout of pod %q: %s", pod, r.Message)
}

func (a *app) printProgress(pod string, r *api.Rollout) {
	fmt.Fprintln(a.out, plain.Text(fmt.Sprintf("Waiting for pod %q rollout to finish: %s...", pod, r.Message)))
}

func (a *app) rolloutHistoryCommand() *cobra.Command {
	var number int
	var format string
	cmd := &cobra.Command{
		Use:   "history POD",
		Short: "List the generations of a pod",
		Long: `List the definitions that a pod of the pods directory has had, what became of them, what changed, and who requested them.
An asterisk marks the generation that runs. The last 20 generations are listed. The pod can return to the last three that
were ready. With --generation, print all changes of one of them.`,
		Example: `  # List the generations of a pod
  podstead rollout history web

  # Show what changed in generation 3, and why it failed
  podstead rollout history web --generation 3`,
		Args:              onePod,
		ValidArgsFunction: a.completeOnePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rolloutHistory(cmd, podName(cmd, args), number, format)
		},
	}
	a.generationFlag(cmd, &number, "generation", "revision", "show this `generation` in detail", func(*api.Generation) bool { return true })
	formats(cmd, &format, "json", "yaml")
	return cmd
}

func (a *app) rolloutHistory(cmd *cobra.Command, pod string, number int, format string) error {
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	r, err := client.Rollout(cmd.Context(), pod)
	if err != nil {
		return err
	}
	var one *api.Generation
	if cmd.Flags().Changed("generation") {
		if one = r.Find(number); one == nil {
			return &failure{status: statusNotFound, err: fmt.Errorf("pod %q has no generation %d", pod, number)}
		}
	}
	switch {
	case format != "" && one != nil:
		return a.encode(format, one)
	case format != "":
		return a.encode(format, r)
	case one != nil:
		for _, line := range view.Generation(pod, one) {
			fmt.Fprintln(a.out, plain.Text(line))
		}
		return nil
	}
	fmt.Fprintf(a.out, "pod/%s\n", pod)
	if err := a.screen().Table(view.Generations(&r, time.Now())); err != nil {
		return err
	}
	if r.FileNewer {
		a.note("the newest content of %s does not run: %s", r.File,
			cmp.Or(r.Message, fmt.Sprintf("generation %d was requested", r.Running)))
	}
	return nil
}

func (a *app) rolloutUndoCommand() *cobra.Command {
	var number int
	var r readiness
	cmd := &cobra.Command{
		Use:   "undo POD",
		Short: "Return to an earlier generation",
		Long: `Make a pod of the pods directory return to the last generation before the running one that was ready, or to another one that
is kept. It runs with the images, config maps and secrets that it had. The file is kept as it is: the pod follows it again,
with all that was undone, when it is changed or applied. To try a generation again that was rolled back, name it.`,
		Example: `  # Return to the last generation that was ready
  podstead rollout undo web

  # Return to generation 2, and wait until it is ready
  podstead rollout undo web --to-generation 2 --wait`,
		Args:              onePod,
		ValidArgsFunction: a.completeOnePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rolloutUndo(cmd, podName(cmd, args), number, &r)
		},
	}
	a.generationFlag(cmd, &number, "to-generation", "to-revision", "the `generation` to return to (default the last one that was ready)",
		func(g *api.Generation) bool { return g.Kept })
	r.waitFlags(cmd)
	return cmd
}

func (a *app) rolloutUndo(cmd *cobra.Command, pod string, number int, f *readiness) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	w, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	r, err := w.Client.UndoRollout(cmd.Context(), pod, api.UndoRequest{Generation: number})
	if err != nil {
		return err
	}
	line := fmt.Sprintf("pod/%s rolled back to generation %d", pod, r.Running)
	if g := r.Find(r.Running); g != nil && g.Outcome == api.GenerationRolledBack {
		line = "pod/" + pod + " rolled out again" // as a new generation
		r.Running = 0
	}
	if _, err = fmt.Fprintln(a.out, line); err != nil {
		return err
	}
	if r.FileNewer {
		a.noteFile(pod, &r)
	}
	if !f.wait {
		return nil
	}
	return a.awaitRollout(cmd, w, pod, r.Running, f.timeout)
}

// noteFile prints that the file of a pod still has what was undone.
func (a *app) noteFile(pod string, r *api.Rollout) {
	has := "a definition that did not run"
	if r.FileGeneration > 0 {
		has = fmt.Sprintf("generation %d", r.FileGeneration)
	}
	a.note("%s still has %s: it is carried out when the file is changed or applied", r.File, has)
	change := fmt.Sprintf("change the file with podstead edit %s", pod)
	if sameText(r, r.FileGeneration) {
		change = "replace the newer image with podstead image import FILE, or its archive,"
	}
	a.hint(fmt.Sprintf("%s to keep generation %d; podstead plan %s shows what of the file does not run", change, r.Running, r.File))
}

// generationFlag adds a flag for a generation, and a hidden alias, which kubectl users expect.
func (a *app) generationFlag(cmd *cobra.Command, number *int, name, alias, help string, offer func(*api.Generation) bool) {
	value := &generationValue{number: number}
	cmd.Flags().Var(value, name, help)
	cmd.Flags().Var(&generationValue{number: number, main: func() { cmd.Flags().Lookup(name).Changed = true }}, alias, help)
	_ = cmd.Flags().MarkHidden(alias)
	complete := func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.completeGenerations(cmd, args, prefix, offer)
	}
	_ = cmd.RegisterFlagCompletionFunc(name, complete)
	_ = cmd.RegisterFlagCompletionFunc(alias, complete)
}

// generationValue is the value of a flag for a generation.
type generationValue struct {
	number *int
	main   func() // marks the flag that this one is an alias of; nil: none
}

// String returns the number; empty: none.
func (v *generationValue) String() string {
	if v.number == nil || *v.number == 0 {
		return ""
	}
	return strconv.Itoa(*v.number)
}

// Set parses a number.
func (v *generationValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("must be a number, at least 1")
	}
	*v.number = n
	if v.main != nil {
		v.main()
	}
	return nil
}

// Type is the placeholder for the value in the help.
func (*generationValue) Type() string { return "generation" }

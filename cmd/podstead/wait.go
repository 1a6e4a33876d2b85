package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/view"
)

// maxWait is the timeout that a negative value of wait --timeout stands for, as in kubectl.
const maxWait = 7 * 24 * time.Hour

// waitFlags are the flags of wait.
type waitFlags struct {
	selection
	all       bool
	condition string
	timeout   time.Duration
	format    string
}

func (a *app) waitCommand() *cobra.Command {
	var f waitFlags
	cmd := &cobra.Command{
		Use:   "wait POD... --for=CONDITION",
		Short: "Wait until pods meet a condition",
		Long: `Wait until all named pods, or all pods that are selected when the wait starts, meet a condition, as kubectl wait does.
The wait continues if the daemon restarts, or if a pod is deleted and created again with the same name. At the timeout, it
explains the pods that are not healthy.

The conditions are:
- condition=NAME[=VALUE]: the pod has this condition, such as Ready, with this status (default True). Case is ignored. Ready
  counts when the pod has stayed so for its minimum ready time (minReadySeconds; 5s without the table [update]). If the pod
  is rolled back meanwhile, the wait fails
- phase=PHASE: the pod has the phase Pending, Running, Succeeded, Failed or Unknown
- jsonpath=EXPRESSION[=VALUE]: the field in the output of get -o json has this value or, without one, exists
- delete: the pod does not exist
- create: the pod exists; with --selector or --all, at least one such pod exists

With --output, each pod is printed when it meets the condition, and a deleted pod as it was last seen.

Exit codes: 0 all pods meet the condition, 1 failure, 3 no such pod, 4 the daemon is unavailable, 5 timeout.`,
		Example: `  # Wait until a pod is ready
  podstead wait web --for=condition=Ready

  # Wait until a job has succeeded
  podstead wait batch --for=phase=Succeeded --timeout 10m

  # Wait until a pod has an address
  podstead wait web --for=jsonpath='{.status.podIP}'

  # Wait until a pod runs, and print its address
  podstead wait web --for=phase=Running -o jsonpath='{.status.podIP}{"\n"}'

  # Wait until the pods with a label are deleted
  podstead wait -l app=shop --for=delete

  # Check whether all pods are ready now, and do not wait
  podstead wait --all --for=condition=Ready --timeout 0`,
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.wait(cmd, args, &f) },
	}
	cmd.Flags().StringVar(&f.condition, "for", "", "`condition` to wait for: condition=, phase=, jsonpath=, delete, create")
	_ = cmd.RegisterFlagCompletionFunc("for", a.completeConditions)
	f.filesFlag(cmd)
	f.flags(cmd)
	f.fieldFlags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "wait for all pods")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second,
		"maximum `duration` of the wait; 0 checks without waiting, a negative one is a week")
	formats(cmd, &f.format, objectFormats...)
	return cmd
}

func (a *app) wait(cmd *cobra.Command, args []string, f *waitFlags) error {
	if err := a.addFiles(cmd, &f.selection); err != nil {
		return err
	}
	if err := f.require(cmd, args, f.all); err != nil {
		return err
	}
	if f.condition == "" {
		return usage(cmd, "wait requires --for")
	}
	condition, err := wait.ParseCondition(f.condition)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	output, err := a.parseFormat(cmd, f.format)
	if err != nil {
		return err
	}
	daemon, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	w := wait.Pods{For: condition, Names: slices.Compact(slices.Sorted(slices.Values(f.names))), Selected: f.has}
	w.Met = func(p *api.Pod) error { return a.printMet(&output, p) }
	if f.timeout == 0 {
		list, err := daemon.Client.Pods(cmd.Context())
		if err != nil {
			return err
		}
		outcome, err := w.Check(list.Items)
		if err != nil {
			return err
		}
		a.explainUnmet(cmd, daemon.Client, condition, &outcome)
		return waitError(condition, &outcome, "condition not met", "for")
	}
	timeout := f.timeout
	if timeout < 0 {
		timeout = maxWait
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	done := a.waiting("Waiting for %s", f.condition)
	outcome, err := w.Until(ctx, daemon)
	done()
	if err := errors.Join(err, cmd.Context().Err()); err != nil {
		return err
	}
	a.explainUnmet(cmd, daemon.Client, condition, &outcome)
	return waitError(condition, &outcome, "timed out waiting for the condition", "on")
}

// explainTimeout bounds how much longer than its timeout a wait takes.
const explainTimeout = 5 * time.Second

// explainUnmet prints the explanations of the pods that do not meet a condition and are not healthy.
func (a *app) explainUnmet(cmd *cobra.Command, daemon *client.Client, c *wait.Condition, o *wait.Outcome) {
	if c.Kind != wait.ForState {
		return
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), explainTimeout)
	defer cancel()
	for _, name := range o.Unmet {
		e, err := daemon.Why(ctx, name, api.DefaultEvidenceLines)
		if errors.Is(err, api.ErrUnavailable) || ctx.Err() != nil {
			return
		}
		if err == nil && !e.Healthy {
			fmt.Fprint(a.err, view.Explanation(&e, time.Now()))
		}
	}
}

// printMet prints a pod that meets the condition, in the words of kubectl also for a deletion.
func (a *app) printMet(f *outputFormat, p *api.Pod) (err error) {
	switch f.name {
	case "":
		_, err = fmt.Fprintf(a.out, "pod/%s condition met\n", p.Metadata.Name)
	case "name":
		_, err = fmt.Fprintf(a.out, "pod/%s\n", p.Metadata.Name)
	default:
		err = a.printObject(f, p)
	}
	return err
}

// waitError returns the errors of a wait in the words of kubectl. The message for a pod that does not meet the condition is "UNMET
// PREPOSITION pods/NAME".
func waitError(c *wait.Condition, o *wait.Outcome, unmet, preposition string) error {
	var late, missing []error
	for _, name := range o.Unmet {
		err := fmt.Errorf("%s %s pods/%s", unmet, preposition, name)
		if slices.Contains(o.Settling, name) {
			err = fmt.Errorf("%w: %s", err, settling)
		}
		late = append(late, err)
	}
	for _, name := range o.Missing {
		missing = append(missing, fmt.Errorf("no such pod %q", name))
	}
	switch {
	case !o.None:
	case !o.Listed, c.Kind == wait.ForCreated:
		late = append(late, errors.New(unmet))
	case c.Kind == wait.ForState:
		missing = append(missing, errors.New("no matching resources found"))
	}
	var errs []error
	if len(late) > 0 {
		f := &failure{status: statusTimeout, err: errors.Join(late...)}
		if c.Kind == wait.ForState {
			f.hints = unmetHints(o)
		}
		errs = append(errs, f)
	}
	if len(missing) > 0 {
		errs = append(errs, &failure{status: statusNotFound, err: errors.Join(missing...)})
	}
	return errors.Join(append(errs, o.Errors...)...)
}

// settling is why a wait for a pod that is ready has timed out.
const settling = "the pod is ready, but has not stayed so for its minimum ready time (minReadySeconds)"

// unmetHints returns the hint for the first pod that does not meet a condition, unless the error has the cause.
func unmetHints(o *wait.Outcome) []string {
	for _, pod := range o.Unmet {
		switch {
		case slices.Contains(o.Settling, pod):
		case slices.Contains(o.Stopped, pod):
			return []string{"the pod is stopped: start it with podstead start " + pod}
		default:
			return []string{"run podstead why " + pod + " to see what the pod waits for"}
		}
	}
	return nil
}

// completeConditions completes the conditions of wait --for: their forms, the phases, and the conditions of the pods in the arguments or,
// if there are none, of all pods.
func (a *app) completeConditions(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var values []string
	form, _, hasValue := strings.Cut(prefix, "=")
	switch {
	case hasValue && form == "condition":
		for _, p := range a.livePods(cmd, args) {
			for _, c := range p.Status.Conditions {
				values = append(values, "condition="+string(c.Type))
			}
		}
	case hasValue && form == "phase":
		for _, p := range wait.Phases {
			values = append(values, "phase="+string(p))
		}
	default:
		values = []string{"condition=", "phase=", "jsonpath=", "delete", "create"}
	}
	slices.Sort(values)
	return startingWith(prefix, slices.Compact(values)...)
}

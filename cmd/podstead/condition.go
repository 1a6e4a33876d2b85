package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
)

// conditionStatuses are the values of a condition.
var conditionStatuses = []string{"True", "False", "Unknown"}

func (a *app) conditionCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "condition",
		Short: "Set conditions of pods",
		Long: `Set the conditions that the readiness gates of a pod name. A pod is ready when its containers are ready and all these
conditions are True.`,
		Example: `  # Make a pod ready that waits for a readiness gate
  podstead condition set web example.org/door=True

  # Make it not ready
  podstead condition set web example.org/door=False`,
	}, a.conditionSetCommand())
}

func (a *app) conditionSetCommand() *cobra.Command {
	var q api.ConditionRequest
	var reason string
	cmd := &cobra.Command{
		Use:   "set POD TYPE=STATUS",
		Short: "Set the condition of a readiness gate",
		Long: `Set a condition of a pod to True, False or Unknown. The type must be one of readinessGates of the pod. The condition keeps
its status, also when the daemon restarts, until it is set again or the pod is deleted.`,
		Example: `  # Make a pod ready that waits for a readiness gate
  podstead condition set web example.org/door=True

  # Make it not ready, and set why
  podstead condition set web example.org/door=False --reason Maintenance --message "the load balancer is updated"`,
		ValidArgsFunction: a.completeGates,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Reason = api.Reason(reason)
			return a.setCondition(cmd, args, q)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`reason` of the status, one word in CamelCase")
	cmd.Flags().StringVar(&q.Message, "message", "", "`text` that explains the status")
	return cmd
}

func (a *app) setCondition(cmd *cobra.Command, args []string, q api.ConditionRequest) error {
	if len(args) == 0 {
		return usage(cmd, "%s requires a pod and TYPE=STATUS", commandName(cmd))
	}
	args, assignment := args[:len(args)-1], args[len(args)-1]
	conditionType, status, _ := strings.Cut(assignment, "=")
	i := slices.IndexFunc(conditionStatuses, func(s string) bool { return strings.EqualFold(s, status) })
	if i < 0 || conditionType == "" {
		return usage(cmd, "%q: must be TYPE=STATUS with one of the statuses %s", assignment, strings.Join(conditionStatuses, ", "))
	}
	if err := onePod(cmd, args); err != nil {
		return err
	}
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	pod, err := client.Pod(cmd.Context(), podName(cmd, args))
	if err != nil {
		return err
	}
	name, gates := pod.Metadata.Name, gatesOf(&pod)
	if !slices.Contains(gates, conditionType) {
		f := &failure{status: statusNotFound, err: fmt.Errorf("pod %q has no readiness gate %q", name, conditionType)}
		if len(gates) > 0 {
			f.hints = []string{"set one of its readiness gates: " + strings.Join(gates, ", ")}
		}
		return f
	}
	q.Status, q.UID = conditionStatuses[i], pod.Metadata.UID
	if _, err := client.SetCondition(cmd.Context(), name, conditionType, q); err != nil {
		return fmt.Errorf("set condition %q of pod %q: %w", conditionType, name, err)
	}
	_, err = fmt.Fprintf(a.out, "pod/%s condition %s set to %s\n", name, plain.Text(conditionType), q.Status)
	return err
}

// gatesOf returns the condition types of the readiness gates of a pod.
func gatesOf(p *api.Pod) []string {
	var types []string
	for _, gate := range p.Spec.ReadinessGates {
		types = append(types, gate.ConditionType)
	}
	return types
}

// completeGates completes the name of a pod, then a readiness gate of the pod, then a status.
func (a *app) completeGates(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	switch {
	case podName(cmd, args) == "":
		return a.completePods(cmd, args, prefix)
	case strings.Contains(args[len(args)-1], "="):
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	conditionType, _, hasStatus := strings.Cut(prefix, "=")
	var values []string
	for _, p := range a.livePods(cmd, args) {
		for _, gate := range gatesOf(&p) {
			switch {
			case !hasStatus:
				values = append(values, gate+"=")
			case gate == conditionType:
				for _, status := range conditionStatuses {
					values = append(values, gate+"="+status)
				}
			}
		}
	}
	return startingWith(prefix, values...)
}

package main

import "github.com/spf13/cobra"

func (a *app) metricsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "metrics",
		Short: "Print the metrics of pods and of the daemon",
		Long: `Print the metrics of pods, containers and the daemon in the text format of Prometheus. They are the same that Prometheus
gets from the address metrics.address of the configuration, which is not required for this command.

Names and labels are those of the kubelet, cAdvisor and kube-state-metrics, where these have the metric. Other names begin
with podstead_. All metrics are described in docs/reference/metrics.md.`,
		Example: `  # Print all metrics
  podstead metrics

  # Print the working set of each container in bytes
  podstead metrics | grep '^container_memory_working_set_bytes{.*container="[^"]'

  # Print how often containers restarted, by cause
  podstead metrics | grep podstead_container_restarts_total || true`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.client(cmd)
			if err != nil {
				return err
			}
			return client.Metrics(cmd.Context(), a.out)
		},
	}
}

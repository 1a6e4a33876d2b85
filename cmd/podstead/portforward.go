package main

import (
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
)

func (a *app) portForwardCommand() *cobra.Command {
	var addresses []string
	cmd := &cobra.Command{
		Use:   "port-forward POD [LOCAL:]PORT...",
		Short: "Forward local ports to a pod",
		Long: `Listen on local ports, and forward each TCP connection to a port of the pod. The pod gets it on its loopback interface,
so that also servers that listen only there are reached. PORT is a number or the name of a port in the pod file. With
:PORT, a free local port is used.

The command runs until it is interrupted or the pod ends. Restarts of containers do not end it. A connection that the
pod refuses is reported, and the others continue.`,
		Example: `  # Forward the local port 8080 to port 80 of the pod
  podstead port-forward web 8080:80

  # Forward a free local port, and a port with the same number
  podstead port-forward pod/web :80 9090

  # Accept connections from other hosts
  podstead port-forward web 8080:80 --address 0.0.0.0`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completePods(cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.portForward(cmd, args, addresses) },
	}
	cmd.Flags().StringSliceVar(&addresses, "address", []string{"localhost"},
		"`addresses` to listen on, comma-separated; localhost is 127.0.0.1 and ::1")
	return cmd
}

func (a *app) portForward(cmd *cobra.Command, args, addresses []string) error {
	if len(args) > 0 && slices.Contains([]string{"pod", "pods", "po"}, args[0]) {
		args = args[1:]
	}
	if len(args) < 2 {
		return usage(cmd, "port-forward requires a pod and a port")
	}
	if err := onePod(cmd, args[:1]); err != nil {
		return err
	}
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	pod, err := client.Pod(cmd.Context(), podName(cmd, args[:1]))
	if err != nil {
		return err
	}
	if err := connect.MayForward(cmd.Context(), client, pod.Metadata.Name); err != nil {
		return err
	}
	var ports []connect.Port
	for _, arg := range args[1:] {
		port, err := connect.ParsePort(arg, func(name string) (uint16, bool) { return namedPort(&pod, name) })
		if err != nil {
			return usage(cmd, "%w", err)
		}
		ports = append(ports, port)
	}
	name := pod.Metadata.Name
	if pod.Status.Phase != "Running" {
		return fmt.Errorf("forward ports of pod %q: the pod is %s, not Running", name, pod.Status.Phase)
	}
	var mu sync.Mutex
	f := connect.Forwarder{
		Client: client, Pod: name, UID: pod.Metadata.UID, Addresses: addresses,
		Printf: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(a.out, format, args...)
		},
		Warn: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			a.note(format, args...)
		},
	}
	return f.Run(cmd.Context(), ports)
}

// namedPort returns the number of a port with a name in the pod file.
func namedPort(pod *api.Pod, name string) (uint16, bool) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			if name != "" && p.Name == name {
				return uint16(p.ContainerPort), true
			}
		}
	}
	return 0, false
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/top"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// The commands in this file do what the same words do in docker, podman and docker compose.

func (a *app) psCommand() *cobra.Command {
	var all, quiet bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List containers",
		Long: `List the running containers of all pods, or with --all also those that wait, have terminated, or have not started. podstead get
lists pods.`,
		Example: `  # List the running containers
  podstead ps

  # List all containers
  podstead ps -a`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.client(cmd)
			if err != nil {
				return err
			}
			list, err := client.Pods(cmd.Context())
			if err != nil {
				return err
			}
			return a.printContainers(view.Containers(list.Items, all), quiet)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list also containers that do not run")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only names, as POD/CONTAINER")
	return cmd
}

func (a *app) printContainers(list []view.Container, quiet bool) error {
	if quiet {
		for i := range list {
			fmt.Fprintln(a.out, list[i].Pod+"/"+list[i].Name)
		}
		return nil
	}
	if len(list) == 0 {
		a.note("no containers")
		return nil
	}
	return a.screen().Table(view.ContainerTable(list, time.Now()))
}

func (a *app) statsCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "stats [POD...]",
		Short: "Show what containers use, until Ctrl-C",
		Long: `Show what the containers of all pods, or of the named ones, use, and refresh the table, as podstead top containers --watch.
With --no-stream, show the table once.`,
		Example: `  # Show what containers use
  podstead stats

  # Show it once
  podstead stats --no-stream`,
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := topFlags{Options: top.Options{Containers: true}, watch: !once, interval: defaultTopInterval}
			if err := f.parse(cmd, args); err != nil {
				return err
			}
			return a.top(cmd, &f)
		},
	}
	cmd.Flags().BoolVar(&once, "no-stream", false, "show the table once")
	return cmd
}

func (a *app) inspectCommand() *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use:   "inspect POD...",
		Short: "Print pods as JSON",
		Long: `Print pods as a JSON array. Its elements are Kubernetes objects, as podstead get -o json prints them. podstead describe shows
a page for people.`,
		Example: `  # Print a pod
  podstead inspect web

  # Print the state of the first container of a pod
  podstead inspect web | jq '.[0].status.containerStatuses[0].state'`,
		Args:              minOneArgument("a pod"),
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.read(cmd, args); err != nil {
				return err
			}
			client, err := a.client(cmd)
			if err != nil {
				return err
			}
			list, err := client.Pods(cmd.Context())
			if err != nil {
				return err
			}
			pods, missing := s.of(list.Items)
			return errors.Join(a.encode("json", pods), missing)
		},
	}
	return cmd
}

func (a *app) killCommand() *cobra.Command {
	var f stopFlags
	cmd := &cobra.Command{
		Use:   "kill POD...",
		Short: "Stop pods with SIGKILL",
		Long: `Kill the containers of pods, without preStop hooks and without a grace period. The pods stay stopped until podstead start, as
after podstead stop.`,
		Example: `  # Kill the containers of a pod
  podstead kill web

  # Kill the containers of all pods
  podstead kill --all`,
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.force, f.wait = true, true
			return a.stop(cmd, args, &f)
		},
	}
	cmd.Flags().SortFlags = false
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "kill all pods")
	return cmd
}

func (a *app) rmCommand() *cobra.Command {
	var f deleteFlags
	cmd := &cobra.Command{
		Use:   "rm POD...",
		Short: "Delete pods that do not run",
		Long: `Delete pods that are stopped or have terminated, with their containers, logs and state, and their files in the pods directory.
With --force, also kill and delete pods that run. podstead delete stops pods within their grace period first.`,
		Example: `  # Delete a pod that was stopped
  podstead rm web

  # Kill and delete a pod
  podstead rm -f web`,
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.stopped, f.wait, f.grace = !f.force, true, -1
			return a.delete(cmd, args, &f)
		},
	}
	cmd.Flags().SortFlags = false
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "delete all pods, and their files in the pods directory")
	cmd.Flags().BoolVarP(&f.force, "force", "f", false, "kill and delete pods that run")
	return cmd
}

// notRunning returns the pods that have terminated or are at rest, and an error for each other one.
func notRunning(pods []api.Pod) (rest []api.Pod, err error) {
	var errs []error
	rest = slices.DeleteFunc(slices.Clone(pods), func(p api.Pod) bool {
		if p.Status.AtRest || p.Status.Phase.Terminal() || p.Metadata.UID == "" { // without a UID: a file that is refused
			return false
		}
		errs = append(errs, &failure{
			status: statusFailed, err: fmt.Errorf("rm pod %q: the pod is running", p.Metadata.Name),
			hints: []string{"stop it with podstead stop " + p.Metadata.Name + ", or kill and delete it with podstead rm -f " + p.Metadata.Name},
		})
		return true
	})
	return rest, errors.Join(errs...)
}

func (a *app) downCommand() *cobra.Command {
	var f deleteFlags
	cmd := &cobra.Command{
		Use:   "down FILE|DIR|POD...",
		Short: "Stop and delete the pods of files",
		Long: `Stop and delete the pods that files or directories define, or the named pods, as podstead delete. Persistent volumes are kept.
The reverse is podstead up.`,
		Example: `  # Stop and delete the pod of a file
  podstead down web.toml

  # Stop and delete a pod
  podstead down web`,
		Args: minOneArgument("pod files or pod names"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			pods, _ := a.completePods(cmd, args, prefix)
			return pods, cobra.ShellCompDirectiveDefault // files where no pod matches
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, arg := range args {
				_, err := os.Stat(arg)
				if err == nil || arg == spec.Stdin || filepath.IsAbs(arg) || slices.Contains(podFileExtensions, filepath.Ext(arg)) {
					f.files = append(f.files, arg)
				} else {
					names = append(names, arg)
				}
			}
			f.wait = true
			return a.delete(cmd, names, &f)
		},
	}
	cmd.Flags().SortFlags = false
	graceFlag(cmd, &f.grace)
	return cmd
}

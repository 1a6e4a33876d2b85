package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// otherNames are commands that the help does not list: words of kubectl, docker, podman and docker compose for what another command does.
func (a *app) otherNames() []*cobra.Command {
	return []*cobra.Command{
		anotherName("create [-f] FILE|DIR|-...", "podstead apply for pods that do not exist", a.createCommand()),
		anotherName("diff [-f] FILE|DIR|-...", "podstead plan --exit-code, with the exit codes of kubectl diff", a.diffCommand()),
		anotherName("down FILE|DIR|POD...", "podstead delete POD, or podstead delete -f FILE", a.downCommand()),
		anotherName("images", "podstead image ls", a.imageListCommand()),
		anotherName("inspect POD...", "podstead get POD -o json, as an array", a.inspectCommand()),
		anotherName("kill POD...", "podstead stop --force", a.killCommand()),
		anotherName("load", "podstead image import", a.loadCommand()),
		anotherName("pull IMAGE", "podstead image pull", a.imagePullCommand()),
		anotherName("rm POD...", "podstead delete for pods that do not run; with -f, podstead delete --force", a.rmCommand()),
		anotherName("stats [POD...]", "podstead top --containers --watch", a.statsCommand()),
	}
}

func (a *app) createCommand() *cobra.Command {
	f := applyFlags{create: true}
	cmd := &cobra.Command{
		Long: `Write pod files to the pods directory, as podstead apply does. A pod that exists is not changed, and is an error. The other
pods are created nevertheless.

Exit codes: 0 done, 1 failure, also if a pod exists, 2 a file is invalid, 5 timeout.`,
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
		Long: `Show what podstead apply would do with the same files, as podstead plan does, and return the exit codes of kubectl diff.
Nothing is changed.

Exit codes: 0 apply would change nothing, 1 apply would change something, more than 1 failure.`,
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

func (a *app) statsCommand() *cobra.Command {
	var once bool
	f := topFlags{interval: defaultTopInterval}
	f.Containers = true
	cmd := &cobra.Command{
		Long:              "Refresh the table until Ctrl-C. With --no-stream, show it once.",
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.watch = !once
			return a.topPods(cmd, args, &f)
		},
	}
	cmd.Flags().BoolVar(&once, "no-stream", false, "show the table once")
	return cmd
}

func (a *app) inspectCommand() *cobra.Command {
	var s selection
	return &cobra.Command{
		Long:              "podstead describe shows a page for people.",
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
			if len(pods) == 0 {
				return missing
			}
			return errors.Join(a.encode("json", pods), missing)
		},
	}
}

func (a *app) killCommand() *cobra.Command {
	f := stopFlags{wait: true}
	cmd := &cobra.Command{
		Long:              "The pods stay stopped until podstead start.",
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.grace.force = true
			return a.stop(cmd, args, &f)
		},
	}
	cmd.Flags().SortFlags = false
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "kill all pods")
	return cmd
}

func (a *app) rmCommand() *cobra.Command {
	f := deleteFlags{wait: true, grace: graceFlags{seconds: -1}}
	cmd := &cobra.Command{
		Long:              "Pods that run are not deleted without --force. podstead delete stops them within their grace period first.",
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.stopped = !f.grace.force
			return a.delete(cmd, args, &f)
		},
	}
	cmd.Flags().SortFlags = false
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "delete all pods, and their files in the pods directory")
	cmd.Flags().BoolVarP(&f.grace.force, "force", "f", false, "kill and delete pods that run")
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
			hints: []string{"stop it with podstead stop " + p.Metadata.Name + ", or kill and delete it with podstead delete " + p.Metadata.Name + " --force"},
		})
		return true
	})
	return rest, errors.Join(errs...)
}

func (a *app) downCommand() *cobra.Command {
	f := deleteFlags{wait: true}
	cmd := &cobra.Command{
		Long: "Persistent volumes are kept. The reverse is podstead apply FILE.",
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
			return a.delete(cmd, names, &f)
		},
	}
	graceFlag(cmd, &f.grace.seconds)
	return cmd
}

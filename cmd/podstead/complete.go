package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

// completeNames completes names that the daemon knows, without those in the arguments. It completes none if the daemon is not running.
func (a *app) completeNames(
	cmd *cobra.Command, args []string, prefix string, list func(context.Context, *client.Client) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names, err := list(cmd.Context(), a.running(s.Client))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) || slices.Contains(args, name) })
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completePods completes names of pods.
func (a *app) completePods(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.completeNames(cmd, args, prefix, func(ctx context.Context, c *client.Client) (names []string, err error) {
		pods, err := c.Pods(ctx)
		for i := range pods.Items {
			names = append(names, resourcePrefix(prefix)+pods.Items[i].Metadata.Name)
		}
		return names, err
	})
}

// completePodsOrFiles completes names of pods, and files where no pod matches.
func (a *app) completePodsOrFiles(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	pods, _ := a.completePods(cmd, args, prefix)
	return pods, cobra.ShellCompDirectiveDefault
}

// resourcePrefix returns the resource type before the name of a pod with its slash, such as pod/; empty: there is none.
func resourcePrefix(arg string) string {
	if resource, _, found := strings.Cut(arg, "/"); found && slices.Contains(podResources, resource) {
		return resource + "/"
	}
	return ""
}

// completeOnePod completes the name of one pod.
func (a *app) completeOnePod(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if podName(cmd, args) != "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completePods(cmd, args, prefix)
}

// completeContainers completes names of containers of the pod in the arguments.
func (a *app) completeContainers(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var pods selection
	if err := pods.read(cmd, args); err != nil || len(pods.names) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeContainersOf(cmd, pods.names[0], prefix)
}

func (a *app) completeContainersOf(cmd *cobra.Command, name, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.completeNames(cmd, nil, prefix, func(ctx context.Context, c *client.Client) ([]string, error) {
		pod, err := c.Pod(ctx, name)
		return containersOf(&pod), err
	})
}

// containersOf returns the names of all containers of a pod.
func containersOf(p *api.Pod) []string {
	var names []string
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers, p.Spec.EphemeralContainers) {
		names = append(names, c.Name)
	}
	return names
}

// completeVolumes completes names of persistent volumes.
func (a *app) completeVolumes(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.completeNames(cmd, args, prefix, func(ctx context.Context, c *client.Client) (names []string, err error) {
		volumes, err := c.Volumes(ctx)
		for _, v := range volumes.Items {
			names = append(names, v.Name)
		}
		return names, err
	})
}

// completeImages completes names of images.
func (a *app) completeImages(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.completeNames(cmd, args, prefix, func(ctx context.Context, c *client.Client) ([]string, error) {
		images, err := c.Images(ctx)
		return imageNames(images.Items), err
	})
}

// imageNames returns the names of images without duplicates, which differ in their platforms or archives.
func imageNames(list []api.Image) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// completeGenerations completes generations of the pod in the arguments.
func (a *app) completeGenerations(
	cmd *cobra.Command, args []string, prefix string, offer func(*api.Generation) bool,
) ([]string, cobra.ShellCompDirective) {
	pod := podName(cmd, args)
	if pod == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(cmd, nil, prefix, func(ctx context.Context, c *client.Client) (numbers []string, err error) {
		r, err := c.Rollout(ctx, pod)
		for i := range r.Generations {
			if offer(&r.Generations[i]) {
				numbers = append(numbers, strconv.Itoa(r.Generations[i].Generation))
			}
		}
		return numbers, err
	})
}

// livePods returns the pods in arguments or, if there are none, all pods. It returns none if the daemon is not running.
func (a *app) livePods(cmd *cobra.Command, args []string) []api.Pod {
	var pods selection
	if err := pods.read(cmd, args); err != nil {
		return nil
	}
	s, err := a.connect(cmd)
	if err != nil {
		return nil
	}
	list, err := a.running(s.Client).Pods(cmd.Context())
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list.Items, func(p api.Pod) bool { return !pods.has(&p) })
}

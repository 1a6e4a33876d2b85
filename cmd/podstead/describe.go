package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/show"
)

func (a *app) describeCommand() *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use:   "describe [POD...]",
		Short: "Describe pods",
		Long: `Show everything about a pod on one page: status and its cause, containers with their states, image digests, probes with
their last answers, mounts, what they use, conditions, volumes, and the last events. Without names, describe all pods.

Values of the secrets of the pod are redacted in messages, in the output of probes and in events. If they cannot be read,
what the containers and probes have written is withheld. Environment variables and arguments of the pod file are shown.

The page is for people. Scripts use podstead get -o json, why -o json, events -o json and top -o json.`,
		Example: `  # Describe a pod
  podstead describe web

  # Describe the pods with a label
  podstead describe -l app=shop`,
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.addFiles(cmd, &s); err != nil {
				return err
			}
			if err := s.read(cmd, args); err != nil {
				return err
			}
			return a.describe(cmd, &s)
		},
	}
	s.filesFlag(cmd)
	s.flags(cmd)
	s.namespacesFlag(cmd)
	return cmd
}

func (a *app) describe(cmd *cobra.Command, s *selection) error {
	w, pods, missing, err := a.listSelected(cmd, s, (*client.Client).RedactedPods)
	if err != nil {
		return err
	}
	if len(pods) == 0 && missing == nil {
		a.note("%v", errNoPods)
	}
	used := a.statsOf(cmd, w.Client, pods)
	for i := range pods {
		in, err := describeInput(cmd.Context(), w.Client, &pods[i])
		if err != nil {
			return err
		}
		if u, ok := used[pods[i].Metadata.UID]; ok {
			in.Stats = &u
		}
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		if err := show.Describe(a.out, in, time.Now()); err != nil {
			return err
		}
	}
	return missing
}

// statsOf returns what pods use, by UID. An error is only printed: the pages show the rest.
func (a *app) statsOf(cmd *cobra.Command, c *client.Client, pods []api.Pod) map[string]api.PodStats {
	var names []string
	for i := range pods {
		if pods[i].Metadata.UID != "" { // not a file that is refused
			names = append(names, pods[i].Metadata.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	s, err := c.Stats(cmd.Context(), names...)
	if err != nil {
		a.note("cannot show what pods use: %v", err)
	}
	used := map[string]api.PodStats{}
	for _, p := range s.Pods {
		used[p.PodRef.UID] = p
	}
	return used
}

// describeInput fetches the explanation and the events of a pod.
func describeInput(ctx context.Context, c *client.Client, p *api.Pod) (*show.Description, error) {
	in := &show.Description{Pod: *p}
	why, err := c.Why(ctx, p.Metadata.Name, 0)
	switch {
	case err == nil && why.UID == p.Metadata.UID:
		in.Why = &why
	case err != nil && !isNotFound(err):
		return nil, err
	}
	for e, err := range c.Events(ctx, &client.EventQuery{Pod: p.Metadata.Name, Redact: true}) {
		if err != nil {
			return nil, err
		}
		if e.Pod == p.Metadata.Name && e.UID == p.Metadata.UID {
			in.Events = append(in.Events, e)
		}
	}
	return in, nil
}

// isNotFound reports whether the daemon does not know a pod.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*api.Error](err)
	return ok && e.Status == http.StatusNotFound
}

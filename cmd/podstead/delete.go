package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
)

// deleteFlags are the flags of delete.
type deleteFlags struct {
	selection
	all, force, wait bool
	grace            int
}

func (a *app) deleteCommand() *cobra.Command {
	var f deleteFlags
	cmd := &cobra.Command{
		Use:   "delete POD...",
		Short: "Stop and delete pods",
		Long: `Stop pods within their grace period, then delete their containers, logs and state. Images and persistent volumes
are kept. podstead run exits when its pods are deleted.`,
		Example: `  # Delete a pod
  podstead delete web

  # Delete the pods with a label, and do not wait
  podstead delete -l app=shop --wait=false

  # Kill and delete all pods
  podstead delete --all --force`,
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.delete(cmd, args, &f) },
	}
	cmd.Flags().SortFlags = false
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "delete all pods")
	graceFlag(cmd, &f.grace)
	cmd.Flags().BoolVar(&f.force, "force", false, "kill containers immediately, without a grace period")
	cmd.Flags().BoolVar(&f.wait, "wait", true, "wait until the pods are deleted")
	return cmd
}

func (a *app) delete(cmd *cobra.Command, args []string, f *deleteFlags) error {
	if err := f.read(cmd, args); err != nil {
		return err
	}
	switch {
	case f.all && !f.selection.all():
		return usage(cmd, "--all cannot be combined with pod names or --selector")
	case !f.all && f.selection.all():
		return usage(cmd, "%s requires pod names, --selector or --all", commandName(cmd))
	}
	grace := gracePeriod(f.grace)
	if f.force {
		grace = new(time.Duration)
	}
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	list, err := client.Pods(cmd.Context())
	if err != nil {
		return err
	}
	pods, missing := f.of(list.Items)
	if err := a.remove(cmd.Context(), client, pods, grace, f.wait); err != nil {
		return err
	}
	return missing
}

// remove deletes pods and, if wait is set, waits until they are deleted.
func (a *app) remove(ctx context.Context, client *api.Client, pods []api.Pod, grace *time.Duration, wait bool) error {
	waiting := map[string]string{} // UID to name
	for i, err := range requestDeletion(ctx, client, pods, grace) {
		name := pods[i].Metadata.Name
		if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
			continue // deleted since it was listed
		}
		if err != nil {
			return fmt.Errorf("delete pod %q: %w", name, err)
		}
		waiting[pods[i].Metadata.UID] = name
		if !wait {
			fmt.Fprintf(a.out, "pod/%s terminating\n", name)
		}
	}
	if !wait || len(waiting) == 0 {
		return nil
	}
	return a.awaitDeletion(ctx, client, waiting)
}

// awaitDeletion waits until pods, given as UID to name, are deleted, and prints each.
func (a *app) awaitDeletion(ctx context.Context, client *api.Client, waiting map[string]string) error {
	deleted := func(uid string) {
		if name, ok := waiting[uid]; ok {
			delete(waiting, uid)
			fmt.Fprintf(a.out, "pod/%s deleted\n", name)
		}
	}
	present := map[string]bool{} // by UID
	for change, err := range client.Watch(ctx) {
		if err != nil {
			return err
		}
		switch uid := change.Object.Metadata.UID; change.Type {
		case api.Listed:
			for uid := range waiting {
				if !present[uid] { // deleted before the watch started
					deleted(uid)
				}
			}
		case api.Deleted:
			deleted(uid)
		default:
			present[uid] = true
		}
		if len(waiting) == 0 {
			return nil
		}
	}
	return nil
}

// requestDeletion requests the deletion of all pods and returns one error for each. The requests run in parallel, because each
// response waits until the daemon has saved the pod's state.
func requestDeletion(ctx context.Context, client *api.Client, pods []api.Pod, grace *time.Duration) []error {
	errs := make([]error, len(pods))
	var requests sync.WaitGroup
	for i, p := range pods {
		requests.Go(func() {
			errs[i] = client.Stop(ctx, p.Metadata.Name, api.StopOptions{UID: p.Metadata.UID, Grace: grace, Delete: true})
		})
	}
	requests.Wait()
	return errs
}

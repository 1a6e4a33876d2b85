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
		Short: "End pods and take them away",
		Long: `The pods end within their grace period, and then nothing of them is left but images. A pod that still belongs to a
podstead run ends for that command too.`,
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.delete(cmd, args, &f) },
	}
	cmd.Flags().SortFlags = false
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "all pods")
	cmd.Flags().IntVar(&f.grace, "grace-period", -1, "seconds from the stop signal to SIGKILL, 1 at least (default the pod's own)")
	cmd.Flags().BoolVar(&f.force, "force", false, "SIGKILL at once")
	cmd.Flags().BoolVar(&f.wait, "wait", true, "wait until they are gone")
	return cmd
}

func (a *app) delete(cmd *cobra.Command, args []string, f *deleteFlags) error {
	if err := f.read(cmd, args); err != nil {
		return err
	}
	if f.selection.all() != f.all {
		return usage(cmd, "name pods, or give labels with -l, or --all")
	}
	grace := seconds(f.grace)
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

// remove asks for the deletion of pods, and waits until they are gone if it is to.
func (a *app) remove(ctx context.Context, client *api.Client, pods []api.Pod, grace *time.Duration, wait bool) error {
	waiting := map[string]string{} // the names, by UID
	for i, err := range ask(ctx, client, pods, grace) {
		name := pods[i].Metadata.Name
		if e, answered := errors.AsType[*api.Error](err); answered && e.Status == http.StatusNotFound {
			continue // it went by itself
		}
		if err != nil {
			return fmt.Errorf("delete pod %q: %w", name, err)
		}
		waiting[pods[i].Metadata.UID] = name
		if !wait {
			fmt.Fprintf(a.out, "pod/%s is to end\n", name)
		}
	}
	if !wait || len(waiting) == 0 {
		return nil
	}
	gone := func(uid string) {
		if name, was := waiting[uid]; was {
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
				if !present[uid] { // before the watch began
					gone(uid)
				}
			}
		case api.Deleted:
			gone(uid)
		default:
			present[uid] = true
		}
		if len(waiting) == 0 {
			return nil
		}
	}
	return nil
}

// ask asks for the deletion of all pods at once, since an answer waits for the disk, and returns what was answered for each.
func ask(ctx context.Context, client *api.Client, pods []api.Pod, grace *time.Duration) []error {
	errs := make([]error, len(pods))
	var asked sync.WaitGroup
	for i, p := range pods {
		asked.Go(func() {
			errs[i] = client.Stop(ctx, p.Metadata.Name, api.StopOptions{UID: p.Metadata.UID, Grace: grace, Delete: true})
		})
	}
	asked.Wait()
	return errs
}

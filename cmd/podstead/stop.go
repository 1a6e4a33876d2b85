package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
)

// stopFlags are the flags of stop.
type stopFlags struct {
	selection
	all, wait bool
	grace     graceFlags
}

func (a *app) stopCommand() *cobra.Command {
	var f stopFlags
	cmd := &cobra.Command{
		Use:   "stop POD...",
		Short: "Stop pods without deleting them",
		Long: `Stop the containers of pods within their grace period. Pods, logs and volumes are kept. A stopped pod stays stopped until
podstead start, also after a restart of the daemon or the host, and if its file changes. podstead run exits when its pods
are stopped.`,
		Example: `  # Stop a pod
  podstead stop web

  # Stop the pods with a label within 5 seconds
  podstead stop -l app=shop --grace-period 5

  # Kill the containers of a pod, without preStop hooks
  podstead stop web --force

  # Stop all pods
  podstead stop --all`,
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.stop(cmd, args, &f) },
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "stop all pods")
	f.grace.flags(cmd)
	cmd.Flags().BoolVar(&f.wait, "wait", true, "wait until the pods are stopped")
	return cmd
}

func (a *app) stop(cmd *cobra.Command, args []string, f *stopFlags) error {
	if err := f.require(cmd, args, f.all); err != nil {
		return err
	}
	grace, err := f.grace.period(cmd)
	if err != nil {
		return err
	}
	w, pods, missing, err := a.selectPods(cmd, &f.selection)
	if err != nil {
		return err
	}
	errs := inParallel(pods, func(_ int, p *api.Pod) error {
		return w.Client.Stop(cmd.Context(), p.Metadata.Name, client.StopOptions{UID: p.Metadata.UID, Grace: grace})
	})
	waiting := map[string]string{} // UID to name
	for i, err := range errs {
		name := pods[i].Metadata.Name
		if err != nil {
			errs[i] = failed("stop", name, err)
			continue
		}
		waiting[pods[i].Metadata.UID] = name
		if !f.wait {
			fmt.Fprintf(a.out, "pod/%s stopping\n", name)
		}
	}
	if f.wait {
		done := a.waiting("Waiting until pods are stopped: %s", listed(waiting))
		errs = append(errs, wait.Stopped(cmd.Context(), w, waiting, a.reportStopped))
		done()
	}
	return errors.Join(append(errs, missing)...)
}

// reportStopped prints that a pod is stopped. The error is not empty if its state could not be saved.
func (a *app) reportStopped(name, unsaved string) {
	fmt.Fprintf(a.out, "pod/%s stopped\n", name)
	if unsaved != "" {
		a.note("pod/%s is stopped, but its state could not be saved; if the daemon restarts, the pod may start again: %s", name, unsaved)
	}
}

// startFlags are the flags of start and restart.
type startFlags struct {
	selection
	all       bool
	container string // only restart
	readiness
}

func (a *app) startCommand() *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use:   "start POD...",
		Short: "Start pods that were stopped or have completed",
		Long: `Start pods again that were stopped or have completed. All containers run again, init containers too. A pod keeps its UID
and its volumes. A pod that runs is unchanged. Of a pod with a schedule, start creates a run now.`,
		Example: `  # Start a pod
  podstead start web

  # Start all pods, and wait until they are ready
  podstead start --all --wait`,
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.startPods(cmd, args, &f, "started", func(ctx context.Context, c *client.Client, p *api.Pod) (api.Started, error) {
				return c.Start(ctx, p.Metadata.Name, p.Metadata.UID)
			})
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "start all pods")
	f.waitFlags(cmd)
	return cmd
}

func (a *app) restartCommand() *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use:   "restart POD...",
		Short: "Restart pods or a container",
		Long: `Stop the containers of pods with their hooks and grace periods, then start the pods again. All containers run again, init
containers too. A pod keeps its UID and its volumes. With --container, only this container restarts, whatever its restart
policy. A pod that was stopped is started. Containers keep their images, unless their pull policy is Always. If an image
archive was replaced or an image imported, restart prints how to use the newer one.`,
		Example: `  # Restart a pod
  podstead restart web

  # Restart one container of a pod
  podstead restart web -c proxy

  # Restart the pods with a label, and wait until they are ready
  podstead restart -l app=shop --wait`,
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.restart(cmd, args, &f) },
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "restart all pods")
	cmd.Flags().StringVarP(&f.container, "container", "c", "", "restart only this `container`")
	_ = cmd.RegisterFlagCompletionFunc("container", a.completeContainers)
	f.waitFlags(cmd)
	return cmd
}

// restart restarts pods, or one container of them.
func (a *app) restart(cmd *cobra.Command, args []string, f *startFlags) error {
	return a.startPods(cmd, args, f, "restarted", func(ctx context.Context, c *client.Client, p *api.Pod) (api.Started, error) {
		return c.Restart(ctx, p.Metadata.Name, p.Metadata.UID, f.container)
	})
}

// startPods requests the start or restart of pods. The word reports it.
func (a *app) startPods(
	cmd *cobra.Command, args []string, f *startFlags, word string,
	request func(context.Context, *client.Client, *api.Pod) (api.Started, error),
) error {
	if err := errors.Join(f.require(cmd, args, f.all), f.check(cmd)); err != nil {
		return err
	}
	w, pods, missing, err := a.selectPods(cmd, &f.selection)
	if err != nil {
		return err
	}
	found := make([]api.Started, len(pods))
	errs := inParallel(pods, func(i int, p *api.Pod) (err error) {
		found[i], err = request(cmd.Context(), w.Client, p)
		return err
	})
	var goals []wait.Goal
	for i, err := range errs {
		name := pods[i].Metadata.Name
		if err != nil {
			errs[i] = failed(commandName(cmd), name, err)
			continue
		}
		if run := found[i].Run; run != "" { // of a schedule
			fmt.Fprintf(a.out, "pod/%s started as pod/%s\n", name, run)
			goals = append(goals, wait.Goal{Pod: run, Created: true, SpecHash: pods[i].Spec.Hash})
			continue
		}
		line := "pod/" + name + " " + word
		if f.container != "" {
			line += " (container " + f.container + ")"
		}
		fmt.Fprintln(a.out, line)
		a.noteNewer(name, &found[i])
		goals = append(goals, wait.Goal{Pod: name, Before: &pods[i], SpecHash: pods[i].Spec.Hash})
	}
	if f.wait {
		errs = append(errs, a.awaitReady(cmd, w, goals, &f.readiness))
	}
	return errors.Join(append(errs, missing)...)
}

// noteNewer prints which containers of a pod keep their image although a newer one is present, and how to use it.
func (a *app) noteNewer(pod string, s *api.Started) {
	if len(s.NewerImages) == 0 {
		return
	}
	a.note("pod/%s keeps its images, newer ones are present (containers: %s)", pod, strings.Join(s.NewerImages, ", "))
	hint := "to use it, delete the pod and run it again"
	switch {
	case s.Unit != "":
		hint = "to use it, run systemctl reload " + s.Unit
	case s.File != "":
		hint = "to use it, run podstead apply " + s.File
	}
	a.hint(hint)
}

// failed returns the error of a request for a pod with its operation, which some errors of the daemon name.
func failed(operation, pod string, err error) error {
	if strings.HasPrefix(err.Error(), operation+" ") {
		return err
	}
	return fmt.Errorf("%s pod %q: %w", operation, pod, err)
}

// selectPods returns the selected pods. Files that are refused are selected only by name, and so are pods that are started by a schedule,
// unless s.schedules is set. The error missing lists the names that do not exist.
func (a *app) selectPods(cmd *cobra.Command, s *selection) (w *watcher, pods []api.Pod, missing, err error) {
	if w, pods, missing, err = a.listSelected(cmd, s, (*client.Client).Pods); err != nil {
		return nil, nil, nil, err
	}
	if len(s.names) == 0 {
		pods = slices.DeleteFunc(pods, func(p api.Pod) bool {
			return p.Metadata.UID == "" && (p.Status.Phase == api.PhaseFailed || p.Status.Schedule != nil && !s.schedules)
		})
		if len(pods) == 0 {
			a.note("%v", errNoPods)
		}
	}
	for i := range pods {
		w.await(pods[i].Metadata.Name)
	}
	return w, pods, missing, nil
}

// inParallel sends a request for each pod and returns one error for each. The requests run in parallel, because each response waits until
// the daemon has saved the state of the pod.
func inParallel(pods []api.Pod, request func(i int, p *api.Pod) error) []error {
	errs := make([]error, len(pods))
	var requests sync.WaitGroup
	for i := range pods {
		requests.Go(func() { errs[i] = request(i, &pods[i]) })
	}
	requests.Wait()
	return errs
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
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "kill all pods")
	return cmd
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
)

// deleteFlags are the flags of delete.
type deleteFlags struct {
	selection
	all, wait bool
	stopped   bool            // only pods that do not run
	inOrder   bool            // a pod after those that wait for it
	volumes   bool            // also the persistent volumes of Compose files
	mounted   map[string]bool // receives the persistent volumes of the pods that are deleted
	grace     graceFlags
}

func (a *app) deleteCommand() *cobra.Command {
	var f deleteFlags
	cmd := &cobra.Command{
		Use:   "delete POD...",
		Short: "Stop and delete pods",
		Long: `Stop pods within their grace period, then delete their containers, logs and state, and their files in the pods
directory. Images and persistent volumes are kept. podstead run exits when its pods are deleted. Files that are refused
are deleted only by the name of their pod, not with --selector or --all. With a pod that its schedule starts, its runs are
deleted.`,
		Example: `  # Delete a pod
  podstead delete web

  # Delete the pods that files define
  podstead delete -f pods/

  # Delete the pods with a label, and do not wait
  podstead delete -l app=shop --wait=false

  # Kill and delete all pods, and their files
  podstead delete --all --force`,
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.delete(cmd, args, &f) },
	}
	f.filesFlag(cmd)
	f.flags(cmd)
	f.fieldFlags(cmd)
	f.ignoreFlag(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "delete all pods, and their files in the pods directory")
	f.grace.flags(cmd)
	cmd.Flags().BoolVar(&f.grace.now, "now", false, "stop containers within 1 second, as --grace-period 1")
	cmd.Flags().BoolVar(&f.wait, "wait", true, "wait until the pods are deleted")
	hide(cmd, "now")
	return cmd
}

func (a *app) delete(cmd *cobra.Command, args []string, f *deleteFlags) error {
	if err := a.addFiles(cmd, &f.selection); err != nil {
		return err
	}
	if err := f.require(cmd, args, f.all); err != nil {
		return err
	}
	grace, err := f.grace.period(cmd)
	if err != nil {
		return err
	}
	f.schedules = true
	w, pods, missing, err := a.selectPods(cmd, &f.selection)
	if err != nil {
		return err
	}
	pods, foreign := a.project.own(pods)
	missing = errors.Join(missing, foreign)
	if f.stopped {
		var running error
		pods, running = notRunning(pods)
		missing = errors.Join(running, missing)
	}
	f.mounted = map[string]bool{}
	for i := range pods {
		for _, v := range pods[i].Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				f.mounted[v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	steps := [][]api.Pod{pods}
	if f.inOrder {
		steps = lastFirst(pods)
	}
	var errs []error
	for _, step := range steps {
		errs = append(errs, a.remove(cmd.Context(), w, step, client.StopOptions{Grace: grace}, f.wait))
	}
	return errors.Join(append(errs, missing)...)
}

// remove deletes pods and their files and, if await is set, waits until they are deleted. It prints each. A pod that cannot be
// deleted does not keep the others.
func (a *app) remove(ctx context.Context, w *watcher, pods []api.Pod, o client.StopOptions, await bool) error {
	files := make([]string, len(pods))
	errs := inParallel(pods, func(i int, p *api.Pod) error {
		o := o
		o.UID = p.Metadata.UID
		d, err := w.Client.Delete(ctx, p.Metadata.Name, o)
		files[i] = d.File
		return err
	})
	waiting := map[string]string{} // UID to name
	removed := map[string]string{} // name to file
	report := func(name, word string) {
		if file := removed[name]; file != "" {
			word += " (file " + plain.Text(file) + " removed)"
		}
		fmt.Fprintf(a.out, "pod/%s %s\n", name, word)
	}
	var list []error
	for i, err := range errs {
		name, uid := pods[i].Metadata.Name, pods[i].Metadata.UID
		removed[name] = files[i]
		e, ok := errors.AsType[*api.Error](err)
		switch {
		case ok && e.Status == http.StatusNotFound: // deleted since it was listed
		case err != nil:
			list = append(list, fmt.Errorf("delete pod %q: %w", name, err))
		case uid == "":
			report(name, "deleted")
		case await:
			waiting[uid] = name
		default:
			report(name, "terminating")
		}
	}
	defer a.waiting("Waiting until pods are deleted: %s", listed(waiting))()
	err := wait.Deleted(ctx, w, waiting, func(name, remains string) {
		if remains == "" {
			report(name, "deleted")
			return
		}
		list = append(list, &wait.RemainsError{Pod: name, Remains: remains})
	})
	return errors.Join(append(list, err)...)
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
			hints: []string{
				"stop it with podstead stop " + p.Metadata.Name + ", or kill and delete it with podstead delete " + p.Metadata.Name +
					" --force",
			},
		})
		return true
	})
	return rest, errors.Join(errs...)
}

func (a *app) downCommand() *cobra.Command {
	f := deleteFlags{wait: true, inOrder: true}
	cmd := &cobra.Command{
		Long: `A pod is deleted after those that wait for it. Without arguments, the pods of the Compose file in the current directory are
deleted. Persistent volumes are kept, unless --volumes deletes those that the Compose files define. The reverse is
podstead up -d FILE.`,
		ValidArgsFunction: a.completePodsOrFiles,
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
			if len(args)+len(f.files) == 0 {
				files, err := defaultProject(cmd)
				if err != nil {
					return err
				}
				f.files = files
			}
			files := slices.Clone(f.files)
			if f.volumes && !slices.ContainsFunc(files, namesCompose) {
				return usage(cmd, "%s --volumes requires Compose files", commandName(cmd))
			}
			if err := a.delete(cmd, names, &f); err != nil || !f.volumes {
				return err
			}
			return a.removeVolumes(cmd, files, f.mounted)
		},
	}
	f.filesFlag(cmd)
	f.ignoreFlag(cmd)
	graceFlag(cmd, &f.grace.seconds)
	cmd.Flags().BoolVarP(&f.volumes, "volumes", "v", false, "delete also the persistent volumes that Compose files define, with their data")
	a.addProjectFileFlags(cmd)
	return cmd
}

// namesCompose reports whether a file or one of a directory is a Compose file.
func namesCompose(path string) bool {
	files, err := expand([]string{path})
	return err == nil && slices.ContainsFunc(files, readsAsCompose)
}

// removeVolumes deletes the persistent volumes of projects, but not the external ones. Those that a Compose file names may belong to
// others: they are deleted only if a pod that was deleted mounted them. Those that pods of another project have created are kept.
func (a *app) removeVolumes(cmd *cobra.Command, paths []string, mounted map[string]bool) error {
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	list, err := c.Volumes(cmd.Context())
	if err != nil {
		return err
	}
	paths, err = a.expand(paths)
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		text, err := a.readText(path)
		if err != nil || !isComposeFile(path, text) {
			errs = append(errs, err)
			continue
		}
		r, err := a.convertProject(cmd.Context(), path, true, []string{"*"})
		if err != nil {
			return err
		}
		for _, claim := range r.Claims {
			i := slices.IndexFunc(list.Items, func(v api.Volume) bool { return v.Name == claim })
			if i < 0 {
				continue
			}
			other := list.Items[i].Project
			foreign := other != "" && other != r.Project
			if foreign || slices.Contains(r.Named, claim) && !mounted[claim] {
				why := "no pod that was deleted mounted it"
				if foreign {
					why = fmt.Sprintf("it belongs to project %q", other)
				}
				a.note("volume/%s kept: %s", claim, plain.Text(why))
				a.hint("to delete it, run podstead volume rm " + claim)
				continue
			}
			if err := c.RemoveVolume(cmd.Context(), claim); err != nil {
				errs = append(errs, fmt.Errorf("delete volume %q: %w", claim, err))
				continue
			}
			fmt.Fprintf(a.out, "volume/%s deleted\n", plain.Text(claim))
		}
	}
	return errors.Join(errs...)
}

// lastFirst divides pods into those that no other one waits for, those that only these wait for, and so on.
func lastFirst(pods []api.Pod) (steps [][]api.Pod) {
	for len(pods) > 0 {
		waitedFor := map[string]bool{}
		for i := range pods {
			for _, name := range pods[i].Spec.WaitsForPods() {
				waitedFor[name] = true
			}
		}
		var step, rest []api.Pod
		for _, p := range pods {
			if waitedFor[p.Metadata.Name] {
				rest = append(rest, p)
			} else {
				step = append(step, p)
			}
		}
		if len(step) == 0 { // they wait for each other
			step, rest = rest, nil
		}
		steps, pods = append(steps, step), rest
	}
	return steps
}

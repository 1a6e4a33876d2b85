package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// applyFlags are the flags of apply.
type applyFlags struct {
	files  []string
	create bool // the pods must not exist
	up     bool // as podstead up: what was stopped or has completed is started, and the command waits until containers have started
	prune  bool
	level  string
	spec   spec.Options
	readiness
}

// verb is what a command does, in errors; run -d applies.
func (f *applyFlags) verb() string {
	if f.create {
		return "create"
	}
	return "apply"
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply [-f] FILE|DIR|-...",
		Short: "Create or update pods from files",
		Long: `Write pod files to the pods directory. The daemon runs the pods of this directory, also after a restart of the daemon
or the host, and follows changes of its files. Relative paths become absolute. All files are checked first: if one is
invalid, nothing is written. The file - is standard input, in TOML, YAML or JSON.

A changed file has the smallest effect that is possible: a change in place, a restart of one container, or a restart of
the pod, which keeps its UID and volumes. So has an image archive that was replaced under the same name: the containers
that use it restart with the new image. podstead plan shows both in advance. What the new definition needs is pulled
before anything stops.

With --prune, pods of the directory that none of the files defines are deleted. Without files, --prune deletes the pods
whose files were lost: after the directory was lost or emptied, the daemon stops no pod until this command or a file
confirms it.

With --wait, the command returns when each pod has the new definition, is ready, and has stayed so for its minimum ready
time (minReadySeconds; 5s without the table [update]), or has succeeded. It fails if a container fails before, or if the
definition is rolled back or replaced.

Exit codes: 0 done, 1 failure, with --wait also if a pod failed, 2 a file is invalid, 5 timeout.`,
		Example: `  # Create or update a pod
  podstead apply web.toml

  # Apply all files of a directory, and wait until the pods are ready
  podstead apply pods/ --wait --timeout 2m

  # Apply the output of another program
  kubectl get pod web -o yaml | podstead apply -

  # Delete all pods of the pods directory that pods/ does not define
  podstead apply pods/ --prune`,
		Args: func(cmd *cobra.Command, args []string) error {
			return podFilesUnlessPruning(cmd, append(args, f.files...), f.prune)
		},
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.apply(cmd, append(args, f.files...), &f) },
	}
	fileFlag(cmd, &f.files)
	f.waitFlags(cmd)
	cmd.Flags().BoolVar(&f.prune, "prune", false, "delete pods of the pods directory that the files do not define")
	lossFlags(cmd, &f.spec, "v")
	levelFlag(cmd, &f.level)
	a.addProjectFlags(cmd)
	return cmd
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
	fileFlag(cmd, &f.files)
	f.waitFlags(cmd)
	lossFlags(cmd, &f.spec, "v")
	levelFlag(cmd, &f.level)
	cmd.AddCommand(hidden(createHints, func(_ *cobra.Command, name string) error {
		return fmt.Errorf("create %s: is not supported: only pods are created, from files", name)
	})...)
	return cmd
}

func (a *app) apply(cmd *cobra.Command, paths []string, f *applyFlags) error {
	if !f.up {
		if err := f.check(cmd); err != nil {
			return err
		}
	}
	files, err := a.readApplied(cmd, paths, f.spec, f.level)
	if err != nil {
		return err
	}
	w, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	c := w.Client
	before, err := c.Pods(cmd.Context())
	if err != nil {
		return err
	}
	for i := range files {
		if err := otherProject(&files[i], before.Items); err != nil {
			return err
		}
	}
	if err := a.checkClaims(cmd.Context(), c); err != nil {
		return err
	}
	done := a.waiting("Applying pod files")
	var results []api.Applied
	var errs []error
	started := map[string]bool{} // pods that were at rest
	for _, file := range files {
		file.request.Create = f.create
		result, err := c.Apply(cmd.Context(), file.request)
		if err != nil {
			errs = append(errs, notApplied(f.verb(), &file, err))
			continue
		}
		results = append(results, result)
		fmt.Fprintln(a.out, plain.Text(view.Applied(&result)))
		if f.up {
			var err error
			started[result.Pod], err = a.startAtRest(cmd.Context(), c, &file, &result, before.Items)
			errs = append(errs, err)
		}
		if !f.wait {
			a.noteRolledBack(cmd.Context(), c, &result)
			a.noteUnit(&result, hintUnit(&result, before.Items))
		}
	}
	if f.prune && len(errs) == 0 {
		pruned, err := c.Prune(cmd.Context(), pruneRequest(files))
		errs = append(errs, err)
		for i := range pruned.Items {
			fmt.Fprintln(a.out, plain.Text(view.Applied(&pruned.Items[i])))
		}
	}
	done()
	if !f.prune {
		a.noteSurplus(files, before.Items)
	}
	a.noteBoot(cmd.Context(), c, before.Items, results)
	if f.wait {
		for i := range results {
			errs = append(errs, a.rolledBack(cmd, c, &results[i]), startedByUnit(&results[i], hintUnit(&results[i], before.Items)))
		}
	}
	if f.wait || f.up {
		goals := goalsOf(results, before.Items)
		for i := range goals {
			goals[i].Started, goals[i].Restarted = !f.wait, started[goals[i].Pod]
		}
		errs = append(errs, a.awaitReady(cmd, w, goals, &f.readiness))
	}
	return errors.Join(errs...)
}

// notApplied returns the error of a pod that was not applied. That of a pod that is rejected names the pod.
func notApplied(verb string, file *applied, err error) error {
	if e, ok := errors.AsType[*api.Error](err); ok && len(e.Refusals) > 0 {
		return fmt.Errorf("%s %s: %w", verb, file.request.File, err)
	}
	return fmt.Errorf("%s pod %q: %w", verb, file.pod, err)
}

// startAtRest starts a pod that was stopped before its file was applied and, as Compose does, a service that has completed. A pod that a
// systemd unit starts is left to the unit. It reports whether it has started the pod.
func (a *app) startAtRest(ctx context.Context, c *client.Client, file *applied, r *api.Applied, before []api.Pod) (bool, error) {
	i := slices.IndexFunc(before, func(p api.Pod) bool { return p.Metadata.Name == r.Pod })
	if i < 0 || r.Unit != "" {
		return false, nil
	}
	p := &before[i]
	completed := file.project != "" && p.Status.Phase.Terminal() && p.Metadata.DeletionTimestamp == nil
	if p.Status.StoppedAt.IsZero() && !completed { // a pod that is being deleted has neither
		return false, nil
	}
	if _, err := c.Start(ctx, r.Pod, p.Metadata.UID); err != nil {
		return false, failed("start", r.Pod, err)
	}
	fmt.Fprintf(a.out, "pod/%s started\n", r.Pod)
	return true, nil
}

// noteSurplus prints which replicas keep running although the files define fewer replicas of the same object than before.
func (a *app) noteSurplus(files []applied, before []api.Pod) {
	objectOf := func(p *api.Pod) string { return p.Metadata.Annotations[spec.AnnotationReplicaOf] }
	isApplied := func(p *api.Pod) bool {
		return slices.ContainsFunc(files, func(file applied) bool { return file.pod == p.Metadata.Name })
	}
	objects := map[string]bool{}
	for i := range before {
		if p := &before[i]; objectOf(p) != "" && isApplied(p) {
			objects[objectOf(p)] = true
		}
	}
	for i := range before {
		p := &before[i]
		if !objects[objectOf(p)] || isApplied(p) || p.Status.File == "" || p.Metadata.DeletionTimestamp != nil {
			continue
		}
		a.note("pod/%s of %s is not defined by these files and is kept: delete it with podstead delete %s",
			p.Metadata.Name, objectOf(p), p.Metadata.Name)
	}
}

// noteRolledBack prints why a pod does not run the file that was applied, and how to try it again.
func (a *app) noteRolledBack(ctx context.Context, c *client.Client, r *api.Applied) {
	a.noteUndone(r)
	if r.Instead != "" {
		a.note("pod/%s does not run this file: %s", r.Pod, r.Instead)
		a.hint(hintAgain(ctx, c, r.Pod))
	}
}

// noteUndone prints that a file ends what rollout undo did.
func (a *app) noteUndone(r *api.Applied) {
	if r.Undone != "" {
		a.note("pod/%s: this file replaces %s", r.Pod, r.Undone)
	}
}

// noteUnit prints how a pod that a systemd unit starts gets the file that was applied.
func (a *app) noteUnit(r *api.Applied, hint string) {
	if hint != "" {
		a.note("pod/%s does not run this file yet: %s starts the pod", r.Pod, r.Unit)
		a.hint(hint)
	}
}

// startedByUnit returns an error if a pod does not become ready because a systemd unit starts it.
func startedByUnit(r *api.Applied, hint string) error {
	if hint == "" {
		return nil
	}
	return &failure{status: statusFailed, err: fmt.Errorf("wait for pod %q: %s starts the pod", r.Pod, r.Unit), hints: []string{hint}}
}

// hintUnit is how a unit starts its pod, or changes it to its file; empty: the pod runs its file, or no unit starts it.
func hintUnit(r *api.Applied, before []api.Pod) string {
	verb := "start "
	i := slices.IndexFunc(before, func(p api.Pod) bool { return p.Metadata.Name == r.Pod })
	switch {
	case r.Unit == "", i >= 0 && before[i].Spec.Hash == r.SpecHash:
		return ""
	case i >= 0:
		verb = "reload "
	}
	return "run systemctl daemon-reload && systemctl " + verb + r.Unit
}

// rolledBack returns an error if a pod does not become ready with the file that was applied, since that was rolled back before. It explains
// the pod.
func (a *app) rolledBack(cmd *cobra.Command, c *client.Client, r *api.Applied) error {
	a.noteUndone(r)
	if r.Instead == "" {
		return nil
	}
	a.printWhy(cmd, c, r.Pod)
	return &failure{
		status: statusFailed, err: fmt.Errorf("wait for pod %q: %s", r.Pod, r.Instead), hints: []string{hintAgain(cmd.Context(), c, r.Pod)},
	}
}

// hintAgain is how to run a file that was rolled back.
func hintAgain(ctx context.Context, c *client.Client, pod string) string {
	change := "change the file"
	r, err := c.Rollout(ctx, pod)
	if err != nil {
		return change
	}
	g := r.RolledBack()
	if g == nil {
		return change
	}
	if sameText(&r, g.Generation) {
		change = "replace the image"
	}
	return fmt.Sprintf("%s, or try it again with podstead rollout undo %s --to-generation %d", change, pod, g.Generation)
}

// sameText reports whether a generation has the text of the one that runs: only an image differs.
func sameText(r *api.Rollout, generation int) bool {
	g, running := r.Find(generation), r.Find(r.Running)
	return g != nil && running != nil && g.Digest == running.Digest
}

// podFilesUnlessPruning requires pod files as arguments, unless only pods whose files were lost are pruned.
func podFilesUnlessPruning(cmd *cobra.Command, args []string, prune bool) error {
	if prune && len(args) == 0 {
		return nil
	}
	return podFileArguments(cmd, args)
}

// pruneRequest requests the deletion of the pods that the files do not define. Without files, only pods whose files were lost are deleted.
func pruneRequest(files []applied) api.PruneRequest {
	q := api.PruneRequest{Lost: len(files) == 0}
	for _, file := range files {
		q.Keep = append(q.Keep, file.pod)
	}
	return q
}

// noteBoot prints for the first pods of a host that they do not start at boot, if no service runs the daemon.
func (a *app) noteBoot(ctx context.Context, c *client.Client, before []api.Pod, results []api.Applied) {
	if slices.ContainsFunc(before, func(p api.Pod) bool { return p.Status.File != "" }) {
		return
	}
	changed := slices.ContainsFunc(results, func(r api.Applied) bool { return r.Outcome != api.PodUnchanged })
	v, err := c.Version(ctx)
	if !changed || err != nil || !v.OnDemand {
		return
	}
	if a.user != nil {
		a.noteUserBoot(filepath.Dir(a.user["configDir"]))
		return
	}
	switch serviceAtBoot(a.hostRoot, unitDirectories) {
	case serviceDisabled:
		a.note("pods do not start at boot: enable the service with systemctl enable --now podstead")
	case serviceMissing:
		a.note("pods do not start at boot: install the service as described in docs/howto/run-pods-at-boot.md")
	case serviceEnabled:
	}
}

// noteUserBoot is noteBoot for the daemon of a user.
func (a *app) noteUserBoot(configHome string) {
	switch serviceAtBoot(a.hostRoot, userUnitDirectories(configHome)) {
	case serviceDisabled:
		a.note("pods do not start at boot: run systemctl --user enable --now podstead and, as root, loginctl enable-linger USER")
	case serviceMissing:
		a.note("pods without root do not start at boot, but with the next command of podstead after it")
	case serviceEnabled:
	}
}

// goalsOf returns what --wait waits for after pod files were applied.
func goalsOf(results []api.Applied, before []api.Pod) []wait.Goal {
	var goals []wait.Goal
	for _, r := range results {
		if r.Instead != "" || r.Scheduled || hintUnit(&r, before) != "" {
			continue
		}
		g := wait.Goal{Pod: r.Pod, SpecHash: r.SpecHash, Created: r.Outcome == api.PodCreated, Changed: r.Outcome == api.PodConfigured}
		if i := slices.IndexFunc(before, func(p api.Pod) bool { return p.Metadata.Name == r.Pod }); i >= 0 {
			g.Before = &before[i]
		}
		goals = append(goals, g)
	}
	return goals
}

// defaultWait is how long --wait waits.
const defaultWait = 5 * time.Minute

// readiness are the flags of commands that can wait until pods are ready.
type readiness struct {
	wait    bool
	timeout time.Duration
}

func (r *readiness) waitFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.wait, "wait", false,
		"wait until the pods are ready and stay so (minReadySeconds), or have succeeded; explain why if they do not")
	cmd.Flags().DurationVar(&r.timeout, "timeout", defaultWait, "maximum `duration` of --wait, 0 for none")
}

// check requires --wait with --timeout.
func (r *readiness) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("timeout") && !r.wait {
		return usage(cmd, "--timeout requires --wait")
	}
	return nil
}

// awaitReady waits until what was requested of pods is complete. It explains those that fail.
func (a *app) awaitReady(cmd *cobra.Command, w *watcher, goals []wait.Goal, r *readiness) error {
	ctx := cmd.Context()
	if r.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		ctx = limited
	}
	for _, g := range goals {
		w.await(g.Pod)
	}
	statuses, pending, resizes, settles := map[string]string{}, map[string]string{}, map[string]string{}, map[string]bool{}
	t := view.Text{Err: a.err, Width: a.width()}
	failed, err := wait.Ready(ctx, w, goals, func(p *api.Pod) {
		name, status := p.Metadata.Name, view.Ready(p)+" "+view.Status(p)
		if pending[name] = pendingUpdate(p); pending[name] != "" {
			status += " (" + string(api.ReasonUpdatePending) + ")"
		}
		settles[name] = pending[name] == "" && wait.Settling(p)
		resizes[name] = wait.Resizing(p)
		if statuses[name] != status {
			statuses[name] = status
			t.Notice(fmt.Sprintf("pod/%s: %s", name, status))
		}
		t.Progress(p)
	})
	t.Progress(nil)
	errs := []error{err}
	for _, g := range goals {
		cause := failed[g.Pod]
		if cause == nil {
			continue
		}
		timedOut := errors.Is(cause, context.DeadlineExceeded)
		if timedOut {
			cause = fmt.Errorf("timed out after %v", r.timeout)
			if why := pending[g.Pod]; why != "" && g.Changed {
				cause = fmt.Errorf("%w: %s", cause, why)
			}
			if why := resizes[g.Pod]; why != "" && pending[g.Pod] == "" {
				cause = fmt.Errorf("%w: %s", cause, why)
			}
			if settles[g.Pod] {
				cause = fmt.Errorf("%w: %s", cause, settling)
			}
			cause = &failure{status: statusTimeout, err: cause}
		}
		errs = append(errs, fmt.Errorf("wait for pod %q: %w", g.Pod, cause))
		if !timedOut || !settles[g.Pod] { // the explanation of a pod that is ready is about earlier restarts
			a.printWhy(cmd, w.Client, g.Pod)
		}
	}
	return errors.Join(errs...)
}

// pendingUpdate is what the newest definition of a pod waits for while the pod runs an earlier one, such as for an image; empty: nothing.
func pendingUpdate(p *api.Pod) string {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == api.FileAccepted && c.Status == "False" && c.Reason == api.ReasonUpdatePending {
			return c.Message
		}
	}
	return ""
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon/bundleundo"
	"github.com/podstead/podstead/internal/diskblocks"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// bundleApplyFlags are the flags of bundle apply.
type bundleApplyFlags struct {
	dryRun bool
	level  string
	readiness
}

func (a *app) bundleApplyCommand() *cobra.Command {
	var f bundleApplyFlags
	cmd := &cobra.Command{
		Use:   "apply FILE|-",
		Short: "Create or update the pods of a bundle",
		Long: `Verify a bundle, import its images, write its config maps and secrets, and apply its pod files. Nothing is changed if a part of the
bundle is damaged or missing, if it is for another platform, if an image must be signed and is not, if a pod is invalid or not admitted, or if the disk has too little space.

Either all pods of the bundle are applied or none: after a failure, the pod files, config maps, secrets and names of images are as they were before. With
--wait, a pod that does not become ready is such a failure. If the command is killed or the host loses power, the daemon undoes the
bundle within 10 seconds, or when it starts. Names that existed refer to their earlier images again.
The images of the bundle are kept for an hour, and then as long as a pod or a generation for a rollback uses them.

A bundle from standard input is first copied to a temporary file ($TMPDIR).

Exit codes: 0 done, 1 failure, 2 the bundle has an invalid pod file, 5 timeout.`,
		Example: `  # Apply a bundle, and return to the state before if a pod does not become ready
  podstead bundle apply shop.bundle --wait

  # Verify a bundle, and show what it would change
  podstead bundle apply shop.bundle --dry-run`,
		Args:              oneBundle,
		ValidArgsFunction: completeBundles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.applyBundle(cmd, args[0], &f) },
	}
	cmd.Flags().SortFlags = false
	f.waitFlags(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "verify the bundle and print what would change, and change nothing")
	levelFlag(cmd, &f.level)
	return cmd
}

// carrying applies a bundle.
type carrying struct {
	a      *app
	cmd    *cobra.Command
	f      *bundleApplyFlags
	config *config.Config
	w      *watcher
	file   *os.File
	bundle *bundle.Bundle
	lock   *bundleundo.Lock   // nil with --dry-run
	record *bundleundo.Record // what was there before; nil: nothing was changed
	pods   []applied
	images []api.Image                       // of the host, before the import
	began  time.Time                         // before the import
	undo   []func(ctx context.Context) error // the reverse of what was done, in its order
}

func (a *app) applyBundle(cmd *cobra.Command, path string, f *bundleApplyFlags) (err error) {
	if err := f.check(cmd); err != nil {
		return err
	}
	c := &carrying{a: a, cmd: cmd, f: f}
	if c.config, err = a.config(cmd); err != nil {
		return err
	}
	if c.file, err = a.openBundle(path); err != nil {
		return argumentError(fmt.Errorf("apply bundle %q: %w", path, err))
	}
	defer c.file.Close()
	if err := c.verify(); err != nil {
		return fmt.Errorf("apply bundle %q: %w", path, err)
	}
	plans, err := c.plan()
	if c.lock != nil {
		defer c.lock.Close()
	}
	if err != nil {
		return fmt.Errorf("apply bundle %q: %w", path, err)
	}
	if f.dryRun {
		for i := range plans {
			fmt.Fprintln(a.out, plain.Text(view.Applied(&plans[i]))+" (dry run)")
		}
		return nil
	}
	// From here on an interruption is a failure: what was done is undone.
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	cmd.SetContext(ctx)
	if err := c.carryOut(plans); err != nil {
		return fmt.Errorf("apply bundle %q: %w", path, errors.Join(err, c.giveUp(context.WithoutCancel(ctx))))
	}
	return nil
}

// verify checks everything that can be checked without the daemon.
func (c *carrying) verify() (err error) {
	if c.bundle, err = bundle.Read(c.cmd.Context(), c.file); err != nil {
		return err
	}
	if host := image.HostPlatform(); !image.PlatformMatches(c.bundle.Platform, host) {
		return fmt.Errorf("the bundle is for platform %s, this host is %s", c.bundle.Platform, host)
	}
	level, err := c.a.level(c.cmd, c.f.level)
	if err != nil {
		return err
	}
	policy := c.config.Policy.Admission()
	policy.Protected = c.config.OwnPaths()
	var errs []error
	var pods []readPod
	for _, p := range c.bundle.Pods {
		// The name is that of a file in the pods directory: a bundle has no relative paths.
		file := filepath.Join(c.config.Pods.Dir, filepath.Base(p.File))
		pod, err := c.a.acceptFile(file, c.bundle.Text[p.File], spec.Options{}, level)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := c.checkPod(p, pod); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, r := range policy.Check(pod) {
			errs = append(errs, fmt.Errorf("pod %q rejected: %w", p.Name, r))
		}
		c.pods = append(c.pods, applied{p.Name, api.ApplyRequest{File: file, Text: string(c.bundle.Text[p.File])}})
		pods = append(pods, readPod{file, pod})
	}
	if len(c.a.waitCycles(c.cmd, pods)) > 0 || len(errs) > 0 {
		return invalidFiles(errs)
	}
	return c.space()
}

// checkPod checks that a pod is the one that the manifest names, and has all that it needs in the bundle.
func (c *carrying) checkPod(p bundle.Pod, pod *spec.Pod) error {
	switch {
	case pod.Name != p.Name:
		return fmt.Errorf("%s defines pod %q, the manifest has %q", p.File, pod.Name, p.Name)
	case len(pod.ImageArchives) > 0:
		return fmt.Errorf("%s: imageArchives is not allowed in a bundle", p.File)
	}
	for name := range imagesOf(pod) {
		full, err := image.FullName(name)
		if err != nil {
			return fmt.Errorf("%s: %w", p.File, err)
		}
		if !slices.ContainsFunc(c.bundle.Images, func(i bundle.Image) bool { return i.Name == full }) {
			return fmt.Errorf("%s: image %q is not in the bundle", p.File, name)
		}
	}
	return nil
}

// freeSpace returns the free space of the disk of a directory, which may not exist yet.
var freeSpace = func(dir string) (int64, error) {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if err == nil {
			return diskblocks.Bytes(&st, st.Bavail), nil
		}
		if above := filepath.Dir(dir); above != dir && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES)) {
			dir = above
			continue
		}
		return 0, &fs.PathError{Op: "free space", Path: dir, Err: err}
	}
}

// space checks that the images fit on the disk, compressed and unpacked.
func (c *carrying) space() error {
	free, err := freeSpace(c.config.StateDir)
	if err != nil {
		return err
	}
	size := c.bundle.ImageSize()
	if size > free || c.bundle.UnpackedSize > free-size {
		return &failure{
			status: statusFailed,
			err:    fmt.Errorf("the images need %s and %s unpacked, %s has %s free", view.Size(size), view.Size(c.bundle.UnpackedSize), c.config.StateDir, view.Size(free)),
			hints:  []string{"remove unused images with podstead image prune"},
		}
	}
	return nil
}

// plan returns what applying the pod files would do. It changes nothing.
func (c *carrying) plan() (plans []api.Applied, err error) {
	if err := c.checkConfig(); err != nil {
		return nil, err
	}
	if c.w, err = c.a.watcher(c.cmd); err != nil {
		return nil, err
	}
	if !c.f.dryRun {
		if c.lock, err = c.acquire(); err != nil {
			return nil, err
		}
	}
	if err := c.checkSignatures(); err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range c.pods {
		p.request.DryRun = true
		plan, err := c.w.Client.Apply(c.cmd.Context(), p.request)
		if err != nil {
			errs = append(errs, fmt.Errorf("pod %q: %w", p.pod, err))
		}
		plans = append(plans, plan)
	}
	return plans, errors.Join(errs...)
}

// carryOut imports the images, writes the config maps and secrets, and applies the pod files.
func (c *carrying) carryOut(plans []api.Applied) error {
	ctx := c.cmd.Context()
	before, err := c.w.Client.Pods(ctx)
	if err != nil {
		return err
	}
	earlier, err := c.readEarlier(ctx, plans)
	if err != nil {
		return err
	}
	c.began = time.Now()
	if err := c.begin(plans, earlier); err != nil {
		return err
	}
	if err := c.importImages(ctx); err != nil {
		return err
	}
	if err := c.writeConfig(); err != nil {
		return err
	}
	results, err := c.applyPods(ctx, earlier)
	if err != nil {
		return err
	}
	if err := c.awaitPods(results, before.Items); err != nil {
		return err
	}
	return c.lock.End()
}

// applyPods applies the pod files.
func (c *carrying) applyPods(ctx context.Context, earlier []*api.ApplyRequest) (results []api.Applied, err error) {
	for i, p := range c.pods {
		result, err := c.applyPod(ctx, p, earlier[i])
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	for i := range results {
		fmt.Fprintln(c.a.out, plain.Text(view.Applied(&results[i])))
		if !c.f.wait {
			c.a.noteRolledBack(ctx, c.w.Client, &results[i])
		}
	}
	c.a.noteBoot(ctx, c.w.Client, results)
	return results, nil
}

// awaitPods waits for the pods, with --wait.
func (c *carrying) awaitPods(results []api.Applied, before []api.Pod) error {
	if !c.f.wait {
		return nil
	}
	var errs []error
	for i := range results {
		errs = append(errs, c.a.rolledBack(c.cmd, c.w.Client, &results[i]))
	}
	errs = append(errs, c.a.awaitReady(c.cmd, c.w, goalsOf(results, before), &c.f.readiness))
	return errors.Join(errs...)
}

// applyPod applies a pod file. Only what was applied is undone.
func (c *carrying) applyPod(ctx context.Context, p applied, earlier *api.ApplyRequest) (api.Applied, error) {
	// An interruption must not leave open whether the file was written.
	result, err := c.w.Client.Apply(context.WithoutCancel(ctx), p.request)
	if err != nil {
		return result, fmt.Errorf("pod %q: %w", p.pod, err)
	}
	undo := &podUndo{client: c.w.Client, pod: p.pod, outcome: result.Outcome, earlier: earlier}
	c.undo = append(c.undo, undo.run)
	found, err := c.w.Client.Pod(ctx, p.pod)
	if err != nil {
		return result, fmt.Errorf("pod %q: %w", p.pod, err)
	}
	if undo.uid = found.Metadata.UID; undo.uid == "" {
		return result, fmt.Errorf("pod %q rejected: %s", p.pod, found.Status.Message)
	}
	return result, nil
}

package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon/bundleundo"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// Error is an error with advice for the user.
type Error struct {
	Err  error
	Hint string
}

// Error returns the error without the advice.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without the advice.
func (e *Error) Unwrap() error { return e.Err }

// Transaction applies a bundle: either all of it, or nothing. Before the bundle is applied, call [Transaction.CheckPod] for each pod,
// [Transaction.CheckHost] and [Transaction.Plan]. A transaction is not safe for concurrent use.
type Transaction struct {
	Bundle *Bundle
	// Note prints a remark. It is required.
	Note func(format string, args ...any)
	// Transfer shows the import of images. It is required.
	Transfer *view.Transfer

	config *config.Config
	file   *os.File
	client *client.Client
	lock   *bundleundo.Lock                  // nil: nothing is applied
	record *bundleundo.Record                // what was there before; nil: nothing was changed
	images []api.Image                       // of the host, before the import
	began  time.Time                         // before the import
	undo   []func(ctx context.Context) error // the reverse of what was done, in its order
}

// Begin reads and verifies a bundle, which must be for the platform of this host. The file must be open until [Transaction.Close].
func Begin(ctx context.Context, file *os.File, c *config.Config) (*Transaction, error) {
	b, err := Read(ctx, file)
	if err != nil {
		return nil, err
	}
	if host := image.HostPlatform(); !image.PlatformMatches(b.Platform, host) {
		return nil, fmt.Errorf("the bundle is for platform %s, this host is %s", b.Platform, host)
	}
	return &Transaction{Bundle: b, config: c, file: file}, nil
}

// Close ends the transaction. What [Transaction.Apply] has done remains.
func (t *Transaction) Close() {
	if t.lock != nil {
		_ = t.lock.Close()
	}
}

// File returns the path that a pod file gets. The name is that of a file in the pods directory: a bundle has no relative paths.
func (t *Transaction) File(p Pod) string {
	return filepath.Join(t.config.Pods.Dir, filepath.Base(p.File))
}

func (t *Transaction) request(p Pod) api.ApplyRequest {
	return api.ApplyRequest{File: t.File(p), Text: string(t.Bundle.Text[p.File])}
}

// CheckPod checks that the pod of a file is the one that the manifest names, has all that it needs in the bundle, and is admitted.
func (t *Transaction) CheckPod(p Pod, pod *spec.Pod) error {
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
		if !slices.ContainsFunc(t.Bundle.Images, func(i Image) bool { return i.Name == full }) {
			return fmt.Errorf("%s: image %q is not in the bundle", p.File, name)
		}
	}
	policy := t.config.Policy.Admission()
	policy.Protected, policy.Rootless = t.config.OwnPaths(), t.config.Rootless()
	var errs []error
	for _, r := range policy.Check(pod) {
		errs = append(errs, fmt.Errorf("pod %q rejected: %w", p.Name, r))
	}
	return errors.Join(errs...)
}

// freeSpace returns the free space of the disk of a directory, which may not exist yet.
var freeSpace = func(dir string) (int64, error) {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if err == nil {
			return disk.BlockBytes(&st, st.Bavail), nil
		}
		if above := filepath.Dir(dir); above != dir && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES)) {
			dir = above
			continue
		}
		return 0, &fs.PathError{Op: "free space", Path: dir, Err: err}
	}
}

// CheckHost checks what can be checked without the daemon: that the images fit on the disk, compressed and unpacked, and that the config
// maps and secrets can be written.
func (t *Transaction) CheckHost() error {
	free, err := freeSpace(t.config.StateDir)
	if err != nil {
		return err
	}
	size := t.Bundle.ImageSize()
	if size > free || t.Bundle.UnpackedSize > free-size {
		return &Error{
			Err: fmt.Errorf("the images need %s and %s unpacked, %s has %s free",
				view.Size(size), view.Size(t.Bundle.UnpackedSize), t.config.StateDir, view.Size(free)),
			Hint: "remove unused images with podstead image prune",
		}
	}
	return t.checkConfig()
}

// Plan returns what applying the pod files would do. It changes nothing. Without dryRun, it locks the host for other bundles.
func (t *Transaction) Plan(ctx context.Context, c *client.Client, dryRun bool) (plans []api.Applied, err error) {
	t.client = c
	if !dryRun {
		if t.lock, err = t.acquire(ctx); err != nil {
			return nil, err
		}
	}
	if err := t.checkSignatures(ctx); err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range t.Bundle.Pods {
		request := t.request(p)
		request.DryRun = true
		plan, err := t.client.Apply(ctx, request)
		if err != nil {
			errs = append(errs, fmt.Errorf("pod %q: %w", p.Name, err))
		}
		plans = append(plans, plan)
	}
	return plans, errors.Join(errs...)
}

// Apply imports the images, writes the config maps and secrets, and applies the pod files as planned. Then it calls applied with the
// results, and with the pods before. If something fails, or applied returns an error, or ctx ends, it undoes what was done. The daemon
// undoes what remains.
func (t *Transaction) Apply(ctx context.Context, plans []api.Applied, applied func(results []api.Applied, before []api.Pod) error) error {
	err := t.carryOut(ctx, plans, applied)
	if err != nil {
		err = errors.Join(err, t.giveUp(context.WithoutCancel(ctx)))
	}
	return err
}

func (t *Transaction) carryOut(ctx context.Context, plans []api.Applied, applied func([]api.Applied, []api.Pod) error) error {
	before, err := t.client.Pods(ctx)
	if err != nil {
		return err
	}
	earlier, err := t.readEarlier(ctx, plans)
	if err != nil {
		return err
	}
	t.began = time.Now()
	if err := t.begin(plans, earlier); err != nil {
		return err
	}
	if err := t.importImages(ctx); err != nil {
		return err
	}
	if err := t.writeConfig(); err != nil {
		return err
	}
	var results []api.Applied
	for i, p := range t.Bundle.Pods {
		result, err := t.applyPod(ctx, p, earlier[i])
		if err != nil {
			return err
		}
		results = append(results, result)
	}
	if err := applied(results, before.Items); err != nil {
		return err
	}
	return t.lock.End()
}

// applyPod applies a pod file. Only what was applied is undone.
func (t *Transaction) applyPod(ctx context.Context, p Pod, earlier *api.ApplyRequest) (api.Applied, error) {
	// An interruption must not leave open whether the file was written.
	result, err := t.client.Apply(context.WithoutCancel(ctx), t.request(p))
	if err != nil {
		return result, fmt.Errorf("pod %q: %w", p.Name, err)
	}
	undo := &podUndo{client: t.client, pod: p.Name, outcome: result.Outcome, earlier: earlier}
	t.undo = append(t.undo, undo.run)
	found, err := t.client.Pod(ctx, p.Name)
	if err != nil {
		return result, fmt.Errorf("pod %q: %w", p.Name, err)
	}
	// A pod that its schedule starts has none either.
	if undo.uid = found.Metadata.UID; undo.uid == "" && found.Status.Schedule == nil {
		return result, fmt.Errorf("pod %q rejected: %s", p.Name, found.Status.Message)
	}
	return result, nil
}

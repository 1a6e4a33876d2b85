package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/runtime/layout"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// RemovePod takes away everything of a pod, running or not.
func (r *Runtime) RemovePod(ctx context.Context, uid string, _ *spec.Pod) error {
	ctx, cancel := enginecall.WithTimeout(ctx, enginecall.RemoveTimeout)
	defer cancel()
	if err := layout.CheckUID(uid); err != nil {
		return err
	}
	release, err := r.locks.Lock(ctx, uid)
	if err != nil {
		return err
	}
	defer release()
	if err := r.removePod(ctx, uid); err != nil {
		return enginecall.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("remove pod: %w", err))
	}
	return nil
}

// removePod ends everything, and then takes files away before records: on a full disk, that makes the space which it
// takes to forget the records.
func (r *Runtime) removePod(ctx context.Context, uid string) error {
	list, err := record.Containers(ctx, r.client, uid)
	if err != nil {
		return err
	}
	if err := r.endAll(ctx, list); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(r.opts.LogDir, "*_"+uid)) // whatever the pod's name was
	if err != nil {
		return err
	}
	if err := errors.Join(r.volumes.Teardown(ctx, uid), r.removeImages(ctx, uid)); err != nil {
		return err // and the pod's folder stays: what is mounted there must not be deleted
	}
	for _, dir := range append(logs, r.podDir(uid), filepath.Dir(r.processFile(uid, "x"))) {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return err
	}
	numbers, err := r.sandboxNumbers(ctx, uid)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if err := r.removeSandbox(ctx, uid, n); err != nil {
			return err
		}
	}
	for _, c := range list {
		if err := r.remove(ctx, c); err != nil {
			return err
		}
	}
	if err := r.cgroups.Remove(ctx, uid); err != nil {
		return err
	}
	err = r.ids.Release(uid)
	if errors.Is(err, idmap.ErrUnreadable) { // which those are told that want a range; nobody has to stay for it
		r.log.WarnContext(ctx, "the users of a pod are not taken back", slog.String("uid", uid), slog.Any("error", err))
		return nil
	}
	return err
}

// sandboxNumbers lists the sandboxes of a pod of which anything is left: with the engine, or in the sandbox's folder.
func (r *Runtime) sandboxNumbers(ctx context.Context, uid string) ([]int, error) {
	records, err := record.Sandboxes(ctx, r.client)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, s := range records {
		if n, err := strconv.Atoi(s.Labels[record.LabelSandbox]); err == nil && s.Labels[record.LabelUID] == uid {
			numbers = append(numbers, n)
		}
	}
	dirs, err := os.ReadDir(filepath.Dir(r.sandboxDir(uid, 0)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, d := range dirs {
		if n, err := strconv.Atoi(d.Name()); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

func (r *Runtime) sandboxes(ctx context.Context) ([]sandbox.Sandbox, error) {
	list, err := r.client.SandboxStore().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	return list, nil
}

// Inventory returns every pod that the engine holds anything of, or that has volumes, sorted by UID. The definition of one that
// has no container is nil. A record that cannot be read is left out: the other pods must not be lost for it.
func (r *Runtime) Inventory(ctx context.Context) ([]lifecycle.Found, error) {
	ctx, cancel := enginecall.WithTimeout(ctx, enginecall.InventoryTimeout)
	defer cancel()
	pods := map[string]*lifecycle.Found{}
	err := r.findSandboxes(ctx, pods)
	if err == nil {
		err = r.findRuns(ctx, pods)
	}
	if err == nil {
		err = r.findVolumes(ctx, pods)
	}
	if err != nil {
		return nil, enginecall.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("take inventory: %w", err))
	}
	found := make([]lifecycle.Found, 0, len(pods))
	for _, f := range pods {
		if f.Ready {
			f.IPs = r.addressesOf(f.UID, f.Pod)
		}
		found = append(found, *f)
	}
	slices.SortFunc(found, func(a, b lifecycle.Found) int { return cmp.Compare(a.UID, b.UID) })
	return found, nil
}

func entry(pods map[string]*lifecycle.Found, uid string) *lifecycle.Found {
	if pods[uid] == nil {
		pods[uid] = &lifecycle.Found{UID: uid}
	}
	return pods[uid]
}

func (r *Runtime) findSandboxes(ctx context.Context, pods map[string]*lifecycle.Found) error {
	records, err := record.Sandboxes(ctx, r.client)
	if err != nil {
		return err
	}
	for _, s := range records {
		n, err := strconv.Atoi(s.Labels[record.LabelSandbox])
		if err != nil || s.Labels[record.LabelUID] == "" {
			r.log.WarnContext(ctx, "a sandbox is not ours, or its record is damaged", slog.String("sandbox", s.ID))
			continue
		}
		f := entry(pods, s.Labels[record.LabelUID])
		if n < f.Sandbox {
			continue
		}
		_, err = r.engine.LoadSandbox(ctx, s.ID)
		if err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		f.Sandbox, f.Ready = n, err == nil
	}
	return nil
}

func (r *Runtime) findRuns(ctx context.Context, pods map[string]*lifecycle.Found) error {
	list, err := r.client.ContainerService().List(ctx, fmt.Sprintf("labels.%q", record.LabelUID))
	if err != nil {
		return err
	}
	// The newest one last: its definition is the one that counts.
	slices.SortFunc(list, func(a, b containers.Container) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, c := range list {
		run, err := record.Run(c)
		if err != nil {
			r.log.WarnContext(ctx, "a container is not ours, or its record is damaged", slog.Any("error", err))
			continue
		}
		f := entry(pods, c.Labels[record.LabelUID])
		f.Runs = append(f.Runs, run)
		if run.Sandbox > f.Sandbox {
			f.Sandbox, f.Ready = run.Sandbox, false // it is gone, and has left this container
		}
		pod, err := record.Definition(c)
		if err != nil {
			r.log.WarnContext(ctx, "a pod's definition is lost", slog.Any("error", err))
			continue
		}
		f.Pod = pod
	}
	return nil
}

// findVolumes finds the pods that wait for a volume and have others already: of them the engine holds nothing yet.
func (r *Runtime) findVolumes(ctx context.Context, pods map[string]*lifecycle.Found) error {
	uids, err := r.volumes.UIDs(ctx)
	for _, uid := range uids {
		entry(pods, uid)
	}
	return err
}

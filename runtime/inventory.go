package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Inventory returns every pod on the host that has a sandbox, a container, a volume, namespaces or a cgroup, sorted by UID. The definition
// of a pod without the record of a container is nil. A record that cannot be read is logged and left out, so that the other pods are found.
func (r *Runtime) Inventory(ctx context.Context) ([]lifecycle.Found, error) {
	ctx, cancel := engine.WithTimeout(ctx, engine.InventoryTimeout)
	defer cancel()
	pods := found{}
	err := r.addSandboxes(ctx, pods)
	if err == nil {
		err = r.addContainers(ctx, pods)
	}
	if err == nil {
		err = r.addPodsWithoutRecords(ctx, pods)
	}
	if err != nil {
		return nil, engine.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("take inventory: %w", err))
	}
	list := make([]lifecycle.Found, 0, len(pods))
	for _, f := range pods {
		if f.Ready {
			f.IPs = r.network.PodIPs(f.UID, f.Pod)
		}
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b lifecycle.Found) int { return cmp.Compare(a.UID, b.UID) })
	return list, nil
}

// found holds pods by UID.
type found map[string]*lifecycle.Found

// pod returns the entry of a pod, which it adds if necessary.
func (f found) pod(uid string) *lifecycle.Found {
	if f[uid] == nil {
		f[uid] = &lifecycle.Found{UID: uid}
	}
	return f[uid]
}

func (r *Runtime) addSandboxes(ctx context.Context, pods found) error {
	records, err := record.Sandboxes(ctx, r.client)
	if err != nil {
		return err
	}
	for _, s := range records {
		n, err := strconv.Atoi(s.Labels[record.LabelSandbox])
		if err != nil || s.Labels[record.LabelUID] == "" {
			r.log.WarnContext(ctx, "ignoring a sandbox with an invalid record", slog.String("sandbox", s.ID))
			continue
		}
		f := pods.pod(s.Labels[record.LabelUID])
		if n < f.Sandbox {
			continue
		}
		_, err = r.engine.LoadSandbox(ctx, s.ID)
		unresponsive := errors.Is(err, engine.ErrUnresponsive) // the sandbox exists
		if err != nil && !unresponsive && !errdefs.IsNotFound(err) {
			return err
		}
		f.Sandbox, f.Ready = n, err == nil || unresponsive
	}
	return nil
}

func (r *Runtime) addContainers(ctx context.Context, pods found) error {
	list, err := r.client.ContainerService().List(ctx, fmt.Sprintf("labels.%q", record.LabelUID))
	if err != nil {
		return err
	}
	// The newest container is the last: it has the current definition of the pod.
	slices.SortFunc(list, func(a, b containers.Container) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, c := range list {
		run, err := record.Run(c)
		if err != nil {
			r.log.WarnContext(ctx, "ignoring a container with an invalid record", slog.Any("error", err))
			continue
		}
		f := pods.pod(c.Labels[record.LabelUID])
		if c.Labels[record.LabelUndone] == "" {
			f.Runs = append(f.Runs, run)
		}
		if run.Sandbox > f.Sandbox {
			f.Sandbox, f.Ready = run.Sandbox, false // the sandbox was removed, but not this container
		}
		pod, err := record.Definition(c)
		if err != nil {
			r.log.WarnContext(ctx, "cannot read the definition of a pod", slog.Any("error", err))
			continue
		}
		f.Pod = pod
	}
	return nil
}

// addPodsWithoutRecords adds pods of which the engine has nothing: one of their volumes could not be prepared, or the records are lost.
func (r *Runtime) addPodsWithoutRecords(ctx context.Context, pods found) error {
	uids, err := r.volumes.UIDs(ctx)
	left, leftErr := r.leftUIDs()
	if leftErr != nil { // the other pods are found
		r.log.WarnContext(ctx, "cannot find all pods without records", slog.Any("error", leftErr))
	}
	for _, uid := range append(uids, left...) {
		pods.pod(uid)
	}
	return err
}

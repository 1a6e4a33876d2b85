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
	"strings"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/sandbox"
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
	order.Sort(list, func(a, b lifecycle.Found) int { return cmp.Compare(a.UID, b.UID) })
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
		_, err = sandbox.Load(ctx, r.engine, r.dirs, s.Labels[record.LabelUID], n)
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
	order.Sort(list, func(a, b containers.Container) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, c := range list {
		run, err := record.Run(c)
		if err != nil {
			r.log.WarnContext(ctx, "ignoring a container with an invalid record", slog.Any("error", err))
			continue
		}
		f := pods.pod(c.Labels[record.LabelUID])
		if c.Labels[record.LabelUndone] == "" {
			run.NoProcess = r.hasNoProcess(ctx, c)
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

// hasNoProcess reports whether a container has neither a process nor an exit, although the host was not rebooted since. It is false if that
// is not known, such as for containers of a shim.
func (r *Runtime) hasNoProcess(ctx context.Context, c containers.Container) bool {
	if c.Labels[record.LabelExit] != "" || c.Labels[record.LabelBoot] != r.bootID || !engine.IsMonitored(c) {
		return false
	}
	runs, err := r.engine.Runs(ctx, c.ID)
	return err == nil && !runs
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

// leftUIDs returns the UIDs of pods that have pinned namespaces or a cgroup with containers. Their records may be lost. Other daemons have
// pods below the same cgroup: what does not show that it belongs to this runtime is left out.
func (r *Runtime) leftUIDs() ([]string, error) {
	var uids []string
	pinned, err := os.ReadDir(r.dirs.Namespaces())
	for _, dir := range pinned {
		uids = append(uids, dir.Name())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	present, presentErr := r.cgroups.Containers()
	for uid, ids := range present {
		if r.hasFiles(uid) || slices.ContainsFunc(ids, func(id string) bool { return r.hasRoot(uid, id) }) || r.isOver(uid, ids) {
			uids = append(uids, uid)
		}
	}
	return uids, errors.Join(err, presentErr)
}

// hasFiles reports whether the directories of the runtime have something of a pod. The log directory does not count: daemons can share it.
func (r *Runtime) hasFiles(uid string) bool {
	for _, pattern := range []string{r.dirs.Pod(uid), r.dirs.Sandboxes(uid), filepath.Join(r.dirs.MemoryLogs(), "*_"+uid)} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// isOver reports whether a pod has logs, and no process in its cgroup: nothing is lost if it is another daemon's.
func (r *Runtime) isOver(uid string, ids []string) bool {
	logs, _ := filepath.Glob(filepath.Join(r.dirs.Log, "*_"+uid))
	return len(logs) > 0 && !slices.ContainsFunc(ids, func(id string) bool {
		list, err := proctree.List(r.cgroups.ProcessDir(uid, id))
		return err != nil || len(list) > 0
	})
}

// hasRoot reports whether the root file system of a process of a container is a layer of this runtime.
func (r *Runtime) hasRoot(uid, id string) bool {
	list, _ := proctree.List(r.cgroups.ProcessDir(uid, id)) // the container may have exited
	return slices.ContainsFunc(list, func(p proctree.Process) bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", p.PID))
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" {
				return strings.Contains(line, "="+r.dirs.Engine()+"/")
			}
		}
		return false
	})
}

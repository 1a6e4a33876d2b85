package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/client"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Admit returns why a pod cannot run on this host, as joined [lifecycle.Refusal]s; nil if it can. It changes nothing and reserves nothing.
func (r *Runtime) Admit(pod *spec.Pod) error {
	refused := r.network.Admit(pod)
	if !r.opts.Rootless { // CheckRootless rejects pods with user namespaces of their own
		refused = append(refused, r.users.Admit(pod))
	}
	refused = append(refused, r.admitClass(pod.RuntimeClassName))
	for _, refusal := range slices.Concat(
		r.host.CheckResources(pod), r.host.CheckProcesses(pod, r.opts.PidsLimit), r.host.CheckAppArmor(pod), r.host.CheckRootless(pod),
	) {
		refused = append(refused, refusal)
	}
	return errors.Join(refused...)
}

// admitClass returns a [lifecycle.Refusal] if a runtime class cannot be used. Pods without a class have none.
func (r *Runtime) admitClass(class string) error {
	if class == "" {
		return nil
	}
	err := r.classes.Check(class)
	if err == nil {
		return nil
	}
	hint := "define it as [[engine.runtimeClasses]] in podstead.toml, and reload it with systemctl reload podstead"
	if errors.Is(err, ociruntime.ErrNotFound) {
		hint = "install the OCI runtime of the class, or change it in [[engine.runtimeClasses]] of podstead.toml"
	}
	return lifecycle.Refusal{
		Reason: lifecycle.ReasonRuntimeClassUnavailable, Field: "runtimeClassName", Message: err.Error(), Hint: hint, Cause: err,
	}
}

// Readable returns why the variables, the seccomp profiles or the volumes of a pod cannot be provided at present. It changes nothing.
func (r *Runtime) Readable(ctx context.Context, pod *spec.Pod) error {
	d, err := r.volumes.Downward("", pod.Mounted(), nil)
	if err != nil {
		return err
	}
	return errors.Join(r.containers.Readable(d), r.volumes.Readable(ctx, sandbox.VolumePod(d)))
}

// Allocatable returns what pods can request together, see [sandbox.Host.Allocatable].
func (r *Runtime) Allocatable() spec.ResourceList { return r.opts.capacity(r.cgroups).Allocatable() }

// RemovePod kills the containers of a pod and removes everything that belongs to it.
func (r *Runtime) RemovePod(ctx context.Context, uid string, _ *spec.Pod) error {
	return r.remove(ctx, uid, removal{crilog.RemoveMatching, r.containers.Delete})
}

// CollectPod is RemovePod, but keeps the end of the newest log of each container.
func (r *Runtime) CollectPod(ctx context.Context, uid string, _ *spec.Pod) error {
	return r.remove(ctx, uid, removal{crilog.TrimMatching, r.containers.Collect})
}

// removal is what removes the logs of a pod and its containers.
type removal struct {
	logs      func(dir string, match func(name string) bool) error
	container func(context.Context, client.Container) error
}

// remove removes a pod.
func (r *Runtime) remove(ctx context.Context, uid string, with removal) error {
	ctx, cancel := engine.WithTimeout(ctx, engine.RemoveTimeout)
	defer cancel()
	if err := record.CheckUID(uid); err != nil {
		return err
	}
	unlock, err := r.podLocks.Lock(ctx, uid)
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.removePod(ctx, uid, with); err != nil {
		return engine.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("remove pod: %w", err))
	}
	return nil
}

// removePod kills what runs in a pod and removes it, files before records: removing a record needs free disk space. The caller holds the
// lock of the pod.
func (r *Runtime) removePod(ctx context.Context, uid string, with removal) error {
	list, err := record.Containers(ctx, r.client, uid)
	if err != nil {
		return err
	}
	numbers, err := r.sandboxes.Numbers(ctx, uid)
	if err != nil {
		return err
	}
	if err := r.sandboxes.KillLocked(ctx, uid, numbers, list); err != nil { // before its files: it can create others
		return err
	}
	if err := r.removeFiles(ctx, uid, with.logs); err != nil {
		return err
	}
	for _, n := range numbers {
		if err := r.sandboxes.RemoveLocked(ctx, uid, n); err != nil {
			return err
		}
	}
	for _, c := range list {
		if err := with.container(ctx, c); err != nil {
			return err
		}
	}
	if err := r.sandboxes.RemoveCgroup(ctx, uid); err != nil {
		return err
	}
	err = r.users.Release(uid)
	if errors.Is(err, namespace.ErrUnreadableIDs) { // reported to pods that need an ID range; it must not block the removal of this pod
		r.log.WarnContext(ctx, "cannot release the ID range of a pod", slog.String("uid", uid), slog.Any("error", err))
		return nil
	}
	return err
}

// removeFiles removes the volumes, the logs and the directories of a pod.
func (r *Runtime) removeFiles(ctx context.Context, uid string, logs func(dir string, match func(name string) bool) error) error {
	if err := errors.Join(r.volumes.Teardown(ctx, uid), r.imageVolumes.Remove(ctx, uid)); err != nil {
		return err // keep the pod's directory: a mount in it must not be deleted
	}
	return errors.Join(
		logs(r.dirs.Log, func(name string) bool { return strings.HasSuffix(name, "_"+uid) }),
		logs(r.dirs.MemoryLogs(), func(name string) bool { return strings.HasSuffix(name, "_"+uid) }),
		volume.RemoveTree(ctx, r.dirs.Pod(uid)), os.RemoveAll(r.dirs.Processes(uid)),
	)
}

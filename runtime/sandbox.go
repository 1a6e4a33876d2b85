package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// sandboxDir is where the namespaces of a sandbox are pinned.
func (r *Runtime) sandboxDir(uid string, sandbox int) string {
	return filepath.Join(r.opts.RunDir, "ns", uid, strconv.Itoa(sandbox))
}

// etcDir is where the files of /etc lie that the containers of a sandbox are shown. They can write to them without
// limit, so that is on disk and not in /run.
func (r *Runtime) etcDir(uid string, sandbox int) string {
	return filepath.Join(r.podDir(uid), "etc", strconv.Itoa(sandbox))
}

// namespacesOf says which namespaces a pod has of its own. In the machine's network it has the machine's name too.
func namespacesOf(pod *spec.Pod) netns.Options {
	if pod.HostNetwork {
		return netns.Options{}
	}
	return netns.Options{Network: true, Hostname: oci.Hostname(pod)}
}

// StartSandbox pins the pod's namespaces and starts its shim, or finds both.
func (r *Runtime) StartSandbox(
	ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox,
) (lifecycle.SandboxStarted, error) {
	ctx, cancel := limit(ctx, createTimeout)
	defer cancel()
	err := r.startSandbox(ctx, uid, pod, a.Sandbox)
	if err != nil {
		return lifecycle.SandboxStarted{}, fail(ctx, lifecycle.FailureRetry, "", err)
	}
	return lifecycle.SandboxStarted{Sandbox: a.Sandbox}, nil
}

func (r *Runtime) startSandbox(ctx context.Context, uid string, pod *spec.Pod, sandbox int) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	release, err := r.locks.acquire(ctx, uid)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := whole(ctx, createTimeout)
	defer cancel()
	var s *engine.Sandbox
	_, err = netns.Pin(r.sandboxDir(uid, sandbox), namespacesOf(pod))
	if err == nil {
		err = writeFiles(r.etcDir(uid, sandbox), pod)
	}
	if err == nil {
		s, err = r.engine.StartSandbox(ctx, sandboxID(uid, sandbox), engine.SandboxOptions{
			Labels: map[string]string{labelUID: uid, labelPod: pod.Name, labelSandbox: strconv.Itoa(sandbox)},
			Cgroup: r.cgroups.shim(uid),
		})
	}
	if err == nil {
		err = r.cgroups.place(ctx, uid, sandbox, s.Pid())
	}
	if err == nil {
		return nil
	}
	undoing, cancelUndo := whole(ctx, undoTimeout)
	defer cancelUndo()
	if undo := r.removeSandbox(undoing, uid, sandbox); undo != nil {
		err = fmt.Errorf("%w (and what was made of it is left: %w)", err, undo)
	}
	return err
}

// WaitSandbox returns nil when the sandbox's shim has ended. It has no time limit.
func (r *Runtime) WaitSandbox(ctx context.Context, uid string, sandbox int) error {
	ctx = inNamespace(ctx)
	s, err := r.engine.LoadSandbox(ctx, sandboxID(uid, sandbox))
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fail(ctx, lifecycle.FailureRetry, "", err)
	}
	return s.Wait(ctx)
}

// RemoveSandbox kills what runs in the sandbox, ends its shim, and takes its namespaces away.
func (r *Runtime) RemoveSandbox(ctx context.Context, uid string, sandbox int) error {
	ctx, cancel := limit(ctx, removeTimeout)
	defer cancel()
	if err := checkUID(uid); err != nil {
		return err
	}
	release, err := r.locks.acquire(ctx, uid)
	if err != nil {
		return err
	}
	defer release()
	return fail(ctx, lifecycle.FailureRetry, "", r.removeSandbox(ctx, uid, sandbox))
}

// removeSandbox is RemoveSandbox for callers that hold the pod's lock.
func (r *Runtime) removeSandbox(ctx context.Context, uid string, sandbox int) error {
	list, err := r.containersOf(ctx, uid)
	if err != nil {
		return err
	}
	var inside []client.Container
	for _, c := range list {
		record, err := info(ctx, c)
		if err != nil {
			return err
		}
		if record.Labels[labelSandbox] == strconv.Itoa(sandbox) {
			inside = append(inside, c)
		}
	}
	if err := r.endAll(ctx, inside); err != nil {
		return err
	}
	if err := r.engine.RemoveSandbox(ctx, sandboxID(uid, sandbox)); err != nil {
		return err
	}
	if err := os.RemoveAll(r.etcDir(uid, sandbox)); err != nil {
		return err
	}
	last, err := removeSandboxDir(r.sandboxDir(uid, sandbox))
	if err != nil || !last {
		return err
	}
	return r.cgroups.remove(ctx, uid)
}

// endAll ends containers at the same time. A dead shim cannot end while the engine knows of its containers.
func (r *Runtime) endAll(ctx context.Context, list []client.Container) error {
	var group errgroup.Group
	for _, c := range list {
		group.Go(func() error { return r.end(ctx, c) })
	}
	return group.Wait()
}

// removeSandboxDir takes away the folder of a sandbox, and that of its pod if it was the last.
func removeSandboxDir(dir string) (last bool, err error) {
	if err := netns.Unpin(dir); err != nil {
		return false, err // and the folder stays: what is still mounted there must not be deleted
	}
	if err := os.RemoveAll(dir); err != nil {
		return false, err
	}
	err = os.Remove(filepath.Dir(dir))
	if errors.Is(err, unix.ENOTEMPTY) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}

// machineFiles are what a pod's own files are made of.
const (
	machineHosts    = "/etc/hosts"
	machineHostname = "/etc/hostname"
	machineResolv   = "/etc/resolv.conf"
)

// writeFiles writes the files of /etc that the containers of a pod are shown.
func writeFiles(dir string, pod *spec.Pod) error {
	hostname := oci.Hostname(pod)
	if pod.HostNetwork {
		var err error
		if hostname, err = os.Hostname(); err != nil {
			return err
		}
	}
	resolv, err := readIfThere(machineResolv)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		writeHosts(dir, pod),
		writeChanged(filepath.Join(dir, "hostname"), hostname+"\n"),
		writeChanged(filepath.Join(dir, "resolv.conf"), oci.Resolv(pod, resolv)),
	)
}

// writeHosts writes /etc/hosts, which is written anew before each start of a container: any of them may change it.
func writeHosts(dir string, pod *spec.Pod) error {
	text := oci.Hosts(pod, nil)
	if pod.HostNetwork {
		machine, err := readIfThere(machineHosts)
		if err != nil {
			return err
		}
		text = oci.HostNetworkHosts(pod, machine)
	}
	return writeChanged(filepath.Join(dir, "hosts"), text)
}

func readIfThere(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return string(text), nil
}

// writeChanged writes a file that containers may have mounted, in place, if it does not say this already. Containers may
// have made anything of it, so no more of it is read than is needed.
func writeChanged(path, text string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := io.ReadAll(io.LimitReader(f, int64(len(text))+1))
	if err != nil || string(have) == text {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Chmod(0o644) // whatever the umask is: any user of the container reads it
}

// filesOf are what the containers of a sandbox are shown.
func filesOf(etc string, pins netns.Pins) []oci.File {
	return []oci.File{
		{Path: "/dev/shm", Source: pins.Shm},
		{Path: machineHosts, Source: filepath.Join(etc, "hosts")},
		{Path: machineHostname, Source: filepath.Join(etc, "hostname")},
		{Path: machineResolv, Source: filepath.Join(etc, "resolv.conf")},
	}
}

package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// sandboxDir is where everything of a sandbox lies that containers are shown.
func (r *Runtime) sandboxDir(uid string, sandbox int) string {
	return filepath.Join(r.opts.RunDir, "ns", uid, strconv.Itoa(sandbox))
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
	dir := r.sandboxDir(uid, sandbox)
	var s *engine.Sandbox
	_, err = netns.Pin(dir, namespacesOf(pod))
	if err == nil {
		err = writeFiles(dir, pod)
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
	if err := r.endAll(ctx, list, sandbox); err != nil {
		return err
	}
	if err := r.engine.RemoveSandbox(ctx, sandboxID(uid, sandbox)); err != nil {
		return err
	}
	last, err := removeSandboxDir(r.sandboxDir(uid, sandbox))
	if err != nil || !last {
		return err
	}
	return r.cgroups.remove(ctx, uid)
}

// endAll kills the containers of a sandbox at the same time, and returns when all have ended and their exits are
// written down. A dead shim cannot end while the engine knows of its containers.
func (r *Runtime) endAll(ctx context.Context, list []client.Container, sandbox int) error {
	var group errgroup.Group
	for _, c := range list {
		record, err := info(ctx, c)
		if err != nil {
			return err
		}
		if record.Labels[labelSandbox] == strconv.Itoa(sandbox) {
			group.Go(func() error { return r.end(ctx, c) })
		}
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

// writeChanged writes a file that containers may have mounted, in place, if it does not say this already.
func writeChanged(path, text string) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, []byte(text)) {
		return nil
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Chmod(path, 0o644) // whatever the umask is: any user of the container reads it
}

// filesOf are the files that the containers of a sandbox are shown.
func filesOf(dir string, pins netns.Pins) []oci.File {
	return []oci.File{
		{Path: "/dev/shm", Source: pins.Shm},
		{Path: machineHosts, Source: filepath.Join(dir, "hosts")},
		{Path: machineHostname, Source: filepath.Join(dir, "hostname")},
		{Path: machineResolv, Source: filepath.Join(dir, "resolv.conf")},
	}
}

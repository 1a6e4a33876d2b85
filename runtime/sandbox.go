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
	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/runtime/layout"
	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
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

// StartSandbox pins the pod's namespaces and starts its shim, or finds both.
func (r *Runtime) StartSandbox(
	ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox,
) (lifecycle.SandboxStarted, error) {
	ctx, cancel := enginecall.WithTimeout(ctx, enginecall.CreateTimeout)
	defer cancel()
	ips, err := r.startSandbox(ctx, uid, pod, a.Sandbox)
	if err != nil {
		return lifecycle.SandboxStarted{}, enginecall.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	return lifecycle.SandboxStarted{Sandbox: a.Sandbox, IPs: ips}, nil
}

func (r *Runtime) startSandbox(ctx context.Context, uid string, pod *spec.Pod, sandbox int) ([]string, error) {
	if err := layout.CheckUID(uid); err != nil {
		return nil, err
	}
	release, err := r.locks.Lock(ctx, uid)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := r.prepareVolumes(ctx, uid, pod); err != nil { // nothing of it has to be undone
		return nil, enginecall.Failure(ctx, lifecycle.FailureRetry, lifecycle.ReasonFailedMount, err)
	}
	ctx, cancel := enginecall.Detached(ctx, enginecall.CreateTimeout)
	defer cancel()
	ips, err := r.makeSandbox(ctx, uid, pod, sandbox)
	if err == nil {
		r.index.Put(uid, pod, sandbox)
		return ips, nil
	}
	undoing, cancelUndo := enginecall.Detached(ctx, enginecall.UndoTimeout)
	defer cancelUndo()
	if undo := r.removeSandbox(undoing, uid, sandbox); undo != nil {
		err = fmt.Errorf("%w (and what was made of it is left: %w)", err, undo)
	}
	return nil, err
}

// makeSandbox makes what a sandbox is: namespaces, network, files, the limits of the pod, shim.
func (r *Runtime) makeSandbox(ctx context.Context, uid string, pod *spec.Pod, sandbox int) (ips []string, err error) {
	ids, err := r.allocateIDs(uid, pod)
	if err != nil {
		return nil, err
	}
	var s *engine.Sandbox
	pins, err := netns.Pin(r.sandboxDir(uid, sandbox), namespacesOf(pod, ids))
	if err == nil {
		ips, err = r.connect(ctx, uid, pod, pins)
	}
	if err == nil {
		err = r.writeFiles(r.etcDir(uid, sandbox), uid, pod, ids)
	}
	if err == nil {
		err = r.cgroups.Limit(ctx, uid, oci.PodLimits(pod, r.opts.PidsLimit))
	}
	if err == nil {
		s, err = r.engine.StartSandbox(ctx, record.SandboxID(uid, sandbox), engine.SandboxOptions{
			Labels: map[string]string{record.LabelUID: uid, record.LabelPod: pod.Name, record.LabelSandbox: strconv.Itoa(sandbox)},
			Cgroup: r.cgroups.Shim(uid),
			Spec:   r.sandboxSpec(uid, sandbox, pod, joined(pins, ids)),
		})
	}
	if err == nil {
		err = r.cgroups.PlaceShim(ctx, uid, sandbox, s.Pid())
	}
	return ips, err
}

// WaitSandbox returns when the sandbox's shim has ended, or with a message when the pod has used more than it may. Until it
// is removed, the sandbox's volumes and names of neighbours are kept up to date. It has no time limit.
func (r *Runtime) WaitSandbox(ctx context.Context, uid string, pod *spec.Pod, sandbox int) (overuse string, err error) {
	ctx, cancel := context.WithCancel(enginecall.Context(ctx))
	defer cancel()
	s, err := r.meetSandbox(ctx, uid, pod, sandbox)
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", enginecall.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	type result struct {
		overuse string
		err     error
	}
	results := make(chan result, 2)
	go func() {
		message, err := r.overuse(ctx, uid, pod)
		results <- result{message, err}
	}()
	go func() { results <- result{"", s.Wait(ctx)} }()
	first := <-results
	cancel()
	<-results
	return first.overuse, first.err
}

// meetSandbox finds a sandbox and begins to keep its pod up to date. It waits for whoever removes the sandbox: a pod that became
// known in the middle of that would stay so.
func (r *Runtime) meetSandbox(ctx context.Context, uid string, pod *spec.Pod, sandbox int) (*engine.Sandbox, error) {
	release, err := r.locks.Lock(ctx, uid)
	if err != nil {
		return nil, err
	}
	defer release()
	s, err := r.engine.LoadSandbox(ctx, record.SandboxID(uid, sandbox))
	if err == nil {
		r.index.Put(uid, pod, sandbox)
	}
	return s, err
}

// RemoveSandbox kills what runs in the sandbox, ends its shim, and takes its namespaces away.
func (r *Runtime) RemoveSandbox(ctx context.Context, uid string, sandbox int) error {
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
	return enginecall.Failure(ctx, lifecycle.FailureRetry, "", r.removeSandbox(ctx, uid, sandbox))
}

// removeSandbox is RemoveSandbox for callers that hold the pod's lock.
func (r *Runtime) removeSandbox(ctx context.Context, uid string, sandbox int) error {
	list, err := record.Containers(ctx, r.client, uid)
	if err != nil {
		return err
	}
	var inside []client.Container
	for _, c := range list {
		info, err := record.Info(ctx, c)
		if err != nil {
			return err
		}
		if info.Labels[record.LabelSandbox] == strconv.Itoa(sandbox) {
			inside = append(inside, c)
		}
	}
	if err := r.endAll(ctx, inside); err != nil {
		return err
	}
	if err := r.engine.RemoveSandbox(ctx, record.SandboxID(uid, sandbox)); err != nil {
		return err
	}
	// The shim has ended its process, if it had one; one that was killed in the middle of making it has not.
	if err := r.cgroups.Kill(ctx, uid, record.SandboxID(uid, sandbox)); err != nil {
		return err
	}
	r.index.Remove(uid, sandbox)
	if err := os.RemoveAll(r.etcDir(uid, sandbox)); err != nil {
		return err
	}
	if err := r.network.Teardown(ctx, uid); err != nil {
		return err
	}
	last, err := removeSandboxDir(r.sandboxDir(uid, sandbox))
	if err != nil || !last {
		return err
	}
	return r.cgroups.Remove(ctx, uid)
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
func (r *Runtime) writeFiles(dir, uid string, pod *spec.Pod, ids idmap.Range) error {
	hostname := oci.Hostname(pod)
	if pod.HostNetwork {
		var err error
		if hostname, err = os.Hostname(); err != nil {
			return err
		}
	}
	resolv, err := machineDNS(pod)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		r.writeHosts(dir, uid, pod),
		writeChanged(filepath.Join(dir, "hostname"), hostname+"\n"),
		writeChanged(filepath.Join(dir, "resolv.conf"), oci.Resolv(pod, resolv)),
		give(ids, filepath.Join(dir, "hosts"), filepath.Join(dir, "hostname"), filepath.Join(dir, "resolv.conf")),
	)
}

// writeHosts writes /etc/hosts, which is written anew before each start of a container, since any of them may change it, and
// when the machine's pods change.
func (r *Runtime) writeHosts(dir, uid string, pod *spec.Pod) error {
	r.hosts.Lock() // one writer at a time: what is read as the present state must not be older than what is there
	defer r.hosts.Unlock()
	text, err := r.hostsOf(uid, pod)
	if err != nil {
		return err
	}
	return writeChanged(filepath.Join(dir, "hosts"), text)
}

// renewHosts is writeHosts for a file that is there: one that is gone is that of a sandbox that is being removed, and must not
// come back under the hands of who removes it.
func (r *Runtime) renewHosts(dir, uid string, pod *spec.Pod) error {
	r.hosts.Lock()
	defer r.hosts.Unlock()
	text, err := r.hostsOf(uid, pod)
	if err != nil {
		return err
	}
	err = writeOver(filepath.Join(dir, "hosts"), text, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// hostsOf is the text of a pod's /etc/hosts. The caller holds hosts.
func (r *Runtime) hostsOf(uid string, pod *spec.Pod) (string, error) {
	ips, peers := r.peersOf(uid)
	if !pod.HostNetwork {
		return oci.Hosts(pod, ips, peers), nil
	}
	machine, err := readIfThere(machineHosts)
	return oci.HostNetworkHosts(pod, machine, peers), err
}

// resolvedDNS is where systemd-resolved says which servers it asks itself.
const resolvedDNS = "/run/systemd/resolve/resolv.conf"

// machineDNS is the machine's resolv.conf, as a pod can use it: a server on the machine's loopback, such as the stub of
// systemd-resolved, is none of a pod that has a network of its own.
func machineDNS(pod *spec.Pod) (string, error) {
	text, err := readIfThere(machineResolv)
	if err != nil || pod.HostNetwork || !oci.OnlyLoopbackDNS(text) {
		return text, err
	}
	if real, err := readIfThere(resolvedDNS); err != nil || real != "" {
		return real, err
	}
	return text, nil
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
func writeChanged(path, text string) error { return writeOver(path, text, os.O_CREATE) }

// writeOver is writeChanged that opens the file with these flags.
func writeOver(path, text string, flags int) error {
	f, err := os.OpenFile(path, os.O_RDWR|flags, 0o644) //nolint:gosec // any user of the container reads it
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

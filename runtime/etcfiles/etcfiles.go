// Package etcfiles writes the files of a pod that its containers see at /etc/hosts, /etc/hostname and /etc/resolv.conf.
package etcfiles

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/runtime/layout"
	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/podindex"
	"github.com/podstead/podstead/runtime/userns"
	"github.com/podstead/podstead/spec"
)

// Network returns what /etc/hosts contains about pods.
type Network interface {
	// PodPeers returns the addresses of a pod, and the lines for the other pods.
	PodPeers(uid string) (ips []string, lines string)
	// Changed returns a channel that is closed after a change of the pods in the network.
	Changed() <-chan struct{}
}

// Files writes the files of pods. It is safe for concurrent use.
type Files struct {
	dirs    layout.Dirs
	network Network
	index   *podindex.Index
	log     *slog.Logger
	hosts   sync.Mutex // held while an /etc/hosts is written
}

// New returns the files of the pods in index.
func New(dirs layout.Dirs, network Network, index *podindex.Index, log *slog.Logger) *Files {
	return &Files{dirs: dirs, network: network, index: index, log: log}
}

// The files of the host, and the paths in containers.
const (
	hostsPath    = "/etc/hosts"
	hostnamePath = "/etc/hostname"
	resolvPath   = "/etc/resolv.conf"
	// resolvedPath lists the upstream servers of systemd-resolved.
	resolvedPath = "/run/systemd/resolve/resolv.conf"
)

// Write writes all files of a sandbox.
func (f *Files) Write(uid string, pod *spec.Pod, sandbox int, ids idmap.Range) error {
	dir := f.dirs.Etc(uid, sandbox)
	hostname, err := Hostname(pod)
	if err != nil {
		return err
	}
	resolv, err := hostDNS(pod)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		f.WriteHosts(uid, pod, sandbox),
		write(filepath.Join(dir, "hostname"), hostname+"\n"),
		write(filepath.Join(dir, "resolv.conf"), oci.Resolv(pod, resolv)),
		userns.Chown(ids, filepath.Join(dir, "hosts"), filepath.Join(dir, "hostname"), filepath.Join(dir, "resolv.conf")),
	)
}

// Hostname returns the host name of a pod, which is that of the host for a pod with hostNetwork.
func Hostname(pod *spec.Pod) (string, error) {
	if pod.HostNetwork {
		return os.Hostname()
	}
	return oci.Hostname(pod), nil
}

// WriteHosts writes /etc/hosts. It is called before each start of a container, because containers can change the file.
func (f *Files) WriteHosts(uid string, pod *spec.Pod, sandbox int) error {
	f.hosts.Lock() // a writer with an older list of pods must not overwrite a newer file
	defer f.hosts.Unlock()
	text, err := f.hostsText(uid, pod)
	if err != nil {
		return err
	}
	return write(filepath.Join(f.dirs.Etc(uid, sandbox), "hosts"), text)
}

// updateHosts is WriteHosts for an existing file. If the file does not exist, the sandbox is being removed, and the file must not be created
// again.
func (f *Files) updateHosts(uid string, pod *spec.Pod, sandbox int) error {
	f.hosts.Lock()
	defer f.hosts.Unlock()
	text, err := f.hostsText(uid, pod)
	if err != nil {
		return err
	}
	err = overwrite(filepath.Join(f.dirs.Etc(uid, sandbox), "hosts"), text, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Run updates /etc/hosts of all pods in the index when pods change, until ctx ends.
func (f *Files) Run(ctx context.Context) {
	for {
		changed := f.network.Changed()
		for uid, p := range f.index.All() {
			if err := f.updateHosts(uid, p.Pod, p.Sandbox); err != nil {
				f.log.WarnContext(ctx, "cannot update /etc/hosts of a pod", slog.String("pod", p.Pod.Name), slog.Any("error", err))
			}
		}
		select {
		case <-changed:
		case <-f.index.Changed():
		case <-ctx.Done():
			return
		}
	}
}

// hostsText returns the content of /etc/hosts. The caller holds f.hosts.
func (f *Files) hostsText(uid string, pod *spec.Pod) (string, error) {
	ips, peers := f.network.PodPeers(uid)
	if !pod.HostNetwork {
		return oci.Hosts(pod, ips, peers), nil
	}
	host, err := readOptional(hostsPath)
	return oci.HostNetworkHosts(pod, host, peers), err
}

// hostDNS returns the resolv.conf of the host for a pod. If it contains only loopback servers, such as the stub of systemd-resolved, a pod
// with a network namespace gets the upstream servers of systemd-resolved.
func hostDNS(pod *spec.Pod) (string, error) {
	text, err := readOptional(resolvPath)
	if err != nil || pod.HostNetwork || !oci.OnlyLoopbackDNS(text) {
		return text, err
	}
	if upstream, err := readOptional(resolvedPath); err != nil || upstream != "" {
		return upstream, err
	}
	return text, nil
}

// readOptional reads a file. A file that does not exist is empty.
func readOptional(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return string(text), nil
}

// write writes a file in place if its content differs: containers may have mounted it. Containers may have written anything to the file,
// therefore no more of it is read than needed.
func write(path, text string) error { return overwrite(path, text, os.O_CREATE) }

// overwrite is write with flags for opening the file.
func overwrite(path, text string, flags int) error {
	f, err := os.OpenFile(path, os.O_RDWR|flags, 0o644) // every user of the container reads it
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
	return f.Chmod(0o644) // regardless of the umask: every user of the container reads it
}

// Mounts returns the files that the containers of a sandbox see: those of this package, and /dev/shm.
func (f *Files) Mounts(uid string, sandbox int, pins netns.Pins) []oci.File {
	dir := f.dirs.Etc(uid, sandbox)
	return []oci.File{
		{Path: "/dev/shm", Source: pins.Shm},
		{Path: hostsPath, Source: filepath.Join(dir, "hosts")},
		{Path: hostnamePath, Source: filepath.Join(dir, "hostname")},
		{Path: resolvPath, Source: filepath.Join(dir, "resolv.conf")},
	}
}

package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
)

// This file writes the files of a pod that its containers see at /etc/hosts, /etc/hostname and /etc/resolv.conf.
//
// Containers have these files mounted, and can hold them for any time. No file is opened in a way that waits, see [guard.OpenFile]. A file
// that is held is replaced by a new one for containers that start; running containers get its content when it is free.

// peerLister returns what /etc/hosts contains about pods.
type peerLister interface {
	// PodPeers returns the addresses of a pod, and the lines for the other pods.
	PodPeers(uid string) (ips []string, lines string)
	// Changed returns a channel that is closed after a change of the pods in the network.
	Changed() <-chan struct{}
}

// EtcFiles writes the files of pods. It is safe for concurrent use.
type EtcFiles struct {
	dirs    record.Dirs
	network peerLister
	index   *Index
	log     *slog.Logger
	dns     string           // the name server of pods if all of the host are on loopback addresses; empty: see hostDNS
	pods    guard.KeyedMutex // by UID, held while the files of a pod are written
	users   guard.FileUsers

	mu      sync.Mutex
	written map[string]writtenHosts // by UID, the newest content of /etc/hosts; containers may have changed the file since
}

// NewEtcFiles returns the files of the pods in index. dns is the name server of pods if all of the host are on loopback addresses; empty:
// it is found in the files of systemd-resolved.
func NewEtcFiles(dirs record.Dirs, network peerLister, index *Index, log *slog.Logger, dns string) *EtcFiles {
	return &EtcFiles{dirs: dirs, network: network, index: index, log: log, dns: dns, written: map[string]writtenHosts{}}
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
func (f *EtcFiles) Write(ctx context.Context, uid string, pod *spec.Pod, sandbox int, ids namespace.IDRange) error {
	dir := f.dirs.Etc(uid, sandbox)
	hostname, err := Hostname(pod)
	if err != nil {
		return err
	}
	resolv, err := hostDNS(pod, f.dns)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		f.WriteHosts(ctx, uid, pod, sandbox),
		f.write(ctx, filepath.Join(dir, "hostname"), hostname+"\n"),
		f.write(ctx, filepath.Join(dir, "resolv.conf"), oci.Resolv(pod, resolv)),
		Chown(ids, filepath.Join(dir, "hosts"), filepath.Join(dir, "hostname"), filepath.Join(dir, "resolv.conf")),
	)
}

// Hostname returns the host name of a pod, which is that of the host for a pod with hostNetwork.
func Hostname(pod *spec.Pod) (string, error) {
	if pod.HostNetwork {
		return os.Hostname()
	}
	return oci.Hostname(pod), nil
}

// WriteHosts writes /etc/hosts. It is called before each start of a container, because containers can change the file. Later updates are
// those of this definition of the pod.
func (f *EtcFiles) WriteHosts(ctx context.Context, uid string, pod *spec.Pod, sandbox int) error {
	newest := func() *spec.Pod {
		f.index.replace(uid, pod)
		return pod
	}
	return f.withHosts(ctx, uid, newest, sandbox, func(text string) error {
		return f.write(ctx, filepath.Join(f.dirs.Etc(uid, sandbox), "hosts"), text)
	})
}

// updateHosts is WriteHosts for a file that running containers have mounted: it is not replaced, and without new content it keeps what
// containers have changed in it. If the file does not exist, the sandbox is being removed, and the file must not be created again.
func (f *EtcFiles) updateHosts(ctx context.Context, uid string, pod *spec.Pod, sandbox int) error {
	newest := func() *spec.Pod {
		if p, exists := f.index.Get(uid); exists {
			return p.Pod
		}
		return pod
	}
	err := f.withHosts(ctx, uid, newest, sandbox, func(text string) error {
		if f.lastHosts(uid) == hostsOf(sandbox, text) {
			return nil
		}
		return f.overwrite(ctx, filepath.Join(f.dirs.Etc(uid, sandbox), "hosts"), text)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// withHosts calls write with the content of /etc/hosts. A writer with an older list of pods, or an older definition of the pod, does not
// overwrite a newer file of the pod.
func (f *EtcFiles) withHosts(
	ctx context.Context, uid string, pod func() *spec.Pod, sandbox int, write func(text string) error,
) error {
	unlock, err := f.pods.Lock(ctx, uid)
	if err != nil {
		return err
	}
	defer unlock()
	text, err := f.hostsText(uid, pod())
	if err == nil {
		err = write(text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil { // a part may have been written
		delete(f.written, uid)
		return err
	}
	f.written[uid] = hostsOf(sandbox, text)
	return nil
}

// writtenHosts is the content of the /etc/hosts of a sandbox. Only its hash is kept: it has a line for each pod.
type writtenHosts struct {
	sandbox int
	hash    [sha256.Size]byte
}

func hostsOf(sandbox int, text string) writtenHosts {
	return writtenHosts{sandbox, sha256.Sum256([]byte(text))}
}

func (f *EtcFiles) lastHosts(uid string) writtenHosts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written[uid]
}

// forgetHosts forgets the content for pods that are not in the index.
func (f *EtcFiles) forgetHosts(pods map[string]IndexedPod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.written, func(uid string, _ writtenHosts) bool {
		_, exists := pods[uid]
		return !exists
	})
}

const (
	// retryInterval is the interval of attempts to update files that containers hold.
	retryInterval = 10 * time.Second
	// updateInterval is the minimum interval of updates. When many pods start together, each of them changes the files of all others.
	updateInterval = 250 * time.Millisecond
)

// Run updates /etc/hosts of all pods in the index when pods change, until ctx ends.
func (f *EtcFiles) Run(ctx context.Context) {
	logged := map[string]bool{}
	for {
		changed := f.network.Changed()
		held := f.updateAll(ctx, logged)
		pause := time.After(updateInterval)
		var retry <-chan time.Time
		if held {
			retry = time.After(retryInterval)
		}
		select {
		case <-changed:
		case <-f.index.Changed():
		case <-retry:
		case <-ctx.Done():
			return
		}
		select {
		case <-pause:
		case <-ctx.Done():
			return
		}
	}
}

// updateAll updates /etc/hosts of all pods, each independently of the others, and reports whether any is held. The pods whose error was
// logged are in logged.
func (f *EtcFiles) updateAll(ctx context.Context, logged map[string]bool) (held bool) {
	pods := f.index.All()
	f.forgetHosts(pods)
	var mu sync.Mutex
	failed := map[string]error{}
	var group sync.WaitGroup
	for uid, p := range pods {
		group.Go(func() {
			if err := f.updateHosts(ctx, uid, p.Pod, p.Sandbox); err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				failed[uid] = err
			}
		})
	}
	group.Wait()
	for uid, err := range failed {
		held = held || errors.Is(err, guard.ErrHeld)
		if !logged[uid] {
			f.log.WarnContext(ctx, "cannot update /etc/hosts of a pod", slog.String("pod", pods[uid].Pod.Name), slog.Any("error", err))
		}
	}
	clear(logged)
	for uid := range failed {
		logged[uid] = true
	}
	return held
}

// hostsText returns the content of /etc/hosts.
func (f *EtcFiles) hostsText(uid string, pod *spec.Pod) (string, error) {
	ips, peers := f.network.PodPeers(uid)
	if !pod.HostNetwork {
		return oci.Hosts(pod, ips, peers), nil
	}
	host, err := readOptional(hostsPath)
	return oci.HostNetworkHosts(pod, host, peers), err
}

// hostDNS returns the resolv.conf of the host for a pod. If it contains only loopback servers, such as the stub of systemd-resolved, a pod
// with a network namespace gets the name server that replaces them or, if that is empty, the upstream servers of systemd-resolved.
func hostDNS(pod *spec.Pod, replacement string) (string, error) {
	text, err := readOptional(resolvPath)
	if err != nil || pod.HostNetwork || !oci.OnlyLoopbackDNS(text) {
		return text, err
	}
	if replacement != "" {
		return oci.WithServer(text, replacement), nil
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

// write writes a file in place, because containers may have mounted it, and creates it if it does not exist. A file that a container holds
// is replaced.
func (f *EtcFiles) write(ctx context.Context, path, text string) error {
	err := f.overwrite(ctx, path, text)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, guard.ErrHeld) {
		return replace(path, text)
	}
	return err
}

// overwrite writes an existing file in place if its content differs.
func (f *EtcFiles) overwrite(ctx context.Context, path, text string) error {
	_, err := guard.UseFile(ctx, &f.users, path, func() (struct{}, error) { return struct{}{}, overwrite(path, text) })
	return err
}

// overwrite reads no more of the file than needed, because containers may have written anything to it. A process that reads the file
// meanwhile finds the names that are in both texts: the file is never empty, and no rest of a line is behind the new text.
func overwrite(path, text string) error {
	f, err := guard.OpenFile(path, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := io.ReadAll(io.LimitReader(f, int64(len(text))+1))
	if err != nil || string(have) == text {
		return err
	}
	const most = 1 << 20 // of the end of a longer file
	info, err := f.Stat()
	if err != nil {
		return err
	}
	blank := max(0, min(info.Size()-int64(len(text)), most))
	if _, err := f.WriteAt([]byte(text+strings.Repeat("\n", int(blank))), 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(text))); err != nil {
		return err
	}
	return f.Chmod(0o644) // regardless of the umask: every user of the container reads it
}

// replace creates a file, or replaces it by one with the same owner.
func replace(path, text string) error {
	owner := -1
	if info, err := os.Lstat(path); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			owner = int(stat.Uid)
		}
	}
	if err := atomicfile.WriteVolatile(path, []byte(text), 0o644); err != nil { // every user of the container reads it
		return err
	}
	return os.Lchown(path, owner, owner)
}

// Mounts returns the files that the containers of a sandbox see: those of this package, and /dev/shm. As in the kubelet and containerd's
// CRI plug-in, a container with a read-only root file system can write to /etc/hosts and /dev/shm only.
func (f *EtcFiles) Mounts(uid string, sandbox int, pins namespace.Pins) []oci.File {
	dir := f.dirs.Etc(uid, sandbox)
	return []oci.File{
		{Path: "/dev/shm", Source: pins.Shm},
		{Path: hostsPath, Source: filepath.Join(dir, "hosts")},
		{Path: hostnamePath, Source: filepath.Join(dir, "hostname"), WithRoot: true},
		{Path: resolvPath, Source: filepath.Join(dir, "resolv.conf"), WithRoot: true},
	}
}

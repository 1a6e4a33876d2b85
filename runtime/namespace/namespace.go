// Package namespace creates the namespaces that the containers of a pod share and keeps them without a process: each is
// pinned by a bind mount in the sandbox directory. It owns these files: user, net, ipc, uts, and shm, the file system for
// shared memory that belongs to the IPC namespace. A PID namespace ends with its first process, so the shim, which starts
// that process, pins it as pid.
//
// The mounts are created in the mount namespace of this process, which must be that of the OCI runtime.
//
// It also allocates the IDs of pods with a user namespace ([IDRanges]), and owns the file with the allocations.
package namespace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/applet"
	"github.com/podstead/podstead/spec"
)

// defaultShmBytes is the size of /dev/shm, shared by the containers of a pod. It is the default of Kubernetes and Docker.
const defaultShmBytes = 64 << 20

// Options select the namespaces of a pod. The others are those of the host.
type Options struct {
	// HostIPC selects the IPC namespace of the host and its /dev/shm.
	HostIPC bool
	// ShmBytes is the size of /dev/shm. Default: 64 MiB.
	ShmBytes int64
	// PID means that the caller pins a PID namespace.
	PID bool
	// IDs are the IDs of a user namespace that owns the others. It excludes HostIPC and requires Network.
	IDs IDRange
	// Network creates a network namespace with its loopback up.
	Network bool
	// Hostname is the host name in the pod's UTS namespace. Empty means the namespace of the host.
	Hostname string
	// Sysctls are set in the pod's namespaces after the defaults of every pod.
	Sysctls []spec.Sysctl
}

// Pins are the paths of the pinned namespaces. A path is empty for a namespace of the host. Shm is then the host's.
type Pins struct{ User, Network, IPC, UTS, PID, Shm string }

// hostShm is the shared memory of the host's IPC namespace.
const hostShm = "/dev/shm"

// kinds are the namespaces that Pin creates, by file name.
var kinds = []struct {
	name string
	flag int
}{{"user", unix.CLONE_NEWUSER}, {"net", unix.CLONE_NEWNET}, {"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}}

func (o Options) has(flag int) bool {
	switch flag {
	case unix.CLONE_NEWUSER:
		return o.IDs.Own()
	case unix.CLONE_NEWNET:
		return o.Network
	case unix.CLONE_NEWUTS:
		return o.Hostname != ""
	}
	return !o.HostIPC
}

// Paths returns the paths at which Pin pins the namespaces of a sandbox.
func Paths(dir string, o Options) Pins {
	p := Pins{Shm: hostShm}
	if !o.HostIPC {
		p.IPC, p.Shm = filepath.Join(dir, "ipc"), filepath.Join(dir, "shm")
	}
	if o.Network {
		p.Network = filepath.Join(dir, "net")
	}
	if o.Hostname != "" {
		p.UTS = filepath.Join(dir, "uts")
	}
	if o.IDs.Own() {
		p.User = filepath.Join(dir, "user")
	}
	if o.PID {
		p.PID = filepath.Join(dir, "pid")
	}
	return p
}

// Pin creates the namespaces except a PID namespace and pins them in dir, which it creates too. If all are already pinned
// there, it returns their paths. If only some are, it replaces them. After an error it unpins everything; other files in
// dir are left alone.
func Pin(dir string, o Options) (Pins, error) {
	if complete, err := pinned(dir, o); err != nil {
		return Pins{}, fmt.Errorf("pin namespaces: %w", err)
	} else if complete {
		return Paths(dir, o), nil
	}
	err := Unpin(dir)
	if err == nil {
		err = pin(dir, o)
	}
	if err != nil {
		return Pins{}, errors.Join(fmt.Errorf("pin namespaces: %w", err), Unpin(dir))
	}
	return Paths(dir, o), nil
}

func pin(dir string, o Options) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if !o.HostIPC {
		if err := mountShm(filepath.Join(dir, "shm"), o); err != nil {
			return err
		}
	}
	if o.IDs.Own() {
		return pinWithUserNamespace(dir, o)
	}
	return OnOwnThread(func() error { return enterAndPin(dir, o) })
}

// mountShm mounts a tmpfs owned by the pod's root, or by the user that it keeps.
func mountShm(shm string, o Options) error {
	if err := os.MkdirAll(shm, 0o700); err != nil {
		return err
	}
	data := fmt.Sprintf("mode=1777,size=%d,uid=%d,gid=%d", cmp.Or(o.ShmBytes, defaultShmBytes), o.IDs.First, o.IDs.First)
	if err := unix.Mount("shm", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, data); err != nil {
		return fmt.Errorf("mount %s: %w", shm, err)
	}
	return nil
}

// OnOwnThread runs f on a thread that exits afterwards. It never uses the main thread, which would not exit but stay in
// the new namespaces, and /proc/self would show these as the namespaces of the process.
func OnOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- OnOwnThread(f) // runs on another thread while this one is locked
			return
		}
		done <- f()
	}()
	return <-done
}

// enterAndPin moves the calling thread into new namespaces and pins them.
func enterAndPin(dir string, o Options) error {
	if err := unix.Unshare(o.flags()); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := setUp(o); err != nil {
		return err
	}
	return bindNamespaces(dir, o, fmt.Sprintf("/proc/self/task/%d/ns", unix.Gettid()))
}

// flags returns the clone flags of the namespaces.
func (o Options) flags() (flags int) {
	for _, k := range kinds {
		if o.has(k.flag) {
			flags |= k.flag
		}
	}
	return flags
}

// setUp initializes the namespaces of the calling thread.
func setUp(o Options) error {
	if o.Network {
		if err := setUpNetwork(); err != nil {
			return err
		}
	}
	if o.Hostname != "" {
		if err := unix.Sethostname([]byte(o.Hostname)); err != nil {
			return fmt.Errorf("set hostname: %w", err)
		}
	}
	return setSysctls(o)
}

// bindNamespaces pins the namespaces in a directory of /proc.
func bindNamespaces(dir string, o Options, from string) error {
	for _, k := range kinds {
		if !o.has(k.flag) {
			continue
		}
		file := filepath.Join(dir, k.name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return err
		}
		if err := unix.Mount(filepath.Join(from, k.name), file, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", file, err)
		}
	}
	return nil
}

// maxPingGroup is the largest group that the kernel accepts in ping_group_range. It also rejects groups that are not mapped.
const maxPingGroup = 1<<31 - 1

// setUpNetwork initializes the network namespace of the calling thread: loopback up, and the sysctls that the CRI plug-in
// of containerd sets for pods with their own network, so that unprivileged processes can bind any port and ping.
func setUpNetwork() error {
	if err := applet.UpLoopback(); err != nil {
		return err
	}
	last := int64(maxPingGroup)
	groups, err := os.ReadFile("/proc/self/gid_map")
	switch {
	case err == nil:
		last = min(proc.LastMapped(string(groups)), last)
	case !errors.Is(err, fs.ErrNotExist): // a kernel without user namespaces
		return fmt.Errorf("read groups of the user namespace: %w", err)
	}
	for _, s := range []struct{ name, value string }{
		{"ip_unprivileged_port_start", "0"},
		{"ping_group_range", "0 " + strconv.FormatInt(last, 10)},
	} {
		err := os.WriteFile("/proc/sys/net/ipv4/"+s.name, []byte(s.value), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set sysctl net.ipv4.%s: %w", s.name, err)
		}
	}
	return nil
}

// pinned reports whether all namespaces are pinned in dir.
func pinned(dir string, o Options) (bool, error) {
	paths := Paths(dir, o)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, path := range []string{paths.User, paths.Network, paths.IPC, paths.UTS, paths.Shm} {
		if path == "" || path == hostShm {
			continue
		}
		if mounted, err := isMounted(path); !mounted {
			return false, err
		}
	}
	return true, nil
}

// Lost reports whether a namespace, or the tmpfs beside them, that was pinned in dir is not mounted any more.
func Lost(dir string) (bool, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	for _, name := range []string{"user", "net", "ipc", "uts", "shm"} {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue // the sandbox has none of its own
		}
		if mounted, err := isMounted(path); !mounted {
			return err == nil, err
		}
	}
	return false, nil
}

// isMounted reports whether path is a mount of a namespace or a tmpfs.
func isMounted(path string) (bool, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("stat %s: %w", path, err)
	}
	if s.Type != unix.NSFS_MAGIC && s.Type != unix.TMPFS_MAGIC {
		return false, nil
	}
	// The directory itself may be on a tmpfs.
	var own, parent unix.Stat_t
	if err := errors.Join(unix.Lstat(path, &own), unix.Lstat(filepath.Dir(path), &parent)); err != nil {
		return false, fmt.Errorf("stat %s: %w", path, err)
	}
	return own.Dev != parent.Dev, nil
}

// Unpin unpins the namespaces in dir. It is no error if there are none. A namespace persists while a process is in it. Copies of the
// mounts, which a recursive bind mount of the host can have created, are unmounted too.
func Unpin(dir string) error {
	var errs []error
	for _, name := range []string{"user", "net", "ipc", "uts", "pid", "shm"} {
		path := filepath.Join(dir, name)
		err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", path, err))
			continue
		}
		err = os.Remove(path)
		if errors.Is(err, unix.EBUSY) {
			err = errors.Join(unmountCopies(path), os.Remove(path))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// unmountCopies unmounts the mounts of a namespace or of shared memory whose mount points end with the last elements of path, which are
// unique because they contain the UID of the pod.
func unmountCopies(path string) error {
	sandbox := filepath.Dir(path)
	suffix := filepath.Join("/", filepath.Base(filepath.Dir(sandbox)), filepath.Base(sandbox), filepath.Base(path))
	list, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return m.FSType != "nsfs" && m.Source != "shm" || !strings.HasSuffix(m.Mountpoint, suffix), false
	})
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	var errs []error
	for _, m := range list {
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", m.Mountpoint, err))
		}
	}
	return errors.Join(errs...)
}

// Package netns makes the namespaces that the containers of a pod share, and keeps them without a process: each is pinned
// by a bind mount in a folder of the sandbox. It owns what lies in that folder: user, net, ipc, uts, and shm, the file system
// for shared memory that belongs to the IPC namespace. A PID namespace is as old as its first process: whoever starts that
// pins it beside the others, as pid.
//
// The mounts are made in the mount namespace of this process, so that must be the one that runtimes see.
package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/spec"
)

// shmBytes is the size of /dev/shm, shared by the containers of a pod: Kubernetes' and Docker's.
const shmBytes = 64 << 20

// Options say which namespaces a pod has of its own.
type Options struct {
	// HostIPC leaves the pod in the machine's IPC namespace, with the machine's /dev/shm.
	HostIPC bool
	// PID says that somebody pins a PID namespace.
	PID bool
	// IDs are a user namespace that the others belong to. It excludes HostIPC; the network must be the pod's own.
	IDs idmap.Range
	// Network is a network namespace with its loopback up.
	Network bool
	// Hostname is the host name in a UTS namespace of the pod's own; empty for the machine's namespace.
	Hostname string
	// Sysctls are the kernel parameters to be set in the pod's own namespaces, after what every pod's are.
	Sysctls []spec.Sysctl
}

// Pins are the paths of what is pinned. Those of namespaces that are not the pod's own are empty; Shm is the machine's then.
type Pins struct{ User, Network, IPC, UTS, PID, Shm string }

// machineShm is the /dev/shm of the machine's IPC namespace.
const machineShm = "/dev/shm"

// kinds are the namespaces that can be pinned, by the name of their file.
var kinds = []struct {
	name string
	flag int
}{{"user", unix.CLONE_NEWUSER}, {"net", unix.CLONE_NEWNET}, {"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}}

func (o Options) wants(flag int) bool {
	switch flag {
	case unix.CLONE_NEWUSER:
		return o.IDs.First != 0
	case unix.CLONE_NEWNET:
		return o.Network
	case unix.CLONE_NEWUTS:
		return o.Hostname != ""
	}
	return !o.HostIPC
}

// Paths are where the namespaces of a sandbox are pinned.
func Paths(dir string, o Options) Pins {
	p := Pins{Shm: machineShm}
	if !o.HostIPC {
		p.IPC, p.Shm = filepath.Join(dir, "ipc"), filepath.Join(dir, "shm")
	}
	if o.Network {
		p.Network = filepath.Join(dir, "net")
	}
	if o.Hostname != "" {
		p.UTS = filepath.Join(dir, "uts")
	}
	if o.IDs.First != 0 {
		p.User = filepath.Join(dir, "user")
	}
	if o.PID {
		p.PID = filepath.Join(dir, "pid")
	}
	return p
}

// Pin makes the namespaces, but for a PID namespace, and pins them in dir, which it makes too, or finds all of them pinned there. Where it fails, or finds only some,
// it takes away what there is; the rest of dir is left alone.
func Pin(dir string, o Options) (Pins, error) {
	if whole, err := pinned(dir, o); err != nil {
		return Pins{}, fmt.Errorf("pin namespaces: %w", err)
	} else if whole {
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
		if err := mountShm(filepath.Join(dir, "shm"), o.IDs); err != nil {
			return err
		}
	}
	if o.IDs.First != 0 {
		return pinOfUsers(dir, o)
	}
	return OnOwnThread(func() error { return enterAndPin(dir, o) })
}

// mountShm mounts a tmpfs that belongs to the pod's root. Files in there belong to whoever makes them.
func mountShm(shm string, ids idmap.Range) error {
	if err := os.MkdirAll(shm, 0o700); err != nil {
		return err
	}
	data := fmt.Sprintf("mode=1777,size=%d,uid=%d,gid=%d", shmBytes, ids.First, ids.First)
	if err := unix.Mount("shm", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, data); err != nil {
		return fmt.Errorf("mount %s: %w", shm, err)
	}
	return nil
}

// OnOwnThread runs f on a thread that ends with it. That is never the main thread: it would not end but stay in the new
// namespaces for as long as the process lives, and /proc/self would show them as the process's own.
func OnOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- OnOwnThread(f) // which cannot come to this thread as long as it is locked
			return
		}
		done <- f()
	}()
	return <-done
}

// enterAndPin moves the calling thread into new namespaces and pins those.
func enterAndPin(dir string, o Options) error {
	if err := unix.Unshare(o.flags()); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := setUp(o); err != nil {
		return err
	}
	return bindAll(dir, o, fmt.Sprintf("/proc/self/task/%d/ns", unix.Gettid()))
}

// flags are the namespaces as the kernel knows them.
func (o Options) flags() (flags int) {
	for _, k := range kinds {
		if o.wants(k.flag) {
			flags |= k.flag
		}
	}
	return flags
}

// setUp prepares the namespaces of the calling thread.
func setUp(o Options) error {
	if o.Network {
		if err := setUpNetwork(); err != nil {
			return err
		}
	}
	if o.Hostname != "" {
		if err := unix.Sethostname([]byte(o.Hostname)); err != nil {
			return fmt.Errorf("set host name: %w", err)
		}
	}
	return setSysctls(o)
}

// bindAll pins the namespaces that lie in a folder of /proc.
func bindAll(dir string, o Options, from string) error {
	for _, k := range kinds {
		if !o.wants(k.flag) {
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

// setUpNetwork prepares the network namespace of the calling thread: loopback up, and what the CRI lets every process of
// a pod do, whose network is its own: listen on any port, and ping.
func setUpNetwork() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	defer unix.Close(socket)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	for _, s := range []struct{ name, value string }{
		{"ip_unprivileged_port_start", "0"},
		{"ping_group_range", "0 2147483647"},
	} {
		err := os.WriteFile("/proc/sys/net/ipv4/"+s.name, []byte(s.value), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set sysctl net.ipv4.%s: %w", s.name, err)
		}
	}
	return nil
}

// pinned reports whether everything is pinned in dir.
func pinned(dir string, o Options) (bool, error) {
	paths := Paths(dir, o)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, path := range []string{paths.User, paths.Network, paths.IPC, paths.UTS, paths.Shm} {
		if path == "" || path == machineShm {
			continue
		}
		if mounted, err := isMounted(path); !mounted {
			return false, err
		}
	}
	return true, nil
}

// isMounted reports whether path is a mount of a namespace or of a tmpfs.
func isMounted(path string) (bool, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("look at %s: %w", path, err)
	}
	if s.Type != unix.NSFS_MAGIC && s.Type != unix.TMPFS_MAGIC {
		return false, nil
	}
	// The folder itself may lie on a tmpfs.
	var own, parent unix.Stat_t
	if err := errors.Join(unix.Lstat(path, &own), unix.Lstat(filepath.Dir(path), &parent)); err != nil {
		return false, fmt.Errorf("look at %s: %w", path, err)
	}
	return own.Dev != parent.Dev, nil
}

// Unpin takes away what is pinned in dir. It is no error if there is nothing. A namespace goes on while a process is in
// it.
func Unpin(dir string) error {
	var errs []error
	for _, name := range []string{"user", "net", "ipc", "uts", "pid", "shm"} {
		path := filepath.Join(dir, name)
		err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", path, err))
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

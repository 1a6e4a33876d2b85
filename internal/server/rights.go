package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// The files that a pod file names are opened with the rights of the client. Otherwise a member of the group podstead could have the
// daemon, which is root, read any file.

// nobody is the user ID (Linux: nobody) of an unknown client.
const nobody = 65534

// peerOf returns the process that sent a request.
func peerOf(ctx context.Context) peer {
	if p, ok := ctx.Value(peerKey{}).(peer); ok {
		return p
	}
	return peer{uid: nobody, gid: nobody}
}

// isTrusted reports whether the client has the rights of the daemon anyway.
func (p peer) isTrusted() bool { return p.uid == 0 || int(p.uid) == os.Geteuid() }

// do calls f with the rights of the client for files.
func (p peer) do(f func() error) error {
	if p.isTrusted() {
		return f()
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with this goroutine
		defer func() {
			if v := recover(); v != nil {
				result <- fmt.Errorf("internal error: %v", v)
			}
		}()
		if err := p.assume(); err != nil {
			result <- fmt.Errorf("assume the rights of uid %d: %w", p.uid, err)
			return
		}
		result <- f()
	}()
	return <-result
}

// assume gives this thread the rights of the client for files, and no capabilities.
func (p peer) assume() error {
	var groups unsafe.Pointer
	if len(p.groups) > 0 {
		groups = unsafe.Pointer(&p.groups[0])
	}
	// The functions of package syscall would change all threads.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(p.groups)), uintptr(groups), 0); errno != 0 {
		return fmt.Errorf("setgroups: %w", errno)
	}
	for _, set := range []struct{ call, id uintptr }{{unix.SYS_SETFSGID, uintptr(p.gid)}, {unix.SYS_SETFSUID, uintptr(p.uid)}} {
		_, _, _ = unix.RawSyscall(set.call, set.id, 0, 0)
		if now, _, _ := unix.RawSyscall(set.call, ^uintptr(0), 0, 0); now != set.id { // an invalid ID changes nothing
			return fmt.Errorf("setfsuid or setfsgid to %d: is %d", set.id, now)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return os.NewSyscallError("capset", unix.Capset(&header, &make([]unix.CapUserData, 2)[0]))
}

// accept reads a pod file as the client, and checks that the client has access to the image archives, host paths and paths in
// waitFor of the pod. Read returns the pod; nil: the file is invalid.
func (p peer) accept(read func() *spec.Pod) error {
	return p.do(func() error {
		if pod := read(); pod != nil && !p.isTrusted() {
			return p.checkPaths(pod)
		}
		return nil
	})
}

// checkPaths is called with the rights of the client.
func (p peer) checkPaths(pod *spec.Pod) error {
	var errs []error
	for i, path := range pod.ImageArchives {
		if err := access(path, unix.R_OK); err != nil && !errors.Is(err, fs.ErrNotExist) { // the pull reports a missing file
			errs = append(errs, fmt.Errorf("imageArchives[%d]: %q: %w", i, path, err))
		}
	}
	for i, entry := range pod.WaitFor {
		c := spec.ParseWaitCondition(entry)
		if c.Kind == spec.WaitPath && errors.Is(access(c.Object, unix.F_OK), fs.ErrPermission) { // the pod would show whether it exists
			errs = append(errs, fmt.Errorf("waitFor[%d]: %q: %w", i, c.Object, fs.ErrPermission))
		}
	}
	for i := range pod.Volumes {
		v := pod.Volumes[i].HostPath
		if v == nil {
			continue
		}
		if err := hostPathAccess(v.Path, readOnly(pod, pod.Volumes[i].Name)); err != nil {
			errs = append(errs, fmt.Errorf("volumes[%d].hostPath.path: %q: %w", i, v.Path, err))
		}
	}
	for i := range pod.Secrets {
		if file := pod.Secrets[i].CredentialFile; file != "" { // the user may read it, but not decrypt it
			errs = append(errs,
				fmt.Errorf("secrets[%d].credentialFile: %q: only root can decrypt credentials: %w", i, file, fs.ErrPermission))
		}
	}
	for field, d := range devicesOf(pod) {
		if err := deviceAccess(d); err != nil {
			errs = append(errs, fmt.Errorf("%s: %q: %w", field, d.Name(), err))
		}
	}
	if len(errs) > 0 {
		e := failure(http.StatusForbidden, "uid %d has no access to files of the pod: %v", p.uid, errors.Join(errs...))
		e.Hint = "host paths and devices require read and write access, or read access with readOnly or permissions = \"r\"; root has all"
		return e
	}
	return nil
}

// applicable checks a pod whose file the daemon is to read again, at every start of the host: it does so as root. The check of
// [peer.accept] would not hold by then, since a client can replace its files by links.
func (p peer) applicable(pod *spec.Pod) error {
	files := hostFiles(pod)
	if p.isTrusted() || len(files) == 0 {
		return nil
	}
	e := failure(http.StatusForbidden, "only root can apply a pod with files of the host (%s), uid %d cannot", strings.Join(files, ", "),
		p.uid)
	e.Hint = "apply the file as root, or run the pod with podstead run FILE"
	return e
}

// hostFiles returns the fields of a pod that refer to files of the host.
func hostFiles(pod *spec.Pod) []string {
	var fields []string
	for i := range pod.ImageArchives {
		fields = append(fields, fmt.Sprintf("imageArchives[%d]", i))
	}
	for i := range pod.Volumes {
		if pod.Volumes[i].HostPath != nil {
			fields = append(fields, fmt.Sprintf("volumes[%d].hostPath", i))
		}
	}
	for field := range devicesOf(pod) {
		fields = append(fields, field)
	}
	for i := range pod.ConfigMaps {
		if pod.ConfigMaps[i].EnvFile != "" {
			fields = append(fields, fmt.Sprintf("configMaps[%d].envFile", i))
		}
	}
	for i := range pod.Secrets {
		if pod.Secrets[i].EnvFile != "" {
			fields = append(fields, fmt.Sprintf("secrets[%d].envFile", i))
		}
		if pod.Secrets[i].CredentialFile != "" {
			fields = append(fields, fmt.Sprintf("secrets[%d].credentialFile", i))
		}
	}
	return fields
}

// devicesOf returns the devices of a pod, with their fields.
func devicesOf(pod *spec.Pod) iter.Seq2[string, *spec.Device] {
	return func(yield func(string, *spec.Device) bool) {
		for i, containers := range [][]spec.Container{pod.InitContainers, pod.Containers} {
			for j := range containers {
				for k := range containers[j].Devices {
					field := fmt.Sprintf("%s[%d].devices[%d]", [...]string{"initContainers", "containers"}[i], j, k)
					if !yield(field, &containers[j].Devices[k]) {
						return
					}
				}
			}
		}
	}
}

// notOfHost are directories of /dev with files of processes: of the daemon's, or that any user can create.
var notOfHost = lazyregexp.New(`^/dev/(fd|mqueue|pts|shm|std(in|out|err))(/|$)`)

// deviceAccess requires access to a character device that exists. The daemon opens its path as root, at every start of the container: what
// is at the path then is that of the host, but can be another device. A directory gives access to devices that are plugged in later.
func deviceAccess(d *spec.Device) error {
	if d.CDI != "" { // its specification may mount any file of the host, and run programs as root
		return fmt.Errorf("%w: only root can use devices of the Container Device Interface", fs.ErrPermission)
	}
	real, err := filepath.EvalSymlinks(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: only root can use a device that does not exist yet", fs.ErrPermission)
	}
	if err != nil {
		return err
	}
	for _, path := range []string{filepath.Clean(d.Path), real} {
		if !strings.HasPrefix(path, "/dev/") || notOfHost.MatchString(path) {
			return fmt.Errorf("%w: only root can use devices outside of /dev", fs.ErrPermission)
		}
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%w: only root can use a directory of devices", fs.ErrPermission)
	}
	if info.Mode()&fs.ModeCharDevice == 0 { // their names follow the content of the medium, and one gives all of its data
		return fmt.Errorf("%w: only root can use block devices", fs.ErrPermission)
	}
	mode := uint32(unix.R_OK | unix.W_OK)
	if !strings.Contains(d.Access(), "w") {
		mode = unix.R_OK
	}
	return access(real, mode)
}

// readOnly reports whether all mounts of a volume are read-only.
func readOnly(pod *spec.Pod, volume string) bool {
	for c := range pod.OwnContainers() {
		for _, m := range c.VolumeMounts {
			if m.Name == volume && !m.ReadOnly {
				return false
			}
		}
	}
	return true
}

// hostPathAccess requires read and write access, and for a directory also if it is mounted read-only: a process in a container can be
// root, and can read what is below a directory that others can only list. A missing path requires access to the directory in which it is
// created.
func hostPathAccess(path string, readOnly bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path):
		return hostPathAccess(filepath.Dir(path), false)
	case err != nil:
		return err
	case info.IsDir():
		return access(path, unix.R_OK|unix.W_OK|unix.X_OK)
	}
	if readOnly {
		return access(path, unix.R_OK)
	}
	return access(path, unix.R_OK|unix.W_OK)
}

// access is faccessat2 with the file system user of the thread. unix.Faccessat would emulate it with another user.
func access(path string, mode uint32) error {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	at := unix.AT_FDCWD
	_, _, errno := unix.Syscall6(unix.SYS_FACCESSAT2, uintptr(at), uintptr(unsafe.Pointer(name)), uintptr(mode), unix.AT_EACCESS, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// pinWithUserNamespace creates a user namespace and namespaces that it owns, and pins them. A multithreaded process
// cannot enter a user namespace, so a stopped process is started in it. Its namespaces are then set up by the host's
// root, which has all capabilities in them.
func pinWithUserNamespace(dir string, o Options) error {
	users, groups := o.IDs.Extents()
	attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{
		Cloneflags:  uintptr(o.flags()),
		UidMappings: sysMappings(users),
		GidMappings: sysMappings(groups),
		// Without it, processes have no supplementary groups.
		GidMappingsEnableSetgroups: true,
		Ptrace:                     true, // the process stops before its first instruction while this thread traces it
		Pdeathsig:                  unix.SIGKILL,
	}}
	return OnOwnThread(func() (err error) {
		process, err := os.StartProcess("/proc/self/exe", []string{"namespaces"}, attr)
		if err != nil {
			return fmt.Errorf("create user namespace: %w", err)
		}
		defer func() {
			_, waited := process.Wait()
			err = errors.Join(err, waited)
		}()
		defer func() { err = errors.Join(err, process.Kill()) }()
		from := fmt.Sprintf("/proc/%d/ns", process.Pid)
		if err := OnOwnThread(func() error { return enterAndSetUp(from, o) }); err != nil {
			return err
		}
		return bindNamespaces(dir, o, from) // only after setUp, since Pin takes pinned namespaces as complete
	})
}

func sysMappings(list []specs.LinuxIDMapping) []syscall.SysProcIDMap {
	maps := make([]syscall.SysProcIDMap, len(list))
	for i, m := range list {
		maps[i] = syscall.SysProcIDMap{ContainerID: int(m.ContainerID), HostID: int(m.HostID), Size: int(m.Size)}
	}
	return maps
}

// enterAndSetUp moves the calling thread into the namespaces in a directory of /proc and initializes them.
func enterAndSetUp(from string, o Options) error {
	for _, k := range kinds {
		if k.flag != unix.CLONE_NEWUSER && o.has(k.flag) {
			if err := enter(filepath.Join(from, k.name), k.flag); err != nil {
				return err
			}
		}
	}
	return setUp(o)
}

// enter moves the calling thread into a namespace.
func enter(path string, flag int) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, flag); err != nil {
		return fmt.Errorf("enter %s: %w", path, err)
	}
	return nil
}

// becomeRoot gives only the calling thread the user ID of the pod's root, without capabilities. The kernel allows this
// user, but not the host's root, to write sysctls of the pod's IPC namespace.
func becomeRoot(ids IDRange) error {
	const keep = ^uintptr(0)
	root := ids.First + ids.Kept // one of them is 0
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(root), keep); errno != 0 {
		return fmt.Errorf("set user ID %d: %w", root, errno)
	}
	return nil
}

// errNoUserNamespaces means that the kernel does not support user namespaces, or that they are disabled.
var errNoUserNamespaces = errors.New("user namespaces are not supported by the kernel, or user.max_user_namespaces is 0")

// CheckUsers reports whether the host supports user namespaces. It does not create one.
func CheckUsers() error { return checkUsers("/proc") }

func checkUsers(proc string) error {
	text, err := os.ReadFile(filepath.Join(proc, "sys/user/max_user_namespaces"))
	if err != nil {
		return errNoUserNamespaces
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || n <= 0 {
		return errNoUserNamespaces
	}
	return nil
}
